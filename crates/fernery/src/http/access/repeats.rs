//! Log lines that a client can cause at will. The first of a kind is written at once; those within the next minute are
//! counted, and the number is written when the minute is over. So no caller can fill a disk, and nothing is hidden.
//!
//! One log per process, so one count per process.

use fernery_engine::door;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::warn;

/// How long lines of one kind are counted before their number is written.
pub const WINDOW: Duration = Duration::from_secs(60);
/// Kinds that are counted apart; beyond that, all callers share one line per reason.
const KINDS_MAX: usize = 1_000;
/// Stands for everybody beyond [`KINDS_MAX`].
const OTHERS: &str = "(others)";

/// The lines of this process.
pub static LINES: Repeats = Repeats::new();

/// The reason, and who caused it.
type Kind = (&'static str, String);

/// The lines written, and how often each was suppressed.
#[derive(Debug)]
pub struct Repeats(Mutex<Option<HashMap<Kind, Said>>>);

#[derive(Debug)]
struct Said {
    at: Instant,
    held_back: u64,
}

/// Lines of one kind that were not written.
#[derive(Debug, PartialEq, Eq)]
pub struct HeldBack {
    pub reason: &'static str,
    pub by: String,
    pub times: u64,
}

impl Repeats {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Whether the line is to be written; if not, it is counted.
    pub fn is_first(&self, reason: &'static str, by: &str) -> bool {
        self.is_first_at(door::stop_watch(), reason, by)
    }

    fn is_first_at(&self, now: Instant, reason: &'static str, by: &str) -> bool {
        let mut lines = self.lines();
        let lines = lines.get_or_insert_default();
        let mut kind = (reason, by.to_string());
        if lines.len() >= KINDS_MAX && !lines.contains_key(&kind) {
            kind.1 = OTHERS.to_string();
        }
        match lines.get_mut(&kind) {
            Some(said) => {
                said.held_back += 1;
                false
            }
            None => {
                lines.insert(kind, Said { at: now, held_back: 0 });
                true
            }
        }
    }

    /// The suppressed lines of past minutes. A kind without any starts afresh.
    fn over_at(&self, now: Instant) -> Vec<HeldBack> {
        let mut over = Vec::new();
        if let Some(lines) = self.lines().as_mut() {
            lines.retain(|(reason, by), said| {
                if now.saturating_duration_since(said.at) < WINDOW {
                    return true;
                }
                let times = std::mem::take(&mut said.held_back);
                said.at = now;
                if times > 0 {
                    over.push(HeldBack { reason, by: by.clone(), times });
                }
                times > 0
            });
        }
        over
    }

    /// Writes what was held back, now and then.
    pub async fn tell(&self) {
        loop {
            tokio::time::sleep(WINDOW / 4).await;
            for HeldBack { reason, by, times } in self.over_at(door::stop_watch()) {
                warn!(reason, by, times, "suppressed repeated log lines");
            }
        }
    }

    fn lines(&self) -> MutexGuard<'_, Option<HashMap<Kind, Said>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_once_a_minute_and_the_others_are_counted() {
        let (lines, start) = (Repeats::new(), door::stop_watch());
        assert!(lines.is_first_at(start, "forbidden", "a"));
        assert!((0..1_000).all(|_| !lines.is_first_at(start, "forbidden", "a")));
        assert!(lines.is_first_at(start, "forbidden", "b"), "another token is another line");
        assert!(lines.is_first_at(start, "unauthorized", "a"), "another reason is another line");
        assert_eq!(lines.over_at(start + WINDOW / 2), []);
        let told = lines.over_at(start + WINDOW);
        assert_eq!(told, [HeldBack { reason: "forbidden", by: "a".into(), times: 1_000 }]);
        assert!(!lines.is_first_at(start + WINDOW, "forbidden", "a"), "it goes on: still one line a minute");
        assert!(lines.is_first_at(start + WINDOW, "forbidden", "b"), "a quiet minute ends it");
        assert_eq!(lines.over_at(start + WINDOW * 2).len(), 1);
        assert_eq!(lines.over_at(start + WINDOW * 3), []);
        assert!(lines.is_first_at(start + WINDOW * 3, "forbidden", "a"));
    }

    #[test]
    fn who_causes_them_is_not_kept_without_end() {
        let (lines, start) = (Repeats::new(), door::stop_watch());
        let written = (0..10 * KINDS_MAX).filter(|n| lines.is_first_at(start, "misdirected", &n.to_string()));
        assert_eq!(written.count(), KINDS_MAX + 1);
        assert_eq!(lines.lines().as_ref().map(HashMap::len), Some(KINDS_MAX + 1));
        let told = lines.over_at(start + WINDOW);
        assert_eq!(
            told,
            [HeldBack { reason: "misdirected", by: OTHERS.into(), times: 9 * KINDS_MAX as u64 - 1 }]
        );
    }
}
