//! What workers ask for, and what a holder says about its job.

use fernery_core::job::lease::Message;
use fernery_core::job::stats::Happening;
use fernery_core::{AttemptId, JobId, LeaseToken, StreamName, Timestamp, TokenHash, WorkerId, limits};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;

/// A claim, ready to be asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Who asks.
    pub worker_id: WorkerId,
    /// Where to look, in this order.
    pub streams: Arc<[StreamName]>,
    /// How many jobs at most.
    pub max: usize,
}

/// A job under a fresh lease.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The job.
    pub job_id: JobId,
    /// This attempt.
    pub attempt_id: AttemptId,
    /// The secret that proves the holder.
    pub lease_token: LeaseToken,
    /// Where it was found.
    pub stream: StreamName,
    /// The message it came by.
    pub message: Message,
    /// What to do, as the producer wrote it.
    pub payload: Box<RawValue>,
    /// Counts every claim.
    pub attempt_no: u32,
    /// How often it may fail.
    pub max_attempts: u32,
    /// When it was claimed, by the clock that decides expiry.
    pub claimed_at: Timestamp,
    /// Until when it holds without a heartbeat.
    pub expires_at: Timestamp,
    /// When this attempt has taken too long.
    pub timeout_at: Option<Timestamp>,
}

impl Claimed {
    /// For the statistics of its stream.
    pub(super) fn happened(&self) -> (StreamName, Timestamp, Happening) {
        let waited = self.claimed_at.since(self.message.ready_at);
        (self.stream.clone(), self.claimed_at, Happening::Claimed { waited })
    }
}

/// A sign of life.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// The job.
    pub job_id: JobId,
    /// Proves the holder.
    pub token_hash: TokenHash,
}

/// The answer to a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeatAnswer {
    /// Still the holder.
    Extended {
        /// Until when.
        expires_at: Timestamp,
        /// An operator wants it ended.
        cancel_requested: bool,
    },
    /// Not, or no longer, the holder.
    LeaseLost,
    /// There is no such job.
    Unknown,
}

/// Names an attempt and proves that the caller holds it.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// The job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Proves the holder.
    pub token_hash: TokenHash,
}

/// A report of success.
#[derive(Clone, Debug)]
pub struct Completion {
    /// By whom, for what.
    pub proof: Proof,
    /// The result, to the byte.
    pub result: Box<RawValue>,
}

/// A report of failure.
#[derive(Clone, Debug)]
pub struct Failure {
    /// By whom, for what.
    pub proof: Proof,
    /// Whether trying again may help.
    pub retryable: bool,
    /// A short code to filter by.
    pub code: String,
    /// The whole error as a JSON object.
    pub error: Box<RawValue>,
}

impl Failure {
    /// As it is stored: what is too long is cut, what cannot be stored is replaced, nothing is refused.
    pub fn new(proof: Proof, mut cause: Cause) -> Self {
        cause.code = cause
            .code
            .chars()
            .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
            .collect();
        cut(&mut cause.code, limits::ERROR_CODE_BYTES_MAX);
        cut(&mut cause.message, limits::ERROR_TEXT_BYTES_MAX);
        if let Some(stack) = &mut cause.stack {
            cut(stack, limits::ERROR_TEXT_BYTES_MAX);
        }
        let error = to_raw_value(&cause).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { proof, retryable: cause.retryable, code: cause.code, error }
    }
}

/// What went wrong, as the holder tells it.
#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    /// A short code to filter by.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Where it went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Whether trying again may help.
    pub retryable: bool,
}

fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_any_length_can_be_reported() {
        let id = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
        let (job_id, attempt_id): (JobId, AttemptId) = (id.parse().unwrap(), id.parse().unwrap());
        let proof = Proof { job_id, attempt_id, token_hash: TokenHash([0; 16]) };
        let long = "ä".repeat(100_000);
        let (code, message, stack) = (format!("a\0{long}"), long.clone(), Some(long));
        let failure = Failure::new(proof, Cause { code, message, stack, retryable: false });
        assert!(failure.code.starts_with("a\u{fffd}ä") && failure.code.len() <= limits::ERROR_CODE_BYTES_MAX);
        assert!(failure.error.get().len() < 2 * limits::ERROR_TEXT_BYTES_MAX + 1_000);
    }
}
