//! Attempts end: by a report, by expiry. Every end goes through `settle`.

use super::report::HolderReport;
use super::rows;
use super::tx::{Tx, Waiting};
use super::{SqliteStore, lock};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::execution;
use crate::store::Pass;
use crate::store::endings::unreported;
use crate::store::expiry::{Bound, Found, Look, OfStream, Settled};
use crate::store::reaping::{Step, go_through};
use fernery_core::job::settle::{Ending, Next, Settlement, settle};
use fernery_core::{Holding, JobId, JobStatus, StreamName, Timestamp, limits};
use rusqlite::{Connection, Row, params};
use std::fmt;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

impl Tx<'_> {
    /// Ends the attempt whose lease was just taken. Every end of a job goes through here.
    pub(super) fn settle(
        &mut self,
        held: &Holding,
        ending: Ending,
        report: HolderReport<'_>,
    ) -> StoreResult<Settlement> {
        let fraction = self.settings.chance.fraction();
        let s = settle(held, ending, self.clock.calendar(), &self.settings.retry, fraction);
        let unreported = unreported(s.outcome, held);
        let error = report.error.or(unreported.as_ref().map(|(_, error)| &**error));
        let code = unreported.as_ref().map_or(report.code, |(code, _)| code);
        let (job, attempt) = (held.job_id.uuid(), held.attempt_id.uuid());
        let claim_version = held.claim_version + 1;
        self.hot.attempt_insert.execute(params![
            job.as_bytes(),
            held.attempt_no,
            attempt.as_bytes(),
            held.token_hash.0,
            held.worker_id,
            held.started_at.as_millis(),
            self.now.as_millis(),
            s.outcome.as_str(),
            s.status().as_str(),
            claim_version,
            report.result.map(|raw| raw.get()),
            error.map(|raw| raw.get())
        ])?;
        if held.stream.is_workorders() {
            let ending = execution::Ending::of_attempt(held, &s, self.now, report.parts.cloned(), error);
            self.end_workorder(&ending)?;
        }
        self.count(&held.stream).running -= 1;
        match s.next {
            Next::Queue { due_at } => {
                let seq = self.take_place(held.job_id)?;
                let waiting = Waiting { claim_version, attempt_no: held.attempt_no, tally: s.tally };
                self.wait(held.job_id, &held.stream, seq, due_at, waiting)?;
            }
            Next::Finish(status) => {
                self.finish(held.job_id, &held.stream, status, claim_version, held.unique_key.as_deref())?;
                if let Some(reason) = s.buried {
                    let mut statement = self.db.prepare_cached(include_str!("sql/dead_letter_insert.sql"))?;
                    let (stream, at) = (held.stream.as_str(), self.now.as_millis());
                    statement.execute(params![job.as_bytes(), stream, at, reason.as_str(), code])?;
                }
            }
        }
        Ok(s)
    }

    /// Gives a job a new place, behind all that wait already.
    pub(super) fn take_place(&mut self, job_id: JobId) -> StoreResult<i64> {
        let seq = self.seq()?;
        let mut statement = self.db.prepare_cached(include_str!("sql/job_place.sql"))?;
        statement.execute(params![job_id.uuid().as_bytes(), seq])?;
        Ok(seq)
    }

    pub(super) fn finish(
        &mut self,
        job_id: JobId,
        stream: &StreamName,
        status: JobStatus,
        claim_version: i64,
        unique_key: Option<&str>,
    ) -> StoreResult<()> {
        match status {
            JobStatus::Dead => self.count(stream).dead += 1,
            JobStatus::Cancelled => self.count(stream).cancelled += 1,
            _ => self.count(stream).succeeded += 1,
        }
        if status != JobStatus::Succeeded {
            let mut statement = self.db.prepare_cached(include_str!("sql/job_end.sql"))?;
            let (id, at) = (job_id.uuid(), self.now.as_millis());
            statement.execute(params![id.as_bytes(), status.as_str(), at, claim_version])?;
        }
        self.free_key(unique_key, job_id)?;
        self.after.ended.push(job_id);
        Ok(())
    }

    /// Ends the attempts of up to `size` leases after a place. What was looked at is kept in `step` whatever comes of it.
    pub(super) fn end_next(
        &mut self,
        which: &Which,
        after: Option<&LeasePlace>,
        size: usize,
        step: &mut Step<LeasePlace>,
    ) -> StoreResult<()> {
        let (until, ending) = match which {
            Which::Expired | Which::ExpiredOf(_) => (self.now, Ending::Expired),
            Which::All => (Timestamp::from_millis(i64::MAX), Ending::Released),
        };
        *step = Step::default();
        let mut due = Vec::new();
        let mut statement = self.db.prepare_cached(include_str!("sql/leases_expired.sql"))?;
        let after = after.map(|place| &place.0);
        let mut found = statement.query(params![until.as_millis(), size, after, which.streams()])?;
        while let Some(row) = found.next()? {
            step.last = Some(LeasePlace(row.get(0)?));
            step.seen += 1;
            match rows::holding(row) {
                Ok(held) => due.push(held),
                // The others must not wait for this one.
                Err(error) => tracing::error!(%error, "skipped a lease whose row is corrupt"),
            }
        }
        drop(found);
        drop(statement);
        for held in &due {
            self.take_lease_version(held)?;
            self.settle(held, ending, HolderReport::NONE)?;
        }
        step.moved = due.len();
        Ok(())
    }

    pub(super) fn take_lease_version(&self, held: &Holding) -> StoreResult<()> {
        let mut statement = self.db.prepare_cached(include_str!("sql/lease_take_version.sql"))?;
        match statement.execute(params![held.job_id.uuid().as_bytes(), held.claim_version])? {
            1 => Ok(()),
            _ => Err(StoreError::Corrupt(format!(
                "the lease of {} changed although there is only one writer",
                held.job_id
            ))),
        }
    }
}

impl SqliteStore {
    pub(super) async fn end_unreported(&self, which: Which, limit: usize, batch: usize) -> StoreResult<Pass> {
        go_through(limit, batch, |after, size| self.end_next(which.clone(), after, size)).await
    }

    async fn end_next(
        &self,
        which: Which,
        after: Option<LeasePlace>,
        size: usize,
    ) -> StoreResult<Step<LeasePlace>> {
        // Beside the transaction: if that is rolled back, it is known all the same what it met.
        let met = Arc::new(Mutex::new(Step::default()));
        let tell = met.clone();
        let ended = self.write(move |tx| tx.end_next(&which, after.as_ref(), size, &mut lock(&tell))).await;
        let mut step = std::mem::take(&mut *lock(&met));
        match ended {
            Ok(()) => {}
            Err(error @ StoreError::Corrupt(_)) => step.spoiled = Some(error),
            Err(error) => return Err(error),
        }
        Ok(step)
    }

    /// Settles expired leases of streams that a claim asks for, unless another claim has done so since `bound`.
    pub(super) async fn take_expired(&self, streams: &Arc<[StreamName]>, bound: Bound) -> StoreResult<()> {
        let Some(look) = self.expiries.look_after(bound).await else { return Ok(()) };
        let which = Which::ExpiredOf(streams.clone());
        let pass = self.end_unreported(which, limits::REAP_BATCH, limits::REAP_BATCH).await?;
        pass.tell_reaped();
        self.look_for_expiries(look, if pass.full { Settled::Unfinished } else { Settled::Of(streams) }).await
    }

    pub(super) async fn look_for_expiries(&self, look: Look<'_>, settled: Settled<'_>) -> StoreResult<()> {
        let now = self.clock.now();
        let began = now.before(look.since.elapsed());
        // By the writer: others wait for this look, and readers may all be busy for long.
        let leases = self.write(move |tx| expiries(tx.db, began)).await?;
        look.ended(Found { now, leases, settled, others: None });
        Ok(())
    }
}

/// When the leases of each stream run out.
fn expiries(db: &Connection, now: Timestamp) -> StoreResult<Vec<OfStream>> {
    let mut statement = db.prepare_cached(include_str!("sql/leases_next.sql"))?;
    let of_stream = |row: &Row<'_>| {
        let (next, overdue) = (rows::maybe_instant(row, 1)?, rows::maybe_instant(row, 2)?);
        Ok(OfStream { stream: rows::stream(row, 0)?, next, overdue })
    };
    Ok(statement.query_map([now.as_millis()], of_stream)?.collect::<Result<_, _>>()?)
}

/// Which leases are ended without a report.
#[derive(Clone)]
pub(super) enum Which {
    Expired,
    ExpiredOf(Arc<[StreamName]>),
    All,
}

impl Which {
    /// The streams as a JSON array, `None` for all of them.
    fn streams(&self) -> Option<String> {
        let Self::ExpiredOf(streams) = self else { return None };
        let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
        Some(serde_json::json!(names).to_string())
    }
}

/// The id of a lease, as it is stored: a damaged one must be passed as well.
#[derive(Clone, PartialEq, PartialOrd)]
pub(super) struct LeasePlace(Vec<u8>);

impl fmt::Display for LeasePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Uuid::from_slice(&self.0) {
            Ok(id) => id.fmt(f),
            Err(_) => write!(f, "{:x?}", self.0),
        }
    }
}
