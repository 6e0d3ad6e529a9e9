//! Ends attempts: `fernery-core` decides, and one statement applies a list of decisions. What a holder reports as failed or
//! gives back ends here; so does what the reaper and a cancel end.

use super::Shared;
use super::after_commit::AfterCommit;
use super::connection::pool::Session;
use super::connection::retry::{Tries, Trouble};
use super::grouper::Verb;
use super::report::dealt;
use super::rows::{self, At, Json, LEASE_COLUMNS, Param, cell, job_id, message, small};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::execution;
use crate::store::endings::unreported;
use crate::store::{Failure, Proof, StoreSettings};
use fernery_core::job::report::{Answer, Reported};
use fernery_core::job::settle::{BuryReason, Ending, Next, Settlement, settle};
use fernery_core::job::stats::Happening;
use fernery_core::{Holding, JobId, Timestamp};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
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

/// A report that core decides about: a failure or a return.
pub(super) trait Decidable: Send + Sync + 'static {
    const REPORTED: Reported;
    fn proof(&self) -> Proof;
    fn ending(&self) -> Ending;
    fn report(&self) -> HolderReport<'_>;
}

impl Decidable for Failure {
    const REPORTED: Reported = Reported::Failure;

    fn proof(&self) -> Proof {
        self.proof
    }

    fn ending(&self) -> Ending {
        Ending::Failed { retryable: self.retryable }
    }

    fn report(&self) -> HolderReport<'_> {
        HolderReport { code: &self.code, error: Some(&self.error) }
    }
}

impl Decidable for Proof {
    const REPORTED: Reported = Reported::Release;

    fn proof(&self) -> Proof {
        *self
    }

    fn ending(&self) -> Ending {
        Ending::Released
    }

    fn report(&self) -> HolderReport<'_> {
        HolderReport::NONE
    }
}

/// Fail and release: load the leases under lock, decide, apply, in one transaction.
pub(super) struct SettleBatch<R> {
    shared: Arc<Shared>,
    reports: std::marker::PhantomData<fn() -> R>,
}

impl<R> SettleBatch<R> {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, reports: std::marker::PhantomData }
    }
}

impl<R: Decidable> Verb for SettleBatch<R> {
    type Call = Vec<R>;
    type Reply = Vec<Answer>;

    fn items(call: &Vec<R>) -> usize {
        call.len()
    }

    async fn run(&self, calls: &[Vec<R>]) -> StoreResult<Vec<Vec<Answer>>> {
        let items: Vec<&R> = calls.iter().flatten().collect();
        let mut tries = Tries::new(self.shared.settings.chance);
        loop {
            match self.settle(&items).await {
                Ok(answers) => return Ok(dealt(calls, answers)),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }
}

impl<R: Decidable> SettleBatch<R> {
    async fn settle(&self, items: &[&R]) -> Result<Vec<Answer>, Trouble> {
        let ids: Vec<Uuid> = items.iter().map(|item| item.proof().job_id.uuid()).collect();
        let session = self.shared.pool.session().await?;
        let rows = session.begin_with("BEGIN", include_str!("sql/leases_locked.sql"), &[&ids]).await?;
        let mut held: HashMap<JobId, (Holding, At)> = HashMap::with_capacity(rows.len());
        for row in &rows {
            held.insert(job_id(row, 0)?, (rows::holding(row)?, cell(row, LEASE_COLUMNS)?));
        }
        let mut answers: Vec<Option<Answer>> = vec![None; items.len()];
        let mut decided = Vec::new();
        for (n, item) in items.iter().enumerate() {
            let proof = item.proof();
            let proven = |(held, _): &(Holding, At)| {
                held.attempt_id == proof.attempt_id && held.token_hash == proof.token_hash
            };
            if held.get(&proof.job_id).is_some_and(proven)
                && let Some((held, now)) = held.remove(&proof.job_id)
            {
                let one = Decided::new(held, item.ending(), item.report(), now.0, &self.shared.settings);
                answers[n] = Some(Answer::Accepted { status: one.settlement.status() });
                decided.push(one);
            }
        }
        if decided.is_empty() {
            session.rollback().await?;
        } else {
            let after = apply_and_commit(&session, &decided).await?;
            self.shared.announce(after);
        }
        drop(session);
        self.shared.answer_unmatched(R::REPORTED, items.iter().map(|item| item.proof()), answers).await
    }
}
