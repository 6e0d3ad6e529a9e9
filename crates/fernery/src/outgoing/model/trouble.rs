//! Why a model did not answer, by what can be done about it.

use super::Endpoint;
use std::fmt;
use std::time::Duration;

/// Why there is no answer. No text here contains the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The configured endpoint cannot be used.
    BadEndpoint(String),
    /// Nobody answered there: nothing was sent.
    Unreachable(String),
    /// The connection broke after the question was sent.
    Lost(String),
    /// No answer came in time.
    TimedOut {
        /// After how long.
        after: Duration,
        /// The failure of an earlier try.
        before: Option<String>,
    },
    /// The key is missing or not good enough (401, 403).
    KeyRefused {
        status: u16,
        said: String,
        /// The variable that the key was taken from.
        key_env: Option<String>,
    },
    /// There is no such path or no such model (404).
    NotFound {
        said: String,
        /// The model that was asked for.
        model: String,
    },
    /// Too many questions, or no credit (429).
    RateLimited {
        said: String,
        /// How long the endpoint asks to wait.
        retry_after: Option<Duration>,
    },
    /// The endpoint has trouble of its own (408, 5xx).
    ServerTrouble {
        status: u16,
        said: String,
        /// How long the endpoint asks to wait.
        retry_after: Option<Duration>,
    },
    /// A redirect, which is not followed (3xx).
    Redirected { status: u16 },
    /// The endpoint does not take the question (any other status).
    Rejected { status: u16, said: String },
    /// The model declines to answer.
    Declined(String),
    /// The answer reached its maximum length before its end.
    CutOff {
        /// The maximum, in tokens.
        max_tokens: u32,
    },
    /// The reply has more bytes than are read.
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// The reply is not one of a chat endpoint.
    BadAnswer(String),
}

impl Trouble {
    pub(super) fn of_status(
        status: u16,
        said: String,
        retry_after: Option<Duration>,
        endpoint: &Endpoint,
    ) -> Self {
        match status {
            300..=399 => Self::Redirected { status },
            401 | 403 => Self::KeyRefused { status, said, key_env: endpoint.key_env.clone() },
            404 => Self::NotFound { said, model: endpoint.model.clone() },
            429 => Self::RateLimited { said, retry_after },
            408 | 500.. => Self::ServerTrouble { status, said, retry_after },
            _ => Self::Rejected { status, said },
        }
    }

    /// Whether the same question may succeed later without any change.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Lost(_)
            | Self::TimedOut { .. }
            | Self::RateLimited { .. }
            | Self::ServerTrouble { .. } => true,
            Self::BadEndpoint(_)
            | Self::KeyRefused { .. }
            | Self::NotFound { .. }
            | Self::Redirected { .. }
            | Self::Rejected { .. }
            | Self::Declined(_)
            | Self::CutOff { .. }
            | Self::TooLarge { .. }
            | Self::BadAnswer(_) => false,
        }
    }

    /// How long the endpoint asks to wait, if it says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::ServerTrouble { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadEndpoint(why) => write!(f, "the model cannot be asked: {why}"),
            Self::Unreachable(why) => {
                write!(f, "cannot reach the model: {why}; check base_url, and that the server is running")
            }
            Self::Lost(why) => {
                write!(f, "the connection to the model broke before the answer was complete: {why}")
            }
            Self::TimedOut { after, before: None } => {
                write!(f, "the model has not answered within {after:?}; give it more time or ask for less")
            }
            Self::TimedOut { after, before: Some(before) } => {
                write!(f, "the model has not answered within {after:?}; an earlier try: {before}")
            }
            Self::KeyRefused { status, said, key_env } => {
                write!(f, "the model's endpoint refuses the key ({status}){}; ", Said(said))?;
                match key_env {
                    Some(name) => write!(f, "check the key in {name}"),
                    None => write!(f, "no key is configured: name its variable in key_env"),
                }
            }
            Self::NotFound { said, model } => {
                write!(
                    f,
                    "no model {model}, or no chat endpoint there (404){}; check model and base_url",
                    Said(said)
                )
            }
            Self::RateLimited { said, retry_after } => {
                write!(
                    f,
                    "the model's endpoint limits requests now (429){}{}",
                    Said(said),
                    After(*retry_after)
                )
            }
            Self::ServerTrouble { status, said, retry_after } => {
                write!(f, "the model's endpoint failed ({status}){}{}", Said(said), After(*retry_after))
            }
            Self::Redirected { status } => write!(
                f,
                "the model's endpoint answered with a redirect ({status}), which is not followed; set \
                base_url to its target"
            ),
            Self::Rejected { status, said } => {
                write!(f, "the model's endpoint rejected the request ({status}){}", Said(said))
            }
            Self::Declined(said) => write!(f, "the model refused to answer{}", Said(said)),
            Self::CutOff { max_tokens } => {
                write!(f, "the answer was cut off at {max_tokens} tokens; raise max_tokens or ask for less")
            }
            Self::TooLarge { max } => {
                write!(f, "the reply of the model's endpoint has more than {max} bytes")
            }
            Self::BadAnswer(why) => {
                write!(f, "the reply is not that of a chat endpoint: {why}; check base_url")
            }
        }
    }
}

impl std::error::Error for Trouble {}

/// What an endpoint said, if anything.
struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// When another try makes sense, if that was said.
struct After(Option<Duration>);

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |wait| write!(f, "; it asks to wait {wait:?}"))
    }
}
