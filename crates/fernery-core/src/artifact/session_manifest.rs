//! What one person should look at now, over all azollas.

use super::{AzollaId, ManifestId, ObjectiveId, PauseReason};
use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// Where something stopped, as its azolla told it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseSummary {
    pub source_azolla_id: AzollaId,
    pub objective_id: ObjectiveId,
    pub reason: PauseReason,
    /// One to three things to do, the first first.
    pub prioritized_actions: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionManifest {
    pub manifest_id: ManifestId,
    /// The azolla that made it.
    pub azolla_id: AzollaId,
    /// The azollas that were asked.
    pub queried_azolla_ids: Vec<AzollaId>,
    pub pause_state_summary: Vec<PauseSummary>,
    /// One to five things to look at, the first first.
    pub prioritized_orientation: Vec<String>,
    pub created_at: Timestamp,
}
