//! The one lease.
//!
//! Everything in Fernery that must be done by one hand at a time is held under the lease of this page: a job by a worker
//! that may be anywhere, later an event or a workorder by a polling worker. There is one table of leases and one rule.
//!
//! # Who is authoritative
//!
//! The lease row in the database, and nothing else. Not the worker's belief, not a message, not a clock on another
//! machine. A resource without a lease row is free or finished; with one it is held by whoever can prove it.
//!
//! # Two fences
//!
//! * **The token proves the holder.** A claim makes one random `lease_token`; the row keeps only its hash. Heartbeat,
//!   complete, fail and release match the resource *and* the token in the write itself. Renewal does not change the token.
//! * **The version orders the row.** `claim_version` grows on every acquire, renew, take-over, reap and cancel, and never
//!   goes back. It travels with the resource: ready row, lease row, closing row. Whoever holds no token (reaper, operator,
//!   polling worker) writes only where the version is still the one that was read.
//!
//! No write to a lease matches on an id or a state alone, the reaper's included. Matching on those is how a slow worker finishes the
//! attempt of its successor.
//!
//! # When trust ends
//!
//! Expiry alone takes nothing away. An expired lease is one that the reaper *may* take; until it does, the holder's token
//! is still current and its report is still accepted: the work is done, and refusing it would only do it again. Once the
//! reaper has taken it (the row is gone, the attempt closed as LOST) the token matches nothing for ever.
//!
//! | what happens | what the database says afterwards |
//! |---|---|
//! | holder dies | lease runs out → reaper: attempt LOST, job queued again or dead |
//! | holder is slow, reports after expiry, before the reaper | accepted |
//! | holder is slow, reports after the reaper | 409 `lease_lost`; not one byte changes |
//! | reply to a report is lost, holder reports again | the stored answer again |
//! | control plane dies before the commit | nothing happened; the holder reports again |
//! | control plane dies after the commit | as a lost reply |
//! | clock jumps | leases end early or late: time is lost, safety is not |
//! | database restored from a backup | run the fence: versions go on far beyond, every lease is freed, old tokens match nothing |
//! | attempt passes its time-out while the holder heartbeats | a lease never reaches past the time-out; reaper: TIMED_OUT |

use crate::job::AttemptOutcome;
use crate::names::{AttemptId, BadName, JobId, StreamName};
use crate::parsed::parsed;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Duration;
use uuid::Uuid;

/// By how much `claim_version` is raised after a restore: further than any job can have been written since the backup.
pub const FENCE_STEP: i64 = 1 << 32;

/// The secret that proves who holds a lease. Shown once, to the claimer; never stored, never printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LeaseToken(Uuid);

/// What is stored of a [`LeaseToken`]: the first 16 bytes of its SHA-256. The token has 122 random bits, so neither can be
/// found from the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenHash(pub [u8; 16]);

impl LeaseToken {
    /// Wraps a random UUID.
    pub const fn from_random(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The hash that the lease row keeps.
    pub fn hash(&self) -> TokenHash {
        let digest = Sha256::digest(self.0.as_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        TokenHash(first)
    }
}

impl std::str::FromStr for LeaseToken {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        match Uuid::try_parse(text) {
            Ok(uuid) if text.len() == 36 => Ok(Self(uuid)),
            _ => Err(BadName("lease_token is the UUID that the claim returned".to_string())),
        }
    }
}

impl fmt::Debug for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeaseToken(…)")
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

impl Serialize for LeaseToken {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
    }
}

impl<'de> Deserialize<'de> for LeaseToken {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

/// How often each kind of end that is not a success has happened to a job since it was enqueued or redriven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// FAILED and TIMED_OUT.
    pub failed: u32,
    /// LOST.
    pub lost: u32,
    /// RELEASED.
    pub released: u32,
}

/// Which message a claim came from. `<ms>-<seq>` is its wire form, with or without Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// The place in the stream; new with every enqueue.
    pub seq: i64,
    /// Since when it can be claimed.
    pub ready_at: Timestamp,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ready_at.as_millis(), self.seq)
    }
}

/// A lease row: an open attempt of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// What is held.
    pub job_id: JobId,
    /// The attempt that this lease is.
    pub attempt_id: AttemptId,
    /// Proves the holder.
    pub token_hash: TokenHash,
    /// Who says it holds it.
    pub worker_id: String,
    /// Where the job came from, and goes back to.
    pub stream: StreamName,
    /// The message it was claimed by.
    pub message: Message,
    /// Orders all writes to this resource.
    pub claim_version: i64,
    /// Counts every claim of the job.
    pub attempt_no: u32,
    /// How earlier attempts ended.
    pub tally: Tally,
    /// The job's limit.
    pub max_attempts: u32,
    /// When the claim was made.
    pub started_at: Timestamp,
    /// When the holder was last heard.
    pub heartbeat_at: Timestamp,
    /// From when on the reaper may take it.
    pub expires_at: Timestamp,
    /// When the attempt has taken too long.
    pub timeout_at: Option<Timestamp>,
    /// An operator wants it ended.
    pub cancel_requested: bool,
    /// Freed when the job finishes.
    pub unique_key: Option<String>,
}

impl Holding {
    /// Until when a claim or a heartbeat at `now` holds: a lease never reaches past the attempt's time-out.
    pub fn reach(now: Timestamp, ttl: Duration, timeout_at: Option<Timestamp>) -> Timestamp {
        let end = now.after(ttl);
        timeout_at.map_or(end, |t| end.min(t))
    }

    /// Whether the reaper may take it.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// What the reaper writes when it takes it.
    pub fn expiry_outcome(&self) -> AttemptOutcome {
        match self.timeout_at {
            Some(timeout_at) if timeout_at <= self.expires_at => AttemptOutcome::TimedOut,
            _ => AttemptOutcome::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_never_reaches_past_the_time_out() {
        let now = Timestamp::from_millis(1_000);
        let ttl = Duration::from_secs(60);
        assert_eq!(Holding::reach(now, ttl, None), Timestamp::from_millis(61_000));
        let timeout_at = Some(Timestamp::from_millis(5_000));
        assert_eq!(Holding::reach(now, ttl, timeout_at), Timestamp::from_millis(5_000));
    }

    #[test]
    fn a_token_is_never_printed() {
        let token = LeaseToken::from_random(Uuid::from_u128(7));
        assert!(!format!("{token:?} {:?}", token.hash()).contains('7'));
    }
}
