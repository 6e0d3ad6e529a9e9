//! The tokens of callers.

use super::SqliteStore;
use super::rows;
use super::tx::Tx;
use crate::error::StoreResult;
use crate::store::{TokenRow, Tokens};
use async_trait::async_trait;
use fernery_core::Timestamp;
use rusqlite::{Connection, params};

#[async_trait]
impl Tokens for SqliteStore {
    async fn tokens(&self) -> StoreResult<Vec<TokenRow>> {
        self.read(tokens).await
    }

    async fn add_token(&self, token: TokenRow) -> StoreResult<bool> {
        self.write(move |tx| tx.add_token(&token)).await
    }

    async fn revoke_token(&self, token_id: String) -> StoreResult<bool> {
        self.write(move |tx| tx.revoke_token(&token_id)).await
    }
}

impl Tx<'_> {
    fn add_token(&self, token: &TokenRow) -> StoreResult<bool> {
        let streams = serde_json::json!(token.streams).to_string();
        let mut statement = self.db.prepare_cached(include_str!("sql/token_insert.sql"))?;
        let added = statement.execute(params![
            token.token_id,
            token.name,
            token.role,
            streams,
            token.secret_hash,
            token.created_at.as_millis(),
            token.expires_at.map(Timestamp::as_millis),
            token.revoked_at.map(Timestamp::as_millis),
            token.azolla_id
        ])?;
        Ok(added == 1)
    }

    fn revoke_token(&self, token_id: &str) -> StoreResult<bool> {
        let mut statement = self.db.prepare_cached(include_str!("sql/token_revoke.sql"))?;
        Ok(statement.execute(params![token_id, self.now.as_millis()])? == 1)
    }
}

fn tokens(db: &Connection) -> StoreResult<Vec<TokenRow>> {
    let mut statement = db.prepare_cached(include_str!("sql/tokens_all.sql"))?;
    Ok(statement.query_map([], rows::token)?.collect::<Result<_, _>>()?)
}
