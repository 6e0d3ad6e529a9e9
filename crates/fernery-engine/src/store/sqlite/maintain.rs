//! The work of the engine's other loops: promotes due jobs, deletes old jobs, keeps the clock; and the fence after a restore.

use super::read;
use super::reap::Which;
use super::rows;
use super::tx::{Tx, Waiting};
use super::{SqliteStore, lock};
use crate::door::stop_watch;
use crate::error::{StoreError, StoreResult};
use crate::store::{Clock, JobBrief, Maintain, Pass, Retention};
use async_trait::async_trait;
use fernery_core::job::lease::FENCE_STEP;
use fernery_core::{JobId, JobStatus, Timestamp, limits};
use rusqlite::{Connection, params};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How often the clock is kept while nothing is written: a machine that is switched off then is seen to have been.
const CLOCK_KEPT_EVERY: Duration = Duration::from_secs(3600);

#[async_trait]
impl Maintain for SqliteStore {
    async fn promote(&self, limit: usize) -> StoreResult<Pass> {
        self.write(move |tx| tx.promote(limit)).await
    }

    async fn fence(&self) -> StoreResult<usize> {
        self.write(|tx| {
            tx.raise_versions()?;
            crate::pipeline::claims::fence(tx)
        })
        .await?;
        Ok(self.end_unreported(Which::All, usize::MAX, limits::REAP_BATCH).await?.moved)
    }

    async fn retain(&self, retention: Retention, limit: usize) -> StoreResult<Pass> {
        let cutoffs = Cutoffs::new(retention, self.clock.now());
        let (from, anew) = (self.retain_from.clone(), self.retain_anew.swap(false, Ordering::Relaxed));
        let find = move |db: &Connection| {
            let mut round = lock(&from);
            if anew {
                *round = Round::default();
            }
            past_retention(db, &mut round, cutoffs, limit)
        };
        let again = |_: &StoreError| self.retain_anew.store(true, Ordering::Relaxed);
        let (found, full) = self.read(find).await.inspect_err(again)?;
        if found.is_empty() {
            return Ok(Pass { moved: 0, full });
        }
        let moved = self.write(move |tx| tx.retain(&found, cutoffs)).await?;
        Ok(Pass { moved, full })
    }

    async fn tidy(&self) -> StoreResult<()> {
        let due = lock(&self.clock_kept).elapsed() >= CLOCK_KEPT_EVERY;
        if self.wrote.swap(false, Ordering::Relaxed) || due {
            self.try_write().await?;
            *lock(&self.clock_kept) = stop_watch();
        }
        Ok(())
    }
}

impl Tx<'_> {
    fn promote(&mut self, limit: usize) -> StoreResult<Pass> {
        let due: Vec<_> = self
            .db
            .prepare_cached(include_str!("sql/scheduled_due.sql"))?
            .query_map(params![self.clock.calendar().as_millis(), limit], |row| {
                let waiting = Waiting {
                    claim_version: row.get(2)?,
                    attempt_no: row.get(3)?,
                    tally: rows::tally(row, 4)?,
                };
                Ok((rows::job_id(row, 0)?, rows::stream(row, 1)?, waiting))
            })?
            .collect::<Result<_, _>>()?;
        for (job_id, stream, waiting) in &due {
            self.db
                .prepare_cached(include_str!("sql/waiting_remove_scheduled.sql"))?
                .query_row([job_id.uuid().as_bytes()], |_| Ok(()))?;
            self.count(stream).scheduled -= 1;
            let seq = self.take_place(*job_id)?;
            self.wait(*job_id, stream, seq, None, *waiting)?;
        }
        Ok(Pass { moved: due.len(), full: due.len() == limit })
    }

    /// Deletes jobs that are past their retention, if they still are.
    fn retain(&mut self, job_ids: &[JobId], cutoffs: Cutoffs) -> StoreResult<usize> {
        let mut moved = 0;
        for job_id in job_ids {
            let Some(brief) = read::brief(self.db, *job_id)? else { continue };
            let kept = brief.stream.is_workorders();
            if !kept && cutoffs.are_past(&brief) {
                if brief.status == JobStatus::Dead {
                    self.count(&brief.stream).dead -= 1;
                }
                self.forget(*job_id)?;
                moved += 1;
            }
        }
        Ok(moved)
    }

    /// After a restore: no version that was given out since the backup can match.
    fn raise_versions(&mut self) -> StoreResult<()> {
        for sql in [
            include_str!("sql/fence_ready.sql"),
            include_str!("sql/fence_scheduled.sql"),
            include_str!("sql/fence_leases.sql"),
            include_str!("sql/fence_jobs.sql"),
        ] {
            self.db.prepare_cached(sql)?.execute([FENCE_STEP])?;
        }
        Ok(())
    }
}

/// What ended before these is past its retention.
#[derive(Clone, Copy, Debug)]
struct Cutoffs {
    finished: Timestamp,
    dead: Option<Timestamp>,
}

impl Cutoffs {
    fn new(retention: Retention, now: Timestamp) -> Self {
        Self { finished: now.before(retention.finished), dead: retention.dead.map(|age| now.before(age)) }
    }

    fn are_past(&self, brief: &JobBrief) -> bool {
        let cutoff = if brief.status == JobStatus::Dead { self.dead } else { Some(self.finished) };
        brief.finished_at.zip(cutoff).is_some_and(|(at, cutoff)| at < cutoff)
    }

    fn latest(&self) -> Timestamp {
        self.finished.max(self.dead.unwrap_or(self.finished))
    }
}

/// Where retention is in the order of storing.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// It goes on after this one.
    cursor: i64,
    /// Up to here there are only dead jobs that are kept for good: a round begins after them.
    passed: i64,
}

impl Round {
    fn kept_for_good(&mut self, place: i64) {
        if self.passed == self.cursor {
            self.passed = place;
        }
    }

    fn ended(&mut self) {
        self.cursor = self.passed;
    }
}

/// Jobs past their retention, from where the round is in the order of storing. Moves it on; to its beginning at the end.
fn past_retention(
    db: &Connection,
    round: &mut Round,
    cutoffs: Cutoffs,
    limit: usize,
) -> StoreResult<(Vec<JobId>, bool)> {
    if cutoffs.dead.is_some() && round.passed > 0 {
        *round = Round::default();
    }
    let scan = limit.saturating_mul(10);
    let mut statement = db.prepare_cached(include_str!("sql/list_jobs_by_age.sql"))?;
    let mut cursor_rows = statement.query(params![round.cursor, scan])?;
    let mut found = Vec::new();
    let mut looked = 0;
    while let Some(row) = cursor_rows.next()? {
        if rows::instant(row, 2)? >= cutoffs.latest() {
            // Stored too late to have ended before any cutoff; so are all that follow.
            round.ended();
            return Ok((found, false));
        }
        looked += 1;
        let (place, job_id) = (row.get(0)?, rows::job_id(row, 1)?);
        let kept_for_good = row.get::<_, bool>(3)? && cutoffs.dead.is_none();
        if kept_for_good {
            round.kept_for_good(place);
        }
        round.cursor = place;
        if kept_for_good {
            continue;
        }
        if read::brief(db, job_id)?.is_some_and(|brief| cutoffs.are_past(&brief)) {
            found.push(job_id);
            if found.len() == limit {
                return Ok((found, true));
            }
        }
    }
    if looked < scan {
        round.ended();
    }
    Ok((found, looked == scan))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_of_retention_begins_after_the_dead_letters_that_are_kept_for_good() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(include_str!("migrations/0001_engine.sql")).unwrap();
        let job = "INSERT INTO jobs (job_id, stream, payload, max_attempts, created_at, run_at, seq, ended, ended_at,
                                     claim_version)
                   VALUES (randomblob(16), 's', '{}', 1, 0, 0, 0, ?1, 0, 1)";
        for ended in ["DEAD", "DEAD", "CANCELLED", "DEAD"] {
            db.execute(job, [ended]).unwrap();
        }
        let now = Timestamp::from_millis(1_800_000_000_000);
        let retention = Retention { finished: Duration::from_secs(1), dead: None };
        let mut round = Round::default();
        let found = past_retention(&db, &mut round, Cutoffs::new(retention, now), 10).unwrap();
        assert_eq!((found.0.len(), found.1, round.passed, round.cursor), (1, false, 2, 2));
        db.execute("DELETE FROM jobs WHERE ended = 'CANCELLED'", []).unwrap();
        let found = past_retention(&db, &mut round, Cutoffs::new(retention, now), 10).unwrap();
        assert_eq!((found.0.len(), round.passed), (0, 4));
        db.execute(job, ["CANCELLED"]).unwrap();
        let found = past_retention(&db, &mut round, Cutoffs::new(retention, now), 10).unwrap();
        assert_eq!((found.0.len(), round.passed), (1, 4));
        let retention = Retention { dead: Some(Duration::from_secs(1)), ..retention };
        let found = past_retention(&db, &mut round, Cutoffs::new(retention, now), 10).unwrap();
        assert_eq!((found.0.len(), round.passed), (4, 0), "now they are not");
    }
}
