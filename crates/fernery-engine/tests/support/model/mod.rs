//! The model: a store that is correct by being simple. It is the specification that the databases are held against.
//!
//! One lock, one [`State`], a clock that moves only when told. It decides nothing itself: what an end means is said by
//! `settle`, what a report is answered by `answer`, both of `fernery-core`. It is written from the docs of the [`Store`]
//! traits, never from the SQL.

mod list;
mod state;

use async_trait::async_trait;
use fernery_core::job::report::{Answer, Reported};
use fernery_core::job::settle::Ending;
use fernery_core::{Holding, JobId, Progress, StreamName, Timestamp, limits};
use fernery_engine::door::LeaseClock;
use fernery_engine::error::StoreResult;
use fernery_engine::signals::Signals;
use fernery_engine::store::{
    Ask, Beat, BeatAnswer, CancelAnswer, Claim, Claimed, Clock, Completion, Cursor, DeadFilter, DeadGroups,
    DeadLetter, Enqueue, Enqueued, Failure, Holder, IdsFound, IdsLike, JobBrief, JobFilter, JobView,
    LivingProcess, Maintain, NewJob, Operate, Page, Pass, Process, Processes, Proof, Read, Reap, Report,
    Retention, RetryAnswer, SignIns, Stats, Store, StoreSettings, StreamCounts, StreamView, Streams,
    TokenRow, Tokens, Transactions,
};
use state::{Effects, Evidence, State};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

/// What survives a crash of the model: the "disk" that several [`ModelStore`]s may be opened on.
#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

/// A store in memory.
pub(crate) struct ModelStore {
    disk: Disk,
    settings: StoreSettings,
    clock: LeaseClock,
    signals: Arc<Signals>,
}

impl ModelStore {
    pub(crate) fn open(
        disk: Disk,
        settings: StoreSettings,
        clock: LeaseClock,
        signals: Arc<Signals>,
    ) -> Self {
        Self { disk, settings, clock, signals }
    }

    fn read<T>(&self, look: impl FnOnce(&State) -> T) -> StoreResult<T> {
        Ok(look(&self.disk.0.lock().expect("no verb panics")))
    }

    /// One transaction; then the signals, after it as after a commit.
    fn write<T>(&self, act: impl FnOnce(&mut State, Timestamp, &mut Effects) -> T) -> StoreResult<T> {
        let mut effects = Effects::default();
        let done = {
            let mut state = self.disk.0.lock().expect("no verb panics");
            act(&mut state, self.clock.now(), &mut effects)
        };
        for stream in &effects.claimable {
            self.signals.claimable(stream, 1);
        }
        for job_id in effects.ended {
            self.signals.endings.ended(job_id);
        }
        if effects.scheduled {
            self.signals.scheduled.notify_one();
        }
        Ok(done)
    }
}

#[async_trait]
impl Enqueue for ModelStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Enqueued>> {
        self.write(|state, now, effects| {
            jobs.into_iter().map(|job| state.enqueue(job, now, &self.settings, effects)).collect()
        })
    }
}

#[async_trait]
impl Claim for ModelStore {
    async fn claim(&self, ask: Ask) -> StoreResult<Vec<Claimed>> {
        self.write(|state, now, effects| {
            state.reap(Some(&ask.streams), limits::REAP_BATCH, now, &self.settings, effects);
            let claimed = state.claim(&ask, now, &self.settings);
            // Should one of these be the first to run out.
            self.signals.leased.notify_one();
            claimed
        })
    }
}

#[async_trait]
impl Report for ModelStore {
    async fn heartbeat(&self, beats: Vec<Beat>) -> StoreResult<Vec<BeatAnswer>> {
        self.write(|state, now, _| {
            beats.into_iter().map(|beat| state.heartbeat(beat, now, self.settings.lease_ttl)).collect()
        })
    }

    async fn progress(&self, items: Vec<(Beat, Progress)>) -> StoreResult<Vec<bool>> {
        self.write(|state, _, _| {
            items.into_iter().map(|(beat, progress)| state.progress(beat, progress)).collect()
        })
    }

    async fn complete(&self, items: Vec<Completion>) -> StoreResult<Vec<Answer>> {
        self.write(|state, now, effects| {
            let mut complete = |item: Completion| {
                let evidence = Evidence { result: Some(item.result), ..Evidence::default() };
                let end = (Reported::Success, Ending::Completed);
                state.report(item.proof, end, evidence, now, &self.settings, effects)
            };
            items.into_iter().map(&mut complete).collect()
        })
    }

    async fn fail(&self, items: Vec<Failure>) -> StoreResult<Vec<Answer>> {
        self.write(|state, now, effects| {
            let mut fail = |item: Failure| {
                let evidence = Evidence { error: Some(item.error), code: Some(item.code), result: None };
                let end = (Reported::Failure, Ending::Failed { retryable: item.retryable });
                state.report(item.proof, end, evidence, now, &self.settings, effects)
            };
            items.into_iter().map(&mut fail).collect()
        })
    }

    async fn release(&self, items: Vec<Proof>) -> StoreResult<Vec<Answer>> {
        self.write(|state, now, effects| {
            let mut release = |proof: Proof| {
                let end = (Reported::Release, Ending::Released);
                state.report(proof, end, Evidence::default(), now, &self.settings, effects)
            };
            items.into_iter().map(&mut release).collect()
        })
    }
}

#[async_trait]
impl Operate for ModelStore {
    async fn cancel(&self, job_id: JobId, force: bool) -> StoreResult<CancelAnswer> {
        self.write(|state, now, effects| state.cancel(job_id, force, now, &self.settings, effects))
    }

    async fn retry(&self, job_id: JobId) -> StoreResult<RetryAnswer> {
        self.write(|state, now, effects| state.retry(job_id, now, effects))
    }

    async fn redrive(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        self.write(|state, now, effects| state.redrive(&filter, limit, now, effects))
    }

    async fn purge(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        self.write(|state, _, _| state.purge(&filter, limit))
    }
}

#[async_trait]
impl Read for ModelStore {
    async fn job(&self, job_id: JobId) -> StoreResult<Option<JobView>> {
        self.read(|state| state.jobs.get(&job_id).map(state::Job::view))
    }

    async fn jobs(
        &self,
        filter: JobFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<JobBrief>> {
        self.read(|state| state.job_page(&filter, after, limit))
    }

    async fn job_ids(&self, part: IdsLike, limit: usize) -> StoreResult<IdsFound> {
        self.read(|state| {
            let between = state.jobs.values().map(state::Job::view).map(|view| view.brief);
            let between = between.filter(|job| (part.from..=part.to).contains(&job.job_id));
            let mut looked: Vec<JobBrief> = between.collect();
            looked.sort_by_key(|job| job.job_id);
            let beyond = looked.len() as i64 > part.looked_at_max;
            looked.truncate(usize::try_from(part.looked_at_max).unwrap_or(0));
            let meant = looked.iter().filter(|job| {
                job.job_id.to_string().ends_with(&part.tail)
                    && part.producer.as_ref().is_none_or(|producer| Some(producer) == job.producer.as_ref())
            });
            let ids: Vec<JobId> = meant.map(|job| job.job_id).take(limit).collect();
            IdsFound { beyond: beyond && ids.len() < limit, ids }
        })
    }

    async fn holders_of(&self, jobs: Vec<JobId>) -> StoreResult<Vec<Option<Holder>>> {
        self.write(|state, _, _| jobs.iter().map(|job_id| state.holder_of(*job_id)).collect())
    }

    async fn count_dead(&self, filter: DeadFilter) -> StoreResult<u64> {
        self.read(|state| state.dead(&filter).len() as u64)
    }

    async fn dead_letters(
        &self,
        filter: DeadFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<DeadLetter>> {
        self.read(|state| state.dead_page(&filter, after, limit))
    }

    async fn dead_groups(
        &self,
        stream: Option<StreamName>,
        newest: usize,
        limit: usize,
    ) -> StoreResult<DeadGroups> {
        self.read(|state| state.dead_groups(stream.as_ref(), newest, limit))
    }

    async fn leases(&self, after: Option<JobId>, limit: usize) -> StoreResult<Vec<Holding>> {
        self.read(|state| state.leases(after, limit))
    }

    async fn next_due(&self) -> StoreResult<Option<Timestamp>> {
        self.read(State::next_due)
    }
}

#[async_trait]
impl Streams for ModelStore {
    async fn streams(&self, after: Option<StreamName>, limit: usize) -> StoreResult<Vec<StreamView>> {
        let wanted = |name: &&StreamName| after.as_ref().is_none_or(|after| *name > after);
        self.read(|state| {
            let names = state.streams.keys().filter(wanted).take(limit);
            names.filter_map(|name| state.stream_view(name)).collect()
        })
    }

    async fn streams_beyond(&self, after: Option<StreamName>) -> StoreResult<(u64, StreamCounts)> {
        let views = self.streams(after, usize::MAX).await?;
        let mut sums = StreamCounts::default();
        views.iter().for_each(|view| sums.add(&view.counts));
        Ok((views.len() as u64, sums))
    }

    async fn stream(&self, name: StreamName) -> StoreResult<Option<StreamView>> {
        self.read(|state| state.stream_view(&name))
    }

    async fn set_paused(&self, name: StreamName, paused: bool) -> StoreResult<bool> {
        self.write(|state, _, effects| {
            let Some(stream) = state.streams.get_mut(&name) else { return false };
            stream.paused = paused;
            if !paused {
                effects.claimable.extend(state.ready(&name).iter().map(|_| name.clone()));
            }
            true
        })
    }

    /// Nobody can set anything here.
    async fn redacting(&self, _: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
        Ok(Vec::new())
    }

    async fn claimable(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
        self.read(|state| streams.into_iter().filter(|name| state.is_claimable(name)).collect())
    }
}

#[async_trait]
impl Reap for ModelStore {
    async fn reap(&self, limit: usize) -> StoreResult<Pass> {
        self.write(|state, now, effects| state.reap(None, limit, now, &self.settings, effects))
    }

    fn next_expiry(&self) -> Option<Duration> {
        let now = self.clock.now();
        let held = |state: &State| state.next_expiry().map(|at| at.since(now));
        self.read(held).ok().flatten()
    }
}

#[async_trait]
impl Maintain for ModelStore {
    async fn promote(&self, limit: usize) -> StoreResult<Pass> {
        self.write(|state, now, effects| state.promote(limit, now, effects))
    }

    async fn fence(&self) -> StoreResult<usize> {
        self.write(|state, now, effects| state.fence(now, &self.settings, effects))
    }

    async fn retain(&self, retention: Retention, limit: usize) -> StoreResult<Pass> {
        self.write(|state, now, _| state.retain(retention, limit, now))
    }

    async fn tidy(&self) -> StoreResult<()> {
        Ok(())
    }
}

#[async_trait]
impl Tokens for ModelStore {
    async fn tokens(&self) -> StoreResult<Vec<TokenRow>> {
        self.read(|state| state.tokens.values().cloned().collect())
    }

    async fn add_token(&self, token: TokenRow) -> StoreResult<bool> {
        self.write(|state, _, _| match state.tokens.get(&token.token_id) {
            Some(known) => known.secret_hash == token.secret_hash,
            None => state.tokens.insert(token.token_id.clone(), token).is_none(),
        })
    }

    async fn revoke_token(&self, token_id: String) -> StoreResult<bool> {
        self.write(|state, now, _| {
            let Some(token) = state.tokens.get_mut(&token_id) else { return false };
            token.revoked_at.get_or_insert(now);
            true
        })
    }
}

impl SignIns for ModelStore {}

impl Stats for ModelStore {}

#[async_trait]
impl Processes for ModelStore {
    async fn attend(&self, process: Process) -> StoreResult<()> {
        self.write(|state, now, _| {
            state.processes.retain(|_, seen| now.since(seen.seen_at) < limits::PROCESS_FORGOTTEN);
            state.processes.insert(process.process_id, LivingProcess { process, seen_at: now });
        })
    }

    async fn leave(&self, process_id: Uuid) -> StoreResult<()> {
        self.write(|state, _, _| state.processes.remove(&process_id)).map(drop)
    }

    async fn processes(&self) -> StoreResult<Vec<LivingProcess>> {
        self.read(|state| {
            let alive = |seen: &&LivingProcess| self.clock.now().since(seen.seen_at) < limits::PROCESS_ALIVE;
            let mut alive: Vec<_> = state.processes.values().filter(alive).cloned().collect();
            alive.sort_by_key(|seen| (seen.process.started_at, seen.process.process_id));
            alive
        })
    }
}

impl Transactions for ModelStore {}

#[async_trait]
impl Clock for ModelStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        Ok(self.clock.now())
    }
}

#[async_trait]
impl Store for ModelStore {
    fn backend(&self) -> &'static str {
        "model"
    }

    async fn close(&self) {}
}
