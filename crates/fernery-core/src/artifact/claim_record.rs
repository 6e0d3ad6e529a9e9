//! The lease of `lease`, as the protocol writes it down.

use crate::Timestamp;
use crate::words;
use serde::{Deserialize, Serialize};

words!(
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
    pub resource_id: String,
    pub owner_id: String,
    /// Until when, unless renewed.
    pub lease_expires_at: Timestamp,
    /// When it was last renewed.
    pub heartbeat_at: Timestamp,
    /// Grows with every change; never goes back.
    pub claim_version: i64,
}
