//! A shell as a reader has it: an empty folder, `fernery` on the PATH, one block after the other.

use super::pages::{Block, blocks};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// What a block may take, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);
const DONE: &str = "@ the block is done";
const FAILED: &str = "@ a command failed";

pub(crate) struct Shell {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
    /// Blocks whose exit code is told and not an end.
    judged: Vec<&'static str>,
    pub(crate) dir: TempDir,
}

impl Shell {
    /// Opens one. The server that is started in it takes a free port.
    pub(crate) fn open(environment: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join(".bin");
        std::fs::create_dir(&bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fernery"), bin.join("fernery")).unwrap();
        let mut path = bin.into_os_string();
        if let Some(tools) = std::env::var_os("FERNERY_TEST_PGBIN") {
            path.push(":");
            path.push(tools);
        }
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut command = Command::new("bash");
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FERNERY_"))
        {
            command.env_remove(name);
        }
        command.args(["--noprofile", "--norc"]).current_dir(dir.path()).env("PATH", path);
        // Nobody's own data folder: it cannot be made there either.
        command.env("XDG_DATA_HOME", "/dev/null").env_remove("SUDO_UID");
        command.env("FERNERY_LISTEN", "127.0.0.1:0").env("NO_COLOR", "1").envs(environment.iter().copied());
        // Whatever a block leaves behind is ended with it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("bash is installed");
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (said, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| said.send(line)));
        let mut stdin = child.stdin.take().unwrap();
        // What was printed last may have no end of line: a mark begins one of its own.
        writeln!(
            stdin,
            "exec 2>&1; mark() {{ echo; echo \"$1\"; }}; set -euo pipefail; trap 'mark {FAILED:?}' EXIT"
        )
        .unwrap();
        Self { child, stdin, lines, judged: Vec::new(), dir }
    }

    /// The last command of this block may fail: what it printed ends with its exit code, and the caller judges.
    pub(crate) fn judge(&mut self, block: &'static str) {
        self.judged.push(block);
    }

    /// Runs a block and answers with what was printed meanwhile.
    #[track_caller]
    pub(crate) fn run(&mut self, block: &Block) -> String {
        let file = self.dir.path().join(".block");
        std::fs::write(&file, &block.text).unwrap();
        // By its whole path: a block may go elsewhere.
        let block_file = file.display();
        let run = if self.judged.contains(&block.name.as_str()) {
            format!("code=0; . '{block_file}' </dev/null || code=$?; mark \"exit code $code\"")
        } else {
            format!(". '{block_file}' </dev/null")
        };
        writeln!(self.stdin, "{run}; mark {DONE:?}").unwrap();
        self.read_until(&block.name, DONE)
    }

    /// Reads up to a line that begins so.
    #[track_caller]
    pub(crate) fn read_until(&mut self, what: &str, begin: &str) -> String {
        let mut said = String::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else { panic!("{what}: no `{begin}`: {said}") };
            assert!(line != FAILED, "{what}: a command failed: {said}");
            if line.starts_with(begin) {
                return said;
            }
            said.push_str(&line);
            said.push('\n');
        }
    }

    /// Runs the shell blocks of a guide whose names begin so, one right after the other, as if they were pasted together. Tells
    /// the rest of each name and what was printed.
    pub(crate) fn run_guide(&mut self, guide: &str, prefix: &str, mut look: impl FnMut(&str, &str, &Path)) {
        for block in blocks(guide).iter().filter(|block| block.language == "sh") {
            let Some(name) = block.name.strip_prefix(prefix) else { continue };
            let said = self.run(block);
            look(name, &said, self.dir.path());
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // A server that was detached is in no group of ours.
        for data in [".fernery", "app/.fernery", "second"] {
            let data = self.dir.path().join(data);
            let _ = crate::program::fernery().arg("down").arg("--data").arg(data).output();
        }
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
