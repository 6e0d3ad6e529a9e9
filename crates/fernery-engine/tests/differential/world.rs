//! One backend in the middle of a run, and the history by which operations name jobs and claims.

use crate::differential::operation::{DeadOf, Forgery, JobRef, Operation, Retryable, Shown, Wanted, When};
use crate::support::backend::{Backend, START};
use crate::support::dump::{Naming, brief_text};
use crate::support::singly::{ask, json, stream};
use fernery_core::{AttemptId, JobId, LeaseToken, Progress, Timestamp};
use fernery_engine::store::{
    Beat, BeatAnswer, Claimed, Completion, DeadFilter, Enqueued, Failure, NewJob, Pass, Proof, Retention,
    Start, Store,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;

pub(crate) struct World<B> {
    backend: B,
    jobs: Vec<JobId>,
    claims: Vec<Proof>,
    job_names: HashMap<JobId, String>,
    attempt_names: HashMap<AttemptId, String>,
}

/// Nobody's.
const MADE_UP: Uuid = Uuid::from_u128(1);

impl<B: Sync> Naming for World<B> {
    fn job(&self, job_id: JobId) -> String {
        self.job_names.get(&job_id).cloned().unwrap_or_else(|| format!("unknown job {job_id}"))
    }

    fn attempt(&self, attempt_id: AttemptId) -> String {
        self.attempt_names.get(&attempt_id).cloned().unwrap_or_else(|| format!("unknown {attempt_id}"))
    }

    fn instant(&self, at: Timestamp) -> String {
        format!("{:+}", at.as_millis() - START.as_millis())
    }
}

impl<B: Backend> World<B> {
    pub(crate) fn new(backend: B) -> Self {
        let (job_names, attempt_names) = (HashMap::new(), HashMap::new());
        Self { backend, jobs: Vec::new(), claims: Vec::new(), job_names, attempt_names }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.backend.store()
    }

    pub(crate) async fn close(&self) {
        self.store().close().await;
    }

    /// Does it; answers with what the store said, ids and instants by name.
    pub(crate) async fn apply(&mut self, operation: &Operation) -> String {
        let store = self.store();
        match operation {
            Operation::Enqueue(wanted) => {
                let jobs = wanted.iter().map(new_job).collect();
                let answers = store.enqueue(jobs).await.expect("enqueue");
                answers.iter().map(|answer| self.enqueued(answer) + "\n").collect()
            }
            Operation::Claim { streams, max } => {
                let claimed = store.claim(ask(streams, *max)).await.expect("claim");
                claimed.iter().map(|claimed| self.claimed(claimed) + "\n").collect()
            }
            Operation::Heartbeat(shown) => {
                let beat = |proof: Proof| Beat { job_id: proof.job_id, token_hash: proof.token_hash };
                let mut beats: Vec<Beat> = shown.iter().map(|shown| beat(self.proof(*shown))).collect();
                // The same beat twice in one array may be one renewal or two.
                let mut seen = HashSet::new();
                beats.retain(|beat| seen.insert((beat.job_id, beat.token_hash)));
                let answers = store.heartbeat(beats).await.expect("heartbeat");
                answers.iter().map(|answer| self.beat(*answer) + "\n").collect()
            }
            Operation::Progress(shown) => {
                let item = |(shown, percent): &(Shown, u8)| {
                    let proof = self.proof(*shown);
                    let beat = Beat { job_id: proof.job_id, token_hash: proof.token_hash };
                    (beat, Progress::new(*percent, Some("on it".into())).expect("a percentage"))
                };
                format!("{:?}", store.progress(shown.iter().map(item).collect()).await.expect("progress"))
            }
            Operation::Complete(shown) => {
                let completion = |(n, proof): (usize, Proof)| Completion {
                    proof,
                    result: json(&format!(r#"{{"claims":{},"n":{n}}}"#, self.claims.len())),
                };
                let items = self.proofs(shown.iter()).enumerate().map(completion).collect();
                lines(&store.complete(items).await.expect("complete"))
            }
            Operation::Fail(reports) => {
                let failure = |(proof, (_, retryable, code)): (Proof, &(_, Retryable, &str))| {
                    let error = json(&format!(r#"{{"code":"{code}","claims":{}}}"#, self.claims.len()));
                    Failure { proof, retryable: retryable.0, code: (*code).to_string(), error }
                };
                let proofs = self.proofs(reports.iter().map(|(shown, ..)| shown));
                let items = proofs.zip(reports).map(failure).collect();
                lines(&store.fail(items).await.expect("fail"))
            }
            Operation::Release(shown) => {
                let proofs = self.proofs(shown.iter()).collect();
                lines(&store.release(proofs).await.expect("release"))
            }
            Operation::Cancel { job, force } => {
                format!("{:?}", store.cancel(self.job_of(*job), *force).await.expect("cancel"))
            }
            Operation::Retry(job) => {
                format!("{:?}", store.retry(self.job_of(*job)).await.expect("retry"))
            }
            Operation::Redrive(dead, limit) => {
                let filter = self.dead_filter(dead).await;
                let meant = store.count_dead(filter.clone()).await.expect("count");
                format!("{meant} {:?}", store.redrive(filter, *limit).await.expect("redrive"))
            }
            Operation::Purge(dead, limit) => {
                let filter = self.dead_filter(dead).await;
                let meant = store.count_dead(filter.clone()).await.expect("count");
                format!("{meant} {:?}", store.purge(filter, *limit).await.expect("purge"))
            }
            Operation::Promote(limit) => format!("{:?}", store.promote(*limit).await.expect("promote")),
            Operation::Reap => format!("{:?}", store.reap(100).await.expect("reap")),
            Operation::Fence => format!("{:?}", store.fence().await.expect("fence")),
            Operation::Retain(age) => {
                let mut moved = 0;
                loop {
                    let Pass { moved: more, full } =
                        store.retain(Retention::all(*age), 100).await.expect("retain");
                    moved += more;
                    if !full {
                        return format!("{moved} dropped");
                    }
                }
            }
            Operation::Pause(name, paused) => {
                format!("{}", store.set_paused(stream(name), *paused).await.expect("pause"))
            }
            Operation::Advance(by) => {
                self.backend.advance(*by).await;
                self.instant(store.now().await.expect("now"))
            }
            Operation::Tidy => format!("{:?}", store.tidy().await),
            Operation::Crash => {
                drop(store);
                self.backend.crash().await;
                String::new()
            }
            Operation::Restart => {
                drop(store);
                self.backend.restart().await;
                String::new()
            }
        }
    }

    fn enqueued(&mut self, answer: &Enqueued) -> String {
        if let Enqueued::Created(brief) = answer {
            self.job_names.insert(brief.job_id, format!("j{}", self.jobs.len()));
            self.jobs.push(brief.job_id);
        }
        match answer {
            Enqueued::Created(brief) => format!("created {}", brief_text(brief, self)),
            Enqueued::Exists(brief) => format!("exists {}", brief_text(brief, self)),
            Enqueued::DuplicateKey(brief) => format!("duplicate {}", brief_text(brief, self)),
            Enqueued::Conflict(job_id) => format!("conflict {}", self.job(*job_id)),
        }
    }

    fn claimed(&mut self, claimed: &Claimed) -> String {
        self.attempt_names.insert(claimed.attempt_id, format!("a{}", self.claims.len()));
        self.claims.push(Proof {
            job_id: claimed.job_id,
            attempt_id: claimed.attempt_id,
            token_hash: claimed.lease_token.hash(),
        });
        format!(
            "{} of {} on {} attempt {} of {} ready {} expires {} timeout {:?} {}",
            self.attempt(claimed.attempt_id),
            self.job(claimed.job_id),
            claimed.stream,
            claimed.attempt_no,
            claimed.max_attempts,
            self.instant(claimed.message.ready_at),
            self.instant(claimed.expires_at),
            claimed.timeout_at.map(|at| self.instant(at)),
            claimed.payload
        )
    }

    fn beat(&self, answer: BeatAnswer) -> String {
        match answer {
            BeatAnswer::Extended { expires_at, cancel_requested } => {
                format!("until {} cancel_requested {cancel_requested}", self.instant(expires_at))
            }
            other => format!("{other:?}"),
        }
    }

    /// The proofs of one array, no attempt under two tokens: which of two such items is looked at first is nobody's promise.
    fn proofs<'a>(&self, shown: impl Iterator<Item = &'a Shown>) -> impl Iterator<Item = Proof> {
        let mut tokens = HashMap::new();
        let proofs: Vec<Proof> = shown.map(|shown| self.proof(*shown)).collect();
        proofs.into_iter().filter(move |proof| {
            *tokens.entry((proof.job_id, proof.attempt_id)).or_insert(proof.token_hash) == proof.token_hash
        })
    }

    fn proof(&self, shown: Shown) -> Proof {
        let token_hash = LeaseToken::from_random(MADE_UP).hash();
        let nothing = Proof {
            job_id: JobId::from_uuid(MADE_UP),
            attempt_id: AttemptId::from_uuid(MADE_UP),
            token_hash,
        };
        let genuine = ago(&self.claims, shown.claims_ago).copied().unwrap_or(nothing);
        let other = ago(&self.claims, shown.claims_ago + 1).copied().unwrap_or(nothing);
        match shown.as_is {
            Forgery::Genuine => genuine,
            Forgery::MadeUpToken => Proof { token_hash, ..genuine },
            Forgery::MadeUpAttempt => Proof { attempt_id: nothing.attempt_id, ..genuine },
            Forgery::MadeUpJob => Proof { job_id: nothing.job_id, ..genuine },
            Forgery::OtherAttempt => Proof { attempt_id: other.attempt_id, ..genuine },
            Forgery::OtherToken => Proof { token_hash: other.token_hash, ..genuine },
        }
    }

    fn job_of(&self, job: JobRef) -> JobId {
        let stored = match job {
            JobRef::StoredAgo(n) => ago(&self.jobs, n).copied(),
            JobRef::Unknown => None,
        };
        stored.unwrap_or(JobId::from_uuid(MADE_UP))
    }

    async fn dead_filter(&self, dead: &DeadOf) -> DeadFilter {
        let now = self.store().now().await.expect("now");
        DeadFilter {
            job_ids: dead.jobs.iter().map(|job| self.job_of(*job)).collect(),
            stream: dead.stream.map(stream),
            code: dead.code.map(str::to_string),
            before: dead.older_than.map(|age| now.before(age)),
        }
    }
}

fn new_job(wanted: &Wanted) -> NewJob {
    let start = match wanted.start {
        When::Now => Start::Now,
        When::After(delay) => Start::After(delay),
        When::At(ms) => Start::At(Timestamp::from_millis(START.as_millis() + ms)),
    };
    NewJob {
        // Half of them sort before, half behind what the engine makes itself.
        job_id: wanted.id.map(|n| {
            let high = if n % 2 == 0 { 0 } else { u128::MAX << 64 };
            JobId::from_uuid(Uuid::from_u128(high + 0x4000_8000_0000_0000 + u128::from(n)))
        }),
        stream: stream(wanted.stream),
        payload: json(&format!(r#"{{"n": {}.0}}"#, wanted.payload)),
        max_attempts: wanted.max_attempts,
        start,
        unique_key: wanted.key.map(str::to_string),
        timeout: wanted.timeout,
        producer: wanted.producer.map(str::to_string),
    }
}

/// What happened `n` before the last; from the last again where that is before the first.
fn ago<T>(history: &[T], n: usize) -> Option<&T> {
    history.iter().rev().cycle().nth(n)
}

fn lines<T: std::fmt::Debug>(answers: &[T]) -> String {
    answers.iter().map(|answer| format!("{answer:?}\n")).collect()
}
