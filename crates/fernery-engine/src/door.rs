//! The one door through which clock, ids and randomness come in. Everything else in the workspace is banned from asking
//! the system for them (`clippy.toml`), so that a test can own all three.
#![allow(clippy::disallowed_methods, reason = "this is the door")]

use fernery_core::{AttemptId, JobId, LeaseToken, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The wall clock: calendar instants (`run_at`) go by it.
pub fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Time since boot, suspend included. It never steps.
fn boot_millis() -> i64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    t.tv_sec * 1_000 + t.tv_nsec / 1_000_000
}

/// The clock that decides expiry on SQLite: it starts at the wall clock, or at the newest instant in the database if that
/// is later, and goes on with the time since boot. A step of the wall clock neither ends nor prolongs a lease.
#[derive(Clone, Debug)]
pub struct LeaseClock {
    /// Added to the time since boot.
    offset_ms: Arc<AtomicI64>,
    /// A test's clock stands still until it is moved.
    manual: bool,
}

impl LeaseClock {
    /// The process's clock.
    pub fn system() -> Self {
        let offset = wall_clock().as_millis() - boot_millis();
        Self { offset_ms: Arc::new(AtomicI64::new(offset)), manual: false }
    }

    /// A clock that moves only when told.
    pub fn manual(start: Timestamp) -> Self {
        Self { offset_ms: Arc::new(AtomicI64::new(start.as_millis())), manual: true }
    }

    /// The instant now.
    pub fn now(&self) -> Timestamp {
        let base = if self.manual { 0 } else { boot_millis() };
        Timestamp::from_millis(base + self.offset_ms.load(Ordering::Relaxed))
    }

    /// Never earlier than `newest` from here on: what the database has seen has happened.
    pub fn not_before(&self, newest: Timestamp) {
        let behind = newest.as_millis() - self.now().as_millis();
        if behind > 0 {
            self.offset_ms.fetch_add(behind, Ordering::Relaxed);
        }
    }

    /// Moves a clock forward by hand.
    pub fn advance(&self, by: Duration) {
        self.offset_ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// Sets a clock back by hand, as nothing but a test or a wrong clock does.
    pub fn set_back(&self, by: Duration) {
        self.offset_ms.fetch_sub(i64::try_from(by.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// The calendar: the wall clock, except where a test owns time.
    pub fn calendar(&self) -> Timestamp {
        if self.manual { self.now() } else { wall_clock() }
    }
}

/// Where ids and random numbers come from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chance {
    /// A test's fixed fraction instead of a random one.
    pub fixed_fraction: Option<f64>,
}

impl Chance {
    /// A random fraction in 0..1.
    pub fn fraction(&self) -> f64 {
        self.fixed_fraction.unwrap_or_else(rand::random::<f64>)
    }

    /// Between a half and the whole of it, so that processes do not march in step.
    pub fn jittered(&self, interval: Duration) -> Duration {
        interval.mul_f64(0.5 + self.fraction() / 2.0)
    }

    /// A new job's id: time-ordered.
    pub fn job_id(&self) -> JobId {
        JobId::from_uuid(Uuid::now_v7())
    }

    /// A new attempt's id: time-ordered.
    pub fn attempt_id(&self) -> AttemptId {
        AttemptId::from_uuid(Uuid::now_v7())
    }

    /// A new process's id: time-ordered.
    pub fn process_id(&self) -> Uuid {
        Uuid::now_v7()
    }

    /// A new lease's secret.
    pub fn lease_token(&self) -> LeaseToken {
        LeaseToken::from_random(Uuid::new_v4())
    }
}

/// A new artifact's id: time-ordered.
pub fn artifact_id() -> String {
    Uuid::now_v7().to_string()
}

/// Random bytes for secrets.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    rand::random()
}

/// A stop watch for measuring and for time-outs; it never steps.
pub fn stop_watch() -> std::time::Instant {
    std::time::Instant::now()
}

/// A place at which a test may end this process, as if it were killed: `FERNERY_FAILPOINT=name` ends it the first time it
/// comes here, `name@5` the fifth, and `hold:name@5` stops it there instead, until it is told to go on. Not in release builds.
pub fn failpoint(name: &str) {
    #[cfg(debug_assertions)]
    failpoints::pass(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod failpoints {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Asked {
        name: String,
        left: AtomicU32,
        signal: Signal,
    }

    static ASKED: LazyLock<Option<Asked>> = LazyLock::new(|| {
        let asked = std::env::var("FERNERY_FAILPOINT").ok()?;
        let (signal, asked) = match asked.strip_prefix("hold:") {
            Some(asked) => (Signal::STOP, asked),
            None => (Signal::KILL, asked.as_str()),
        };
        let (name, times) = asked.split_once('@').unwrap_or((asked, "1"));
        let left = AtomicU32::new(times.parse().unwrap_or(1));
        Some(Asked { name: name.to_string(), left, signal })
    });

    pub(super) fn pass(name: &str) {
        if let Some(Asked { name: asked, left, signal }) = &*ASKED
            && asked == name
            && left.fetch_sub(1, Ordering::Relaxed) == 1
        {
            let _ = kill_process(getpid(), *signal);
        }
    }
}
