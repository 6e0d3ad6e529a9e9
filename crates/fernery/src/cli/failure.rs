//! How a command fails: one line for people, one object for programs, and an exit code that scripts can tell apart.

use super::screen::{json_inert, remark};
use crate::config::ConfigError;
use crate::serve::Stopped;
use fernery_client::ClientError;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::process::ExitCode;

/// It ran and did not succeed.
pub(super) const FAILED: u8 = 1;
/// It was called in a way that cannot work.
pub(super) const USAGE: u8 = 2;
/// Something that it names does not exist.
pub(super) const NOT_FOUND: u8 = 3;
/// Something that it names is in another state, or belongs to another.
pub(super) const CONFLICT: u8 = 4;

/// Why a command did not succeed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    exit: u8,
    code: &'static str,
    message: String,
    /// The server's own problem object.
    problem: Option<Map<String, Value>>,
    /// The status that the server refused with.
    pub(super) status: Option<u16>,
    contact: Contact,
}

/// Whether the one that the command talks to is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contact {
    Kept,
    /// Nobody serves there, and somebody may later.
    Unreachable,
    /// Nobody knows what became of the call, or nobody is there to ask.
    Lost,
}

/// What a command answers with.
pub(super) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// It ran and did not succeed.
    pub(super) fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit: FAILED,
            code,
            message: message.into(),
            problem: None,
            status: None,
            contact: Contact::Kept,
        }
    }

    /// Nobody serves there, and somebody may later.
    pub(super) fn unreachable(message: impl Into<String>) -> Self {
        Self { contact: Contact::Unreachable, ..Self::failed("unreachable", message) }
    }

    /// The server, the output or the terminal went away while the command used it.
    pub(super) fn lost(code: &'static str, message: impl Into<String>) -> Self {
        Self { contact: Contact::Lost, ..Self::failed(code, message) }
    }

    /// It was called in a way that cannot work.
    pub(super) fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: USAGE,
            code: "usage",
            message: message.into(),
            problem: None,
            status: None,
            contact: Contact::Kept,
        }
    }

    /// Something that it names does not exist.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self {
            exit: NOT_FOUND,
            code: "not_found",
            message: message.into(),
            problem: None,
            status: None,
            contact: Contact::Kept,
        }
    }

    /// Something that it names is in another state, or belongs to another.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self {
            exit: CONFLICT,
            code: "conflict",
            message: message.into(),
            problem: None,
            status: None,
            contact: Contact::Kept,
        }
    }

    /// The answer is printed and tells why.
    pub(super) fn told() -> Self {
        Self::failed("", "")
    }

    /// It says all it has to say by its exit code.
    pub(super) fn exited(exit: u8) -> Self {
        Self { exit, ..Self::told() }
    }

    /// The answer is printed and tells what can never work.
    pub(super) fn told_usage() -> Self {
        Self::usage("")
    }

    /// The answer is printed and tells which conflicts there were.
    pub(super) fn told_conflict() -> Self {
        Self::conflict("")
    }

    /// The reader of the output went away: that is its right.
    fn reader_left() -> Self {
        Self {
            exit: 0,
            code: "",
            message: String::new(),
            problem: None,
            status: None,
            contact: Contact::Kept,
        }
    }

    /// The same in words that fit better.
    #[must_use]
    pub(super) fn says(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// What is missing may come, and then the same succeeds: nothing that was named is wrong.
    #[must_use]
    pub(super) fn for_now(mut self) -> Self {
        self.exit = FAILED;
        self
    }

    /// Nobody serves there, and somebody may later.
    pub(super) fn is_unreachable(&self) -> bool {
        self.contact == Contact::Unreachable
    }

    /// There is no such thing.
    pub(super) fn is_not_found(&self) -> bool {
        self.code == "not_found"
    }

    /// Nobody knows what became of it, or nobody is there to ask: the same again is likely to end so.
    pub(super) fn is_lost(&self) -> bool {
        self.contact != Contact::Kept
    }

    /// What is said.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Something to say in front of it.
    #[must_use]
    pub(super) fn context(mut self, text: impl std::fmt::Display) -> Self {
        self.message = format!("{text}: {}", self.message);
        self
    }

    /// Something to say after it.
    #[must_use]
    pub(super) fn hint(mut self, text: impl std::fmt::Display) -> Self {
        self.message = format!("{}; {text}", self.message);
        self
    }

    /// Tells it, and turns it into the exit code.
    pub(super) fn report(self, json: bool) -> ExitCode {
        if self.exit == 0 {
            return ExitCode::SUCCESS;
        }
        if self.message.is_empty() {
            return ExitCode::from(self.exit);
        }
        // Nothing can be done about a closed output; the exit code remains.
        if json {
            let mut object = self.problem.unwrap_or_default();
            object.entry("code").or_insert_with(|| self.code.into());
            object.entry("detail").or_insert_with(|| self.message.clone().into());
            object.insert("message".into(), self.message.into());
            object.insert("exit_code".into(), self.exit.into());
            let _ = writeln!(io::stdout(), "{}", json_inert(&Value::Object(object).to_string()));
        } else {
            remark(&format!("error: {}", self.message));
        }
        ExitCode::from(self.exit)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self {
            exit: USAGE,
            code: "bad_config",
            message: error.0,
            problem: None,
            status: None,
            contact: Contact::Kept,
        }
    }
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Usage(why) => Self::usage(why),
            Stopped::Config(error) => error.into(),
            Stopped::Failed { code, why } => Self::failed(code, why),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::reader_left(),
            _ => Self::lost("output", error.to_string()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        // Several mistakes get a line each.
        let lines = error.lines();
        let message = if lines.len() > 2 { lines.join("\n") } else { error.to_string() };
        match error {
            ClientError::BadUrl(_) | ClientError::BadToken | ClientError::BadCa(_) => Self::usage(message),
            ClientError::BadRequest(_) => Self::failed("bad_request", message),
            ClientError::Unreachable { .. } => Self::unreachable(message).hint("start one with `fernery up`"),
            ClientError::Broken { .. } | ClientError::TimedOut { .. } => {
                Self::lost("no_answer", message).hint("it is unknown whether the call was carried out")
            }
            ClientError::BadResult { .. } => Self::failed("bad_result", message),
            ClientError::Unexpected { .. } => Self::failed("unexpected_answer", message),
            ClientError::Refused { problem, body, .. } => Self {
                status: Some(problem.status),
                exit: match problem.status {
                    400 | 422 => USAGE,
                    404 => NOT_FOUND,
                    409 => CONFLICT,
                    _ => FAILED,
                },
                code: "refused",
                message,
                problem: serde_json::from_slice(&body).ok(),
                contact: Contact::Kept,
            },
        }
    }
}
