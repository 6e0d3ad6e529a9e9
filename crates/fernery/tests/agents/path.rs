//! A person's path in one go: from a fresh repository to merged changes, by the commands that a person types. The server is
//! killed at every rest in between. On both databases.

use crate::fresh_database::fresh_database;
use crate::program::{Answer, Server, fernery};
use crate::yard::git;
use rustix::process::Signal;
use std::fs;

/// A repository, its server, and the flags that it is started with.
struct Path {
    server: Option<Server>,
    flags: Vec<String>,
}

impl Path {
    /// From `git init` and `fernery init` to a server.
    fn begin(more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "-q", "-b", "main", "."]);
        fs::write(dir.path().join("Makefile"), "test:\n\tgrep -q Hello greeting.txt\n").unwrap();
        git(dir.path(), &["add", "-A"]);
        git(dir.path(), &["commit", "-q", "-m", "A test that fails"]);
        // No agent of the tester's is logged in here: it would be the one that `init` takes.
        let init = fernery().current_dir(dir.path()).env("HOME", home.path()).arg("init").output().unwrap();
        assert!(init.status.success(), "{init:?}");
        let flags: Vec<String> =
            ["--lease-ttl", "2s"].iter().chain(more).map(|flag| flag.to_string()).collect();
        let server = Some(start(dir, &flags));
        Self { server, flags }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn run(&self, args: &[&str]) -> Answer {
        self.server().run(args)
    }

    /// A power cut, and a new start.
    fn cut(&mut self) {
        let server = self.server.take().expect("it runs");
        server.signal(Signal::KILL);
        let (_, dir) = server.ended();
        self.server = Some(start(dir, &self.flags));
    }

    /// A ticket without flags for what is known, approved and followed to its rest; answers its id and what was told.
    fn ticket(&mut self, title: &str, script: &str, ends_with: i32) -> (String, String) {
        let made = self.run(&["ticket", "new", "--title", title, "--criteria", script]).exits(0);
        let id = made.stdout.trim().to_string();
        self.run(&["ticket", "approve", &id, "--yes"]).exits(0);
        let told = self.run(&["ticket", "show", &id, "--follow"]).exits(ends_with).stdout;
        self.cut();
        (id, told)
    }

    /// Brings a finished ticket to main.
    fn merge(&mut self, id: &str) {
        let said = self.run(&["ticket", "merge", id, "--yes"]).exits(0).stdout;
        assert!(said.contains("landed on main as commit"), "{said}");
        self.cut();
        let listed = self.run(&["ticket", "show", id]).exits(0).stdout;
        assert!(listed.contains("on main"), "{listed}");
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.server().dir.path().join(name)).unwrap().trim_end().to_string()
    }
}

fn start(dir: tempfile::TempDir, flags: &[String]) -> Server {
    Server::start_in(dir, &flags.iter().map(String::as_str).collect::<Vec<_>>())
}

fn from_a_thought_to_merged_changes(more: &[&str]) {
    let mut path = Path::begin(more);

    // The first patch fails the gate, the log says why, and the second builds on the first.
    let script = "mock: first write greeting.txt Hallo\nmock: again replace greeting.txt Hallo => Hello";
    let (hello, told) = path.ticket("Greet", script, 0);
    for part in ["tests: FAIL `make test`", "| grep -q Hello greeting.txt", "tests: PASS `make test`"] {
        assert!(told.contains(part), "no {part}: {told}");
    }
    path.merge(&hello);
    assert_eq!(path.file("greeting.txt"), "Hello");

    // It asks, a person answers, and it goes on.
    let script = "mock: first ask Which one?\nmock: again write answer.txt both";
    let (asked, told) = path.ticket("Ask first", script, 1);
    assert!(told.contains("Which one?"), "{told}");
    path.run(&["ticket", "answer", &asked, "both of them", "--yes"]).exits(0);
    path.run(&["ticket", "show", &asked, "--follow"]).exits(0);
    path.cut();

    // Two on one file: the second conflicts, is reworked, and then merges.
    let (one, _) = path.ticket("Greet the world", "mock: write greeting.txt Hello, world", 0);
    let script =
        "mock: first write greeting.txt Hello, all\nmock: again write greeting.txt Hello, all the world";
    let (two, _) = path.ticket("Greet all", script, 0);
    path.merge(&one);
    let refused = path.run(&["ticket", "merge", &two, "--yes"]).exits(4).stderr;
    assert!(refused.contains("main changed the same lines: greeting.txt"), "{refused}");
    let next = path.run(&["ticket", "show", &two]).exits(0).stdout;
    let reopen = format!("fernery ticket reopen {two} --note 'main changed the same lines: greeting.txt'");
    assert!(next.contains(&reopen) && !next.contains("what is missing"), "{next}");
    assert_eq!(path.file("greeting.txt"), "Hello, world", "nothing was forced");
    path.run(&["ticket", "reopen", &two, "--note", "Keep the world"]).exits(0);
    path.run(&["ticket", "show", &two, "--follow"]).exits(0);
    path.merge(&two);
    path.merge(&asked);

    assert_eq!(
        (path.file("greeting.txt").as_str(), path.file("answer.txt").as_str()),
        ("Hello, all the world", "both")
    );
    let repo = path.server().dir.path();
    let log = git(repo, &["log", "--format=%s", "main"]);
    assert_eq!(log, "Ask first\nGreet all\nGreet the world\nGreet\nA test that fails");
    assert_eq!(git(repo, &["status", "--short", "--untracked-files=no"]), "");
    path.run(&["verify"]).exits(0);
}

#[test]
fn from_a_thought_to_merged_changes_on_sqlite() {
    from_a_thought_to_merged_changes(&[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_a_thought_to_merged_changes_on_postgres() {
    let database = fresh_database().await;
    let url = database.url();
    tokio::task::spawn_blocking(move || from_a_thought_to_merged_changes(&["--database", &url]))
        .await
        .unwrap();
}
