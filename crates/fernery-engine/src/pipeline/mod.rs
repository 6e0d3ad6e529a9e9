//! The pipeline's part of the database: artifacts, and the verbs that change objectives, events and workorders. What belongs to
//! the inbox is in [`inbox`].
//!
//! A verb is a function over [`Sql`]: in one transaction it reads under lock, lets `fernery-core` decide, and writes
//! everything or nothing. Refusals are values, not errors. Who writes what:
//!
//! | table | a row is | written by | changes |
//! |---|---|---|---|
//! | `azollas`, `blueprints` | which blueprint is in force; every blueprint that ever was | `azollas` at start-up | the first by a new blueprint, and by whoever hosts it |
//! | `objectives`, `blockers` | the unit of intent and what is in its way | `objectives`, `decisions`, `blockers`, `scheduling`, `judging`; `azollas` the standing ones | with every step of `lifecycle` |
//! | `decisions` | what an operator decided | `decisions`, `answering`, `person` | never |
//! | `events` | an entry into TODO, captures that wait, a manifest that is wanted | `readiness`, `capture_readiness`, `manifests` | processed, once |
//! | `snapshots`, `workorders` | a bounded piece of work, and what its executor is told | `issuing`, for `scheduling` and `tracks` | executed once, judged once |
//! | `bundles` | what came out, or why nothing did | `execution`, with the end of the job | never |
//! | `runs`, `pauses` | the verdict, and where everything stopped | `judging`, `verdict`; pauses (by `pauses`) also `scheduling`, `blockers`, `deadlines` | never |
//! | `captures` | a line in the inbox | `captures`; `tracks` and `verdict` around its triage | looked through once |
//! | `candidates`, `candidate_captures` | what triage made of captures | `verdict`; `candidates` as a person decides | decided once; a discard can be taken back |
//! | `recurrences` | a line that is captured again and again | `captures`; `recurrences` | raised with each capture; stopped once |
//! | `snoozes` | until when a person does not want to see something | `snoozes` | with every snooze |
//! | `comments` | what a reviewer says about lines of a run's patch | `comments` | by its author, until the ticket goes on |
//! | `viewed_files`, `looks` | what a reviewer has viewed, and which run they looked at last | `viewing` | with every look |
//! | `manifests`, `queries` | what a person should look at; what azollas asked each other and answered | `verdict`, `answers` | never |
//! | all of these | history of another instance, none of it under way | `importing`, into one without tickets | as above |
//! | `past_attempts` | an ended attempt of a job that was in another instance | `importing` | never |
//! | `landings` | how the patch of a ticket comes to its base branch | `landing` | with every step, until the branch has it |
//! | `hosts` | a process that hosts an azolla, and its repositories | `hosts` | said again and again; removed when it ends |
//! | `dependencies` | a ticket that waits for another | `after` | removed when the other is confirmed or has landed |
//! | `notices` | what the outside is to be told | every verb that writes a pause or a manifest | dispatched, once |
//! | `fires` | up to when a schedule was looked at | `manifests` | raised |
//! | `deadlines` | since when an objective's urgency counts | `deadlines` | with the objective; told once |
//! | `claims` | an event or an executed workorder in a polling worker's hands | `claims` | renewed, released |
//! | `bulk_acts` | an act on all jobs that match, and how far it is | `bulk` | with every step, until it has ended; retention |
//! | `journal`, `unsealed`, `seals` | who did what, when, why; and the chain over it | every verb; `journal` | never |

#![allow(
    missing_docs,
    reason = "a field is named after what the protocol calls it; a comment says what a name cannot"
)]

/// Unwraps an accepted answer; a refusal becomes the answer of the function around it.
macro_rules! accepted {
    ($answer:expr) => {
        match $answer {
            Ok(value) => value,
            Err(refusal) => return Ok(Err(refusal)),
        }
    };
}

pub mod acts;
pub mod after;
pub mod answering;
pub mod azollas;
pub mod blockers;
pub mod bulk;
pub mod claims;
pub mod comments;
pub mod decisions;
mod difference;
pub(crate) mod execution;
pub mod exporting;
pub mod gate_input;
pub mod heads;
pub mod hosts;
pub mod ids;
pub mod importing;
pub mod inbox;
mod issuing;
pub mod journal;
pub mod judging;
pub mod landing;
pub mod objectives;
pub mod pauses;
pub mod person;
pub mod readiness;
pub mod reading;
pub mod reviewing;
mod rework;
pub mod room;
pub mod scheduling;
pub mod sifting;
pub mod snoozes;
mod sql;
pub mod stranding;
pub mod streams;
pub mod ticket_state;
pub mod viewing;
pub mod voiding;

pub use sql::{Cell, Column, Row, Sql, Statement, Work};
pub(crate) use sql::{Names, Value, check_written};

use crate::error::{StoreError, StoreResult};
use crate::signals::Signals;
use crate::store::Store;
use crate::supervise::lock;
use fernery_core::artifact::ObjectiveId;
use std::sync::{Arc, Mutex};

/// The workers that are woken after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// An objective entered TODO.
    Readiness,
    /// An event was emitted, or there is room again.
    Scheduler,
    /// A workorder is to be cancelled.
    Canceller,
    /// A workorder was executed.
    Gate,
    /// The journal has a new entry.
    Sealer,
    /// A capture waits, or waits again.
    Captures,
    /// Captures were announced, or the tracks are free.
    Triage,
    /// A manifest is wanted, or the tracks are free.
    Manifest,
    /// There may be something to tell the outside.
    Notices,
    /// A patch may land.
    Landing,
    /// A bulk act was asked for.
    Bulk,
}

impl Stage {
    pub const ALL: [Self; 11] = [
        Self::Readiness,
        Self::Scheduler,
        Self::Canceller,
        Self::Gate,
        Self::Sealer,
        Self::Captures,
        Self::Triage,
        Self::Manifest,
        Self::Notices,
        Self::Landing,
        Self::Bulk,
    ];
    /// The workers that are woken when the tracks of a standing objective are free.
    pub(super) const TRACKS: [Self; 3] = [Self::Captures, Self::Triage, Self::Manifest];
}

/// The way to the substrate, the durable store of artifacts. Cheap to clone.
#[derive(Clone)]
pub struct Substrate {
    store: Arc<dyn Store>,
    signals: Arc<Signals>,
}

impl Substrate {
    /// Over a store that is open.
    pub fn new(store: Arc<dyn Store>, signals: Arc<Signals>) -> Self {
        Self { store, signals }
    }

    /// Runs a verb in a transaction of its own and answers once that is durable. See [`Work`] for what it must bear.
    pub async fn transact<T: Send + 'static>(
        &self,
        verb: impl FnMut(&mut dyn Sql) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let (work, answer) = answering(verb);
        self.store.transact(work).await?;
        answer.take()
    }

    /// As [`Self::transact`], for a verb on one objective. It may share a transaction with verbs on other objectives.
    pub async fn act<T: Send + 'static>(
        &self,
        on: &ObjectiveId,
        verb: impl FnMut(&mut dyn Sql) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let (work, answer) = answering(verb);
        self.store.act(on.to_string(), work).await?;
        answer.take()
    }

    /// Runs a verb that only reads, in one snapshot.
    pub async fn read<T: Send + 'static>(
        &self,
        verb: impl FnMut(&mut dyn Sql) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let (work, answer) = answering(verb);
        self.store.read(work).await?;
        answer.take()
    }

    /// Waits until this stage is nudged. A nudge may be lost, so the caller must also look by itself now and then.
    pub async fn nudged(&self, stage: Stage) {
        self.signals.stages[stage as usize].notified().await;
    }

    pub fn nudge(&self, stage: Stage) {
        self.signals.stages[stage as usize].notify_one();
    }
}

/// Where a verb leaves its answer. It may run more than once; the last answer counts.
pub(crate) struct VerbAnswer<T>(Arc<Mutex<Option<T>>>);

impl<T> VerbAnswer<T> {
    pub(crate) fn take(self) -> StoreResult<T> {
        let answer = lock(&self.0).take();
        answer.ok_or_else(|| StoreError::Corrupt("a transaction got no answer".into()))
    }
}

pub(crate) fn answering<T: Send + 'static>(
    mut verb: impl FnMut(&mut dyn Sql) -> StoreResult<T> + Send + 'static,
) -> (Work, VerbAnswer<T>) {
    let answer = Arc::new(Mutex::new(None));
    let given = answer.clone();
    let work = move |sql: &mut dyn Sql| {
        let done = verb(sql)?;
        *lock(&given) = Some(done);
        Ok(())
    };
    (Box::new(work), VerbAnswer(answer))
}
