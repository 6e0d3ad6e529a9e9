//! The rules of the model, over plain maps. Nothing here is fast, and everything is meant to be read.
//!
//! A job has exactly one [`Place`], so it cannot be queued and leased at once (invariant 5). What a store keeps in a table of
//! its own and can be told from the jobs (unique keys, most counts, the dead-letter queue) is told from them here.

use fernery_core::job::lease::{FENCE_STEP, Message, Tally};
use fernery_core::job::report::{Answer, Found, Reported, answer};
use fernery_core::job::settle::{Ending, Next, settle};
use fernery_core::{
    AttemptId, AttemptOutcome, Holding, JobId, JobStatus, Progress, StreamName, Timestamp, TokenHash, limits,
};
use fernery_engine::store::endings::unreported;
use fernery_engine::store::{
    Ask, AttemptView, Beat, BeatAnswer, CancelAnswer, Claimed, DeadFilter, DeadLetter, Enqueued, Holder,
    JobBrief, JobView, LivingProcess, NewJob, Pass, Proof, Retention, RetryAnswer, Start, StoreSettings,
    StreamCounts, StreamView, TokenRow,
};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

/// Everything that is stored.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) streams: BTreeMap<StreamName, Stream>,
    pub(crate) tokens: BTreeMap<String, TokenRow>,
    pub(crate) processes: BTreeMap<Uuid, LivingProcess>,
    /// The place given out last; every wait of every job gets the next one.
    seq: i64,
}

/// What is kept of a stream beside its jobs.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) paused: bool,
    succeeded: i64,
    cancelled: i64,
}

/// One job.
pub(crate) struct Job {
    job_id: JobId,
    asked: NewJob,
    created_at: Timestamp,
    /// From when on the producer wants it to start.
    wanted_at: Timestamp,
    pub(crate) place: Place,
    claim_version: i64,
    attempts_made: u32,
    tally: Tally,
    closed: Vec<ClosedAttempt>,
    /// Of the open attempt.
    progress: Option<Progress>,
}

/// Where a job is: in one of these, always.
pub(crate) enum Place {
    Ready(Message),
    Scheduled { seq: i64, due_at: Timestamp },
    Held(Holding),
    Ended { status: JobStatus, finished_at: Timestamp, grave: Option<Grave> },
}

/// Why a DEAD job is in the dead-letter queue.
pub(crate) struct Grave {
    reason: &'static str,
    code: String,
}

/// An attempt that has ended. It never changes again.
struct ClosedAttempt {
    held: Holding,
    finished_at: Timestamp,
    outcome: AttemptOutcome,
    /// What this end made of the job: a repeated report is answered with it.
    status: JobStatus,
    evidence: Evidence,
}

/// What a holder hands in with its report.
#[derive(Default)]
pub(crate) struct Evidence {
    pub(crate) result: Option<Box<RawValue>>,
    pub(crate) error: Option<Box<RawValue>>,
    pub(crate) code: Option<String>,
}

/// What a verb did that somebody may wait for.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) claimable: Vec<StreamName>,
    pub(crate) ended: Vec<JobId>,
    pub(crate) scheduled: bool,
}

impl Job {
    pub(crate) fn status(&self) -> JobStatus {
        match &self.place {
            Place::Ready(_) | Place::Scheduled { .. } => JobStatus::Queued,
            Place::Held(_) => JobStatus::Running,
            Place::Ended { status, .. } => *status,
        }
    }

    fn finished_at(&self) -> Option<Timestamp> {
        match self.place {
            Place::Ended { finished_at, .. } => Some(finished_at),
            _ => None,
        }
    }

    /// As the producer asked for it; while it is scheduled, the end of that wait.
    fn run_at(&self) -> Timestamp {
        match self.place {
            Place::Scheduled { due_at, .. } => due_at,
            _ => self.wanted_at,
        }
    }

    pub(crate) fn brief(&self) -> JobBrief {
        JobBrief {
            job_id: self.job_id,
            stream: self.asked.stream.clone(),
            status: self.status(),
            max_attempts: self.asked.max_attempts,
            created_at: self.created_at,
            run_at: self.run_at(),
            finished_at: self.finished_at(),
            producer: self.asked.producer.clone(),
        }
    }

    pub(crate) fn holding(&self) -> Option<&Holding> {
        match &self.place {
            Place::Held(held) => Some(held),
            _ => None,
        }
    }

    fn message(&self) -> Option<Message> {
        match self.place {
            Place::Ready(message) => Some(message),
            _ => None,
        }
    }

    pub(crate) fn view(&self) -> JobView {
        let closed = self.closed.iter().map(|a| AttemptView {
            attempt_id: a.held.attempt_id,
            attempt_no: a.held.attempt_no,
            worker_id: a.held.worker_id.clone(),
            started_at: a.held.started_at,
            finished_at: Some(a.finished_at),
            outcome: Some(a.outcome),
            error: a.evidence.error.clone(),
            result: a.evidence.result.clone(),
            heartbeat_at: None,
            expires_at: None,
            progress: None,
            claim_version: a.held.claim_version,
        });
        let open = self.holding().map(|held| AttemptView::open(held.clone(), self.progress.clone()));
        JobView {
            brief: self.brief(),
            payload: self.asked.payload.clone(),
            unique_key: self.asked.unique_key.clone(),
            timeout: self.asked.timeout,
            cancel_requested: self.holding().is_some_and(|held| held.cancel_requested),
            attempts: closed.chain(open).collect(),
        }
    }

    pub(crate) fn dead_letter(&self) -> Option<DeadLetter> {
        let Place::Ended { finished_at, grave: Some(grave), .. } = &self.place else { return None };
        Some(DeadLetter {
            job_id: self.job_id,
            stream: self.asked.stream.clone(),
            buried_at: *finished_at,
            reason: grave.reason.to_string(),
            code: grave.code.clone(),
            error: self
                .view()
                .attempts
                .last()
                .and_then(|last| last.error.as_ref())
                .map(|e| e.get().to_string()),
        })
    }

    /// What the database holds of an attempt that a report names.
    fn found(&self, attempt_id: AttemptId) -> Found {
        if self.holding().is_some_and(|held| held.attempt_id == attempt_id) {
            return Found::Open;
        }
        let closed = self.closed.iter().find(|a| a.held.attempt_id == attempt_id);
        closed.map_or(Found::Nothing, |a| Found::Closed {
            token_hash: a.held.token_hash,
            outcome: a.outcome,
            status: a.status,
        })
    }
}

/// Whether a filter means this dead letter.
pub(crate) fn is_meant(filter: &DeadFilter, letter: &DeadLetter) -> bool {
    (filter.job_ids.is_empty() || filter.job_ids.contains(&letter.job_id))
        && filter.stream.as_ref().is_none_or(|stream| *stream == letter.stream)
        && filter.code.as_ref().is_none_or(|code| *code == letter.code)
        && filter.before.is_none_or(|before| letter.buried_at < before)
}

impl State {
    fn next_seq(&mut self) -> i64 {
        self.seq += 1;
        self.seq
    }

    /// The unfinished job that has this key.
    fn key_holder(&self, key: &str) -> Option<&Job> {
        let holds = |job: &&Job| !job.status().is_final() && job.asked.unique_key.as_deref() == Some(key);
        self.jobs.values().find(holds)
    }

    /// The jobs of a stream that can be claimed, in the order in which they would be.
    pub(crate) fn ready(&self, stream: &StreamName) -> Vec<(Message, JobId)> {
        let mut ready: Vec<_> = self
            .jobs
            .values()
            .filter(|job| job.asked.stream == *stream)
            .filter_map(|job| job.message().map(|message| (message, job.job_id)))
            .collect();
        ready.sort();
        ready
    }

    pub(crate) fn is_claimable(&self, stream: &StreamName) -> bool {
        self.streams.get(stream).is_some_and(|s| !s.paused) && !self.ready(stream).is_empty()
    }

    pub(crate) fn enqueue(
        &mut self,
        new: NewJob,
        now: Timestamp,
        settings: &StoreSettings,
        effects: &mut Effects,
    ) -> Enqueued {
        if let Some(job_id) = new.job_id
            && let Some(there) = self.jobs.get(&job_id)
        {
            let same = there.asked.content_hash() == new.content_hash();
            return if same { Enqueued::Exists(there.brief()) } else { Enqueued::Conflict(job_id) };
        }
        if let Some(holder) = new.unique_key.as_deref().and_then(|key| self.key_holder(key)) {
            return Enqueued::DuplicateKey(holder.brief());
        }
        let wanted_at = match new.start {
            Start::Now => now,
            Start::After(delay) => now.after(delay),
            Start::At(at) => at,
        };
        let seq = self.next_seq();
        let stream = new.stream.clone();
        let place = if wanted_at > now {
            effects.scheduled = true;
            Place::Scheduled { seq, due_at: wanted_at }
        } else {
            effects.claimable.push(stream.clone());
            Place::Ready(Message { seq, ready_at: now })
        };
        let job = Job {
            job_id: new.job_id.unwrap_or_else(|| settings.chance.job_id()),
            asked: new,
            created_at: now,
            wanted_at,
            place,
            claim_version: 0,
            attempts_made: 0,
            tally: Tally::default(),
            closed: Vec::new(),
            progress: None,
        };
        self.streams.entry(stream).or_default();
        let brief = job.brief();
        self.jobs.insert(job.job_id, job);
        Enqueued::Created(brief)
    }

    pub(crate) fn claim(&mut self, ask: &Ask, now: Timestamp, settings: &StoreSettings) -> Vec<Claimed> {
        let mut claimed = Vec::new();
        for stream in ask.streams.iter() {
            if !self.is_claimable(stream) {
                continue;
            }
            for (message, job_id) in self.ready(stream).into_iter().take(ask.max - claimed.len()) {
                let bytes: usize = claimed.iter().map(|c: &Claimed| c.payload.get().len()).sum();
                if bytes >= limits::CLAIM_BYTES_MAX {
                    return claimed;
                }
                let job = self.jobs.get_mut(&job_id).expect("a ready job is stored");
                claimed.push(job.lease_to(ask, message, now, settings));
            }
        }
        claimed
    }

    pub(crate) fn holder_of(&self, job_id: JobId) -> Option<Holder> {
        let job = self.jobs.get(&job_id)?;
        let Place::Held(held) = &job.place else { return None };
        Some(Holder {
            worker_id: held.worker_id.clone(),
            attempt_no: held.attempt_no,
            started_at: held.started_at,
            progress: job.progress.clone(),
        })
    }

    pub(crate) fn progress(&mut self, beat: Beat, progress: Progress) -> bool {
        let Some(job) = self.jobs.get_mut(&beat.job_id) else { return false };
        let Place::Held(held) = &mut job.place else { return false };
        let is_back = job.progress.as_ref().is_some_and(|before| progress.percent() < before.percent());
        let kept = held.token_hash == beat.token_hash && !is_back;
        if kept {
            held.claim_version += 1;
            job.progress = Some(progress);
        }
        kept
    }

    pub(crate) fn heartbeat(&mut self, beat: Beat, now: Timestamp, ttl: Duration) -> BeatAnswer {
        let Some(job) = self.jobs.get_mut(&beat.job_id) else { return BeatAnswer::Unknown };
        let Place::Held(held) = &mut job.place else { return BeatAnswer::LeaseLost };
        if held.token_hash != beat.token_hash {
            return BeatAnswer::LeaseLost;
        }
        held.claim_version += 1;
        held.heartbeat_at = now;
        held.expires_at = Holding::reach(now, ttl, held.timeout_at);
        BeatAnswer::Extended { expires_at: held.expires_at, cancel_requested: held.cancel_requested }
    }

    /// A report of an end. The fence is job, attempt and token; all else is a question for [`answer`].
    pub(crate) fn report(
        &mut self,
        proof: Proof,
        (reported, ending): (Reported, Ending),
        evidence: Evidence,
        now: Timestamp,
        settings: &StoreSettings,
        effects: &mut Effects,
    ) -> Answer {
        let Some(job) = self.jobs.get(&proof.job_id) else { return Answer::Unknown };
        let is_holder =
            |held: &Holding| held.attempt_id == proof.attempt_id && held.token_hash == proof.token_hash;
        if !job.holding().is_some_and(is_holder) {
            return answer(reported, proof.token_hash, job.found(proof.attempt_id));
        }
        let status = self.end_attempt(proof.job_id, ending, evidence, now, settings, effects);
        Answer::Accepted { status }
    }

    /// Closes the open attempt of a job and does with the job what `settle` decides.
    fn end_attempt(
        &mut self,
        job_id: JobId,
        ending: Ending,
        mut evidence: Evidence,
        now: Timestamp,
        settings: &StoreSettings,
        effects: &mut Effects,
    ) -> JobStatus {
        let seq = self.next_seq();
        let job = self.jobs.get_mut(&job_id).expect("a held job is stored");
        let Place::Held(held) = &job.place else { panic!("only a held job has an open attempt") };
        let mut held = held.clone();
        let settled = settle(&held, ending, now, &settings.retry, settings.chance.fraction());
        if let Some((code, error)) = unreported(settled.outcome, &held) {
            evidence = Evidence { result: None, error: Some(error), code: Some(code.to_string()) };
        }
        held.claim_version += 1;
        job.claim_version = held.claim_version;
        job.tally = settled.tally;
        let stream = self.streams.get_mut(&job.asked.stream).expect("a job's stream is stored");
        job.place = match settled.next {
            Next::Queue { due_at: Some(due_at) } => {
                effects.scheduled = true;
                Place::Scheduled { seq, due_at }
            }
            Next::Queue { due_at: None } => {
                effects.claimable.push(job.asked.stream.clone());
                Place::Ready(Message { seq, ready_at: now })
            }
            Next::Finish(status) => {
                match status {
                    JobStatus::Succeeded => stream.succeeded += 1,
                    JobStatus::Cancelled => stream.cancelled += 1,
                    _ => {}
                }
                effects.ended.push(job_id);
                let grave = settled.buried.map(|reason| Grave {
                    reason: reason.as_str(),
                    code: evidence.code.clone().expect("an end that buries has a code"),
                });
                Place::Ended { status, finished_at: now, grave }
            }
        };
        let status = settled.status();
        job.closed.push(ClosedAttempt { held, finished_at: now, outcome: settled.outcome, status, evidence });
        status
    }

    pub(crate) fn cancel(
        &mut self,
        job_id: JobId,
        force: bool,
        now: Timestamp,
        settings: &StoreSettings,
        effects: &mut Effects,
    ) -> CancelAnswer {
        let Some(job) = self.jobs.get_mut(&job_id) else { return CancelAnswer::Unknown };
        match &mut job.place {
            Place::Ended { status, .. } => CancelAnswer::Ended(*status),
            Place::Ready(_) | Place::Scheduled { .. } => {
                job.claim_version += 1;
                job.place = Place::Ended { status: JobStatus::Cancelled, finished_at: now, grave: None };
                self.streams.get_mut(&job.asked.stream).expect("a job's stream is stored").cancelled += 1;
                effects.ended.push(job_id);
                CancelAnswer::Cancelled
            }
            Place::Held(_) if force => {
                self.end_attempt(job_id, Ending::ForceCancelled, Evidence::default(), now, settings, effects);
                CancelAnswer::Cancelled
            }
            Place::Held(held) => {
                if !held.cancel_requested {
                    held.claim_version += 1;
                    held.cancel_requested = true;
                }
                CancelAnswer::Requested
            }
        }
    }

    pub(crate) fn retry(&mut self, job_id: JobId, now: Timestamp, effects: &mut Effects) -> RetryAnswer {
        let Some(job) = self.jobs.get(&job_id) else { return RetryAnswer::Unknown };
        let status = job.status();
        if !matches!(status, JobStatus::Dead | JobStatus::Cancelled) {
            return RetryAnswer::NotEnded(status);
        }
        if job.asked.unique_key.as_deref().is_some_and(|key| self.key_holder(key).is_some()) {
            return RetryAnswer::KeyTaken;
        }
        let seq = self.next_seq();
        let job = self.jobs.get_mut(&job_id).expect("looked at above");
        if status == JobStatus::Cancelled {
            self.streams.get_mut(&job.asked.stream).expect("a job's stream is stored").cancelled -= 1;
        }
        job.claim_version += 1;
        job.tally = Tally::default();
        job.place = Place::Ready(Message { seq, ready_at: now });
        effects.claimable.push(job.asked.stream.clone());
        RetryAnswer::Requeued
    }

    /// The dead letters that a filter means, oldest id first.
    pub(crate) fn dead(&self, filter: &DeadFilter) -> Vec<DeadLetter> {
        self.jobs.values().filter_map(Job::dead_letter).filter(|letter| is_meant(filter, letter)).collect()
    }

    pub(crate) fn redrive(
        &mut self,
        filter: &DeadFilter,
        limit: usize,
        now: Timestamp,
        effects: &mut Effects,
    ) -> Pass {
        let mut moved = 0;
        for letter in self.dead(filter) {
            if moved < limit && self.retry(letter.job_id, now, effects) == RetryAnswer::Requeued {
                moved += 1;
            }
        }
        Pass { moved, full: moved == limit }
    }

    pub(crate) fn purge(&mut self, filter: &DeadFilter, limit: usize) -> Pass {
        let doomed: Vec<JobId> = self.dead(filter).iter().map(|letter| letter.job_id).take(limit).collect();
        self.jobs.retain(|job_id, _| !doomed.contains(job_id));
        Pass { moved: doomed.len(), full: doomed.len() == limit }
    }

    /// Settles expired leases, of these streams or of all.
    pub(crate) fn reap(
        &mut self,
        streams: Option<&[StreamName]>,
        limit: usize,
        now: Timestamp,
        settings: &StoreSettings,
        effects: &mut Effects,
    ) -> Pass {
        let is_meant = |held: &Holding| streams.is_none_or(|these| these.contains(&held.stream));
        let is_expired =
            |job: &&Job| job.holding().is_some_and(|held| held.expires_at <= now && is_meant(held));
        let due: Vec<JobId> =
            self.jobs.values().filter(is_expired).map(|job| job.job_id).take(limit).collect();
        for job_id in &due {
            self.end_attempt(*job_id, Ending::Expired, Evidence::default(), now, settings, effects);
        }
        Pass { moved: due.len(), full: due.len() == limit }
    }

    pub(crate) fn fence(&mut self, now: Timestamp, settings: &StoreSettings, effects: &mut Effects) -> usize {
        for job in self.jobs.values_mut() {
            job.claim_version += FENCE_STEP;
            if let Place::Held(held) = &mut job.place {
                held.claim_version += FENCE_STEP;
            }
        }
        let held: Vec<JobId> =
            self.jobs.values().filter(|job| job.holding().is_some()).map(|job| job.job_id).collect();
        for job_id in &held {
            self.end_attempt(*job_id, Ending::Released, Evidence::default(), now, settings, effects);
        }
        held.len()
    }

    pub(crate) fn promote(&mut self, limit: usize, now: Timestamp, effects: &mut Effects) -> Pass {
        let mut due: Vec<_> = self
            .jobs
            .values()
            .filter_map(|job| match job.place {
                Place::Scheduled { seq, due_at } if due_at <= now => Some((due_at, seq, job.job_id)),
                _ => None,
            })
            .collect();
        due.sort();
        due.truncate(limit);
        for (_, _, job_id) in &due {
            let seq = self.next_seq();
            let job = self.jobs.get_mut(job_id).expect("listed above");
            job.place = Place::Ready(Message { seq, ready_at: now });
            effects.claimable.push(job.asked.stream.clone());
        }
        Pass { moved: due.len(), full: due.len() == limit }
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let due = |job: &Job| match job.place {
            Place::Scheduled { due_at, .. } => Some(due_at),
            _ => None,
        };
        self.jobs.values().filter_map(due).min()
    }

    /// When the first lease runs out.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        self.jobs.values().filter_map(|job| job.holding().map(|held| held.expires_at)).min()
    }

    pub(crate) fn retain(&mut self, retention: Retention, limit: usize, now: Timestamp) -> Pass {
        let past = |job: &Job| {
            let kept =
                if job.status() == JobStatus::Dead { retention.dead } else { Some(retention.finished) };
            job.finished_at()
                .zip(kept)
                .filter(|(at, kept)| *at < now.before(*kept))
                .map(|(at, _)| (at, job.job_id))
        };
        let mut old: Vec<_> = self.jobs.values().filter_map(past).collect();
        old.sort();
        old.truncate(limit);
        for (_, job_id) in &old {
            self.jobs.remove(job_id);
        }
        Pass { moved: old.len(), full: old.len() == limit }
    }

    pub(crate) fn stream_view(&self, name: &StreamName) -> Option<StreamView> {
        let stream = self.streams.get(name)?;
        let of_stream = || self.jobs.values().filter(|job| job.asked.stream == *name);
        let count = |is: fn(&Place) -> bool| of_stream().filter(|job| is(&job.place)).count() as i64;
        Some(StreamView {
            name: name.clone(),
            counts: StreamCounts {
                ready: count(|place| matches!(place, Place::Ready(_))),
                scheduled: count(|place| matches!(place, Place::Scheduled { .. })),
                running: count(|place| matches!(place, Place::Held(_))),
                succeeded: stream.succeeded,
                dead: count(|place| matches!(place, Place::Ended { status: JobStatus::Dead, .. })),
                cancelled: stream.cancelled,
            },
            oldest_ready_at: self.ready(name).first().map(|(message, _)| message.ready_at),
            paused: stream.paused,
            redact: false,
        })
    }
}

impl Job {
    /// A fresh lease: a new attempt, a new token, the next version.
    fn lease_to(&mut self, ask: &Ask, message: Message, now: Timestamp, settings: &StoreSettings) -> Claimed {
        let lease_token = settings.chance.lease_token();
        let timeout_at = self.asked.timeout.map(|timeout| now.after(timeout));
        let token_hash: TokenHash = lease_token.hash();
        self.progress = None;
        self.attempts_made += 1;
        self.claim_version += 1;
        let held = Holding {
            job_id: self.job_id,
            attempt_id: settings.chance.attempt_id(),
            token_hash,
            worker_id: ask.worker_id.as_str().to_string(),
            stream: self.asked.stream.clone(),
            message,
            claim_version: self.claim_version,
            attempt_no: self.attempts_made,
            tally: self.tally,
            max_attempts: self.asked.max_attempts,
            started_at: now,
            heartbeat_at: now,
            expires_at: Holding::reach(now, settings.lease_ttl, timeout_at),
            timeout_at,
            cancel_requested: false,
            unique_key: self.asked.unique_key.clone(),
        };
        let claimed = Claimed {
            job_id: self.job_id,
            attempt_id: held.attempt_id,
            lease_token,
            stream: held.stream.clone(),
            message,
            payload: self.asked.payload.clone(),
            attempt_no: held.attempt_no,
            max_attempts: held.max_attempts,
            claimed_at: now,
            expires_at: held.expires_at,
            timeout_at,
        };
        self.place = Place::Held(held);
        claimed
    }
}
