//! Runs a program of the blueprint's under a guard: own process group, emptied environment, a folder of its own, and an
//! end that is certain.

use crate::worker::link::Exit;
use crate::worker::process::{Guards, Input, NotRun, Ran};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;

/// How long a program may take to end on TERM.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// A program to run.
pub(super) struct Command {
    guards: Guards,
    folder: PathBuf,
}

impl Command {
    /// Starts nothing yet. `env` are the names that it may see.
    pub(super) fn new(argv: &[String], env: &[String], folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let guards = Guards::new(std::env::current_exe()?, argv, GRACE).within(folder, env);
        Ok(Self { guards, folder: folder.to_owned() })
    }

    /// Runs it once.
    pub(super) async fn run(
        &self,
        stdin: &[u8],
        env: Vec<(String, String)>,
        ends_when_full: bool,
        hang_max: Duration,
        stops: UnboundedReceiver<Duration>,
    ) -> Result<Ran, NotRun> {
        self.guards.run(Input { env, stdin, ends_when_full, listener: None, hang_max }, stops).await
    }

    /// Waits until all that it started has ended.
    pub(super) async fn close(&self) {
        self.guards.close().await;
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// How it exited, as evidence has it.
pub(super) fn exit_code(exit: &Exit) -> Option<i32> {
    match exit {
        Exit::Code(code) => Some(*code),
        _ => None,
    }
}
