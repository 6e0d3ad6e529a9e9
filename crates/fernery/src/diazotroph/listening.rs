//! Listens to an agent while it runs: its dialect, a log for people with a bound, and what it is doing in a line.

use crate::worker::process::Heard;
use fernery_core::profile::{Dialect, Hearing, Told};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use tokio::time::Instant;

/// Bytes of the log of one attempt.
const LOG_BYTES_MAX: u64 = 8 << 20;

/// One agent's output.
#[derive(Debug)]
pub(super) struct Listening(Mutex<State>);

#[derive(Debug)]
struct State {
    hearing: Hearing,
    log: Option<File>,
    bytes: u64,
    heard_at: Instant,
}

/// What can be said while it runs.
#[derive(Clone, Debug)]
pub(super) struct SoFar {
    /// Bytes that it has written.
    pub(super) bytes: u64,
    /// When it wrote last.
    pub(super) heard_at: Instant,
    /// What it is doing.
    pub(super) note: Option<String>,
}

impl Listening {
    /// Of an agent that has not started. A log that cannot be written is no reason not to run.
    pub(super) fn new(dialect: Dialect, log: &Path) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(log).ok();
        Self(Mutex::new(State { hearing: Hearing::new(dialect), log, bytes: 0, heard_at: Instant::now() }))
    }

    /// Takes what it wrote.
    pub(super) fn take(&self, from: Heard, bytes: &[u8]) {
        let mut state = self.0.lock().expect("not poisoned");
        state.heard_at = Instant::now();
        let room = LOG_BYTES_MAX.saturating_sub(state.bytes).min(bytes.len() as u64) as usize;
        let cut = state.bytes < LOG_BYTES_MAX && room < bytes.len();
        state.bytes += bytes.len() as u64;
        if let Some(log) = &mut state.log {
            let _ = log.write_all(&bytes[..room]);
            if cut {
                let _ = log.write_all(b"\n[more was written and is not kept]\n");
            }
        }
        if from == Heard::Stdout {
            state.hearing.feed(bytes);
        }
    }

    pub(super) fn so_far(&self) -> SoFar {
        let state = self.0.lock().expect("not poisoned");
        SoFar { bytes: state.bytes, heard_at: state.heard_at, note: state.hearing.note().map(str::to_string) }
    }

    /// It writes no more.
    pub(super) fn finish(self) -> Told {
        self.0.into_inner().expect("not poisoned").hearing.finish()
    }
}
