//! The one door through which clock, ids and randomness come in. Every other crate of the workspace is banned from asking
//! the system for them (`clippy.toml`), so that a test can own all three. Failpoints are here too: they are what a test
//! asks of a running process.
#![warn(missing_docs)]
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

/// Time since boot, suspend included. It never steps: a machine that slept knows that its leases are old.
pub fn since_boot() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(t.tv_sec.try_into().unwrap_or(0), t.tv_nsec.try_into().unwrap_or(0))
}

fn boot_millis() -> i64 {
    i64::try_from(since_boot().as_millis()).unwrap_or(i64::MAX)
}

/// Which run of the machine this is, and how long it has lasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boot {
    /// A number that differs from boot to boot; 0 where the kernel does not say.
    pub id: i64,
    /// Time since boot, suspend included.
    pub up_ms: i64,
}

impl Boot {
    /// The machine's.
    pub fn system() -> Self {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
        let id = id.and_then(|text| Uuid::parse_str(text.trim()).ok());
        Self { id: id.map_or(0, |id| id.as_u64_pair().0 as i64), up_ms: boot_millis() }
    }
}

/// The clock that decides expiry on SQLite: it starts at the wall clock, or at the newest instant in the database if that
/// is later, and goes on with the time since boot. A step of the wall clock neither ends nor prolongs a lease.
#[derive(Clone, Debug)]
pub struct LeaseClock {
    /// Added to the time since boot.
    offset_ms: Arc<AtomicI64>,
    /// Taken off while the wall clock at the start is in doubt.
    held_back_ms: Arc<AtomicI64>,
    boot_id: i64,
    /// A test's clock stands still until it is moved. It is that of a machine that was booted when the clock was made.
    manual_since: Option<Timestamp>,
}

impl LeaseClock {
    /// The process's clock.
    pub fn system() -> Self {
        let offset = wall_clock().as_millis() - boot_millis();
        Self {
            offset_ms: Arc::new(AtomicI64::new(offset)),
            held_back_ms: Arc::default(),
            boot_id: Boot::system().id,
            manual_since: None,
        }
    }

    /// A clock that moves only when told.
    pub fn manual(start: Timestamp) -> Self {
        Self {
            offset_ms: Arc::new(AtomicI64::new(start.as_millis())),
            held_back_ms: Arc::default(),
            boot_id: i64::from(rand::random::<u32>()) + 1,
            manual_since: Some(start),
        }
    }

    fn unheld_ms(&self) -> i64 {
        let base = if self.manual_since.is_some() { 0 } else { boot_millis() };
        base + self.offset_ms.load(Ordering::Relaxed)
    }

    /// The instant now.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.unheld_ms() - self.held_back_ms.load(Ordering::Relaxed))
    }

    /// Never earlier than `newest` from here on: what the database has seen has happened.
    pub fn not_before(&self, newest: Timestamp) {
        let behind = newest.as_millis() - self.now().as_millis();
        if behind > 0 {
            self.offset_ms.fetch_add(behind, Ordering::Relaxed);
        }
    }

    /// Goes by less than the wall clock from here on: by that much it is in doubt.
    pub fn hold_back(&self, by: Duration) {
        self.held_back_ms.store(i64::try_from(by.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// Whether it goes by less than the wall clock.
    pub fn is_held_back(&self) -> bool {
        self.held_back_ms.load(Ordering::Relaxed) > 0
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
        if self.manual_since.is_some() { Timestamp::from_millis(self.unheld_ms()) } else { wall_clock() }
    }

    /// The machine's boot, or that of a test's clock.
    pub fn boot(&self) -> Boot {
        let up_ms = self.manual_since.map_or_else(boot_millis, |since| self.unheld_ms() - since.as_millis());
        Boot { id: self.boot_id, up_ms }
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
/// comes here, `name@5` the fifth; `hold:name@5` stops it there instead, until it is told to go on, and `panic:name@5` makes
/// the work at hand panic. Not in release builds.
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
        /// `None`: panic instead of sending a signal.
        signal: Option<Signal>,
    }

    static ASKED: LazyLock<Option<Asked>> = LazyLock::new(|| {
        let asked = std::env::var("FERNERY_FAILPOINT").ok()?;
        let (signal, asked) = match asked.split_once(':') {
            Some(("hold", asked)) => (Some(Signal::STOP), asked),
            Some(("panic", asked)) => (None, asked),
            _ => (Some(Signal::KILL), asked.as_str()),
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
            match signal {
                Some(signal) => drop(kill_process(getpid(), *signal)),
                None => panic!("as FERNERY_FAILPOINT asked"),
            }
        }
    }
}
