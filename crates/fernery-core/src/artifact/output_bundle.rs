//! What came out.

use super::{Metadata, ObjectiveId, OutputId};
use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// An output bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputBundle {
    /// Its id.
    pub output_id: OutputId,
    /// For which objective.
    pub objective_id: ObjectiveId,
    /// What it is, in a line.
    pub title: String,
    /// Facts about it: its outcome, usage, what the kind of executor adds.
    pub metadata: Metadata,
    /// The output itself.
    pub content: String,
    /// What the executor says about it.
    pub notes: String,
    /// When it was taken in.
    pub created_at: Timestamp,
}
