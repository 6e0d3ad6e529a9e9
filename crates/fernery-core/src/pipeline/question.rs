//! A question of an executor, and the answer of a person. An executor that cannot go on ends with a question; the next one
//! is told both.

use super::membrane::{Outcome, outcome};
use super::scheduling::whole_line;
use crate::artifact::{BlockerKind, BlockerRef, OutputBundle};
use crate::limits;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key of a question in the metadata of a bundle. A bundle without it asks by its notes.
pub const KEY: &str = "question";

/// The question of a bundle; `None`: its executor asks nothing.
pub fn asked(bundle: &OutputBundle) -> Option<String> {
    if outcome(&bundle.metadata) != Outcome::Blocked {
        return None;
    }
    let named = bundle.metadata.get(KEY).and_then(Value::as_str).unwrap_or_default();
    let said = [named, &bundle.notes, &bundle.title].into_iter().map(str::trim).find(|text| !text.is_empty());
    let said = said.unwrap_or_default();
    Some(said[..said.floor_char_boundary(limits::QUESTION_BYTES_MAX)].to_string())
}

/// The description of the blocker that a question becomes.
pub fn description(question: &str) -> String {
    whole_line(question)
}

/// The blocker of this question among those of its objective, the newest first.
pub fn blocker<'a>(question: &str, blockers: &'a [BlockerRef]) -> Option<&'a BlockerRef> {
    let wanted = description(question);
    let mut of =
        blockers.iter().rev().filter(|b| b.kind == BlockerKind::UserInput && b.description == wanted);
    let newest = of.next()?;
    // The same question may be asked again: an open blocker counts before one that is resolved.
    if newest.resolved { of.find(|b| !b.resolved).or(Some(newest)) } else { Some(newest) }
}

/// A question with its answer, as an approval shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered {
    /// The run that asked.
    pub run_id: String,
    pub question: String,
    pub answer: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::artifact::{BlockerId, ObjectiveId, OutputId};
    use serde_json::json;

    fn bundle(metadata: Value, notes: &str) -> OutputBundle {
        OutputBundle {
            output_id: OutputId::stored("o"),
            objective_id: ObjectiveId::stored("t"),
            title: "The agent asks a question".into(),
            metadata: serde_json::from_value(metadata).unwrap(),
            content: String::new(),
            notes: notes.into(),
            created_at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn a_question_is_the_one_that_is_named_else_the_notes_else_the_title() {
        let of = |metadata, notes| asked(&bundle(metadata, notes)).unwrap_or_default();
        assert_eq!(of(json!({"outcome": "BLOCKED", "question": " Which? "}), "long"), "Which?");
        assert_eq!(of(json!({"outcome": "BLOCKED", "question": null}), "Which file?\n"), "Which file?");
        assert_eq!(of(json!({"outcome": "BLOCKED"}), ""), "The agent asks a question");
        assert_eq!(asked(&bundle(json!({"outcome": "PATCH", "question": "Which?"}), "")), None);
        let long = "ä".repeat(limits::QUESTION_BYTES_MAX);
        assert_eq!(of(json!({"outcome": "BLOCKED", "question": long}), "").len(), limits::QUESTION_BYTES_MAX);
    }

    #[test]
    fn an_open_blocker_of_a_question_counts_before_a_resolved_one() {
        let of = |id: &str, description: &str, resolved| BlockerRef {
            blocker_id: BlockerId::stored(id),
            kind: BlockerKind::UserInput,
            description: description.into(),
            resolved,
        };
        let all = [of("b1", "Which?", false), of("b2", "Which?", true), of("b3", "Other", false)];
        assert_eq!(blocker("Which?\n- a\n- b", &all).unwrap().blocker_id.as_str(), "b1");
        assert_eq!(blocker("Which?", &all[1..]).unwrap().blocker_id.as_str(), "b2");
        assert_eq!(blocker("What?", &all), None);
    }
}
