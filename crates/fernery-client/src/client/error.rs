//! Why a call failed, by what the caller can do next.

use crate::wire::{FieldProblem, Problem};
use bytes::Bytes;
use fernery_core::JobId;
use std::fmt;
use std::time::Duration;

/// Why a call failed.
#[derive(Clone, Debug)]
pub enum ClientError {
    /// The server's URL cannot be used.
    BadUrl(String),
    /// The token contains characters that are not allowed in a token.
    BadToken,
    /// The certificates to trust cannot be used.
    BadCa(String),
    /// The request cannot be written as JSON.
    BadRequest(String),
    /// No server answered: nothing was sent.
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        why: String,
    },
    /// The connection broke after the call was sent: it may have been carried out.
    Broken {
        /// Where.
        url: String,
        /// Why.
        why: String,
    },
    /// No answer came in time: the call may have been carried out.
    TimedOut {
        /// Where.
        url: String,
        /// After how long.
        after: Duration,
    },
    /// The server refused.
    Refused {
        /// What it said.
        problem: Box<Problem>,
        /// What it said, as it came.
        body: Bytes,
        /// How long the server asks to wait before a retry.
        retry_after: Option<Duration>,
    },
    /// The job succeeded, but its result cannot be read as the caller's type.
    BadResult {
        /// The job.
        job_id: JobId,
        /// What could not be read.
        why: String,
    },
    /// An answer that this version does not understand.
    Unexpected {
        /// The HTTP status.
        status: u16,
        /// What could not be read.
        why: String,
        /// The value of the `Server` header.
        server: Option<String>,
    },
}

impl ClientError {
    /// What is said, one thing in a line.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Refused { problem, .. } => said(problem),
            other => vec![other.to_string()],
        }
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { problem, .. } => Some(problem.status),
            Self::Unexpected { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// How long the server asks to wait before the same call is sent again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether a retry may succeed. Whether a retry is safe, only the caller knows.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } | Self::TimedOut { .. } => true,
            Self::Refused { .. } | Self::Unexpected { .. } => {
                self.status().is_some_and(|status| status >= 500 || matches!(status, 408 | 429))
            }
            Self::BadUrl(_)
            | Self::BadToken
            | Self::BadCa(_)
            | Self::BadRequest(_)
            | Self::BadResult { .. } => false,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadUrl(why) => write!(f, "invalid server URL: {why}"),
            Self::BadToken => f.write_str("the token contains characters that are not allowed in a token"),
            Self::BadCa(why) => write!(f, "cannot use the trusted certificates: {why}"),
            Self::BadRequest(why) => write!(f, "cannot serialize the request: {why}"),
            Self::Unreachable { url, why } => write!(f, "no server answers at {url} ({why})"),
            Self::Broken { url, why } => {
                write!(f, "the connection to {url} broke before the answer came ({why})")
            }
            Self::TimedOut { url, after } => write!(f, "{url} did not answer within {} s", after.as_secs()),
            Self::Refused { problem, .. } => f.write_str(&said(problem).join("; ")),
            Self::BadResult { job_id, why } => {
                write!(f, "job {job_id} succeeded, but its result has the wrong form: {why}")
            }
            Self::Unexpected { status, why, server } => {
                let ours = env!("CARGO_PKG_VERSION");
                let theirs = server.as_deref().unwrap_or("a server without a version header");
                write!(
                    f,
                    "fernery {ours} does not understand the answer of {theirs} (status {status}: {why})"
                )
            }
        }
    }
}

/// What a server has against a call, one thing after the other.
fn said(problem: &Problem) -> Vec<String> {
    // If one field is wrong, the detail often repeats its message.
    let is_repeated = problem.errors.iter().any(|error| error.detail == problem.detail);
    let detail = (!is_repeated).then(|| problem.detail.clone());
    detail.into_iter().chain(problem.errors.iter().map(in_words)).collect()
}

/// A wrong field as people write it: `metadata.allow`, not `/metadata/allow`.
fn in_words(field: &FieldProblem) -> String {
    match field.pointer.trim_start_matches(['/', '?']) {
        "" => field.detail.clone(),
        name => format!("{}: {}", name.replace('/', "."), field.detail),
    }
}

impl std::error::Error for ClientError {}

/// The root cause: the layers above it only say that they failed.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
