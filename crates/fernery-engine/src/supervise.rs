//! Loops that must not end. A panic inside one is caught and logged, the loop is started again after a pause that grows, and
//! whoever asks (`/readyz`, `/metrics`) is told.

use crate::door;
use fernery_core::calendar::duration::millis;
use fernery_core::job::retry::RetryPolicy;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tracing::error;

/// The pauses after panics.
const PAUSES: RetryPolicy = RetryPolicy { base: Duration::from_millis(100), cap: Duration::from_secs(60) };
/// A loop that has run this long since its last panic is well, and the next pause is the first one again.
const WELL_AFTER: Duration = Duration::from_secs(300);

/// Work that panicked, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked(String);

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it panicked: {}", self.0)
    }
}

impl From<Box<dyn Any + Send>> for Panicked {
    fn from(panic: Box<dyn Any + Send>) -> Self {
        let said = panic.downcast_ref::<&str>().map(ToString::to_string);
        Self(said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
    }
}

/// Runs work to its end or its panic. What the work shares with others must be fit for use after a panic.
pub fn caught_now<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(Panicked::from)
}

/// As [`caught_now`], of a future.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| match caught_now(|| work.as_mut().poll(context)) {
        Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

/// Locks, also after a panic of whoever held the lock: what these locks guard is fit for use after one, and a loop that is
/// started again must not stop here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The loops of one process.
#[derive(Debug, Default)]
pub struct Loops {
    seen: Mutex<BTreeMap<&'static str, Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    panics: u64,
    in_a_row: u32,
    last: Option<Instant>,
}

/// How a loop is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopView {
    /// Its name.
    pub name: &'static str,
    /// How often it has panicked since the process started.
    pub panics: u64,
    /// Whether that was within the last five minutes.
    pub troubled: bool,
}

impl Loops {
    /// A loop of this name is there.
    pub fn known(&self, name: &'static str) {
        lock(&self.seen).entry(name).or_default();
    }

    /// Every loop, by name.
    pub fn views(&self) -> Vec<LoopView> {
        let now = door::stop_watch();
        let recent = |seen: &Seen| seen.last.is_some_and(|at| now.duration_since(at) < WELL_AFTER);
        let view = |(name, seen): (&&'static str, &Seen)| LoopView {
            name,
            panics: seen.panics,
            troubled: recent(seen),
        };
        lock(&self.seen).iter().map(view).collect()
    }

    /// Counts and logs a panic. Answers how long to wait before the next try.
    pub fn panicked(&self, name: &'static str, panicked: &Panicked) -> Duration {
        let now = door::stop_watch();
        let (panics, pause) = {
            let mut loops = lock(&self.seen);
            let seen = loops.entry(name).or_default();
            let row = seen.last.filter(|at| now.duration_since(*at) < WELL_AFTER);
            seen.in_a_row = if row.is_some() { seen.in_a_row.saturating_add(1) } else { 1 };
            seen.panics += 1;
            seen.last = Some(now);
            (seen.panics, PAUSES.ceiling(seen.in_a_row))
        };
        let pause_ms = millis(pause);
        error!(name, %panicked, panics, pause_ms, "a background loop panicked; restarting it");
        pause
    }

    /// Runs a loop as a task: started again after a panic, over once it returns.
    pub fn run<F>(
        self: &Arc<Self>,
        name: &'static str,
        work: impl FnMut() -> F + Send + 'static,
    ) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let boxed: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(self.clone().keep_running(name, work));
        tokio::spawn(boxed)
    }

    /// What [`Loops::run`] spawns.
    pub async fn keep_running<F>(
        self: Arc<Self>,
        name: &'static str,
        mut work: impl FnMut() -> F + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.known(name);
        let mut once = async || {
            door::failpoint(name);
            work().await
        };
        while let Err(panicked) = caught(once()).await {
            let pause = self.panicked(name, &panicked);
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn a_loop_that_panics_is_started_again_after_a_growing_pause_and_told() {
        let loops = Arc::new(Loops::default());
        let begun = Arc::new(AtomicU32::new(0));
        let count = begun.clone();
        let since = door::stop_watch();
        let task = loops.run("reaper", move || {
            let n = count.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::task::yield_now().await;
                assert!(n >= 2, "no luck");
            }
        });
        task.await.expect("it ends well in the end");
        assert_eq!(begun.load(Ordering::Relaxed), 3);
        assert!(since.elapsed() >= PAUSES.base + PAUSES.base * 2);
        assert_eq!(loops.views(), [LoopView { name: "reaper", panics: 2, troubled: true }]);
    }

    #[tokio::test]
    async fn work_that_panics_says_why() {
        assert_eq!(caught(async { 1 }).await, Ok(1));
        let failed = caught::<()>(async {
            tokio::task::yield_now().await;
            panic!("no {}", "luck")
        });
        assert_eq!(failed.await.map_err(|p| p.to_string()), Err("it panicked: no luck".to_string()));
    }
}
