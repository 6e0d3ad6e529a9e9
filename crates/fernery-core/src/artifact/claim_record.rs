//! The lease of `lease`, as the protocol writes it down.

use super::words;
use crate::Timestamp;
use serde::{Deserialize, Serialize};

words!(
    /// What is held.
    ResourceType {
        /// By a scheduler.
        Event = "EVENT",
        /// By an executor, then by the gate.
        Workorder = "WORKORDER",
    }
);

/// A claim that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRecord {
    /// What kind of thing is held.
    pub resource_type: ResourceType,
    /// Which.
    pub resource_id: String,
    /// By whom.
    pub owner_id: String,
    /// Until when, unless renewed.
    pub lease_expires_at: Timestamp,
    /// When it was last renewed.
    pub heartbeat_at: Timestamp,
    /// Grows with every change; never goes back.
    pub claim_version: i64,
}
