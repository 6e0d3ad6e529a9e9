//! Ends attempts: `fernery-core` decides, and one statement applies a list of decisions.

use super::after_commit::AfterCommit;
use super::connection::pool::Session;
use super::connection::retry::Trouble;
use super::rows::{At, Json, Param, message, small};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::execution;
use crate::store::StoreSettings;
use crate::store::endings::unreported;
use fernery_core::job::settle::{BuryReason, Ending, Next, Settlement, settle};
use fernery_core::job::stats::Happening;
use fernery_core::{Holding, Timestamp};
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
        let (took, buried) = (one.now.since(one.held.started_at), one.settlement.buried.is_some());
        let ended = Happening::Ended { outcome: one.settlement.outcome, took, buried };
        after.happened.push((one.held.stream.clone(), one.now, ended));
    }
    after.messages = rows.iter().filter_map(|row| message(row, 0).transpose()).collect::<StoreResult<_>>()?;
    Ok(after)
}
