//! The bundle of a workorder, however its job ended: a workorder never stays in limbo (invariant 13).

use super::membrane::{Outcome, Parts};
use crate::Timestamp;
use crate::artifact::{Metadata, ObjectiveId, OutputBundle, OutputId};
use crate::job::{AttemptOutcome, JobStatus};
use serde_json::{Value, json};

/// How the job of a workorder ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// An executor handed something in that passed the membrane.
    Completed(Parts),
    /// Its last attempt ended without one.
    Without {
        /// DEAD or CANCELLED.
        status: JobStatus,
        /// How that attempt ended; `None` where it was cancelled before any.
        last: Option<AttemptOutcome>,
        /// What is known of why.
        error: Option<Value>,
    },
}

/// The bundle that it leaves.
pub fn bundle(output_id: OutputId, objective_id: ObjectiveId, ended: Ended, now: Timestamp) -> OutputBundle {
    let (title, content, notes, metadata) = match ended {
        Ended::Completed(parts) => {
            let outcome = parts.outcome();
            let mut metadata = parts.metadata;
            metadata.insert("outcome".into(), outcome.as_str().into());
            (parts.title, parts.content, parts.notes, metadata)
        }
        Ended::Without { status, last, error } => without(status, last, error),
    };
    OutputBundle { output_id, objective_id, title, metadata, content, notes, created_at: now }
}

fn without(
    status: JobStatus,
    last: Option<AttemptOutcome>,
    error: Option<Value>,
) -> (String, String, String, Metadata) {
    let (outcome, title) = match (status, last) {
        (JobStatus::Cancelled, _) => (Outcome::Cancelled, "Cancelled before it was done"),
        (_, Some(AttemptOutcome::TimedOut)) => {
            (Outcome::Budget, "The budget is spent; nothing was handed in")
        }
        (_, Some(AttemptOutcome::Lost)) => (Outcome::Infra, "Its executors were lost; nothing was handed in"),
        _ => (Outcome::Infra, "It could not be executed"),
    };
    let said = error.as_ref().and_then(|error| error["message"].as_str()).unwrap_or("");
    let notes = crate::names::showable(said);
    let metadata = [
        ("outcome".to_string(), json!(outcome.as_str())),
        ("last_attempt".to_string(), json!(last.map(AttemptOutcome::as_str))),
        ("error_code".to_string(), error.map_or(Value::Null, |error| error["code"].clone())),
    ];
    (title.to_string(), String::new(), notes, metadata.into())
}

#[cfg(test)]
mod tests {
    use super::super::membrane::outcome;
    use super::*;

    fn of(ended: Ended) -> OutputBundle {
        bundle(OutputId::stored("o"), ObjectiveId::stored("t"), ended, Timestamp::from_millis(0))
    }

    #[test]
    fn every_end_of_a_job_leaves_a_bundle_that_says_why() {
        let without = |status, last| {
            of(Ended::Without { status, last, error: Some(json!({"code": "c", "message": "m\u{1b}"})) })
        };
        let cases = [
            (JobStatus::Cancelled, None, Outcome::Cancelled),
            (JobStatus::Cancelled, Some(AttemptOutcome::Cancelled), Outcome::Cancelled),
            (JobStatus::Dead, Some(AttemptOutcome::TimedOut), Outcome::Budget),
            (JobStatus::Dead, Some(AttemptOutcome::Lost), Outcome::Infra),
            (JobStatus::Dead, Some(AttemptOutcome::Failed), Outcome::Infra),
            (JobStatus::Dead, Some(AttemptOutcome::Released), Outcome::Infra),
        ];
        for (status, last, wanted) in cases {
            let bundle = without(status, last);
            assert_eq!(outcome(&bundle.metadata), wanted);
            assert_eq!(bundle.notes, "m\u{fffd}");
            assert_eq!(bundle.metadata["error_code"], "c");
        }
    }
}
