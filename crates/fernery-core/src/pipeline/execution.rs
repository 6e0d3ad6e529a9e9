//! The bundle of a workorder, however its job ended: every workorder gets one (invariant 13).

use super::membrane::{Outcome, Parts};
use crate::Timestamp;
use crate::artifact::{Metadata, ObjectiveId, OutputBundle, OutputId};
use crate::job::{AttemptOutcome, JobStatus};
use serde_json::{Value, json};

/// How the job of a workorder ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// An executor handed in a result that passed the membrane.
    Completed(Parts),
    /// Its last attempt ended without a result.
    Without {
        /// DEAD or CANCELLED.
        status: JobStatus,
        /// How that attempt ended; `None` if it was cancelled before the first attempt.
        last: Option<AttemptOutcome>,
        /// The error, if known.
        error: Option<Value>,
    },
}

/// The notes of a bundle whose budget was spent: what happened, what was captured, and then what its executor said.
pub fn notes_of_spent_budget(wall_ms: Option<u64>, captured: &str, said: &str) -> String {
    let after = wall_ms.map_or(String::new(), |ms| format!(" after {}.{} s", ms / 1000, ms % 1000 / 100));
    let notes = format!(
        "Its budget was spent{after}, and everything that ran for it was ended. Captured: {captured}."
    );
    match said.trim() {
        "" => notes,
        said => format!("{notes}\n\n{said}"),
    }
}

/// The bundle for this end.
pub fn bundle(output_id: OutputId, objective_id: ObjectiveId, ended: Ended, now: Timestamp) -> OutputBundle {
    let (title, content, notes, metadata) = match ended {
        Ended::Completed(parts) => {
            let outcome = parts.outcome();
            let mut metadata = parts.metadata;
            metadata.insert("outcome".into(), outcome.as_str().into());
            // An executor of somebody else's may not say what happened.
            let notes = match (outcome, parts.notes.trim(), parts.content.len()) {
                (Outcome::Budget, "", 0) => notes_of_spent_budget(None, "nothing", ""),
                (Outcome::Budget, "", bytes) => {
                    notes_of_spent_budget(None, &format!("{bytes} bytes of output"), "")
                }
                _ => parts.notes,
            };
            (parts.title, parts.content, notes, metadata)
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
    let said = crate::names::showable(said);
    let notes = match outcome {
        Outcome::Budget => notes_of_spent_budget(None, "nothing, because nothing was handed in", &said),
        _ => said,
    };
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
            assert!(bundle.notes.ends_with("m\u{fffd}"), "{}", bundle.notes);
            let of_budget =
                bundle.notes.contains("budget was spent") && bundle.notes.contains("Captured: nothing");
            assert_eq!(of_budget, wanted == Outcome::Budget, "{}", bundle.notes);
            assert_eq!(bundle.metadata["error_code"], "c");
        }
    }

    #[test]
    fn a_bundle_of_a_spent_budget_says_so_although_its_executor_does_not() {
        for (outcome, content, said, wanted) in [
            ("BUDGET", "half", " ", "Captured: 4 bytes of output."),
            ("BUDGET", "", "", "Captured: nothing."),
            ("BUDGET", "half", "I was slow", "I was slow"),
            ("INFRA", "", "", ""),
        ] {
            let parts = Parts {
                title: "t".into(),
                content: content.into(),
                notes: said.into(),
                metadata: [("outcome".to_string(), json!(outcome))].into(),
            };
            let notes = of(Ended::Completed(parts)).notes;
            assert!(notes.ends_with(wanted) && wanted.is_empty() == notes.is_empty(), "{outcome}: {notes}");
        }
    }
}
