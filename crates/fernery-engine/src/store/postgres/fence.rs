//! After a restore: raises every version and frees every lease, in batches small enough for the statement timeout.

use super::PostgresStore;
use super::reap::Which;
use super::rows::cell;
use crate::error::StoreResult;
use fernery_core::job::lease::FENCE_STEP;
use fernery_core::limits;
use uuid::Uuid;

/// Rows raised by one statement.
const BATCH: i64 = 10_000;

/// Raises every version, then frees every lease; answers how many.
pub(super) async fn fence(store: &PostgresStore) -> StoreResult<usize> {
    store.transact_work("BEGIN", Box::new(crate::pipeline::claims::fence)).await?;
    let mut place = Some((String::new(), i64::MIN));
    while let Some((stream, seq)) = place.take() {
        let sql = include_str!("sql/fence_ready.sql");
        let rows = store.write_once(sql, &[&FENCE_STEP, &stream, &seq, &BATCH]).await?;
        if let Some(last) = rows.first() {
            place = Some((cell(last, 0)?, cell(last, 1)?));
        }
    }
    for sql in [
        include_str!("sql/fence_scheduled.sql"),
        include_str!("sql/fence_leases.sql"),
        include_str!("sql/fence_jobs.sql"),
    ] {
        // The least id is one that a producer may have chosen.
        let mut from = Some(Uuid::nil());
        while let Some(id) = from.take() {
            let rows = store.write_once(sql, &[&FENCE_STEP, &id, &BATCH]).await?;
            let last: Option<Uuid> = rows.first().map(|row| cell(row, 0)).transpose()?;
            from = last.and_then(|last| last.as_u128().checked_add(1)).map(Uuid::from_u128);
        }
    }
    let mut freed = 0;
    loop {
        let pass = store.shared.end_unreported(Which::All, limits::REAP_BATCH).await?;
        freed += pass.moved;
        if pass.moved == 0 {
            // Messages from before the restore name versions that do not exist any more.
            store.write_once(include_str!("sql/reemit_all.sql"), &[]).await?;
            return Ok(freed);
        }
    }
}
