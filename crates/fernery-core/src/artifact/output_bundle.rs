//! What came out.

use super::{Metadata, ObjectiveId, OutputId};
use crate::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputBundle {
    pub output_id: OutputId,
    pub objective_id: ObjectiveId,
    /// What it is, in a line.
    pub title: String,
    /// Facts about it: its outcome, usage, what the kind of executor adds.
    pub metadata: Metadata,
    pub content: String,
    /// What the executor says about it.
    pub notes: String,
    /// When it was taken in.
    pub created_at: Timestamp,
}
