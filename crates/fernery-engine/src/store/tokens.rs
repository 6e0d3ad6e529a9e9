//! The tokens of callers. Each verb is written once, over the pipeline's portable SQL: tokens change when an operator says
//! so, and a server reads them at most twice a second.

use super::Transactions;
use crate::error::StoreResult;
use crate::pipeline::{Cell, Row, Sql, answering};
use async_trait::async_trait;
use fernery_core::Timestamp;

/// A token as it is kept: never the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its public part.
    pub token_id: String,
    /// What a person calls it.
    pub name: String,
    /// `operator`, `worker`, `producer`, `viewer` or `visitor`.
    pub role: String,
    /// The streams a worker token is limited to, as patterns; empty is all.
    pub streams: Vec<String>,
    /// The azolla of another instance that asks with a visitor's token.
    pub azolla_id: Option<String>,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

/// The tokens of callers.
#[async_trait]
pub trait Tokens: Transactions {
    /// All tokens, oldest first.
    async fn tokens(&self) -> StoreResult<Vec<TokenRow>> {
        self.select(include_str!("sql/tokens_all.sql")).await?.iter().map(token).collect()
    }

    /// Stores a token; `false` if another token has its id. Doing it again does no harm.
    async fn add_token(&self, token: TokenRow) -> StoreResult<bool> {
        let (work, answer) = answering(move |sql| insert(sql, &token));
        self.transact(work).await?;
        answer.take()
    }

    /// Revokes a token; `false` if it is unknown. The first revocation stands.
    async fn revoke_token(&self, token_id: String) -> StoreResult<bool> {
        let (work, answer) = answering(move |sql| {
            let cells = [(&token_id).into(), sql.now().into()];
            Ok(sql.touched(include_str!("sql/token_revoke.sql"), &cells)? == 1)
        });
        self.transact(work).await?;
        answer.take()
    }
}

fn insert(sql: &mut dyn Sql, token: &TokenRow) -> StoreResult<bool> {
    let cells: [Cell<'_>; 9] = [
        (&token.token_id).into(),
        (&token.name).into(),
        (&token.role).into(),
        Cell::Texts(&token.streams),
        Cell::Bytes(&token.secret_hash),
        token.created_at.into(),
        token.expires_at.into(),
        token.revoked_at.into(),
        token.azolla_id.as_deref().into(),
    ];
    Ok(sql.touched(include_str!("sql/token_insert.sql"), &cells)? == 1)
}

fn token(row: &Row) -> StoreResult<TokenRow> {
    Ok(TokenRow {
        token_id: row.text("token_id")?.to_string(),
        name: row.text("name")?.to_string(),
        role: row.text("role")?.to_string(),
        streams: row.json("streams")?,
        azolla_id: row.maybe_text("azolla_id")?.map(str::to_string),
        secret_hash: row.bytes("secret_hash")?,
        created_at: row.at("created_at")?,
        expires_at: row.maybe_at("expires_at")?,
        revoked_at: row.maybe_at("revoked_at")?,
    })
}
