//! Reports of holders: heartbeat, complete, fail, release. Fail and release are decided and written in `settle.rs`.
//!
//! The write comes first, under the fence. Only what it did not match is looked up, and answered by `fernery-core`.

use super::after_commit::AfterCommit;
use super::connection::retry::{Tries, Trouble};
use super::grouper::Verb;
use super::rows::{self, At, Json, LEASE_COLUMNS, Param, cell, instant, job_id, millis, token_hash, word};
use super::{PostgresStore, Shared};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::execution;
use crate::store::{Beat, BeatAnswer, Completion, Failure, Proof, Report};
use async_trait::async_trait;
use fernery_core::job::report::{self, Answer, Found, Reported};
use fernery_core::job::settle::{Ending, settle};
use fernery_core::job::stats::Happening;
use fernery_core::{AttemptOutcome, Holding, JobId, JobStatus, Progress, StreamName, Timestamp, TokenHash};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio_postgres::Row;
use uuid::Uuid;

#[async_trait]
impl Report for PostgresStore {
    async fn heartbeat(&self, beats: Vec<Beat>) -> StoreResult<Vec<BeatAnswer>> {
        self.heartbeats.call(beats).await
    }

    async fn progress(&self, items: Vec<(Beat, Progress)>) -> StoreResult<Vec<bool>> {
        let mut order: Vec<usize> = (0..items.len()).collect();
        let key = |n: &usize| (items[*n].0.job_id, items[*n].0.token_hash);
        order.sort_by_key(key);
        let mut kept = vec![false; items.len()];
        // One statement changes a row once: what a call says of the same lease again goes into the next round.
        while !order.is_empty() {
            let mut round = order.clone();
            round.dedup_by_key(|n| key(n));
            order.retain(|n| !round.contains(n));
            let of_round = || round.iter().map(|n| &items[*n]);
            let ids: Vec<Uuid> = of_round().map(|(beat, _)| beat.job_id.uuid()).collect();
            let hashes: Vec<&[u8]> = of_round().map(|(beat, _)| beat.token_hash.0.as_slice()).collect();
            let percents: Vec<i16> = of_round().map(|(_, progress)| progress.percent().into()).collect();
            let notes: Vec<Option<&str>> = of_round().map(|(_, progress)| progress.note()).collect();
            // The same progress again is not a decrease, so it is retried after a lost answer.
            let params: [Param<'_>; 4] = [&ids, &hashes, &percents, &notes];
            let rows = self.read(include_str!("sql/progress.sql"), &params).await?;
            let written = rows
                .iter()
                .map(|row| Ok((job_id(row, 0)?, token_hash(row, 1)?)))
                .collect::<StoreResult<HashSet<_>>>()?;
            round.iter().for_each(|n| kept[*n] = written.contains(&key(n)));
        }
        Ok(kept)
    }

    async fn complete(&self, items: Vec<Completion>) -> StoreResult<Vec<Answer>> {
        self.completes.call(items).await
    }

    async fn fail(&self, items: Vec<Failure>) -> StoreResult<Vec<Answer>> {
        self.fails.call(items).await
    }

    async fn release(&self, items: Vec<Proof>) -> StoreResult<Vec<Answer>> {
        self.releases.call(items).await
    }
}

/// Distributes the answers of a batch to its calls.
pub(super) fn dealt<A, C>(calls: &[Vec<C>], answers: Vec<A>) -> Vec<Vec<A>> {
    let mut answers = answers.into_iter();
    calls.iter().map(|call| answers.by_ref().take(call.len()).collect()).collect()
}

pub(super) struct HeartbeatBatch(pub(super) Arc<Shared>);

impl Verb for HeartbeatBatch {
    type Call = Vec<Beat>;
    type Reply = Vec<BeatAnswer>;

    fn items(call: &Vec<Beat>) -> usize {
        call.len()
    }

    async fn run(&self, calls: &[Vec<Beat>]) -> StoreResult<Vec<Vec<BeatAnswer>>> {
        let beats: Vec<Beat> = calls.iter().flatten().copied().collect();
        let mut tries = Tries::new(self.0.settings.chance);
        loop {
            match self.beat(&beats).await {
                Ok(answers) => return Ok(dealt(calls, answers)),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }
}

impl HeartbeatBatch {
    async fn beat(&self, beats: &[Beat]) -> Result<Vec<BeatAnswer>, Trouble> {
        let mut sent: Vec<(JobId, TokenHash)> = beats.iter().map(|b| (b.job_id, b.token_hash)).collect();
        sent.sort_unstable();
        sent.dedup();
        let ids: Vec<Uuid> = sent.iter().map(|(id, _)| id.uuid()).collect();
        let hashes: Vec<&[u8]> = sent.iter().map(|(_, hash)| hash.0.as_slice()).collect();
        let ttl_ms = millis(self.0.settings.lease_ttl);
        let session = self.0.pool.session().await?;
        let mut renewed = HashMap::new();
        for row in session.query(include_str!("sql/heartbeat.sql"), &[&ids, &hashes, &ttl_ms]).await? {
            let answer =
                BeatAnswer::Extended { expires_at: instant(&row, 1)?, cancel_requested: cell(&row, 2)? };
            renewed.insert((job_id(&row, 0)?, token_hash(&row, 3)?), answer);
        }
        let unmatched: Vec<Uuid> = beats
            .iter()
            .filter(|b| !renewed.contains_key(&(b.job_id, b.token_hash)))
            .map(|b| b.job_id.uuid())
            .collect();
        let mut known = HashSet::new();
        if !unmatched.is_empty() {
            for row in session.query(include_str!("sql/known_jobs.sql"), &[&unmatched]).await? {
                known.insert(job_id(&row, 0)?);
            }
        }
        let answer = |beat: &Beat| match renewed.get(&(beat.job_id, beat.token_hash)) {
            Some(answer) => *answer,
            None if known.contains(&beat.job_id) => BeatAnswer::LeaseLost,
            None => BeatAnswer::Unknown,
        };
        Ok(beats.iter().map(answer).collect())
    }
}

pub(super) struct CompleteBatch(pub(super) Arc<Shared>);

impl Verb for CompleteBatch {
    type Call = Vec<Completion>;
    type Reply = Vec<Answer>;

    fn items(call: &Vec<Completion>) -> usize {
        call.len()
    }

    async fn run(&self, calls: &[Vec<Completion>]) -> StoreResult<Vec<Vec<Answer>>> {
        let items: Vec<&Completion> = calls.iter().flatten().collect();
        let mut tries = Tries::new(self.0.settings.chance);
        loop {
            match self.complete(&items).await {
                Ok(answers) => return Ok(dealt(calls, answers)),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }
}

impl CompleteBatch {
    async fn complete(&self, items: &[&Completion]) -> Result<Vec<Answer>, Trouble> {
        // Sorted by job, so that batches lock in the same order; of the same report twice the first one stands.
        let mut sent: Vec<usize> = (0..items.len()).collect();
        sent.sort_by_key(|n| key(&items[*n].proof));
        sent.dedup_by_key(|n| key(&items[*n].proof));
        let of_sent = || sent.iter().map(|n| items[*n]);
        let ids: Vec<Uuid> = of_sent().map(|item| item.proof.job_id.uuid()).collect();
        let attempts: Vec<Uuid> = of_sent().map(|item| item.proof.attempt_id.uuid()).collect();
        let hashes: Vec<&[u8]> = of_sent().map(|item| item.proof.token_hash.0.as_slice()).collect();
        let results: Vec<Json<'_>> = of_sent().map(|item| Json(&item.result)).collect();
        let session = self.0.pool.session().await?;
        let rows = session
            .query(include_str!("sql/complete.sql"), &[&ids, &attempts, &hashes, &results, &false])
            .await?;
        drop(session);
        let mut closed = HashSet::with_capacity(rows.len());
        let mut after = AfterCommit::default();
        for row in &rows {
            closed.insert((job_id(row, 0)?, rows::attempt_id(row, 1)?, token_hash(row, 2)?));
            after.messages.extend(rows::message(row, 3)?);
            after.happened.push(succeeded(row)?);
        }
        let mut answers: Vec<Option<Answer>> = vec![None; items.len()];
        for n in sent {
            if closed.contains(&key(&items[n].proof)) {
                answers[n] = Some(Answer::Accepted { status: JobStatus::Succeeded });
                after.ended.push(items[n].proof.job_id);
            }
        }
        self.0.announce(after);
        self.complete_workorders(items, &mut answers).await?;
        self.0.answer_unmatched(Reported::Success, items.iter().map(|item| item.proof), answers).await
    }
}

impl CompleteBatch {
    /// Ends attempts of workorders, with their bundles. Those that are none, or not this holder's, stay without an answer.
    async fn complete_workorders(
        &self,
        items: &[&Completion],
        answers: &mut [Option<Answer>],
    ) -> Result<(), Trouble> {
        let open: Vec<usize> = (0..items.len()).filter(|n| answers[*n].is_none()).collect();
        if open.is_empty() {
            return Ok(());
        }
        let session = self.0.pool.session().await?;
        let ids: Vec<Uuid> = open.iter().map(|n| items[*n].proof.job_id.uuid()).collect();
        let rows = session.begin_with("BEGIN", include_str!("sql/leases_locked.sql"), &[&ids]).await?;
        let mut held: HashMap<_, (Holding, At)> = HashMap::with_capacity(rows.len());
        for row in &rows {
            let (holding, now) = (rows::holding(row)?, cell(row, LEASE_COLUMNS)?);
            if holding.stream.is_workorders() {
                held.insert((holding.job_id, holding.attempt_id, holding.token_hash), (holding, now));
            }
        }
        let settings = &self.0.settings;
        let (mut endings, mut ended, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for n in open {
            let Some((held, now)) = held.get(&key(&items[n].proof)) else { continue };
            let Ok(parts) = execution::admit(&items[n].result) else {
                answers[n] = Some(Answer::Unfit);
                continue;
            };
            // Of the same report twice the first one stands; the other finds it closed.
            if !seen.insert(held.job_id) {
                continue;
            }
            let (completed, chance) = (Ending::Completed, settings.chance.fraction());
            let settlement = settle(held, completed, now.0, &settings.retry, chance);
            endings.push(execution::Ending::of_attempt(held, &settlement, now.0, Some(parts), None));
            ended.push(n);
        }
        if ended.is_empty() {
            session.rollback().await?;
            return Ok(());
        }
        let stages = super::pipeline::end_workorders(&session, &endings).await?;
        let of_ended = || ended.iter().map(|n| items[*n]);
        let ids: Vec<Uuid> = of_ended().map(|item| item.proof.job_id.uuid()).collect();
        let attempts: Vec<Uuid> = of_ended().map(|item| item.proof.attempt_id.uuid()).collect();
        let hashes: Vec<&[u8]> = of_ended().map(|item| item.proof.token_hash.0.as_slice()).collect();
        let results: Vec<Json<'_>> = of_ended().map(|item| Json(&item.result)).collect();
        let params: [Param<'_>; 5] = [&ids, &attempts, &hashes, &results, &true];
        let rows = session.commit_with(include_str!("sql/complete.sql"), &params).await?;
        let messages =
            rows.iter().filter_map(|row| rows::message(row, 3).transpose()).collect::<StoreResult<_>>()?;
        for n in &ended {
            answers[*n] = Some(Answer::Accepted { status: JobStatus::Succeeded });
        }
        let ended = of_ended().map(|item| item.proof.job_id).collect();
        let happened = rows.iter().map(succeeded).collect::<StoreResult<_>>()?;
        self.0.announce(AfterCommit { ended, stages, messages, happened, ..AfterCommit::default() });
        Ok(())
    }
}

/// An attempt of which `complete.sql` says that it succeeded.
fn succeeded(row: &Row) -> StoreResult<(StreamName, Timestamp, Happening)> {
    let (started_at, now) = (instant(row, 6)?, instant(row, 7)?);
    let took = now.since(started_at);
    let ended = Happening::Ended { outcome: AttemptOutcome::Succeeded, took, buried: false };
    Ok((rows::stream(row, 3)?, now, ended))
}

fn key(proof: &Proof) -> (JobId, fernery_core::AttemptId, TokenHash) {
    (proof.job_id, proof.attempt_id, proof.token_hash)
}

impl Shared {
    /// Answers the reports whose fenced write matched nothing, from what is found of their attempts.
    pub(super) async fn answer_unmatched(
        &self,
        reported: Reported,
        proofs: impl Iterator<Item = Proof>,
        mut answers: Vec<Option<Answer>>,
    ) -> Result<Vec<Answer>, Trouble> {
        if answers.iter().any(Option::is_none) {
            let open: Vec<(usize, Proof)> =
                proofs.enumerate().filter(|(n, _)| answers[*n].is_none()).collect();
            let ids: Vec<Uuid> = open.iter().map(|(_, proof)| proof.job_id.uuid()).collect();
            let attempts: Vec<Uuid> = open.iter().map(|(_, proof)| proof.attempt_id.uuid()).collect();
            let session = self.pool.session().await?;
            let rows = session.query(include_str!("sql/found_attempts.sql"), &[&ids, &attempts]).await?;
            let mut found: HashMap<usize, Found> = HashMap::new();
            for row in &rows {
                let what = if cell(row, 1)? {
                    Found::Open
                } else {
                    let (outcome, status) = (word(row, 3)?, word(row, 4)?);
                    Found::Closed { token_hash: token_hash(row, 2)?, outcome, status }
                };
                found.insert(usize::try_from(cell::<i64>(row, 0)?).unwrap_or(0), what);
            }
            for (place, (n, proof)) in open.iter().enumerate() {
                let found = found.get(&(place + 1)).copied().unwrap_or(Found::Nothing);
                answers[*n] = Some(report::answer(reported, proof.token_hash, found));
            }
        }
        let count = answers.len();
        let answers: Vec<Answer> = answers.into_iter().flatten().collect();
        if answers.len() == count {
            Ok(answers)
        } else {
            Err(StoreError::Corrupt("a report got no answer".into()).into())
        }
    }
}
