//! Store errors say what the caller does next.

use std::fmt;

/// Why the store did not do what it was asked. Refusals that are part of the rules are answers, not errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// Too much at once; the same call may succeed in a moment.
    Busy(String),
    /// The database is away, or the outcome of a commit is unknown. The same call again tells, where it carries an id: a
    /// report its attempt, an enqueue its `job_id`.
    Unavailable(String),
    /// No space left: reads go on, writes succeed again once there is space.
    Full(String),
    /// The call can never succeed as it is.
    Refused(String),
    /// A row makes no sense. The call fails; others go on.
    Corrupt(String),
    /// The database itself failed (a sync, a torn page). No further write is accepted; start anew to recover.
    Broken(String),
}

/// What every verb of the store answers with.
pub type StoreResult<T> = Result<T, StoreError>;

impl StoreError {
    /// Whether one call among those that shared a transaction can be at fault: each alone may succeed.
    pub fn is_of_one_call(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Busy(_) | Self::Corrupt(_))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(why) => write!(f, "busy: {why}"),
            Self::Unavailable(why) => write!(f, "unavailable: {why}"),
            Self::Full(why) => write!(f, "no space: {why}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Corrupt(why) => write!(f, "corrupt: {why}"),
            Self::Broken(why) => write!(f, "broken: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}
