//! A server with a repository and a scripted agent, and an operator.

use crate::program::Server;
pub(crate) use crate::program::marked;
pub(crate) use crate::program::patience::eventually;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Gates of a patch, without any program.
pub(crate) const GATES: &str =
    "gates = [{ kind = \"schema\" }, { kind = \"outcome\" }, { kind = \"patch\" }, { kind = \"applies\" }]\n";

/// What every server here is started with.
pub(crate) const FLAGS: [&str; 8] =
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
    // The owner of a repository may be another user than the test.
    command.args(["-c", "user.name=o", "-c", "user.email=o@localhost", "-c", "safe.directory=*"]);
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

    /// A server that stops at this failpoint.
    pub(crate) fn open_to_hold(blueprint: &str, failpoint: &str) -> Self {
        let hold = format!("hold:{failpoint}");
        let told = ("FERNERY_FAILPOINT", hold.as_str());
        Self { server: Server::start_told(lay_out(blueprint), &FLAGS, told) }
    }

    /// A server that dies at this failpoint.
    pub(crate) fn open_told(dir: TempDir, more: &[&str], failpoint: &str) -> Self {
        let flags = [&FLAGS[..], more].concat();
        Self { server: Server::start_told(dir, &flags, ("FERNERY_FAILPOINT", failpoint)) }
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

/// The marks of attempts and gates that processes bear which work under this data directory.
pub(crate) fn marks(data: &Path) -> BTreeSet<String> {
    let data = data.canonicalize().unwrap();
    let part = data.to_str().unwrap();
    let environ = |pid| fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let said = marked(part).into_iter().flat_map(|pid: i32| {
        let environ = environ(pid);
        let names = environ.split(|byte| *byte == 0).map(|of| String::from_utf8_lossy(of).into_owned());
        names.filter(|of| of.starts_with("FERNERY_JOB_ATTEMPT_ID=")).collect::<Vec<_>>()
    });
    said.collect()
}

/// Whether a file of this name has been written somewhere in a folder. One that is there and empty has only been made: its
/// text comes a moment later.
pub(crate) fn written(folder: &Path, name: &str) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| match entry.file_type() {
        Ok(of) if of.is_dir() => written(&entry.path(), name),
        _ => entry.file_name() == name && has_text(&entry.path()),
    })
}

/// Whether there is a file with something in it.
pub(crate) fn has_text(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|file| file.len() > 0)
}
