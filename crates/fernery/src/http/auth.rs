//! Who calls, and what that role may do.
//!
//! The store's token rows are authoritative. This process keeps a copy that is never older than a second, so that a token
//! revoked elsewhere stops working here; one revoked here stops at the next request. If the rows cannot be read, nobody
//! gets in.

use super::problem::{Code, Refusal, Refused};
use super::token::TokenText;
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

/// Whether the worker endpoints ask for a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerAuth {
    /// They do.
    #[default]
    Token,
    /// They do not; on loopback only, and never for the pipeline's streams.
    None,
}

/// The copy is never older than this.
const AGE_MAX: Duration = Duration::from_secs(1);
/// From this age on, one caller reads the rows again while the others go on with the copy.
const AGE_RENEWED: Duration = Duration::from_millis(500);

/// Said for every token that does not work, so that the answer does not tell which ones exist.
const NO_TOKEN: &str = "send a valid token as `Authorization: Bearer fern_…`";

/// A token that is known.
#[derive(Clone, Debug)]
pub struct KnownToken {
    /// As it is kept.
    pub row: TokenRow,
    /// What it may do.
    pub role: Role,
}

impl KnownToken {
    fn works(&self, now: Timestamp) -> bool {
        self.row.revoked_at.is_none() && self.row.expires_at.is_none_or(|at| now < at)
    }
}

/// Who calls; `None` where no token was needed and none was sent.
#[derive(Clone, Debug, Default)]
pub struct Caller(pub Option<Arc<KnownToken>>);

impl Caller {
    /// The producer's own name on its jobs, where the caller may see no others.
    pub fn only_own(&self) -> Option<&str> {
        self.0.as_ref().filter(|token| token.role == Role::Producer).map(|token| token.row.token_id.as_str())
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
                Err(Refusal::new(Code::Forbidden, format!("this caller may not claim from stream {stream}")))
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
    /// Wakes all who wait for the rows at once. Handing the turn from one to the next would take a thousand callers a
    /// thousand turns of the runtime, and the last of them finds the copy old again.
    refreshed: Notify,
    /// When the rows could last not be read, and why.
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
        self.read(engine, AGE_RENEWED, AGE_MAX).await?;
        let known = {
            let copy = self.copy.read().unwrap_or_else(PoisonError::into_inner);
            copy.tokens.get(token.id()).cloned()
        };
        match known {
            Some(known) if token.matches(&known.row.secret_hash) && known.works(door::wall_clock()) => {
                Ok(Caller(Some(known)))
            }
            _ => Err(refuse()),
        }
    }

    /// Reads the rows again unless the copy is younger than `age_max`.
    pub async fn refresh(&self, engine: &Engine, age_max: Duration) -> Result<(), Refused> {
        self.read(engine, age_max, age_max).await
    }

    /// Reads the rows again unless the copy is younger than `renew`. Whoever finds somebody else at it waits only for a
    /// copy that is younger than `age_max`.
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
            // Those who waited meanwhile share a failure too: one after the other would each wait as long.
            self.recent_failure()?;
        };
        if self.is_fresh(renew) {
            return Ok(());
        }
        self.recent_failure()?;
        let read_at = door::stop_watch();
        let rows = match engine.store().tokens().await {
            Ok(rows) => rows,
            Err(error) => {
                *self.failed() = Some((door::stop_watch(), error.clone()));
                return Err(error.into());
            }
        };
        *self.failed() = None;
        let known = |row: TokenRow| {
            // A role that this version does not know opens nothing.
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

/// The turn to read the rows, given back and told to all who wait however the call ends.
struct Turn<'a> {
    turn: Option<tokio::sync::MutexGuard<'a, ()>>,
    refreshed: &'a Notify,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // In this order: one who wakes while it is taken would wait for ever.
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
