//! The one lease.
//!
//! Everything in Fernery that must be done by one hand at a time is held under the lease of this page: a job (a workorder is
//! one while it runs) by a worker that may be anywhere, an event or an executed workorder by a polling worker. There is one
//! rule for all of them, and two tables: `leases` has what workers hold, `claims` what polling workers hold.
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
//! Expiry alone takes nothing away. An expired lease is one that somebody *may* take: a claim that asks for its stream, at
//! once, or the reaper, when it comes by. Both settle it by the same rule: the attempt is closed as LOST and counted, the
//! job is queued again or buried or cancelled. Until then the holder's token is still current and its report is still
//! accepted: the work is done, and refusing it would only do it again. Once the lease is taken (the row is gone, the attempt
//! closed) the token matches nothing for ever.
//!
//! A claim settles the expired leases of all streams that it asks for before it looks for ready jobs, so the order of streams
//! holds for them too; within a stream a job that comes back stands behind those that wait. A claim that waits is woken when
//! the next lease runs out. Who looks when is decided in memory (`store/expiry.rs` in the engine), so a claim that finds
//! nothing expired pays nothing for it.
//!
//! | what happens | what the database says afterwards |
//! |---|---|
//! | holder dies | lease runs out → next claim or reaper: attempt LOST, job queued again or dead |
//! | two claims, or a claim and the reaper, find it expired | one of them settles it, LOST is counted once |
//! | holder is slow, reports after expiry, before anybody took it | accepted |
//! | holder is slow, reports after that | 409 `lease_lost`; not one byte changes |
//! | reply to a report is lost, holder reports again | the stored answer again |
//! | control plane dies before the commit | nothing happened; the holder reports again |
//! | control plane dies after the commit | as a lost reply |
//! | clock jumps | leases end early or late: time is lost, safety is not |
//! | database restored from a backup | run the fence: versions go on far beyond, every lease is freed, old tokens match nothing |
//! | attempt passes its time-out while the holder heartbeats | a lease never reaches past the time-out; whoever takes it: TIMED_OUT |
//!
//! # What is written down
//!
//! The lease of an event or a workorder is a claim_record (`schemas/claim_record.schema.json`). What a polling worker holds is
//! checked against the schema before every write (`pipeline/claims.rs` in the engine). A runner's lease is not: it is made,
//! renewed and taken on the path of every job, and its parts ([`JobId`], [`WorkerId`](crate::WorkerId), [`Timestamp`], a
//! version that starts at 0 and grows) admit no record that the schema refuses. The property test
//! `whatever_a_runner_holds_is_a_claim_record` below shows that against the schema file.

use crate::Timestamp;
use crate::job::AttemptOutcome;
use crate::names::{AttemptId, BadName, JobId, StreamName};
use crate::parsed::parsed;
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
    pub lost: u32,
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
    pub job_id: JobId,
    /// The attempt that this lease is.
    pub attempt_id: AttemptId,
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
    pub max_attempts: u32,
    /// When the claim was made.
    pub started_at: Timestamp,
    /// When the holder was last heard.
    pub heartbeat_at: Timestamp,
    /// From when on a claim or the reaper may take it.
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

    /// How its attempt ends when it is taken.
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
    use crate::artifact::{ClaimRecord, ResourceType};
    use crate::{Schema, WorkerId};

    #[test]
    fn a_lease_never_reaches_past_the_time_out() {
        let now = Timestamp::from_millis(1_000);
        let ttl = Duration::from_secs(60);
        assert_eq!(Holding::reach(now, ttl, None), Timestamp::from_millis(61_000));
        let timeout_at = Some(Timestamp::from_millis(5_000));
        assert_eq!(Holding::reach(now, ttl, timeout_at), Timestamp::from_millis(5_000));
    }

    /// Numbers that look random and are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) % end
        }

        fn pick<T: Copy>(&mut self, of: &[T]) -> T {
            of[self.below(of.len() as u64) as usize]
        }

        fn text(&mut self) -> String {
            let chars =
                ['a', 'Z', '0', ' ', '/', ':', '"', '\\', 'ä', '字', '🌿', '\u{301}', '\n', '\u{202e}'];
            let length = self.pick(&[0, 1, 2, 7, 36, 64, 199, 200, 201]);
            (0..length)
                .map(|_| if self.below(40) == 0 { self.pick(&chars) } else { self.pick(&chars[..12]) })
                .collect()
        }
    }

    /// The record of a lease, as the stores read it back.
    fn record_of(held: &Holding) -> serde_json::Value {
        serde_json::json!(ClaimRecord {
            resource_type: ResourceType::Workorder,
            resource_id: held.job_id.to_string(),
            owner_id: held.worker_id.clone(),
            lease_expires_at: held.expires_at,
            heartbeat_at: held.heartbeat_at,
            claim_version: held.claim_version,
        })
    }

    #[test]
    fn whatever_a_runner_holds_is_a_claim_record() {
        let schema = Schema::named("claim_record").unwrap();
        let document = serde_json::from_str(schema.text()).unwrap();
        let whole = jsonschema::options().should_validate_formats(true).build(&document).unwrap();
        let mut numbers = Numbers(14);
        let (mut taken, mut refused) = (0, 0);
        for _ in 0..4_000 {
            let name = numbers.text();
            let now = Timestamp::from_millis(numbers.below(253_370_764_800_000) as i64);
            let ttl = Duration::from_millis(numbers.pick(&[1_000, 60_000, 600_000]));
            let timeout = Duration::from_millis(numbers.below(700_000_000));
            let timeout_at = (numbers.below(2) == 0).then(|| now.after(timeout));
            let mut held = Holding {
                job_id: JobId::from_uuid(Uuid::from_u64_pair(
                    numbers.below(u64::MAX),
                    numbers.below(u64::MAX),
                )),
                attempt_id: AttemptId::from_uuid(Uuid::nil()),
                token_hash: TokenHash([0; 16]),
                worker_id: name.clone(),
                stream: StreamName::stored("diazotroph:PATCH_DIAZOTROPH"),
                message: Message { seq: 1, ready_at: now },
                claim_version: numbers.pick(&[1, 2, FENCE_STEP + 1, i64::MAX - 2]),
                attempt_no: 1,
                tally: Tally::default(),
                max_attempts: 3,
                started_at: now,
                heartbeat_at: now,
                expires_at: Holding::reach(now, ttl, timeout_at),
                timeout_at,
                cancel_requested: false,
                unique_key: None,
            };
            let Ok(worker_id) = WorkerId::new(&name) else {
                // Nobody can claim under this name. What the schema refuses of names is among it.
                refused += 1;
                continue;
            };
            held.worker_id = worker_id.as_str().to_string();
            for renewal in 0..2 {
                let record = record_of(&held);
                assert_eq!(schema.validate(&record).first(), None, "{record}");
                assert!(whole.is_valid(&record), "{record}");
                let later = now.after(ttl * (renewal + 1) / 2);
                held.heartbeat_at = later;
                held.expires_at = Holding::reach(later, ttl, timeout_at);
                held.claim_version += 1;
            }
            taken += 1;
        }
        assert!(taken > 500 && refused > 500, "{taken} {refused}");
        for bad in [String::new(), "ä".repeat(201)] {
            assert!(WorkerId::new(&bad).is_err());
            let mut record = record_of_nobody();
            record["owner_id"] = bad.into();
            assert!(!schema.validate(&record).is_empty() && !whole.is_valid(&record), "{record}");
        }
    }

    fn record_of_nobody() -> serde_json::Value {
        let at = Timestamp::from_millis(0);
        serde_json::json!({"resource_type": "WORKORDER", "resource_id": "w", "owner_id": "o", "lease_expires_at": at,
                           "heartbeat_at": at, "claim_version": 0})
    }

    #[test]
    fn a_token_is_never_printed() {
        let token = LeaseToken::from_random(Uuid::from_u128(7));
        assert!(!format!("{token:?} {:?}", token.hash()).contains('7'));
    }
}
