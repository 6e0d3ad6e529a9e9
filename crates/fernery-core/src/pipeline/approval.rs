//! What a person is shown before they decide, and what they decided.

use crate::Timestamp;
use crate::artifact::{Objective, ObjectiveId, RecordId};
use crate::blueprint::Blueprint;
use crate::canonical::{self, Digest};
use crate::pipeline::question::Answered;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What an approval covers, and its digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Title, criteria, metadata, and the decisive part of the blueprint.
    pub content: Value,
    /// The digest of `content`.
    pub digest: Digest,
}

/// What an operator is shown before approving an objective.
pub fn shown(objective: &Objective, blueprint: &Blueprint) -> Shown {
    let content = json!({
        "objective_id": objective.objective_id,
        "azolla_id": objective.azolla_id,
        "title": objective.title,
        "acceptance_criteria": objective.acceptance_criteria,
        "metadata": objective.metadata,
        "blueprint": blueprint.decisive(),
    });
    let digest = canonical::digest_of(&content);
    Shown { content, digest }
}

/// What a decision says besides what it is about; part of what was shown, and so of its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The next attempt starts from the base commit, not from what the last one left.
    pub from_scratch: bool,
    /// The question that it answers.
    pub answered: Option<Answered>,
}

/// The keys of [`Terms`] in what was shown.
const FROM_SCRATCH: &str = "from_scratch";
const ANSWERED: &str = "answered";
pub const TERMS: [&str; 2] = [FROM_SCRATCH, ANSWERED];

impl Shown {
    /// With these terms.
    pub fn on(mut self, terms: &Terms) -> Self {
        if *terms != Terms::default() {
            if terms.from_scratch {
                self.content[FROM_SCRATCH] = json!(true);
            }
            if let Some(answered) = &terms.answered {
                self.content[ANSWERED] = json!(answered);
            }
            self.digest = canonical::digest_of(&self.content);
        }
        self
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub record_id: RecordId,
    pub objective_id: ObjectiveId,
    /// APPROVE, CONFIRM, REOPEN, ANSWER or MERGE.
    pub kind: String,
    /// The digest of `shown`.
    pub digest: Digest,
    pub shown: Value,
    pub who: String,
    pub note: Option<String>,
    pub created_at: Timestamp,
}

impl Decision {
    /// Whether it lets work start.
    pub fn approves(&self) -> bool {
        matches!(self.kind.as_str(), "APPROVE" | "REOPEN" | "ANSWER")
    }

    /// What it says besides.
    pub fn terms(&self) -> Terms {
        let answered = self.shown.get(ANSWERED).cloned();
        Terms {
            from_scratch: self.shown.get(FROM_SCRATCH) == Some(&Value::Bool(true)),
            answered: answered.and_then(|answered| serde_json::from_value(answered).ok()),
        }
    }

    /// Whether it covers exactly what would be shown now.
    pub fn covers(&self, now: &Shown) -> bool {
        // The digest of a decision with terms is over these too.
        self.digest == now.digest || self.digest == now.clone().on(&self.terms()).digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_covers_what_was_shown_with_its_terms_and_nothing_else() {
        let shown = |title: &str| {
            let content = json!({"objective_id": "t", "title": title});
            Shown { digest: canonical::digest_of(&content), content }
        };
        let answered = Answered { run_id: "r".into(), question: "Which?".into(), answer: "red".into() };
        let answered = Terms { answered: Some(answered), ..Terms::default() };
        let scratch = Terms { from_scratch: true, ..Terms::default() };
        for terms in [Terms::default(), scratch, answered] {
            let on = shown("a").on(&terms);
            let decision = Decision {
                record_id: RecordId::stored("d"),
                objective_id: ObjectiveId::stored("t"),
                kind: "ANSWER".into(),
                digest: on.digest,
                shown: on.content,
                who: "me".into(),
                note: None,
                created_at: Timestamp::from_millis(0),
            };
            assert_eq!(decision.terms(), terms);
            assert_eq!(decision.digest == shown("a").digest, terms == Terms::default());
            assert!(decision.covers(&shown("a")) && !decision.covers(&shown("b")), "{terms:?}");
        }
    }
}
