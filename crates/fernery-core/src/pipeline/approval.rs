//! What a person is shown before they decide, and what they decided.

use crate::Timestamp;
use crate::artifact::{Objective, ObjectiveId, RecordId};
use crate::blueprint::Blueprint;
use crate::canonical::{self, Digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What an approval covers, and its digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Title, criteria, metadata, and what of the blueprint decides what runs and how it is judged.
    pub content: Value,
    /// Of exactly that.
    pub digest: Digest,
}

/// What is shown of an objective to whoever is to approve it.
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

/// What an operator decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// Its id.
    pub record_id: RecordId,
    /// About which objective.
    pub objective_id: ObjectiveId,
    /// APPROVE, CONFIRM or REOPEN.
    pub kind: String,
    /// Of what was shown.
    pub digest: Digest,
    /// What was shown.
    pub shown: Value,
    /// Who decided.
    pub who: String,
    /// What they said.
    pub note: Option<String>,
    /// When.
    pub created_at: Timestamp,
}

impl Decision {
    /// Whether it lets work start.
    pub fn approves(&self) -> bool {
        matches!(self.kind.as_str(), "APPROVE" | "REOPEN")
    }
}
