//! A line that somebody threw into the inbox. It is stored as it came, and by itself it starts nothing (invariant 15).

use super::{AzollaId, CaptureId, words};
use crate::Timestamp;
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

/// A capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaptureBuffer {
    /// Its id.
    pub capture_id: CaptureId,
    /// Where it was captured.
    pub azolla_id: AzollaId,
    /// What was captured; bytes that are no text stand escaped, as `inbox::shown` writes them.
    pub raw_content: String,
    /// Where it came from.
    pub source_label: String,
    /// Whether it was looked through.
    pub status: CaptureStatus,
    /// When it was captured.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
