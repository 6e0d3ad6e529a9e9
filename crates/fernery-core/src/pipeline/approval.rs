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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub record_id: RecordId,
    pub objective_id: ObjectiveId,
    /// APPROVE, CONFIRM or REOPEN.
    pub kind: String,
    /// The digest of `shown`.
    pub digest: Digest,
    pub shown: Value,
    pub who: String,
    /// Their note.
    pub note: Option<String>,
    pub created_at: Timestamp,
}

impl Decision {
    /// Whether it lets work start.
    pub fn approves(&self) -> bool {
        matches!(self.kind.as_str(), "APPROVE" | "REOPEN")
    }
}
