//! How a mock agent makes trouble: it stays, leaves something behind, or writes too much.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Upper bound, so that an abandoned child of a test exits on its own.
const STAYS_MAX: Duration = Duration::from_secs(3600);

/// What the process between a mock agent and its daemon is started with.
pub(super) const DAEMONIZE: &str = "--daemonize";
/// What the daemon is started with.
pub(super) const LINGER: &str = "--linger";

/// Does nothing for so long.
pub(super) fn pause(pause: Duration) {
    let (_open, never) = mpsc::channel::<()>();
    let _ = never.recv_timeout(pause.min(STAYS_MAX));
}

/// Ignores TERM.
pub(super) fn deaf() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut asked = signal(SignalKind::terminate())?;
        super::say(&serde_json::json!({"type": "text", "text": "I do not listen"}))?;
        let refuses = async { while asked.recv().await.is_some() {} };
        let _ = tokio::time::timeout(STAYS_MAX, refuses).await;
        Ok(())
    })
}

/// Writes lines that are no events.
pub(super) fn flood(mebibytes: u64) -> io::Result<()> {
    let line = format!("{}\n", "flood ".repeat(170));
    let mut out = io::stdout().lock();
    let mut left = mebibytes << 20;
    while left > 0 {
        out.write_all(line.as_bytes())?;
        left = left.saturating_sub(line.len() as u64);
    }
    out.flush()
}

/// Leaves a process behind that has another parent and a session of its own; answers its id.
pub(super) fn daemon() -> io::Result<u32> {
    let mut between = own(DAEMONIZE)?.stdout(Stdio::piped()).spawn()?;
    let mut said = String::new();
    between.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?.read_to_string(&mut said)?;
    between.wait()?;
    said.trim().parse().map_err(|_| io::Error::other("the daemon did not start"))
}

/// The process between: starts the daemon and is gone.
pub(super) fn daemonize() -> u8 {
    let started = || -> io::Result<u32> {
        rustix::process::setsid()?;
        Ok(own(LINGER)?.stdout(Stdio::null()).spawn()?.id())
    };
    match started() {
        Ok(id) => u8::from(writeln!(io::stdout(), "{id}").is_err()),
        Err(_) => 1,
    }
}

pub(super) fn linger() -> u8 {
    pause(STAYS_MAX);
    0
}

fn own(word: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    // After `--` it is a word, not a flag of the command line.
    command.args(["mock-agent", "--", word]).stdin(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}
