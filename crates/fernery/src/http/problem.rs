//! Every way in which a request can be refused: one closed list of codes, each with its status and its title.
//!
//! `docs/reference/errors.md` has the same list; a test compares them.

use super::access::repeats::LINES;
use bytes::Bytes;
use fernery_client::wire::{Difference, FieldProblem, Problem};
use fernery_engine::StoreError;
use tracing::error;

macro_rules! codes {
    ($($variant:ident = $word:literal, $status:literal, $title:literal;)+) => {
        /// A stable word for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $title] $variant,)+
        }

        impl Code {
            /// All of them, by status.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// As the wire spells it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// What it means, for people.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)+ }
            }
        }
    };
}

codes!(
    BadRequest = "bad_request", 400, "The request is malformed";
    EmptyBody = "empty_body", 400, "The request needs a JSON body";
    BadJson = "bad_json", 400, "The body is not JSON";
    TooDeep = "too_deep", 400, "The body is nested too deeply";
    DuplicateKey = "duplicate_key", 400, "A JSON object in the body has the same key twice";
    BadId = "bad_id", 400, "The id in the path is not a UUID";
    BadCursor = "bad_cursor", 400, "The cursor does not belong to this list";
    TokenInQuery = "token_in_query", 400, "A token belongs in the Authorization header, never in a URL";
    Unauthorized = "unauthorized", 401, "The request needs a valid token";
    Forbidden = "forbidden", 403, "This token may not do that";
    CrossSite = "cross_site", 403, "Pages of other sites may not send writing requests";
    NotFound = "not_found", 404, "Not found";
    MethodNotAllowed = "method_not_allowed", 405, "This path does not support the method";
    BodyTimeout = "body_timeout", 408, "The body did not arrive in time";
    Conflict = "conflict", 409, "Conflicts with the stored state";
    Changed = "changed", 409, "The resource changed after it was read";
    WrongStatus = "wrong_status", 409, "The ticket's status does not allow this action";
    NoRepository = "no_repository", 409, "The ticket needs a repository, and none is configured for it";
    LeaseLost = "lease_lost", 409, "The caller does not hold the lease, or no longer holds it";
    AttemptClosed = "attempt_closed", 409, "Its holder has already closed the attempt with another report";
    TooLarge = "too_large", 413, "A size limit is exceeded";
    UriTooLong = "uri_too_long", 414, "The URI is longer than 8 KiB";
    UnsupportedMediaType = "unsupported_media_type", 415, "The body must be application/json without Content-Encoding";
    Misdirected = "misdirected", 421, "The Host header does not name this server";
    Invalid = "invalid", 422, "A field has an invalid value";
    UnknownField = "unknown_field", 422, "Unknown field";
    ReservedStream = "reserved_stream", 422, "Producers may not enqueue to this stream";
    TooManyStreams = "too_many_streams", 422, "The stream is new, and the limit of streams is reached";
    UnfitOutput = "unfit_output", 422, "The result is not an output bundle; the attempt stays open";
    Refused = "refused", 422, "The store refused the call";
    RateLimited = "rate_limited", 429, "The token's limit of requests per second is exceeded";
    TooManyWaiting = "too_many_waiting", 429, "Too many calls are waiting";
    HeadersTooLarge = "headers_too_large", 431, "More than 100 headers, or headers larger than 32 KiB";
    Internal = "internal", 500, "Internal error";
    Busy = "busy", 503, "The server is overloaded; try again";
    Unavailable = "unavailable", 503, "The database is not available; try again";
    StoreCorrupt = "store_corrupt", 503, "The database holds a corrupt row";
    StoreBroken = "store_broken", 503, "The database failed; the server accepts no writes until it is restarted";
    NoSpace = "no_space", 507, "The disk is full";
);

impl Code {
    /// After how many seconds the same request is worth another try.
    pub const fn retry_after(self) -> Option<&'static str> {
        match self {
            Self::RateLimited | Self::TooManyWaiting | Self::Busy => Some("1"),
            Self::Unavailable => Some("2"),
            Self::NoSpace | Self::StoreCorrupt | Self::StoreBroken => Some("30"),
            _ => None,
        }
    }
}

/// A request that is refused, and why.
#[derive(Debug)]
pub struct Refusal {
    pub code: Code,
    /// What is wrong with this request.
    pub detail: String,
    /// Which fields are wrong.
    pub errors: Vec<FieldProblem>,
    /// For a worker: whether the attempt that it named is closed.
    pub ack: bool,
    /// The methods of the path, if the method was wrong.
    pub allow: Option<String>,
    /// Fields that only some codes have.
    pub more: More,
}

/// Fields that only some codes have.
#[derive(Debug, Default)]
pub struct More {
    /// `changed`: the digest of what is there now.
    pub digest: Option<String>,
    /// `changed`: what is there now.
    pub shown: Option<serde_json::Value>,
    /// `changed`: what changed since it was read.
    pub difference: Vec<Difference>,
    /// `wrong_status`: the status of the objective.
    pub objective_status: Option<String>,
    /// `wrong_status`: the acts that this status allows.
    pub possible: Vec<String>,
}

/// Boxed: refusals are rare, and every result is as large as its error.
pub type Refused = Box<Refusal>;

impl Refusal {
    /// A refusal without fields.
    pub fn new(code: Code, detail: impl Into<String>) -> Refused {
        let (detail, more) = (detail.into(), More::default());
        Box::new(Self { code, detail, errors: Vec::new(), ack: false, allow: None, more })
    }

    /// A refusal of one field.
    pub fn field(code: Code, pointer: impl Into<String>, detail: impl Into<String>) -> Refused {
        let detail = detail.into();
        let errors = vec![FieldProblem { pointer: pointer.into(), detail: detail.clone() }];
        Box::new(Self { errors, ..*Self::new(code, detail) })
    }

    /// A refusal of several fields.
    pub fn fields(errors: Vec<FieldProblem>) -> Refused {
        let detail = match errors.as_slice() {
            [one] => one.detail.clone(),
            many => format!("{} fields have invalid values", many.len()),
        };
        Box::new(Self { errors, ..*Self::new(Code::Invalid, detail) })
    }

    /// The body. `worker` adds the fields that the worker contract has in every answer.
    pub fn body(&self, worker: bool) -> Bytes {
        let problem = Problem {
            kind: format!("urn:fernery:error:{}", self.code.as_str()),
            title: self.code.title().to_string(),
            status: self.code.status(),
            code: self.code.as_str().to_string(),
            detail: self.detail.clone(),
            errors: self.errors.clone(),
            ok: worker.then_some(false),
            ack: worker.then_some(self.ack),
            digest: self.more.digest.clone(),
            shown: self.more.shown.clone(),
            difference: self.more.difference.clone(),
            objective_status: self.more.objective_status.clone(),
            possible: self.more.possible.clone(),
        };
        serde_json::to_vec(&problem).unwrap_or_default().into()
    }
}

/// Store errors that differ in these first characters get log lines of their own.
const TOLD_APART: usize = 200;

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        // The database's message may contain file names and statements: callers get only the kind, the log gets the message.
        let code = match &error {
            StoreError::Busy(_) => Code::Busy,
            StoreError::Unavailable(_) => Code::Unavailable,
            StoreError::Full(_) => Code::NoSpace,
            StoreError::Refused(why) => return Refusal::new(Code::Refused, why.clone()),
            StoreError::Corrupt(_) => Code::StoreCorrupt,
            StoreError::Broken(_) => Code::StoreBroken,
        };
        match code {
            Code::Busy => tracing::debug!(%error, "the store is busy"),
            // While the store fails, every call fails: do not log each.
            _ => {
                let told: String = error.to_string().chars().take(TOLD_APART).collect();
                if LINES.is_first("the store failed", &told) {
                    error!(%error, "the store failed");
                }
            }
        }
        Refusal::new(code, code.title())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn table() -> String {
        let mut text = String::from(
            "# Error codes\n\nEvery error is `application/problem+json` (RFC 9457) with a stable `code`. On the worker \
             endpoints the body also has\n`\"ok\": false` and `ack`. Answers with a time in the last column carry \
             `Retry-After`.\n\n| code | status | meaning | retry after |\n|---|---|---|---|\n",
        );
        for code in Code::ALL {
            let retry = code.retry_after().map_or(String::new(), |s| format!("{s} s"));
            let _ =
                writeln!(text, "| `{}` | {} | {} | {retry} |", code.as_str(), code.status(), code.title());
        }
        text
    }

    #[test]
    fn the_table_of_codes_in_the_docs_is_this_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/errors.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference")).unwrap();
            std::fs::write(path, table()).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(kept, table(), "run the test with UPDATE=1 to rewrite docs/reference/errors.md");
    }

    #[test]
    fn two_failures_of_the_store_are_two_lines_in_the_log() {
        for why in ["one row", "another row"] {
            let _ = Refused::from(StoreError::Corrupt(why.into()));
            assert!(!LINES.is_first("the store failed", &format!("corrupt: {why}")), "{why} has its line");
        }
    }

    #[test]
    fn codes_are_words_and_stand_by_status() {
        let statuses: Vec<u16> = Code::ALL.iter().map(|c| c.status()).collect();
        assert!(statuses.is_sorted());
        let words: std::collections::BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
    }
}
