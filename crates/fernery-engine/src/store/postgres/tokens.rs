//! The tokens of callers.

use super::PostgresStore;
use super::rows::{At, Param, cell, instant, maybe_instant};
use crate::error::{StoreError, StoreResult};
use crate::store::{TokenRow, Tokens};
use async_trait::async_trait;
use tokio_postgres::Row;

#[async_trait]
impl Tokens for PostgresStore {
    async fn tokens(&self) -> StoreResult<Vec<TokenRow>> {
        let rows = self.read(include_str!("sql/tokens_all.sql"), &[]).await?;
        rows.iter().map(token).collect()
    }

    async fn add_token(&self, token: TokenRow) -> StoreResult<bool> {
        let hash = token.secret_hash.as_slice();
        let (created, expires, revoked) =
            (At(token.created_at), token.expires_at.map(At), token.revoked_at.map(At));
        let params: [Param<'_>; 9] = [
            &token.token_id,
            &token.name,
            &token.role,
            &token.streams,
            &hash,
            &created,
            &expires,
            &revoked,
            &token.azolla_id,
        ];
        let added = self.write_once(include_str!("sql/token_insert.sql"), &params).await?;
        Ok(!added.is_empty())
    }

    async fn revoke_token(&self, token_id: String) -> StoreResult<bool> {
        // The first revocation stands, so asking again after a lost answer changes nothing.
        Ok(!self.read(include_str!("sql/token_revoke.sql"), &[&token_id]).await?.is_empty())
    }
}

fn token(row: &Row) -> StoreResult<TokenRow> {
    let hash: &[u8] = cell(row, 4)?;
    Ok(TokenRow {
        token_id: cell(row, 0)?,
        name: cell(row, 1)?,
        role: cell(row, 2)?,
        streams: cell(row, 3)?,
        secret_hash: hash
            .try_into()
            .map_err(|_| StoreError::Corrupt("a token's hash has the wrong size".into()))?,
        created_at: instant(row, 5)?,
        expires_at: maybe_instant(row, 6)?,
        revoked_at: maybe_instant(row, 7)?,
        azolla_id: cell(row, 8)?,
    })
}
