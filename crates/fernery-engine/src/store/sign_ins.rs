//! Sign-ins of people at the pages: one-time links, and the sessions of browsers. Each stands for a token, and may what that
//! token may: a token that is revoked or expired ends its sessions without any write.
//!
//! Secrets are kept as hashes. All times are by the clock that decides expiry, which no caller can move.

use super::Transactions;
use crate::error::StoreResult;
use crate::pipeline::{Cell, Row, Sql, answering};
use async_trait::async_trait;
use fernery_core::Timestamp;
use std::time::Duration;

/// A link or a session that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSignIn {
    /// Its public part.
    pub id: String,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// How long it works.
    pub life: Duration,
}

/// A session that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserSession {
    /// Its public part.
    pub session_id: String,
    /// The token that it stands for.
    pub token_id: String,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// When its person signed in.
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub expires_at: Timestamp,
    /// How long ago its person signed in.
    pub age: Duration,
}

/// What a row of `sign_ins` is.
const LINK: &str = "LINK";
const SESSION: &str = "SESSION";

/// Links and sessions.
#[async_trait]
pub trait SignIns: Transactions {
    /// Keeps a link for a token; `false` if its id is taken.
    async fn add_link(&self, link: NewSignIn, token_id: String) -> StoreResult<bool> {
        let (work, answer) = answering(move |sql| insert(sql, LINK, &link, &token_id));
        self.transact(work).await?;
        answer.take()
    }

    /// Opens a session for a token; `false` if its id is taken.
    async fn add_session(&self, session: NewSignIn, token_id: String) -> StoreResult<bool> {
        let (work, answer) = answering(move |sql| insert(sql, SESSION, &session, &token_id));
        self.transact(work).await?;
        answer.take()
    }

    /// Spends a link and opens the session in one step; answers the token. `None`: the link is unknown, spent or too old. Of
    /// two calls for one link, one gets `None`.
    async fn spend_link(
        &self,
        (link_id, secret_hash): (String, [u8; 32]),
        session: NewSignIn,
    ) -> StoreResult<Option<String>> {
        let (work, answer) = answering(move |sql| {
            let cells: [Cell<'_>; 3] = [(&link_id).into(), Cell::Bytes(&secret_hash), sql.now().into()];
            let spent = sql.query(include_str!("sql/link_spend.sql"), &cells)?;
            let Some(row) = spent.first() else { return Ok(None) };
            let token_id = row.text(0)?.to_string();
            Ok(insert(sql, SESSION, &session, &token_id)?.then_some(token_id))
        });
        self.transact(work).await?;
        answer.take()
    }

    /// A session that has not ended.
    async fn session(&self, session_id: String) -> StoreResult<Option<BrowserSession>> {
        let (work, answer) = answering(move |sql| {
            let now = sql.now();
            let found =
                sql.query(include_str!("sql/session_by_id.sql"), &[(&session_id).into(), now.into()])?;
            found.first().map(|row| session(row, now)).transpose()
        });
        self.read(work).await?;
        answer.take()
    }

    /// The newest sessions that have not ended.
    async fn sessions(&self, limit: usize) -> StoreResult<Vec<BrowserSession>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (work, answer) = answering(move |sql| {
            let now = sql.now();
            let found = sql.query(include_str!("sql/sessions_all.sql"), &[now.into(), limit.into()])?;
            found.iter().map(|row| session(row, now)).collect::<StoreResult<Vec<_>>>()
        });
        self.read(work).await?;
        answer.take()
    }

    /// Ends a session; `false` if there is none with this id.
    async fn end_session(&self, session_id: String) -> StoreResult<bool> {
        let (work, answer) = answering(move |sql| {
            Ok(sql.touched(include_str!("sql/session_end.sql"), &[(&session_id).into()])? == 1)
        });
        self.transact(work).await?;
        answer.take()
    }

    /// Ends every session of a token, and takes back its links; answers how many rows that were.
    async fn end_sign_ins_of(&self, token_id: String) -> StoreResult<usize> {
        let (work, answer) = answering(move |sql| {
            sql.touched(include_str!("sql/sign_ins_end_of_token.sql"), &[(&token_id).into()])
        });
        self.transact(work).await?;
        answer.take()
    }
}

/// Keeps a row, and forgets those that ended.
fn insert(sql: &mut dyn Sql, kind: &str, new: &NewSignIn, token_id: &str) -> StoreResult<bool> {
    let now = sql.now();
    sql.touched(include_str!("sql/sign_ins_forget.sql"), &[now.into()])?;
    let cells: [Cell<'_>; 6] = [
        (&new.id).into(),
        kind.into(),
        token_id.into(),
        Cell::Bytes(&new.secret_hash),
        now.into(),
        now.after(new.life).into(),
    ];
    Ok(sql.touched(include_str!("sql/sign_in_insert.sql"), &cells)? == 1)
}

fn session(row: &Row, now: Timestamp) -> StoreResult<BrowserSession> {
    let created_at = row.at("created_at")?;
    Ok(BrowserSession {
        session_id: row.text("sign_in_id")?.to_string(),
        token_id: row.text("token_id")?.to_string(),
        secret_hash: row.bytes("secret_hash")?,
        created_at,
        expires_at: row.at("expires_at")?,
        age: now.since(created_at),
    })
}
