//! Attempts end and core says what that means: one statement applies a list of decisions.

use super::after::After;
use super::columns::{At, Json, Param, cell, holding, message, rows_limit, small};
use super::pool::Session;
use super::trouble::{Tries, Trouble};
use super::{PostgresStore, Shared};
use crate::error::{StoreError, StoreResult};
use crate::store::endings::unreported;
use crate::store::reaping::{Step, go_through};
use crate::store::{Pass, StoreSettings};
use crate::substrate::execution;
use fernery_core::settle::{BuryReason, Ending, Next, Settlement, settle};
use fernery_core::{Holding, Timestamp};
use serde_json::value::RawValue;
use std::borrow::Cow;
use uuid::Uuid;

/// What the holder says about the end.
#[derive(Clone, Copy)]
pub(super) struct Report<'a> {
    pub(super) code: &'a str,
    pub(super) error: Option<&'a RawValue>,
}

impl Report<'_> {
    pub(super) const NONE: Self = Self { code: "", error: None };
}

/// One ended attempt and what becomes of its job.
pub(super) struct Decided<'a> {
    pub(super) held: Holding,
    pub(super) settlement: Settlement,
    now: Timestamp,
    code: &'a str,
    error: Option<Cow<'a, RawValue>>,
}

impl<'a> Decided<'a> {
    pub(super) fn new(
        held: Holding,
        ending: Ending,
        report: Report<'a>,
        now: Timestamp,
        settings: &StoreSettings,
    ) -> Self {
        let settlement = settle(&held, ending, now, &settings.retry, settings.chance.fraction());
        let (code, error) = match unreported(settlement.outcome, &held) {
            Some((code, error)) => (code, Some(report.error.map_or(Cow::Owned(error), Cow::Borrowed))),
            None => (report.code, report.error.map(Cow::Borrowed)),
        };
        Self { held, settlement, now, code, error }
    }
}

/// Writes the decisions and commits the transaction in which their leases were read.
pub(super) async fn apply_and_commit(
    session: &Session<'_>,
    decided: &[Decided<'_>],
) -> Result<After, Trouble> {
    let of_workorders = decided.iter().filter(|one| one.held.stream.is_workorders());
    let endings: Vec<execution::Ending> = of_workorders
        .map(|one| {
            let error = one.error.as_deref();
            execution::Ending::of_attempt(&one.held, &one.settlement, one.now, None, error)
        })
        .collect();
    let stages = super::substrate::end_workorders(session, &endings).await?;
    let each = || decided.iter();
    let ids: Vec<Uuid> = each().map(|d| d.held.job_id.uuid()).collect();
    let versions: Vec<i64> = each().map(|d| d.held.claim_version).collect();
    let outcomes: Vec<&str> = each().map(|d| d.settlement.outcome.as_str()).collect();
    let statuses: Vec<&str> = each().map(|d| d.settlement.status().as_str()).collect();
    let errors: Vec<Option<Json<'_>>> = each().map(|d| d.error.as_deref().map(Json)).collect();
    let due: Vec<Option<At>> = each()
        .map(|d| match d.settlement.next {
            Next::Queue { due_at } => due_at.map(At),
            Next::Finish(_) => None,
        })
        .collect();
    let failed: Vec<i32> = each().map(|d| small(d.settlement.tally.failed)).collect();
    let lost: Vec<i32> = each().map(|d| small(d.settlement.tally.lost)).collect();
    let released: Vec<i32> = each().map(|d| small(d.settlement.tally.released)).collect();
    let reasons: Vec<Option<&str>> = each().map(|d| d.settlement.buried.map(BuryReason::as_str)).collect();
    let codes: Vec<&str> = each().map(|d| d.code).collect();
    let at: Vec<At> = each().map(|d| At(d.now)).collect();
    let params: [Param<'_>; 12] = [
        &ids, &versions, &outcomes, &statuses, &errors, &due, &failed, &lost, &released, &reasons, &codes,
        &at,
    ];
    let rows = session.commit_with(include_str!("sql/settle.sql"), &params).await?;
    if rows.len() != decided.len() {
        return Err(StoreError::Corrupt("a lease changed under the lock that was held on it".into()).into());
    }
    let mut after = After { stages, ..After::default() };
    for one in decided {
        after.settled(one.held.job_id, &one.held.stream, one.settlement.next);
    }
    after.messages = rows.iter().filter_map(|row| message(row, 0).transpose()).collect::<StoreResult<_>>()?;
    Ok(after)
}

/// Which leases are ended without a report.
#[derive(Clone, Copy)]
pub(super) enum Which {
    Expired,
    All,
}

impl PostgresStore {
    pub(super) async fn end_unreported(&self, which: Which, limit: usize) -> StoreResult<Pass> {
        go_through(limit, limit, |after, size| self.end_next(which, after, size)).await
    }

    async fn end_next(&self, which: Which, after: Option<Uuid>, size: usize) -> StoreResult<Step<Uuid>> {
        let mut tries = Tries::new(self.shared.settings.chance);
        loop {
            match self.shared.end_next(which, after, size).await {
                Ok(step) => return Ok(step),
                Err(trouble) => tries.again_if_undone(trouble).await?,
            }
        }
    }
}

impl Shared {
    /// Ends the attempts of up to `size` leases after this one.
    async fn end_next(&self, which: Which, after: Option<Uuid>, size: usize) -> Result<Step<Uuid>, Trouble> {
        let (all, ending) = match which {
            Which::Expired => (false, Ending::Expired),
            Which::All => (true, Ending::Released),
        };
        let session = self.pool.session().await?;
        let sql = include_str!("sql/leases_expired.sql");
        let rows = session.begin_with("BEGIN", sql, &[&rows_limit(size), &all, &after]).await?;
        let last = rows.last().map(|row| cell(row, 0)).transpose()?;
        let mut step = Step { last, seen: rows.len(), moved: 0, spoiled: None };
        let mut decided = Vec::with_capacity(rows.len());
        for row in &rows {
            let now: At = cell(row, 19)?;
            match holding(row) {
                Ok(held) => decided.push(Decided::new(held, ending, Report::NONE, now.0, &self.settings)),
                // The others must not wait for this one.
                Err(error) => tracing::error!(%error, "a lease is damaged and left alone"),
            }
        }
        if decided.is_empty() {
            session.rollback().await?;
            return Ok(step);
        }
        crate::door::failpoint("reaping");
        match apply_and_commit(&session, &decided).await {
            Ok(after) => {
                crate::door::failpoint("reaped");
                drop(session);
                self.announce(after);
                step.moved = decided.len();
            }
            Err(Trouble::Final(error @ StoreError::Corrupt(_))) => step.spoiled = Some(error),
            Err(trouble) => return Err(trouble),
        }
        Ok(step)
    }
}
