//! Ends attempts: `fernery-core` decides, and one statement applies a list of decisions.

use super::Shared;
use super::after_commit::AfterCommit;
use super::connection::pool::Session;
use super::connection::retry::{Tries, Trouble};
use super::rows::{
    At, Json, LEASE_COLUMNS, Param, cell, holding, instant, maybe_instant, message, millis, rows_limit, small,
};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::execution;
use crate::store::endings::unreported;
use crate::store::expiry::{Bound, Found, Look, OfStream, Settled};
use crate::store::reaping::{Step, go_through};
use crate::store::{Pass, StoreSettings};
use fernery_core::job::settle::{BuryReason, Ending, Next, Settlement, settle};
use fernery_core::{Holding, StreamName, Timestamp, limits};
use serde_json::value::RawValue;
use std::borrow::Cow;
use uuid::Uuid;

/// What the holder says about the end.
#[derive(Clone, Copy)]
pub(super) struct HolderReport<'a> {
    pub(super) code: &'a str,
    pub(super) error: Option<&'a RawValue>,
}

impl HolderReport<'_> {
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
        report: HolderReport<'a>,
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
) -> Result<AfterCommit, Trouble> {
    let of_workorders = decided.iter().filter(|one| one.held.stream.is_workorders());
    let endings: Vec<execution::Ending> = of_workorders
        .map(|one| {
            let error = one.error.as_deref();
            execution::Ending::of_attempt(&one.held, &one.settlement, one.now, None, error)
        })
        .collect();
    let stages = super::pipeline::end_workorders(session, &endings).await?;
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
        return Err(StoreError::Corrupt("a lease changed while it was locked".into()).into());
    }
    let mut after = AfterCommit { stages, ..AfterCommit::default() };
    for one in decided {
        after.settled(one.held.job_id, &one.held.stream, one.settlement.next);
    }
    after.messages = rows.iter().filter_map(|row| message(row, 0).transpose()).collect::<StoreResult<_>>()?;
    Ok(after)
}

/// Which leases are ended without a report.
#[derive(Clone, Copy)]
pub(super) enum Which<'a> {
    Expired,
    ExpiredOf(&'a [StreamName]),
    All,
}

impl Shared {
    pub(super) async fn end_unreported(&self, which: Which<'_>, limit: usize) -> StoreResult<Pass> {
        go_through(limit, limit, |after, size| self.end_some(which, after, size)).await
    }

    /// Settles expired leases of streams that a claim asks for, unless another claim has done so since `bound`.
    pub(super) async fn take_expired(&self, streams: &[StreamName], bound: Bound) -> Result<(), Trouble> {
        let Some(look) = self.expiries.look_after(bound).await else { return Ok(()) };
        let pass = self.end_unreported(Which::ExpiredOf(streams), limits::REAP_BATCH).await?;
        pass.tell_reaped();
        self.look_for_expiries(look, if pass.full { Settled::Unfinished } else { Settled::Of(streams) }).await
    }

    pub(super) async fn look_for_expiries(
        &self,
        look: Look<'_>,
        settled: Settled<'_>,
    ) -> Result<(), Trouble> {
        let session = self.pool.session().await?;
        let took_ms = millis(look.since.elapsed());
        let rows = session.query(include_str!("sql/leases_next.sql"), &[&took_ms]).await?;
        drop(session);
        let now = rows.first().map_or(Ok(Timestamp::default()), |row| instant(row, 0))?;
        let mut leases = Vec::with_capacity(rows.len());
        for row in &rows {
            if let Some(name) = cell::<Option<&str>>(row, 1)? {
                let (next, overdue) = (maybe_instant(row, 2)?, maybe_instant(row, 3)?);
                leases.push(OfStream { stream: StreamName::stored(name), next, overdue });
            }
        }
        look.ended(Found { now, leases, settled, others: Some(self.settings.lease_ttl) });
        Ok(())
    }

    async fn end_some(&self, which: Which<'_>, after: Option<Uuid>, size: usize) -> StoreResult<Step<Uuid>> {
        let mut tries = Tries::new(self.settings.chance);
        loop {
            match self.end_next(which, after, size).await {
                Ok(step) => return Ok(step),
                Err(trouble) => tries.again_if_undone(trouble).await?,
            }
        }
    }

    /// Ends the attempts of up to `size` leases after this one.
    async fn end_next(
        &self,
        which: Which<'_>,
        after: Option<Uuid>,
        size: usize,
    ) -> Result<Step<Uuid>, Trouble> {
        let (all, ending, streams) = match which {
            Which::Expired => (false, Ending::Expired, None),
            Which::ExpiredOf(streams) => (false, Ending::Expired, Some(streams)),
            Which::All => (true, Ending::Released, None),
        };
        let names: Option<Vec<&str>> = streams.map(|names| names.iter().map(StreamName::as_str).collect());
        let session = self.pool.session().await?;
        let sql = include_str!("sql/leases_expired.sql");
        let rows = session.begin_with("BEGIN", sql, &[&rows_limit(size), &all, &after, &names]).await?;
        let last = rows.last().map(|row| cell(row, 0)).transpose()?;
        let mut step = Step { last, seen: rows.len(), moved: 0, spoiled: None };
        let mut decided = Vec::with_capacity(rows.len());
        for row in &rows {
            let now: At = cell(row, LEASE_COLUMNS)?;
            match holding(row) {
                Ok(held) => {
                    decided.push(Decided::new(held, ending, HolderReport::NONE, now.0, &self.settings))
                }
                // The others must not wait for this one.
                Err(error) => tracing::error!(%error, "skipped a lease whose row is corrupt"),
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
