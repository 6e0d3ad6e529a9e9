//! Reads an agent's output while it runs: by its dialect, into a bounded log for people, and into a one-line note of
//! what it is doing. The secrets that it was given are removed first.

use super::redaction::Redaction;
use crate::guard::OutputStream;
use fernery_core::profile::{AgentReport, Dialect, OutputParser};
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
    parser: OutputParser,
    log: Option<File>,
    /// One for standard output, one for standard error.
    redactions: [Redaction; 2],
    bytes: u64,
    logged: u64,
    heard_at: Instant,
}

/// What is known while it runs.
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
    /// For an agent that has not started. If the log cannot be written, the run goes on.
    pub(super) fn new(dialect: Dialect, log: &Path, secrets: &[String]) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(log).ok();
        let redactions = [Redaction::new(secrets), Redaction::new(secrets)];
        let (parser, heard_at) = (OutputParser::new(dialect), Instant::now());
        Self(Mutex::new(State { parser, log, redactions, bytes: 0, logged: 0, heard_at }))
    }

    /// Takes a piece of its output.
    pub(super) fn take(&self, from: OutputStream, bytes: &[u8]) {
        let mut state = self.0.lock().expect("not poisoned");
        state.heard_at = Instant::now();
        state.bytes += bytes.len() as u64;
        let shown = state.redactions[from as usize].take(bytes);
        state.pass_on(from, &shown);
    }

    pub(super) fn so_far(&self) -> SoFar {
        let state = self.0.lock().expect("not poisoned");
        SoFar { bytes: state.bytes, heard_at: state.heard_at, note: state.parser.note().map(str::to_string) }
    }

    /// Its output has ended.
    pub(super) fn finish(self) -> AgentReport {
        let mut state = self.0.into_inner().expect("not poisoned");
        for from in [OutputStream::Stdout, OutputStream::Stderr] {
            let rest = state.redactions[from as usize].finish();
            state.pass_on(from, &rest);
        }
        state.parser.finish()
    }
}

impl State {
    fn pass_on(&mut self, from: OutputStream, shown: &[u8]) {
        let room = LOG_BYTES_MAX.saturating_sub(self.logged).min(shown.len() as u64) as usize;
        let cut = self.logged < LOG_BYTES_MAX && room < shown.len();
        self.logged += shown.len() as u64;
        if let Some(log) = &mut self.log {
            let _ = log.write_all(&shown[..room]);
            if cut {
                let _ = log.write_all(b"\n[the rest of the output is not kept]\n");
            }
        }
        if from == OutputStream::Stdout {
            self.parser.feed(shown);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn neither_the_log_nor_what_it_says_shows_a_secret_that_comes_in_pieces() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let listening = Listening::new(Dialect::Text, &log, &["sk-0123456789".to_string()]);
        listening.take(OutputStream::Stdout, b"my key is sk-0123");
        listening.take(OutputStream::Stderr, b"oh: sk-01");
        listening.take(OutputStream::Stdout, b"456789!\n");
        listening.take(OutputStream::Stderr, b"23456789\n");
        let told = listening.finish();
        let kept = fs::read_to_string(&log).expect("a log");
        assert!(kept.contains(" [secret]!\n") && kept.contains("[secret]\n"), "{kept}");
        assert!(!format!("{kept}{told:?}").contains("0123"), "{kept} {told:?}");
    }
}
