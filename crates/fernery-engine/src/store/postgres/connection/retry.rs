//! Errors between a statement and its answer, and what to do next.

use crate::door::Chance;
use crate::error::{StoreError, StoreResult};
use fernery_core::job::retry::RetryPolicy;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_postgres::error::SqlState;
use tracing::debug;

/// Why a try did not end with an answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// No connection, or it was lost where nothing can have been committed.
    Away(String),
    /// The connection was lost while a commit was on its way: it happened or it did not.
    Maybe(String),
    /// Rolled back because of another transaction; the same again may succeed.
    Conflict(String),
    /// The answer is no.
    Final(StoreError),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Final(error)
    }
}

impl Trouble {
    /// Sorts what the driver reports. `committing`: whether the statement could have been committed when it was lost.
    pub(crate) fn from_driver(error: &tokio_postgres::Error, committing: bool) -> Self {
        let lost = |why: String| if committing { Self::Maybe(why) } else { Self::Away(why) };
        let Some(db) = error.as_db_error() else {
            return match std::error::Error::source(error) {
                Some(source) if !error.is_closed() && !is_io(error) => {
                    Self::Final(StoreError::Refused(format!("{error}: {source}")))
                }
                _ => lost(format!("the connection was lost: {error}")),
            };
        };
        // Never the detail: it can quote what a producer stored.
        let said = format!("{} ({})", db.message(), db.code().code());
        match db.code() {
            &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => Self::Conflict(said),
            // A server that goes down may say so after the commit and before its answer.
            &SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN | &SqlState::CANNOT_CONNECT_NOW => {
                lost(said)
            }
            // It became a standby under this connection; another one may lead to the primary.
            &SqlState::READ_ONLY_SQL_TRANSACTION => Self::Away(said),
            &SqlState::QUERY_CANCELED | &SqlState::LOCK_NOT_AVAILABLE => Self::Final(StoreError::Busy(said)),
            &SqlState::TOO_MANY_CONNECTIONS => Self::Away(said),
            &SqlState::DISK_FULL => Self::Final(StoreError::Full(said)),
            &SqlState::OUT_OF_MEMORY => Self::Final(StoreError::Busy(said)),
            &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => Self::Final(StoreError::Corrupt(said)),
            code if code.code().starts_with("08") => lost(said),
            code if code.code().starts_with("57") => lost(said),
            // Another transaction wrote an entry under this id at the same time: the next try finds it.
            &SqlState::UNIQUE_VIOLATION if db.constraint() == Some(JOURNAL_KEY) => Self::Conflict(said),
            code if code.code().starts_with("23") => Self::Final(StoreError::Corrupt(format!(
                "a constraint was violated that always holds: {said}"
            ))),
            _ => Self::Final(StoreError::Refused(said)),
        }
    }

    /// A database that was open before and refuses a connection now (a changed password, a dropped database) is away:
    /// the call itself was not at fault.
    pub(crate) fn or_later(self) -> Self {
        match self {
            Self::Final(StoreError::Refused(why)) => Self::Away(why),
            other => other,
        }
    }

    /// What the caller is told when there is no further try.
    pub(crate) fn into_error(self) -> StoreError {
        match self {
            Self::Away(why) => StoreError::Unavailable(why),
            Self::Maybe(why) => {
                StoreError::Unavailable(format!("it is unknown whether the change was committed: {why}"))
            }
            Self::Conflict(why) => StoreError::Busy(why),
            Self::Final(error) => error,
        }
    }
}

/// The key of the journal: its ids may come from outside.
const JOURNAL_KEY: &str = "journal_pkey";

fn is_io(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

/// How long a verb tries to learn its outcome while the database is away.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a transaction that lost against another one is run again.
const CONFLICTS_MAX: u32 = 5;
/// How long it waits between tries.
const PAUSES: RetryPolicy = RetryPolicy { base: Duration::from_millis(10), cap: Duration::from_millis(500) };

/// The tries of one call.
#[derive(Debug)]
pub(crate) struct Tries {
    chance: Chance,
    deadline: Instant,
    conflicts: u32,
    pauses: u32,
    /// Whether an earlier try may have been committed.
    pub(crate) unsure: bool,
}

impl Tries {
    pub(crate) fn new(chance: Chance) -> Self {
        Self { chance, deadline: Instant::now() + PATIENCE, conflicts: 0, pauses: 0, unsure: false }
    }

    /// For calls that find out by themselves what an earlier try did: waits until the next one is worth it, or answers
    /// with the error for the caller.
    pub(crate) async fn again(&mut self, trouble: Trouble) -> StoreResult<()> {
        match trouble {
            Trouble::Final(error) => return Err(error),
            Trouble::Conflict(_) => {
                self.conflicts += 1;
                if self.conflicts > CONFLICTS_MAX {
                    return Err(trouble.into_error());
                }
            }
            Trouble::Maybe(_) => {
                if !self.unsure {
                    // The statement itself may have used up all patience; learning its outcome needs some of its own.
                    self.deadline = Instant::now() + PATIENCE;
                }
                self.unsure = true;
            }
            Trouble::Away(_) => {}
        }
        // If an earlier try may have been committed, the outcome is unknown even if the last try never reached the
        // database.
        if Instant::now() >= self.deadline {
            let why = match trouble.into_error() {
                StoreError::Unavailable(why) if self.unsure => {
                    StoreError::Unavailable(format!("it is unknown whether the change was committed: {why}"))
                }
                error => error,
            };
            return Err(why);
        }
        debug!(?trouble, "retrying");
        self.pauses += 1;
        // The first try after a lost connection is at once: usually only that connection was lost.
        if self.pauses > 1 || self.conflicts > 0 {
            sleep(PAUSES.wait(self.pauses, self.chance.fraction())).await;
        }
        Ok(())
    }

    /// For calls whose answer depends on whether it was this call that did it: never after an unknown commit.
    pub(crate) async fn again_if_undone(&mut self, trouble: Trouble) -> StoreResult<()> {
        match trouble {
            Trouble::Maybe(_) => Err(trouble.into_error()),
            _ => self.again(trouble).await,
        }
    }
}
