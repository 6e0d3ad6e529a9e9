//! A server with a repository and a scripted agent, and an operator.

use crate::program::{Server, fernery};
use fernery_engine::door::stop_watch;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Nothing here takes longer unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Gates of a patch, without any program.
pub(crate) const GATES: &str =
    "gates = [{ kind = \"schema\" }, { kind = \"outcome\" }, { kind = \"patch\" }, { kind = \"applies\" }]\n";

/// What every server here is started with.
const FLAGS: [&str; 8] =
    ["--azolla", "yard.toml", "--azolla", "quick.toml", "--repos", "app=repo#main", "--lease-ttl", "2s"];

pub(crate) struct Yard {
    pub(crate) server: Server,
}

/// The blueprint of an azolla `yard` whose agent is scripted by its tickets.
pub(crate) fn blueprint(more: &str) -> String {
    format!(
        "extends = \"mec\"\nazolla_id = \"yard\"\n{more}\n[executors.PATCH_DIAZOTROPH]\nkind = \"agent\"\nprofile = \"mock\"\n\
         parallel = 2\n[budget]\nworkorder = \"60s\"\n[retry]\ngate_failures = 0\n[limits]\nconcurrency = 0\nreview_limit = 0\n"
    )
}

/// Makes an operator's repository and the blueprints.
pub(crate) fn lay_out(blueprint: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let repo = dir.path().join("repo");
    fs::create_dir(&repo).unwrap();
    git(&repo, &["init", "-q", "-b", "main", "."]);
    fs::write(repo.join("greeting.txt"), "Hello\n").unwrap();
    fs::write(repo.join("check.sh"), "grep -q Goodbye greeting.txt\n").unwrap();
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "base"]);
    fs::write(dir.path().join("yard.toml"), blueprint).unwrap();
    let quick = "extends = \"yard\"\nazolla_id = \"quick\"\n[budget]\nworkorder = \"5s\"\n";
    fs::write(dir.path().join("quick.toml"), quick).unwrap();
    dir
}

pub(crate) fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=o", "-c", "user.email=o@localhost"]);
    let output = command.current_dir(folder).args(args).output().expect("git is installed");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_string()
}

impl Yard {
    pub(crate) fn open(blueprint: &str) -> Self {
        Self::open_in(lay_out(blueprint))
    }

    pub(crate) fn open_in(dir: TempDir) -> Self {
        Self::open_in_with(dir, &[])
    }

    pub(crate) fn open_in_with(dir: TempDir, more: &[&str]) -> Self {
        Self { server: Server::start_in(dir, &[&FLAGS[..], more].concat()) }
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.server.data().parent().unwrap().join("repo")
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.server.post("operator.token", path, &body);
        assert!(matches!(status, 200 | 201), "{path}: {status} {answer}");
        answer
    }

    /// Writes a ticket down and approves it.
    pub(crate) fn ticket(&self, azolla: &str, id: &str, script: &str) {
        self.post("/v1/objectives", new_ticket(azolla, id, script));
        self.approve(id);
    }

    pub(crate) fn approve(&self, id: &str) {
        let digest = self.objective(id)["approval"]["digest"].clone();
        self.post(&format!("/v1/objectives/{id}/approve"), json!({"digest": digest}));
    }

    pub(crate) fn objective(&self, id: &str) -> Value {
        let (status, body) = self.server.read(&format!("/v1/objectives/{id}"));
        assert_eq!(status, 200, "{id}: {body}");
        body
    }

    /// Waits until the objective is so.
    pub(crate) fn until(&self, id: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Value::Null;
        let so = eventually(|| {
            seen = self.objective(id);
            is_so(&seen)
        });
        assert!(so, "it never came to: {what}: {seen:#}");
        seen
    }

    /// Waits until its run is judged.
    pub(crate) fn judged(&self, id: &str) -> Value {
        self.until(id, "judged", |objective| {
            objective["runs"].as_array().is_some_and(|runs| !runs.is_empty())
                && objective["objective"]["status"] != "IN_PROGRESS"
        })
    }

    /// Branches of the operator's repository beside main.
    pub(crate) fn branches(&self) -> Vec<String> {
        branches(&self.repo())
    }
}

pub(crate) fn branches(repo: &Path) -> Vec<String> {
    let all = git(repo, &["for-each-ref", "--format=%(refname)"]);
    all.lines().filter(|line| *line != "refs/heads/main").map(str::to_string).collect()
}

pub(crate) fn new_ticket(azolla: &str, id: &str, script: &str) -> Value {
    json!({"objective_id": id, "azolla_id": azolla, "title": "Do it", "acceptance_criteria": script,
        "metadata": {"repo_ref": "app"}})
}

/// Looks again and again, for as long as anything may take: another process tells nobody when it is done.
#[allow(clippy::disallowed_methods, reason = "another process gives no signal to wait for")]
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let until = stop_watch() + PATIENCE;
    while !is_so() {
        if stop_watch() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// A server that is to die at a failpoint, until it does.
pub(crate) struct Doomed {
    pub(crate) child: std::process::Child,
}

impl Doomed {
    pub(crate) fn start(failpoint: &str, dir: &Path) -> Self {
        let mut command = fernery();
        command.current_dir(dir).env("FERNERY_FAILPOINT", failpoint);
        command.args(["up", "--listen", "127.0.0.1:0"]).args(FLAGS);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the program starts");
        let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
        assert!(line.starts_with("listening on "), "it serves");
        Self { child }
    }

    /// Has the operator's command line write a ticket down and approve it.
    pub(crate) fn ticket(&self, dir: &Path, azolla: &str, id: &str, script: &str) {
        // It may die before it has answered.
        let act = |args: &[&str]| {
            let mut command = fernery();
            command.current_dir(dir).args(args).stdin(Stdio::null()).output().expect("the program starts")
        };
        let (title, repo) = (["--title", "Do it"], ["--meta", "repo_ref=app"]);
        let ticket = ["ticket", "new", "--azolla", azolla, "--id", id, "--criteria", script];
        act(&[&ticket[..], &title, &repo].concat());
        act(&["ticket", "approve", id, "--yes"]);
    }

    pub(crate) fn is_dead(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

/// Processes on this machine whose environment has this in it.
pub(crate) fn marked(part: &str) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let bears = |pid: &i32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.windows(part.len().max(1)).any(|window| window == part.as_bytes())
    };
    pids.filter(bears).collect()
}
