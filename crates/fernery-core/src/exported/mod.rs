//! An exported folder: every artifact in a file of its own, read and checked as a whole before anything of it is believed.
//!
//! * [`index`]: the one file that names all others with their digests; its own digest is the folder's
//! * [`beside`]: what is kept beside artifacts, and records that have no artifact of the protocol
//! * `shelves`: each file for itself: JSON, canonical, its schema, its name
//! * `references`, `inbox_references`: what artifacts say of each other
//! * `history`, `inbox_history`: what the journal's chain says of them
//! * [`arrival`]: what becomes of them in another instance, where nothing that was approved here is approved
//!
//! Whoever changes a file and not the index is found out. Whoever computes the index anew is found out where the
//! journal's chain covers what was changed, and it does not cover all: not how much a ticket matters, gates' blockers, pauses,
//! counters, instants of events, what belongs to a run that was not judged, captures that no triage was asked about, the words
//! of candidates and manifests, questions and answers of azollas, attempts, which ticket waits for which, lines that come again,
//! nor what is out of sight. Whoever computes the chain anew as well is
//! found out only by the folder's digest, kept elsewhere.

pub mod arrival;
pub mod beside;
mod history;
mod inbox_history;
mod inbox_references;
pub mod index;
mod references;
mod shelves;

pub use beside::{
    AttemptRecord, BesideCapture, BesideEvent, BesideManifest, BesideObjective, BesideOverdue, BesideQuery,
    BesideRun, BesideWorkorder, CandidateRecord, DependencyRecord, SnoozeRecord, Snoozed,
};
pub use history::tells_of_inbox;

use crate::Timestamp;
use crate::artifact::{
    CaptureBuffer, ContextSnapshot, Event, Objective, ObjectiveType, OutputBundle, PauseState, RunRecord,
    SessionManifest, SubstrateQuery, SubstrateQueryResponse, Workorder,
};
use crate::blueprint::{Blueprint, Gate};
use crate::canonical::{self, Digest};
use crate::inbox::StandIn;
use crate::inbox::recurring::Recurrence;
use crate::journal::{Entry, Head};
use crate::limits;
use crate::pipeline::approval::Decision;
use crate::pipeline::evidence::Evidence;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One file: its path in the folder, with `/` between its parts, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub text: String,
}

impl File {
    /// The file of one artifact, spelled as an export spells it.
    pub fn of(folder: &str, name: impl fmt::Display, artifact: &impl Serialize) -> Self {
        Self { path: format!("{folder}/{name}.json"), text: canonical::text_of(artifact) + "\n" }
    }
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub path: String,
    pub why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}

/// An artifact with what the control plane keeps beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<T, B> {
    pub artifact: T,
    /// What is kept beside it.
    pub beside: B,
}

/// All that a folder holds, by id. What is in here has been checked.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Digest of the index, and so of the whole folder.
    pub digest: Digest,
    /// Whether it is of a version that exported the inbox, too; an older folder has tickets only.
    pub with_inbox: bool,
    /// The end of the journal's chain.
    pub head: Option<Head>,
    /// Blueprints, by digest.
    pub blueprints: BTreeMap<String, Blueprint>,
    pub objectives: BTreeMap<String, Kept<Objective, BesideObjective>>,
    pub decisions: BTreeMap<String, Decision>,
    /// Entries into TODO.
    pub events: BTreeMap<String, Kept<Event, BesideEvent>>,
    /// What executors were told.
    pub snapshots: BTreeMap<String, ContextSnapshot>,
    /// What was made of events.
    pub workorders: BTreeMap<String, Kept<Workorder, BesideWorkorder>>,
    pub bundles: BTreeMap<String, OutputBundle>,
    /// What the gates said.
    pub runs: BTreeMap<String, Kept<RunRecord, BesideRun>>,
    /// Where objectives stopped, by objective and number.
    pub pauses: BTreeMap<(String, u32), PauseState>,
    pub captures: BTreeMap<String, Kept<CaptureBuffer, BesideCapture>>,
    /// What triage made of captures.
    pub candidates: BTreeMap<String, CandidateRecord>,
    /// What a person was told to look at.
    pub manifests: BTreeMap<String, Kept<SessionManifest, BesideManifest>>,
    /// What azollas were asked.
    pub queries: BTreeMap<String, Kept<SubstrateQuery, BesideQuery>>,
    pub responses: BTreeMap<String, SubstrateQueryResponse>,
    /// Pauses of one azolla about objectives of others, by the digest of their key.
    pub overdue: BTreeMap<String, Kept<PauseState, BesideOverdue>>,
    /// Ended attempts of workorders' jobs.
    pub attempts: BTreeMap<String, AttemptRecord>,
    /// Tickets that wait for other tickets, by the names of their files.
    pub dependencies: BTreeMap<String, DependencyRecord>,
    /// Lines that come again.
    pub recurrences: BTreeMap<String, Recurrence>,
    /// What is out of sight, by the names of the files.
    pub snoozes: BTreeMap<String, SnoozeRecord>,
    /// The journal, in the order of its chain.
    pub journal: Vec<Entry>,
}

impl Exported {
    /// Whether this objective stands for an inbox.
    fn is_standing(&self, id: &str) -> bool {
        self.objectives.get(id).is_some_and(|kept| kept.artifact.objective_type == ObjectiveType::Standing)
    }
}

/// The gates that judge a run by what they found: where the built-in rules stand in, not all of its blueprint's do.
fn gates_of(
    blueprint: &Blueprint,
    is_standing: bool,
    asked: Option<&ContextSnapshot>,
    found: &[Evidence],
) -> Vec<Gate> {
    match is_standing && asked.and_then(StandIn::of).is_some() {
        true => blueprint.of_stand_ins().gates,
        false => blueprint.gates_of(found.iter().map(|found| found.gate.as_str())),
    }
}

/// Reads a folder and checks everything in it against everything else. `now` is the reader's clock.
pub fn read(files: &[File], now: Timestamp) -> Result<Exported, Vec<Fault>> {
    let mut faults = Faults::default();
    let exported = shelves::read(files, &mut faults);
    // Skip cross-checks after a parse error: the missing files would only cause follow-up errors.
    if let (Some(exported), true) = (&exported, faults.0.is_empty()) {
        references::check(exported, now, &mut faults);
        inbox_references::check(exported, now, &mut faults);
        history::check(exported, &mut faults);
    }
    match exported {
        Some(exported) if faults.0.is_empty() => Ok(exported),
        _ => Err(faults.0),
    }
}

/// What was found wrong so far.
#[derive(Debug, Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, path: impl Into<String>, why: impl Into<String>) {
        if self.0.len() < limits::IMPORT_FAULTS_MAX {
            self.0.push(Fault { path: path.into(), why: why.into() });
        }
    }

    /// Notes a fault unless something holds.
    fn unless(&mut self, holds: bool, path: &str, why: impl Into<String>) {
        if !holds {
            self.add(path, why);
        }
    }
}
