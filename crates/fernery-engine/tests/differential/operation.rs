//! What can be done to a store, with jobs and claims named by their place in the history of a run, so that a list keeps its
//! meaning on every backend and when others are left out of it.

use crate::support::seeded::Seeded;
use std::time::Duration;

pub(crate) const STREAMS: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Enqueue(Vec<Wanted>),
    Claim { streams: Vec<&'static str>, max: usize },
    Heartbeat(Vec<Shown>),
    Progress(Vec<(Shown, u8)>),
    Complete(Vec<Shown>),
    Fail(Vec<(Shown, Retryable, &'static str)>),
    Release(Vec<Shown>),
    Cancel { job: JobRef, force: bool },
    Retry(JobRef),
    Redrive(DeadOf, usize),
    Purge(DeadOf, usize),
    Promote(usize),
    Reap,
    Retain(Duration),
    Pause(&'static str, bool),
    Advance(Duration),
    Tidy,
    Crash,
    Restart,
}

/// A job to enqueue.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// One of a few ids made by the producer.
    pub(crate) id: Option<u8>,
    pub(crate) stream: &'static str,
    pub(crate) payload: u8,
    pub(crate) max_attempts: u32,
    pub(crate) start: When,
    pub(crate) key: Option<&'static str>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) producer: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum When {
    Now,
    After(Duration),
    /// Milliseconds from the start of the run.
    At(i64),
}

/// The proof that comes with a report: of the claim made this many claims ago, right or wrong in one way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) claims_ago: usize,
    pub(crate) as_is: Forgery,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Forgery {
    Genuine,
    MadeUpToken,
    MadeUpAttempt,
    MadeUpJob,
    /// The attempt of the claim made before.
    OtherAttempt,
    /// The token of the claim made before.
    OtherToken,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Retryable(pub(crate) bool);

#[derive(Clone, Copy, Debug)]
pub(crate) enum JobRef {
    /// The job stored this many jobs ago.
    StoredAgo(usize),
    Unknown,
}

/// Which dead letters are meant.
#[derive(Clone, Debug)]
pub(crate) struct DeadOf {
    pub(crate) jobs: Vec<JobRef>,
    pub(crate) stream: Option<&'static str>,
    pub(crate) code: Option<&'static str>,
    /// Buried this long ago or longer.
    pub(crate) older_than: Option<Duration>,
}

impl Operation {
    pub(crate) fn random(random: &mut Seeded) -> Self {
        match random.below(100) {
            0..18 => Self::Enqueue(several(random, 4, Wanted::random)),
            18..38 => {
                let mut streams = STREAMS.to_vec();
                streams.rotate_left(random.below(3));
                streams.truncate(1 + random.below(3));
                Self::Claim { streams, max: 1 + random.below(4) }
            }
            38..42 => Self::Heartbeat(several(random, 3, Shown::random)),
            42..45 => Self::Progress(several(random, 3, |random| {
                (Shown::random(random), random.pick(&[0, 10, 50, 100]))
            })),
            45..55 => Self::Complete(several(random, 3, Shown::random)),
            55..65 => Self::Fail(several(random, 3, |random| {
                let shown = Shown::random(random);
                (shown, Retryable(random.chance(70)), random.pick(&["broken", "odd"]))
            })),
            65..69 => Self::Release(several(random, 3, Shown::random)),
            69..74 => Self::Cancel { job: JobRef::random(random), force: random.chance(40) },
            74..77 => Self::Retry(JobRef::random(random)),
            77..79 => Self::Redrive(DeadOf::random(random), random.pick(&[1, 100])),
            79..80 => Self::Purge(DeadOf::random(random), random.pick(&[1, 100])),
            80..84 => Self::Promote(random.pick(&[1, 100])),
            84..88 => Self::Reap,
            88..89 => Self::Retain(Duration::from_secs(random.pick(&[0, 1, 60, 300]))),
            89..91 => Self::Pause(random.pick(&STREAMS), random.chance(40)),
            91..97 => {
                Self::Advance(Duration::from_millis(random.pick(&[1, 250, 500, 2_000, 30_000, 60_000])))
            }
            97..98 => Self::Tidy,
            98..99 => Self::Crash,
            _ => Self::Restart,
        }
    }
}

fn several<T>(random: &mut Seeded, max: usize, one: impl Fn(&mut Seeded) -> T) -> Vec<T> {
    let count = 1 + random.below(max);
    (0..count).map(|_| one(random)).collect()
}

fn maybe<T: Clone>(random: &mut Seeded, percent: usize, of: &[T]) -> Option<T> {
    random.chance(percent).then(|| random.pick(of))
}

impl Wanted {
    fn random(random: &mut Seeded) -> Self {
        let start = match random.below(10) {
            0..7 => When::Now,
            7..9 => When::After(Duration::from_millis(random.pick(&[0, 1, 500, 30_000]))),
            _ => When::At(random.pick(&[-1_000, 0, 2_000, 90_000])),
        };
        Self {
            id: maybe(random, 15, &[0, 1, 2, 3]),
            stream: random.pick(&STREAMS),
            payload: random.pick(&[0, 0, 0, 1]),
            max_attempts: random.pick(&[1, 2, 3]),
            start,
            key: maybe(random, 25, &["k", "l"]),
            timeout: maybe(random, 15, &[Duration::from_secs(30), Duration::from_secs(90)]),
            producer: maybe(random, 20, &["p", "q"]),
        }
    }
}

impl Shown {
    fn random(random: &mut Seeded) -> Self {
        let as_is = match random.below(20) {
            0 => Forgery::MadeUpToken,
            1 => Forgery::MadeUpAttempt,
            2 => Forgery::MadeUpJob,
            3 => Forgery::OtherAttempt,
            4 => Forgery::OtherToken,
            _ => Forgery::Genuine,
        };
        // Mostly what was claimed just now, and now and then something stale.
        let claims_ago = if random.chance(80) { random.below(5) } else { random.below(30) };
        Self { claims_ago, as_is }
    }
}

impl JobRef {
    fn random(random: &mut Seeded) -> Self {
        if random.chance(4) { Self::Unknown } else { Self::StoredAgo(random.below(25)) }
    }
}

impl DeadOf {
    fn random(random: &mut Seeded) -> Self {
        let jobs = if random.chance(25) { several(random, 5, JobRef::random) } else { Vec::new() };
        Self {
            jobs,
            stream: maybe(random, 30, &STREAMS),
            code: maybe(random, 25, &["broken", "odd", "lease_expired"]),
            older_than: maybe(random, 25, &[Duration::ZERO, Duration::from_secs(1), Duration::from_secs(60)]),
        }
    }
}
