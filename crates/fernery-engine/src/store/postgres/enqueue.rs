//! Enqueues jobs.
//!
//! One statement stores a whole batch and skips jobs whose id or unique key is taken. Skipped jobs are then looked up,
//! by id first, by unique key second. A job that is found by neither (its key was freed meanwhile) goes into the next
//! round.

use super::after_commit::AfterCommit;
use super::connection::pool::Session;
use super::connection::retry::{Tries, Trouble};
use super::grouper::Verb;
use super::rows::{self, At, Json, Param, cell, instant, job_id, millis, small};
use super::{PostgresStore, Shared};
use crate::error::{StoreError, StoreResult};
use crate::store::{Enqueue, Enqueued, JobBrief, NewJob, Start};
use async_trait::async_trait;
use fernery_core::{JobId, StreamName, Timestamp};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use uuid::Uuid;

/// Rounds against other processes that take and free the same keys; after that the caller is told to try again.
const ROUNDS_MAX: usize = 20;

#[async_trait]
impl Enqueue for PostgresStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Enqueued>> {
        let chance = self.shared.settings.chance;
        self.enqueues.call(jobs.into_iter().map(|job| Entry::new(job, chance)).collect()).await
    }
}

/// A job with its id: made before the first try, so that a second one can tell whether the first happened.
pub(super) struct Entry {
    job: NewJob,
    job_id: JobId,
    /// Only where the producer made the id.
    content_hash: Option<[u8; 16]>,
    /// Whether a statement with it has ever been sent.
    tried: AtomicBool,
}

impl Entry {
    pub(super) fn new(job: NewJob, chance: crate::door::Chance) -> Self {
        let content_hash = job.job_id.map(|_| job.content_hash());
        let job_id = job.job_id.unwrap_or_else(|| chance.job_id());
        Self { job_id, job, content_hash, tried: AtomicBool::new(false) }
    }

    /// Whether nobody else can have its id, nor its key.
    fn is_ours(&self) -> bool {
        self.content_hash.is_none() && self.job.unique_key.is_none()
    }

    /// From when on it may start if it is stored at `now`, as the statements have it.
    fn run_at(&self, now: Timestamp) -> Timestamp {
        match self.job.start {
            Start::Now => now,
            Start::After(delay) => now.after(delay),
            Start::At(at) => at,
        }
    }

    fn created(&self, created_at: Timestamp, run_at: Timestamp) -> JobBrief {
        self.job.created(self.job_id, created_at, run_at)
    }
}

pub(super) struct EnqueueBatch(pub(super) Arc<Shared>);

impl Verb for EnqueueBatch {
    type Call = Vec<Entry>;
    type Reply = Vec<Enqueued>;

    fn items(call: &Vec<Entry>) -> usize {
        call.len()
    }

    async fn run(&self, calls: &[Vec<Entry>]) -> StoreResult<Vec<Vec<Enqueued>>> {
        let entries: Vec<&Entry> = calls.iter().flatten().collect();
        let mut answers: Vec<Option<Enqueued>> = vec![None; entries.len()];
        // A batch that failed runs again call by call, and may have been stored: then only the rounds can tell.
        let new = entries.iter().all(|entry| entry.is_ours() && !entry.tried.load(Ordering::Relaxed));
        entries.iter().for_each(|entry| entry.tried.store(true, Ordering::Relaxed));
        if new {
            self.first_try(&entries, &mut answers).await?;
        }
        for _ in 0..ROUNDS_MAX {
            if answers.iter().all(Option::is_some) {
                let mut answers = answers.into_iter().flatten();
                return Ok(calls.iter().map(|call| answers.by_ref().take(call.len()).collect()).collect());
            }
            self.round(&entries, &mut answers).await?;
        }
        Err(StoreError::Busy("other producers use the same unique keys at the same time".into()))
    }
}

impl EnqueueBatch {
    /// Stores what can collide with nothing, unless this very call stored it before: if that is not known, it is left to
    /// the rounds.
    async fn first_try(&self, entries: &[&Entry], answers: &mut [Option<Enqueued>]) -> StoreResult<()> {
        let mut tries = Tries::new(self.0.settings.chance);
        while !tries.unsure {
            match self.store_new(entries).await {
                Ok(now) => {
                    let mut after = AfterCommit::default();
                    for (entry, answer) in entries.iter().zip(answers) {
                        let run_at = entry.run_at(now);
                        after.came(&entry.job.stream, now, (run_at > now).then_some(run_at));
                        *answer = Some(Enqueued::Created(entry.created(now, run_at)));
                    }
                    self.0.announce(after);
                    return Ok(());
                }
                Err(trouble) => tries.again(trouble).await?,
            }
        }
        Ok(())
    }

    /// Stores all of them; answers when that was.
    async fn store_new(&self, entries: &[&Entry]) -> Result<Timestamp, Trouble> {
        let c = Columns::of(entries);
        let params: [Param<'_>; 8] = [
            &c.job_id,
            &c.stream,
            &c.payload,
            &c.max_attempts,
            &c.timeout_ms,
            &c.producer,
            &c.delay_ms,
            &c.start_at,
        ];
        let session = self.0.pool.session().await?;
        let rows = session.query(include_str!("sql/enqueue_new.sql"), &params).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("the database returned no time".into()))?;
        Ok(instant(row, 0)?)
    }

    async fn round(&self, entries: &[&Entry], answers: &mut [Option<Enqueued>]) -> StoreResult<()> {
        // The first of each id and of each key; the others find out from what became of it.
        let (mut ids, mut keys) = (HashSet::new(), HashSet::new());
        let mut sent: Vec<usize> = Vec::with_capacity(entries.len());
        for (n, entry) in entries.iter().enumerate().filter(|(n, _)| answers[*n].is_none()) {
            let new_key = entry.job.unique_key.as_ref().is_none_or(|key| keys.insert(key.as_str()));
            if ids.insert(entry.job_id) && new_key {
                sent.push(n);
            }
        }
        let mut tries = Tries::new(self.0.settings.chance);
        let stored = loop {
            match self.store(entries, &sent).await {
                Ok(stored) => break stored,
                Err(trouble) => tries.again(trouble).await?,
            }
        };
        let mut after = AfterCommit::default();
        for n in sent {
            if let Some(brief) = stored.get(&entries[n].job_id) {
                after.came(
                    &brief.stream,
                    brief.created_at,
                    (brief.run_at > brief.created_at).then_some(brief.run_at),
                );
                answers[n] = Some(Enqueued::Created(brief.clone()));
            }
        }
        self.0.announce(after);
        if answers.iter().any(Option::is_none) {
            let mut tries = Tries::new(self.0.settings.chance);
            while let Err(trouble) = self.look_up(entries, answers).await {
                tries.again(trouble).await?;
            }
        }
        Ok(())
    }

    /// Stores what is free of `sent`; answers what it stored.
    async fn store(&self, entries: &[&Entry], sent: &[usize]) -> Result<HashMap<JobId, JobBrief>, Trouble> {
        let session = self.0.pool.session().await?;
        let mut sent: Vec<&Entry> = sent.iter().map(|n| entries[*n]).collect();
        let with_keys = sent.iter().any(|entry| entry.job.unique_key.is_some());
        if with_keys {
            // A job with a key that is not new must not take its key first: leave it out.
            let ids: Vec<Uuid> = sent.iter().map(|entry| entry.job_id.uuid()).collect();
            let known = session.begin_with("BEGIN", include_str!("sql/known_jobs.sql"), &[&ids]).await?;
            let known: HashSet<JobId> = known.iter().map(|row| job_id(row, 0)).collect::<StoreResult<_>>()?;
            sent.retain(|entry| !known.contains(&entry.job_id));
        }
        let columns = Columns::of(&sent);
        let rows = session.query(include_str!("sql/enqueue.sql"), &columns.params()).await?;
        let mut stored = HashMap::with_capacity(rows.len());
        let by_id: HashMap<JobId, &Entry> = sent.iter().map(|entry| (entry.job_id, *entry)).collect();
        for row in &rows {
            let id = job_id(row, 0)?;
            if let Some(entry) = by_id.get(&id) {
                stored.insert(id, entry.created(instant(row, 1)?, instant(row, 2)?));
            }
        }
        if with_keys {
            let keyed: i64 = rows.first().map_or(Ok(0), |row| cell(row, 3))?;
            let stored_with_key = rows.iter().filter(|row| {
                job_id(row, 0).is_ok_and(|id| by_id.get(&id).is_some_and(|e| e.job.unique_key.is_some()))
            });
            if stored_with_key.count() as i64 != keyed || rows.is_empty() {
                // Its id was taken by another producer after we looked, and it holds a key now: undo, look again.
                session.rollback().await?;
                if !rows.is_empty() {
                    return Err(Trouble::Conflict(
                        "another producer used the same id at the same time".into(),
                    ));
                }
                return Ok(stored);
            }
            session.commit().await?;
        }
        Ok(stored)
    }

    /// Answers what was not stored: by id, else by key, else not yet.
    async fn look_up(&self, entries: &[&Entry], answers: &mut [Option<Enqueued>]) -> Result<(), Trouble> {
        let open = || entries.iter().zip(answers.iter()).filter(|(_, answer)| answer.is_none());
        let ids: Vec<Uuid> = open().map(|(entry, _)| entry.job_id.uuid()).collect();
        let keys: Vec<&str> = open().filter_map(|(entry, _)| entry.job.unique_key.as_deref()).collect();
        let session = self.0.pool.session().await?;
        let mut by_id: HashMap<JobId, (JobBrief, Option<Vec<u8>>)> = HashMap::new();
        for row in session.query(include_str!("sql/jobs_by_id.sql"), &[&ids]).await? {
            by_id.insert(job_id(&row, 0)?, (rows::brief(&row)?, cell(&row, 12)?));
        }
        let mut by_key: HashMap<String, JobBrief> = HashMap::new();
        if !keys.is_empty() {
            for row in session.query(include_str!("sql/jobs_by_key.sql"), &[&keys]).await? {
                by_key.insert(cell(&row, 12)?, rows::brief(&row)?);
            }
        }
        let mut after = AfterCommit::default();
        for (entry, answer) in entries.iter().zip(answers).filter(|(_, answer)| answer.is_none()) {
            let key = entry.job.unique_key.as_deref();
            *answer = match (by_id.get(&entry.job_id), entry.content_hash) {
                // An id of our own that is there: an earlier try was committed, its answer lost.
                (Some((brief, _)), None) => {
                    after.came(
                        &brief.stream,
                        brief.created_at,
                        (brief.run_at > brief.created_at).then_some(brief.run_at),
                    );
                    Some(Enqueued::Created(brief.clone()))
                }
                (Some((brief, stored)), Some(hash)) if stored.as_deref() == Some(&hash) => {
                    Some(Enqueued::Exists(brief.clone()))
                }
                (Some(_), Some(_)) => Some(Enqueued::Conflict(entry.job_id)),
                (None, _) => key.and_then(|key| by_key.get(key)).cloned().map(Enqueued::DuplicateKey),
            };
        }
        drop(session);
        self.0.announce(after);
        Ok(())
    }
}

/// Stores jobs within a transaction, except what is there already; answers the stream of each that it stored.
pub(super) async fn store_within(
    session: &Session<'_>,
    shared: &Shared,
    jobs: Vec<NewJob>,
) -> Result<Vec<StreamName>, Trouble> {
    let chance = shared.settings.chance;
    let entries: Vec<Entry> = jobs.into_iter().map(|job| Entry::new(job, chance)).collect();
    let columns = Columns::of(&entries.iter().collect::<Vec<_>>());
    let rows = session.query(include_str!("sql/enqueue.sql"), &columns.params()).await?;
    let stored: HashSet<JobId> = rows.iter().map(|row| job_id(row, 0)).collect::<StoreResult<_>>()?;
    let stored = entries.into_iter().filter(|entry| stored.contains(&entry.job_id));
    Ok(stored.map(|entry| entry.job.stream).collect())
}

/// The batch column by column, as the statement takes it.
struct Columns<'a> {
    job_id: Vec<Uuid>,
    stream: Vec<&'a str>,
    payload: Vec<Json<'a>>,
    max_attempts: Vec<i32>,
    timeout_ms: Vec<Option<i64>>,
    unique_key: Vec<Option<&'a str>>,
    producer: Vec<Option<&'a str>>,
    content_hash: Vec<Option<&'a [u8]>>,
    delay_ms: Vec<Option<i64>>,
    start_at: Vec<Option<At>>,
}

impl<'a> Columns<'a> {
    fn of(entries: &[&'a Entry]) -> Self {
        let jobs = || entries.iter().map(|entry| &entry.job);
        Self {
            job_id: entries.iter().map(|entry| entry.job_id.uuid()).collect(),
            stream: jobs().map(|job| job.stream.as_str()).collect(),
            payload: jobs().map(|job| Json(&job.payload)).collect(),
            max_attempts: jobs().map(|job| small(job.max_attempts)).collect(),
            timeout_ms: jobs().map(|job| job.timeout.map(millis)).collect(),
            unique_key: jobs().map(|job| job.unique_key.as_deref()).collect(),
            producer: jobs().map(|job| job.producer.as_deref()).collect(),
            content_hash: entries.iter().map(|e| e.content_hash.as_ref().map(<[u8; 16]>::as_slice)).collect(),
            delay_ms: jobs()
                .map(|job| match job.start {
                    Start::After(delay) => Some(millis(delay)),
                    _ => None,
                })
                .collect(),
            start_at: jobs()
                .map(|job| match job.start {
                    Start::At(at) => Some(At(at)),
                    _ => None,
                })
                .collect(),
        }
    }

    fn params(&self) -> [Param<'_>; 10] {
        [
            &self.job_id,
            &self.stream,
            &self.payload,
            &self.max_attempts,
            &self.timeout_ms,
            &self.unique_key,
            &self.producer,
            &self.content_hash,
            &self.delay_ms,
            &self.start_at,
        ]
    }
}
