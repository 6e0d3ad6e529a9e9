//! An exported folder: every artifact in a file of its own, read and checked as a whole before anything of it is believed.
//!
//! * [`manifest`]: the one file that names all others with their digests; its own digest is the folder's
//! * `shelves`: each file for itself: JSON, canonical, its schema, its name
//! * `references`: what artifacts say of each other
//! * `history`: what the journal's chain says of them
//! * [`arrival`]: what becomes of them in another instance, where nothing that was approved here is approved
//!
//! Whoever changes a file and not the manifest is found out. Whoever computes the manifest anew is found out where the
//! journal's chain covers what was changed, and it does not cover all: not how much a ticket matters, gates' blockers, pauses,
//! counters, instants of events, nor what belongs to a run that was not judged. Whoever computes the chain anew as well is
//! found out only by the folder's digest, kept elsewhere.

pub mod arrival;
mod history;
pub mod manifest;
mod references;
mod shelves;

use crate::Timestamp;
use crate::artifact::{
    AzollaId, ContextSnapshot, Event, EventId, Objective, OutputBundle, OutputId, PauseState, RecordId,
    RunRecord, TerminalReason, Workorder, WorkorderId,
};
use crate::blueprint::Blueprint;
use crate::canonical::Digest;
use crate::journal::{Entry, Head};
use crate::limits;
use crate::pipeline::approval::Decision;
use crate::pipeline::envelope::Spent;
use crate::pipeline::judging::Evidence;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One file: its path in the folder, with `/` between its parts, and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Which one.
    pub path: String,
    /// What is wrong.
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
    /// The artifact.
    pub artifact: T,
    /// What is kept beside it.
    pub beside: B,
}

/// Beside an objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideObjective {
    /// The decision that covers it.
    pub approval: Option<RecordId>,
    /// DONE by the gate, and no person has looked.
    pub unconfirmed: bool,
    /// Gate failures since a person last said go.
    pub failures: u32,
    /// What its attempts have used since then.
    pub spent: Spent,
}

/// Beside an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideEvent {
    /// Which entry of its objective into TODO it tells of.
    pub entry: i64,
    /// Why it needs no more looking at.
    pub reason: Option<TerminalReason>,
    /// The workorder that was made of it.
    pub work_order_id: Option<WorkorderId>,
}

/// Beside a workorder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideWorkorder {
    /// Where it belongs.
    pub azolla_id: AzollaId,
    /// What it was made of.
    pub event_id: EventId,
    /// The blueprint that it was made under, and is judged by.
    pub blueprint: Digest,
    /// Wall time of its attempts.
    pub spent_ms: u64,
    /// When it was executed.
    pub executed_at: Option<Timestamp>,
    /// Its bundle.
    pub output_id: Option<OutputId>,
    /// Whether the gates have spoken.
    pub judged: bool,
    /// How often a gate could not run.
    pub gate_tries: u32,
    /// Whether an operator wanted it ended.
    pub cancelled: bool,
    /// Orders all writes to it.
    pub claim_version: i64,
}

/// Beside a run record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideRun {
    /// What each gate found.
    pub evidence: Vec<Evidence>,
}

/// All that a folder holds, by id. What is in here has been checked.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Of the manifest, and so of everything.
    pub digest: Digest,
    /// The end of the journal's chain.
    pub head: Option<Head>,
    /// Blueprints, by digest.
    pub blueprints: BTreeMap<String, Blueprint>,
    /// Objectives.
    pub objectives: BTreeMap<String, Kept<Objective, BesideObjective>>,
    /// What operators decided.
    pub decisions: BTreeMap<String, Decision>,
    /// Entries into TODO.
    pub events: BTreeMap<String, Kept<Event, BesideEvent>>,
    /// What executors were told.
    pub snapshots: BTreeMap<String, ContextSnapshot>,
    /// What was made of events.
    pub workorders: BTreeMap<String, Kept<Workorder, BesideWorkorder>>,
    /// What came out.
    pub bundles: BTreeMap<String, OutputBundle>,
    /// What the gates said.
    pub runs: BTreeMap<String, Kept<RunRecord, BesideRun>>,
    /// Where objectives stopped, by objective and number.
    pub pauses: BTreeMap<(String, u32), PauseState>,
    /// The journal, in the order of its chain.
    pub journal: Vec<Entry>,
}

/// Reads a folder and checks everything in it against everything else. `now` is the reader's clock.
pub fn read(files: &[File], now: Timestamp) -> Result<Exported, Vec<Fault>> {
    let mut faults = Faults::default();
    let exported = shelves::read(files, &mut faults);
    // Files that cannot be read leave gaps which are no faults of their own.
    if let (Some(exported), true) = (&exported, faults.0.is_empty()) {
        references::check(exported, now, &mut faults);
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
