//! A person's path up to a ticket that is worked on: nothing to type that can be known, nothing typed that is lost, and no
//! waiting without a word.

mod arrival;
mod asking;
mod drafts;
mod found;
mod hangup;
mod reload;
mod unmanned;

use crate::program::{Answer, fernery, run_in};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A repository with one commit, in a folder `name` of a new folder.
fn repository(name: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    make_repository(&dir.path().join(name));
    dir
}

fn make_repository(folder: &Path) {
    std::fs::create_dir_all(folder.join("src/deep")).unwrap();
    std::fs::write(folder.join("src/deep/a.txt"), "a\n").unwrap();
    for args in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message=one"],
    ] {
        let done = Command::new("git").current_dir(folder).args(args).status().expect("git starts");
        assert!(done.success(), "git {args:?}");
    }
}

/// A server that was started with `up --detach`, stopped when it is dropped.
struct Detached<'a> {
    folder: &'a Path,
}

impl<'a> Detached<'a> {
    fn start(folder: &'a Path, flags: &[&str]) -> Self {
        let detached = Self { folder };
        let all = ["up", "--detach", "--listen", "127.0.0.1:0"].iter().chain(flags);
        detached.run(all.copied()).exits(0);
        detached
    }

    fn run<'b>(&self, args: impl IntoIterator<Item = &'b str>) -> Answer {
        run_in(self.folder, args)
    }
}

impl Drop for Detached<'_> {
    fn drop(&mut self) {
        let _ = run_in(self.folder, ["down"]);
    }
}

/// A command on a terminal, with this editor; the steps are typed.
fn on_terminal(folder: &Path, args: &[&str], editor: &str, steps: &[&str]) -> serde_json::Value {
    on_terminal_with(folder, args, &[("EDITOR", editor)], steps)
}

fn on_terminal_with(folder: &Path, args: &[&str], env: &[(&str, &str)], steps: &[&str]) -> serde_json::Value {
    use std::io::Write;
    use std::process::Stdio;
    let mut command = crate::program::started_by("python3");
    command.args(["-c", include_str!("../inbox/terminal.py"), "200"]).arg(fernery().get_program()).args(args);
    command.current_dir(folder).env_remove("VISUAL").env_remove("EDITOR").stdin(Stdio::piped());
    command.env("XDG_STATE_HOME", folder.join("state")).envs(env.iter().copied());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("python3 starts");
    child.stdin.take().unwrap().write_all((steps.join("\n") + "\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What came to the terminal, with plain line ends.
fn seen(answer: &serde_json::Value) -> String {
    answer["seen"].as_str().unwrap().replace("\r\n", "\n")
}
