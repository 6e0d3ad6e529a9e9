//! Who calls, and what that role may do.
//!
//! The store's token rows are authoritative. This process keeps a copy that is never older than a second, so that a token
//! revoked elsewhere stops working here; one revoked here stops at the next request. If the rows cannot be read, nobody
//! gets in.

use super::token::TokenText;
use crate::http::problem::{Code, Refusal, Refused};
use fernery_client::wire::Role;
use fernery_core::{StreamName, Timestamp};
use fernery_engine::store::TokenRow;
use fernery_engine::{Engine, StoreError, door};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The copy is never older than this.
const AGE_MAX: Duration = Duration::from_secs(1);
/// From this age on, one caller reads the rows again while the others go on with the copy.
const AGE_RENEWED: Duration = Duration::from_millis(500);

/// Time limit for reading the rows: beyond it the disk or the database hangs, and callers get an error.
const READ_WITHIN: Duration = Duration::from_secs(10);

/// The same answer for every invalid token, so that it does not reveal which tokens exist.
const NO_TOKEN: &str = "send a valid token as `Authorization: Bearer fern_…`";

/// A token that is known.
#[derive(Clone, Debug)]
pub struct KnownToken {
    /// The token's row in the store.
    pub row: TokenRow,
    /// What it may do.
    pub role: Role,
}

impl KnownToken {
    fn works(&self, now: Timestamp) -> bool {
        self.row.revoked_at.is_none() && self.row.expires_at.is_none_or(|at| now < at)
    }
}

/// The caller; `None` if no token was needed and none was sent.
#[derive(Clone, Debug, Default)]
pub struct Caller(pub Option<Arc<KnownToken>>);

impl Caller {
    /// The name on the producer's own jobs, if the caller may see no others.
    pub fn only_own(&self) -> Option<&str> {
        self.0.as_ref().filter(|token| token.role == Role::Producer).map(|token| token.row.token_id.as_str())
    }

    /// The azolla that a visitor's token is for. A visitor without one asks as nobody.
    pub fn asks_as(&self) -> Option<&str> {
        let visitor = self.0.as_ref().filter(|token| token.role == Role::Visitor);
        visitor.map(|token| token.row.azolla_id.as_deref().unwrap_or_default())
    }

    /// Whether the caller may claim from these streams.
    pub fn may_claim(&self, streams: &[StreamName]) -> Result<(), Refused> {
        let refused = streams.iter().find(|stream| match &self.0 {
            None => stream.is_reserved(),
            Some(token) => !stream_allowed(&token.row.streams, stream.as_str()),
        });
        match refused {
            None => Ok(()),
            Some(stream) => {
                Err(Refusal::new(Code::Forbidden, format!("this token may not claim from stream {stream}")))
            }
        }
    }
}

/// Whether a stream fits one of the patterns: a name, or a prefix that ends in `*`. No pattern at all fits everything.
fn stream_allowed(patterns: &[String], stream: &str) -> bool {
    patterns.is_empty()
        || patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => stream.starts_with(prefix),
            None => stream == pattern,
        })
}

/// This process's copy of the token rows.
#[derive(Debug, Default)]
pub struct TokenTable {
    copy: RwLock<Copy>,
    refreshing: tokio::sync::Mutex<()>,
    /// Wakes all waiting callers at once. One after the other, a thousand callers would take a thousand turns of the
    /// runtime, and the last would find the copy old again.
    refreshed: Notify,
    /// When reading the rows last failed, and why.
    failed: Mutex<Option<(Instant, StoreError)>>,
}

#[derive(Debug, Default)]
struct Copy {
    tokens: HashMap<String, Arc<KnownToken>>,
    /// When it was read; `None` before the first time.
    read_at: Option<Instant>,
}

impl TokenTable {
    /// Finds out who calls. A token that was sent must work, even where none is needed.
    pub async fn caller(&self, engine: &Engine, headers: &HeaderMap) -> Result<Caller, Refused> {
        let mut sent = headers.get_all(AUTHORIZATION).iter();
        let Some(value) = sent.next() else { return Ok(Caller(None)) };
        if sent.next().is_some() {
            return Err(Refusal::new(Code::BadRequest, "there are two Authorization headers"));
        }
        let refuse = || Refusal::new(Code::Unauthorized, NO_TOKEN);
        let text = value.to_str().ok().and_then(|value| value.split_once(' '));
        let token = match text {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => TokenText::parse(token.trim()),
            _ => None,
        };
        let token = token.ok_or_else(refuse)?;
        match self.working(engine, token.id()).await? {
            Some(known) if token.matches(&known.row.secret_hash) => Ok(Caller(Some(known))),
            _ => Err(refuse()),
        }
    }

    /// The token with this id, if it works now.
    pub async fn working(&self, engine: &Engine, token_id: &str) -> Result<Option<Arc<KnownToken>>, Refused> {
        self.read(engine, AGE_RENEWED, AGE_MAX).await?;
        let copy = self.copy.read().unwrap_or_else(PoisonError::into_inner);
        Ok(copy.tokens.get(token_id).filter(|known| known.works(door::wall_clock())).cloned())
    }

    /// Reads the rows again unless the copy is younger than `age_max`.
    pub async fn refresh(&self, engine: &Engine, age_max: Duration) -> Result<(), Refused> {
        self.read(engine, age_max, age_max).await
    }

    /// Reads the rows again unless the copy is younger than `renew`. If another caller is already reading, waits only
    /// if the copy is older than `age_max`.
    async fn read(&self, engine: &Engine, renew: Duration, age_max: Duration) -> Result<(), Refused> {
        let _turn = loop {
            if self.is_fresh(renew) {
                return Ok(());
            }
            let mut refreshed = pin!(self.refreshed.notified());
            refreshed.as_mut().enable();
            if let Ok(turn) = self.refreshing.try_lock() {
                break Turn { turn: Some(turn), refreshed: &self.refreshed };
            }
            if self.is_fresh(age_max) {
                return Ok(());
            }
            refreshed.await;
            // Callers that waited share the failure: otherwise each would wait for the same time-out in turn.
            self.recent_failure()?;
        };
        if self.is_fresh(renew) {
            return Ok(());
        }
        self.recent_failure()?;
        let read_at = door::stop_watch();
        let within = tokio::time::timeout(READ_WITHIN, engine.store().tokens()).await;
        let hangs = |_| Err(StoreError::Unavailable("could not read the tokens in time".into()));
        let rows = match within.unwrap_or_else(hangs) {
            Ok(rows) => rows,
            Err(error) => {
                *self.failed() = Some((door::stop_watch(), error.clone()));
                return Err(error.into());
            }
        };
        *self.failed() = None;
        let known = |row: TokenRow| {
            // A role unknown to this version grants nothing.
            let role = row.role.parse().ok()?;
            Some((row.token_id.clone(), Arc::new(KnownToken { row, role })))
        };
        let tokens = rows.into_iter().filter_map(known).collect();
        *self.copy.write().unwrap_or_else(PoisonError::into_inner) = Copy { tokens, read_at: Some(read_at) };
        Ok(())
    }

    fn recent_failure(&self) -> Result<(), Refused> {
        let now = door::stop_watch();
        let recent = |at: &&(Instant, StoreError)| now.duration_since(at.0) < Duration::from_secs(1);
        self.failed().as_ref().filter(recent).map_or(Ok(()), |(_, error)| Err(error.clone().into()))
    }

    fn failed(&self) -> MutexGuard<'_, Option<(Instant, StoreError)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_fresh(&self, age_max: Duration) -> bool {
        let copy = self.copy.read().unwrap_or_else(PoisonError::into_inner);
        copy.read_at.is_some_and(|at| door::stop_watch().duration_since(at) < age_max)
    }
}

/// The right to read the rows. However the call ends, it is given back and all waiting callers are woken.
struct Turn<'a> {
    turn: Option<tokio::sync::MutexGuard<'a, ()>>,
    refreshed: &'a Notify,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // First give back, then wake: a caller that wakes too early would wait for ever.
        drop(self.turn.take());
        self.refreshed.notify_waiters();
    }
}

/// The refusal for a caller without a token.
pub fn token_needed() -> Refused {
    Refusal::new(Code::Unauthorized, NO_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_a_prefix() {
        let patterns = ["build".to_string(), "deploy:*".to_string()];
        for (stream, allowed) in [("build", true), ("deploy:eu", true), ("builds", false), ("deploy", false)]
        {
            assert_eq!(stream_allowed(&patterns, stream), allowed, "{stream}");
        }
        assert!(stream_allowed(&[], "anything"));
    }

    #[test]
    fn without_a_token_the_streams_of_the_pipeline_stay_closed() {
        let streams = [StreamName::stored("a"), StreamName::stored("diazotroph:patch")];
        assert!(Caller(None).may_claim(&streams[..1]).is_ok());
        assert!(Caller(None).may_claim(&streams).unwrap_err().detail.contains("diazotroph:patch"));
    }
}
