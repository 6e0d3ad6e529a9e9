//! All that an executor is told.

use super::{Metadata, ObjectiveId, SnapshotId};
use crate::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextSnapshot {
    pub snapshot_id: SnapshotId,
    /// Which objective it was taken of.
    pub objective_id: ObjectiveId,
    /// The objective's, and what the scheduler added.
    pub metadata: Metadata,
    /// Earlier outputs that matter here.
    pub related_yield_refs: Vec<String>,
    /// What the executor is asked, whole.
    pub full_prompt_text: String,
    pub created_at: Timestamp,
}
