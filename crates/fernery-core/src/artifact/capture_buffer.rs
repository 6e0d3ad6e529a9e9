//! A line that somebody threw into the inbox. It is stored as it came, and by itself it starts nothing (invariant 15).

use super::{AzollaId, CaptureId};
use crate::Timestamp;
use crate::words;
use serde::{Deserialize, Serialize};

words!(
    /// Whether it was looked through.
    CaptureStatus {
        /// It waits for triage, or a triage of it is under way.
        Pending = "PENDING",
        /// A candidate was made of it.
        Processed = "PROCESSED",
    }
);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureBuffer {
    pub capture_id: CaptureId,
    /// Where it was captured.
    pub azolla_id: AzollaId,
    /// What was captured; bytes that are not UTF-8 are escaped, as `inbox::shown` writes them.
    pub raw_content: String,
    pub source_label: String,
    /// Whether it was looked through.
    pub status: CaptureStatus,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
