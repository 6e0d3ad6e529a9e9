//! Something happened that a scheduler must look at, once.

use super::{AzollaId, EventId};
use crate::Timestamp;
use crate::words;
use serde::{Deserialize, Serialize};

words!(
    /// What happened.
    EventType {
        /// An objective entered TODO.
        TicketReady = "TICKET_READY",
        /// Captures wait.
        CaptureReady = "CAPTURE_READY",
        /// Somebody wants a session manifest.
        ManifestRequested = "MANIFEST_REQUESTED",
    }
);

words!(
    /// Why an event needs no more looking at.
    TerminalReason {
        /// A workorder was made.
        Scheduled = "SCHEDULED",
        /// Its objective is not there.
        MissingTicket = "MISSING_TICKET",
        /// Its objective is not approved work, or not any more.
        NonExecutableStatus = "NON_EXECUTABLE_STATUS",
        /// Something is in its objective's way.
        Blocked = "BLOCKED",
        /// No capture waits any more.
        NoPendingCaptures = "NO_PENDING_CAPTURES",
        /// Nothing has changed since the last manifest.
        Unchanged = "UNCHANGED",
        /// There is no azolla to ask for a manifest.
        NobodyToAsk = "NOBODY_TO_ASK",
    }
);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    pub event_id: EventId,
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// To what: an objective, for TICKET_READY; a capture, for CAPTURE_READY; the azolla, for MANIFEST_REQUESTED.
    pub resource_id: String,
    pub azolla_id: AzollaId,
    pub created_at: Timestamp,
    /// Whether a scheduler has dealt with it. Turns true once.
    pub processed: bool,
}
