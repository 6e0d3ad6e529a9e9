//! A job as its producer asks for it, and what a producer may ask for.

use super::JobBrief;
use crate::door;
use crate::error::{StoreError, StoreResult};
use fernery_core::calendar::duration::millis_i64;
use fernery_core::json_strict::{self, BadJson};
use fernery_core::names::{BadName, DEAD_LETTER_STREAM, check_unique_key};
use fernery_core::{JobId, JobStatus, StreamName, Timestamp, limits};
use serde_json::value::RawValue;
use std::fmt;
use std::time::Duration;

/// When a new job may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At once.
    Now,
    /// This long after it is stored.
    After(Duration),
    /// At this instant of the calendar.
    At(Timestamp),
}

/// A job as its producer asks for it.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The producer's own id, or `None`: the engine makes one.
    pub job_id: Option<JobId>,
    /// Where it waits.
    pub stream: StreamName,
    /// What the worker gets, to the byte.
    pub payload: Box<RawValue>,
    /// How often it may fail.
    pub max_attempts: u32,
    /// When it may start.
    pub start: Start,
    /// At most one unfinished job has this key.
    pub unique_key: Option<String>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// The producer's token, where that limits what it may read.
    pub producer: Option<String>,
}

impl NewJob {
    /// A job with the defaults.
    pub fn new(stream: StreamName, payload: Box<RawValue>) -> Self {
        Self {
            job_id: None,
            stream,
            payload,
            max_attempts: limits::MAX_ATTEMPTS_DEFAULT,
            start: Start::Now,
            unique_key: None,
            timeout: None,
            producer: None,
        }
    }

    /// What keeps it from being stored. This is the one place for what a producer may ask for: HTTP, the inbox and the
    /// engine inside a program all ask here. The payload is taken for a document that
    /// [`json_strict::scan`] has seen, as a part of a whole body does; [`NewJob::check`] looks itself.
    pub fn unfit(&self) -> Vec<Unfit> {
        let ahead = match self.start {
            Start::Now => Duration::ZERO,
            Start::After(delay) => delay,
            Start::At(at) => at.since(door::wall_clock()),
        };
        let timeout_fits = |timeout: Duration| !timeout.is_zero() && timeout <= limits::TIMEOUT_MAX;
        let bad_key = self.unique_key.as_deref().and_then(|key| check_unique_key(key).err());
        let mut unfit = Vec::new();
        unfit.extend(self.stream.is_reserved().then(|| Unfit::ReservedStream(self.stream.clone())));
        unfit.extend((!self.payload.get().starts_with('{')).then_some(Unfit::NoObject));
        unfit.extend((self.payload.get().len() > limits::PAYLOAD_BYTES_MAX).then_some(Unfit::TooLarge));
        unfit.extend(
            (!(1..=limits::MAX_ATTEMPTS_MAX).contains(&self.max_attempts)).then_some(Unfit::MaxAttempts),
        );
        unfit.extend((ahead > limits::DELAY_MAX).then_some(Unfit::TooFarAhead));
        unfit.extend(bad_key.map(Unfit::UniqueKey));
        unfit.extend((!self.timeout.is_none_or(timeout_fits)).then_some(Unfit::Timeout));
        unfit
    }

    /// Refuses what cannot be stored, for a job whose payload nobody has looked at.
    pub fn check(&self) -> StoreResult<()> {
        let mut unfit = self.unfit();
        // What is too large is not read at all.
        if unfit.is_empty()
            && let Err(bad) = json_strict::scan(self.payload.get(), limits::JSON_DEPTH_MAX)
        {
            unfit.push(Unfit::Payload(bad));
        }
        if unfit.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> = unfit.iter().map(Unfit::to_string).collect();
        Err(StoreError::Refused(reasons.join("; ")))
    }

    /// Where it stands once it is stored.
    pub(super) fn created(&self, job_id: JobId, created_at: Timestamp, run_at: Timestamp) -> JobBrief {
        JobBrief {
            job_id,
            stream: self.stream.clone(),
            status: JobStatus::Queued,
            max_attempts: self.max_attempts,
            created_at,
            run_at,
            finished_at: None,
            producer: self.producer.clone(),
        }
    }

    /// Tells apart "the same again" from "another job under the same id". The payload counts to the byte.
    pub fn content_hash(&self) -> [u8; 16] {
        use sha2::{Digest, Sha256};
        let (start_kind, start_ms) = match self.start {
            Start::Now => (0u8, 0i64),
            Start::After(delay) => (1, millis_i64(delay)),
            Start::At(at) => (2, at.as_millis()),
        };
        let mut sha = Sha256::new();
        for text in [self.stream.as_str(), self.payload.get(), self.unique_key.as_deref().unwrap_or("\0")] {
            sha.update((text.len() as u64).to_le_bytes());
            sha.update(text);
        }
        sha.update(self.max_attempts.to_le_bytes());
        sha.update([start_kind]);
        sha.update(start_ms.to_le_bytes());
        sha.update(self.timeout.map_or(0, |t| t.as_millis() as u64).to_le_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&sha.finalize()[..16]);
        first
    }
}

/// Why a job cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Only the pipeline enqueues there.
    ReservedStream(StreamName),
    /// Its payload is no object.
    NoObject,
    /// Its payload is too large.
    TooLarge,
    /// Its payload means two things to two readers, or nests too deep.
    Payload(BadJson),
    /// It may fail never, or too often.
    MaxAttempts,
    /// It starts later than anybody waits.
    TooFarAhead,
    /// Its unique key is none.
    UniqueKey(BadName),
    /// An attempt may take no time, or too much.
    Timeout,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReservedStream(stream) if stream.as_str() == DEAD_LETTER_STREAM => {
                write!(
                    f,
                    "{stream} is the dead-letter stream: nobody can enqueue to it; retry or redrive puts dead jobs back"
                )
            }
            Self::ReservedStream(stream) => write!(f, "only the pipeline can enqueue to {stream}"),
            Self::NoObject => f.write_str("the payload must be a JSON object"),
            Self::TooLarge => write!(f, "a payload has at most {} bytes", limits::PAYLOAD_BYTES_MAX),
            Self::Payload(bad) => write!(f, "the payload: {bad}"),
            Self::MaxAttempts => write!(f, "max_attempts must be 1 to {}", limits::MAX_ATTEMPTS_MAX),
            Self::TooFarAhead => {
                write!(
                    f,
                    "a job can be scheduled at most {} days ahead",
                    limits::DELAY_MAX.as_secs() / 86_400
                )
            }
            Self::UniqueKey(bad) => bad.fmt(f),
            Self::Timeout => write!(f, "timeout_seconds must be 1 to {}", limits::TIMEOUT_MAX.as_secs()),
        }
    }
}

/// The answer to one enqueued job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It is stored.
    Created(JobBrief),
    /// The same job was stored before under this id.
    Exists(JobBrief),
    /// Its unique key belongs to this unfinished job.
    DuplicateKey(JobBrief),
    /// Its id belongs to another job.
    Conflict(JobId),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_for_producers_is_asked() {
        let job = |payload: &str| {
            NewJob::new(StreamName::stored("s"), RawValue::from_string(payload.into()).expect("JSON"))
        };
        let fit = job("{}");
        assert_eq!(fit.unfit(), []);
        let cases = [
            (NewJob { stream: StreamName::stored("diazotroph:x"), ..fit.clone() }, "only the pipeline"),
            (
                NewJob { stream: StreamName::stored("jobs:dlq"), ..fit.clone() },
                "jobs:dlq is the dead-letter stream",
            ),
            (job("[]"), "a JSON object"),
            (job(&format!("{{\"x\":\"{}\"}}", "x".repeat(1 << 20))), "at most 1048576 bytes"),
            (job(&format!("{{\"x\":{}{}}}", "[".repeat(32), "]".repeat(32))), "nested more than 32"),
            (job(r#"{"a":1,"a":2}"#), "stands twice"),
            (NewJob { max_attempts: 0, ..fit.clone() }, "1 to 1000"),
            (NewJob { max_attempts: 1_001, ..fit.clone() }, "1 to 1000"),
            (NewJob { start: Start::After(limits::DELAY_MAX * 2), ..fit.clone() }, "days ahead"),
            (NewJob { start: Start::At(Timestamp::from_millis(i64::MAX)), ..fit.clone() }, "days ahead"),
            (NewJob { unique_key: Some("a\nb".into()), ..fit.clone() }, "unique_key has"),
            (NewJob { timeout: Some(Duration::ZERO), ..fit.clone() }, "timeout_seconds must be"),
            (NewJob { timeout: Some(limits::TIMEOUT_MAX * 2), ..fit.clone() }, "timeout_seconds must be"),
        ];
        for (job, said) in cases {
            let refused = job.check().expect_err(said).to_string();
            assert!(refused.contains(said), "{refused}");
        }
        let edge = NewJob { max_attempts: 1_000, timeout: Some(limits::TIMEOUT_MAX), ..fit };
        assert_eq!(edge.check(), Ok(()));
    }
}
