//! Remembers which workers asked this process for jobs, and for which streams, so that people see the idle ones too. Nothing is
//! decided by it, and it is lost with the process: a worker that is there asks again.
//!
//! A client that asks under ever new names must not fill the memory: there is room for a number of names, and the one that was
//! silent for longest goes first.

use crate::door;
use crate::store::Ask;
use crate::supervise::lock;
use fernery_core::{StreamName, Timestamp, WorkerId, limits};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A worker that was silent for so long is not shown any more.
const SHOWN: Duration = Duration::from_secs(600);

/// Who asked for jobs.
#[derive(Debug, Default)]
pub(crate) struct Pollers(Mutex<HashMap<WorkerId, Asked>>);

#[derive(Debug)]
struct Asked {
    streams: Arc<[StreamName]>,
    at: Timestamp,
    /// Calls of this worker that wait for their answer: one for each of its threads.
    waiting: usize,
}

/// A worker that asked this process for jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poller {
    /// Who.
    pub worker_id: WorkerId,
    /// For which streams, in its last call.
    pub streams: Arc<[StreamName]>,
    /// When its last call came, or got its answer.
    pub heard_at: Timestamp,
    /// Whether it waits for a job now.
    pub waiting: bool,
}

/// A call that waits for its answer, which it has when this is dropped.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    pollers: &'a Pollers,
    worker_id: WorkerId,
}

impl Pollers {
    /// A worker asks.
    pub(crate) fn asks(&self, ask: &Ask) -> Asking<'_> {
        let (mut known, at) = (lock(&self.0), door::wall_clock());
        match known.get_mut(&ask.worker_id) {
            Some(asked) => {
                asked.at = at;
                asked.waiting += 1;
                if asked.streams != ask.streams {
                    asked.streams = ask.streams.clone();
                }
            }
            None => {
                if known.len() >= limits::POLLERS_MAX {
                    let silent = known.iter().min_by_key(|(_, asked)| (asked.waiting > 0, asked.at));
                    let silent = silent.map(|(worker_id, _)| worker_id.clone());
                    silent.and_then(|worker_id| known.remove(&worker_id));
                }
                known.insert(ask.worker_id.clone(), Asked { streams: ask.streams.clone(), at, waiting: 1 });
            }
        }
        Asking { pollers: self, worker_id: ask.worker_id.clone() }
    }

    /// Those that were heard a short while ago, by name.
    pub(crate) fn heard(&self, now: Timestamp) -> Vec<Poller> {
        let mut known = lock(&self.0);
        known.retain(|_, asked| asked.waiting > 0 || now.since(asked.at) < SHOWN);
        let mut heard: Vec<Poller> = known
            .iter()
            .map(|(worker_id, asked)| Poller {
                worker_id: worker_id.clone(),
                streams: asked.streams.clone(),
                heard_at: asked.at,
                waiting: asked.waiting > 0,
            })
            .collect();
        heard.sort_by(|a, b| a.worker_id.as_str().cmp(b.worker_id.as_str()));
        heard
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        // Who was forgotten meanwhile is known again by its next call.
        if let Some(asked) = lock(&self.pollers.0).get_mut(&self.worker_id) {
            asked.at = door::wall_clock();
            asked.waiting = asked.waiting.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(worker: &str, stream: &str) -> Ask {
        Ask {
            worker_id: WorkerId::new(worker).unwrap(),
            streams: [StreamName::stored(stream)].into(),
            max: 1,
        }
    }

    fn seen(pollers: &Pollers, now: Timestamp) -> Vec<(String, String, bool)> {
        let row = |it: Poller| (it.worker_id.to_string(), it.streams[0].to_string(), it.waiting);
        pollers.heard(now).into_iter().map(row).collect()
    }

    #[test]
    fn a_worker_waits_until_its_last_call_is_answered_and_is_forgotten_later() {
        let (pollers, now) = (Pollers::default(), door::wall_clock());
        let (one, two) = (pollers.asks(&ask("b", "mail")), pollers.asks(&ask("b", "build")));
        drop(pollers.asks(&ask("a", "mail")));
        let row = |worker: &str, stream: &str, waiting| (worker.to_string(), stream.to_string(), waiting);
        assert_eq!(seen(&pollers, now), [row("a", "mail", false), row("b", "build", true)]);
        drop(one);
        assert_eq!(seen(&pollers, now)[1], row("b", "build", true), "its other call waits");
        let later = door::wall_clock().after(2 * SHOWN);
        assert_eq!(seen(&pollers, later), [row("b", "build", true)], "who waits is there, however long");
        drop(two);
        assert_eq!(seen(&pollers, now), [row("b", "build", false)]);
        assert_eq!(seen(&pollers, later), []);
    }

    #[test]
    fn ever_new_names_push_out_one_another_and_nobody_who_waits() {
        let pollers = Pollers::default();
        let _waits = pollers.asks(&ask("waits", "mail"));
        (0..2 * limits::POLLERS_MAX).for_each(|n| drop(pollers.asks(&ask(&format!("w{n}"), "mail"))));
        let seen = seen(&pollers, door::wall_clock());
        assert_eq!(seen.len(), limits::POLLERS_MAX);
        assert!(seen.iter().any(|(worker, _, waiting)| worker == "waits" && *waiting));
    }
}
