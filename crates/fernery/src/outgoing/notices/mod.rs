//! Tells the outside that there is something new: by a webhook ([`send`]) or by a program of the operator's
//! ([`run_hook`]).
//!
//! A notice is a nudge. The database says what is the case; a notice that is lost, late or told twice changes nothing
//! there, and its id lets a receiver tell the repetition. Whether and when one that was not told is tried again is the
//! caller's to decide, from the two kinds of [`NotSent`].
//!
//! # How a receiver checks a webhook
//!
//! Every call has these headers:
//!
//! | header | value |
//! |---|---|
//! | `fernery-notice-id` | the same each time the notice is told |
//! | `fernery-timestamp` | when this call was made, in seconds since 1970 |
//! | `fernery-signature` | `v1=` and 64 lower-case hex digits |
//!
//! 1. Take the body as the bytes that came, before anything parses them.
//! 2. Compute HMAC-SHA-256, under the secret, of the timestamp as it is written, a full stop, and the body.
//! 3. Compare with the signature in constant time, and refuse the call if they differ.
//! 4. Refuse a timestamp that is more than five minutes from now: somebody may have kept an old call.
//! 5. Answer with a 2xx at once. A notice whose id was seen before needs no second look. The id itself is not signed: trust
//!    what the body says.
//!
//! In Python: `hmac.new(secret, timestamp + b"." + body, hashlib.sha256).hexdigest()`.

mod hook;
mod webhook;

pub use hook::{run_hook, run_hook_under};
pub use webhook::{Allowed, Webhook, send};

use std::fmt;

/// Why a notice could not be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// A retry would fail again: somebody has to change something first.
    Refused(String),
    /// A later retry may succeed.
    Later(String),
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(why) | Self::Later(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for NotSent {}
