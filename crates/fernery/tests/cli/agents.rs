//! Coding agents on the command line: which there are, setting a repository up for one, and the scripted one as a process.

use crate::program::{Answer, fernery, run_in};
use fernery_core::profile::{AgentReport, Dialect, Finish, OutputParser};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

fn git(folder: &Path, args: &[&str]) -> String {
    let who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").current_dir(folder).args(who).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A repository with one commit.
fn repository() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "--quiet", "--initial-branch", "trunk"]);
    fs::write(dir.path().join("sum.py"), "def add(a, b):\n    return a - b\n").unwrap();
    git(dir.path(), &["add", "-A"]);
    git(dir.path(), &["commit", "--quiet", "--message", "first"]);
    dir
}

fn started(folder: &Path, steps: &[&str], prompt: &str) -> Child {
    let mut command = fernery();
    command.current_dir(folder).arg("mock-agent").args(steps);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
    child
}

/// What a mock agent with this prompt told, and its exit code; `None` if a signal ended it.
fn ran(folder: &Path, prompt: &str) -> (AgentReport, Option<i32>) {
    let output = started(folder, &[], prompt).wait_with_output().unwrap();
    let mut parser = OutputParser::new(Dialect::Mock);
    parser.feed(&output.stdout);
    (parser.finish(), output.status.code())
}

fn changes(folder: &Path) -> String {
    git(folder, &["status", "--porcelain", "--untracked-files=all"])
}

#[test]
fn a_mock_agent_changes_what_its_prompt_says() {
    for (script, left) in [
        ("", "?? MOCK.md\n"),
        ("mock: ok", "?? MOCK.md\n"),
        ("mock: write d/a.txt Hi\nmock: append d/a.txt there", "?? d/a.txt\n"),
        ("mock: fix sum.py a - b => a + b", " M sum.py\n"),
        ("mock: delete sum.py", " D sum.py\n"),
        ("mock: symlink etc /etc/passwd", "?? etc\n"),
        ("mock: binary logo.bin", "?? logo.bin\n"),
        ("mock: huge big.bin 2", "?? big.bin\n"),
        ("mock: sparse hole.bin 100", "?? hole.bin\n"),
        ("mock: empty", ""),
        ("mock: first write a x\nmock: again write b x", "?? a\n"),
    ] {
        let dir = repository();
        let (told, code) = ran(dir.path(), &format!("# Do it\n\n## Done when\n```text\n{script}\n```\n"));
        assert_eq!((told.finished, code), (Some(Finish::Success), Some(0)), "{script}");
        assert_eq!(changes(dir.path()), left, "{script}");
        let reported = told.usage.is_some() && told.cost_usd_micros.is_some();
        assert_eq!(reported, script != "mock: empty", "{script}");
    }
    let dir = repository();
    ran(
        dir.path(),
        "mock: write d/a.txt Hi\nmock: append d/a.txt there\nmock: huge b 2\nmock: sparse h 100\n",
    );
    assert_eq!(fs::read_to_string(dir.path().join("d/a.txt")).unwrap(), "Hi\nthere\n");
    let size = |name: &str| fs::metadata(dir.path().join(name)).unwrap().len();
    assert_eq!((size("b"), size("h")), (2 << 20, 100 << 20));
}

#[test]
fn a_mock_agent_may_commit_or_delete_its_repository() {
    let dir = repository();
    let (told, code) = ran(dir.path(), "mock: write a x\nmock: commit All of it\n");
    assert_eq!((told.finished, code), (Some(Finish::Success), Some(0)));
    assert_eq!(git(dir.path(), &["log", "-1", "--format=%s"]), "All of it\n");
    assert_eq!(changes(dir.path()), "");
    let (told, _) = ran(dir.path(), "mock: delete-git\n");
    assert_eq!(told.finished, Some(Finish::Success));
    assert!(!dir.path().join(".git").exists());
}

#[test]
fn a_mock_agent_ends_in_every_way_there_is() {
    let dir = repository();
    let error = |why: &str| Some(Finish::Error(why.to_string()));
    for (script, finished, exit) in [
        ("mock: fail no tokens left", error("no tokens left"), Some(1)),
        ("mock: replace sum.py zzz => y", error("sum.py does not hold `zzz`"), Some(1)),
        ("mock: dance", error("a mock agent cannot `dance`"), Some(1)),
        ("mock: exit 7", None, Some(7)),
        ("mock: partial", None, Some(0)),
        ("mock: crash", None, None),
        ("mock: usage none", Some(Finish::Success), Some(0)),
    ] {
        let (told, code) = ran(dir.path(), script);
        match (&told.finished, &finished) {
            (Some(Finish::Error(told)), Some(Finish::Error(why))) => assert!(told.starts_with(why), "{told}"),
            _ => assert_eq!(told.finished, finished, "{script}"),
        }
        assert_eq!(code, exit, "{script}");
        assert_eq!((told.usage, told.cost_usd_micros), (None, None), "{script}");
    }
    let (told, _) = ran(dir.path(), "mock: ask Which file?");
    assert!(told.question && told.message.unwrap().contains("Which file?"));
    let (told, _) = ran(dir.path(), "mock: no-change it is there already");
    assert_eq!(told.no_change.as_deref(), Some("it is there already"));
    let (told, _) = ran(dir.path(), "mock: flood 3\nmock: usage 10 20 0.25");
    assert_eq!(told.finished, Some(Finish::Success), "a flood hides no event");
    assert_eq!((told.usage.unwrap().tokens, told.cost_usd_micros), (30, Some(250_000)));
    assert_eq!(changes(dir.path()), "");
}

#[test]
fn the_command_line_and_the_environment_have_scripts_too() {
    let dir = repository();
    let output = started(dir.path(), &["write a x", "exit 3"], "mock: crash").wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let mut command = fernery();
    command.current_dir(dir.path()).arg("mock-agent").env("FERNERY_MOCK", "write b x; exit 4");
    assert_eq!(command.output().unwrap().status.code(), Some(4));
    assert_eq!(changes(dir.path()), "?? a\n?? b\n");
}

/// The first event of this type.
fn heard(child: &mut Child, kind: &str) -> String {
    let wanted = format!("\"type\":\"{kind}\"");
    let out = BufReader::new(child.stdout.as_mut().unwrap());
    out.lines().map(Result::unwrap).find(|line| line.contains(&wanted)).expect(kind)
}

fn signalled(child: &mut Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

#[test]
fn a_hanging_mock_agent_ends_on_term_and_a_deaf_one_does_not() {
    let dir = repository();
    let mut hanging = started(dir.path(), &["hang"], "");
    heard(&mut hanging, "start");
    signalled(&mut hanging, Signal::TERM);
    assert_eq!(hanging.wait().unwrap().signal(), Some(15));

    let mut deaf = started(dir.path(), &["deaf"], "");
    heard(&mut deaf, "text");
    signalled(&mut deaf, Signal::TERM);
    assert!(deaf.try_wait().unwrap().is_none());
    signalled(&mut deaf, Signal::KILL);
    assert_eq!(deaf.wait().unwrap().signal(), Some(9), "TERM has not ended it");
}

#[test]
fn a_mock_agent_leaves_a_daemon_in_a_session_of_its_own() {
    let dir = repository();
    let mut agent = started(dir.path(), &["daemon"], "");
    let event: serde_json::Value = serde_json::from_str(&heard(&mut agent, "tool")).unwrap();
    let daemon: i32 = event["detail"].as_str().unwrap().parse().unwrap();
    let of_agent = agent.id().to_string();
    agent.wait().unwrap();
    let stat = fs::read_to_string(format!("/proc/{daemon}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let (state, parent, session) = (fields[0], fields[1], fields[3]);
    assert_ne!(state, "Z", "{stat}");
    assert!(parent != of_agent && session != of_agent && session != "0", "{stat}");
    kill_process(Pid::from_raw(daemon).unwrap(), Signal::KILL).unwrap();
}

/// A machine with these programs, a home with nothing in it, and git.
struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new(programs: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["bin", "home"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let machine = Self { dir };
        let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|folder| folder.join("git"))
            .find(|file| file.exists())
            .expect("git is installed");
        machine.program("git", &format!("exec '{}' \"$@\"", git.display()));
        for (name, script) in programs {
            machine.program(name, script);
        }
        machine
    }

    fn program(&self, name: &str, script: &str) {
        let file = self.dir.path().join("bin").join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn home(&self) -> std::path::PathBuf {
        self.dir.path().join("home")
    }

    fn run(&self, folder: &Path, args: &[&str]) -> Answer {
        let mut command = fernery();
        for name in ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "OPENAI_API_KEY"] {
            command.env_remove(name);
        }
        command.current_dir(folder).env("HOME", self.home()).env("PATH", self.dir.path().join("bin"));
        command.args(args).output().unwrap().into()
    }
}

#[test]
fn what_an_agent_lacks_is_told_with_what_to_do() {
    let machine = Machine::new(&[("claude", "echo '9.9 (Claude Code)'")]);
    let dir = tempfile::tempdir().unwrap();
    let answer = machine.run(dir.path(), &["agent", "check", "claude"]).exits(1);
    assert!(answer.stdout.contains("9.9 (Claude Code)"), "{answer:?}");
    assert!(answer.stdout.contains("nothing to log in with: none of ANTHROPIC_API_KEY"), "{answer:?}");
    assert!(answer.stdout.contains("→ npm install -g @anthropic-ai/claude-code"), "{answer:?}");

    fs::create_dir(machine.home().join(".claude")).unwrap();
    fs::write(machine.home().join(".claude/.credentials.json"), "{}").unwrap();
    let answer = machine.run(dir.path(), &["agent", "check", "claude", "--json"]).exits(0).json();
    assert_eq!(answer["usable"], true);
    assert_eq!(answer["credentials"], serde_json::json!(["~/.claude/.credentials.json"]));
    assert!(answer["program"].as_str().unwrap().ends_with("/bin/claude"));

    let answer = machine.run(dir.path(), &["agent", "check", "codex"]).exits(1);
    assert!(answer.stdout.contains("codex was not found in PATH"), "{answer:?}");
    let answer = machine.run(dir.path(), &["agent", "check", "cluade"]).exits(3);
    assert!(answer.stderr.contains("did you mean claude?"), "{answer:?}");
    machine.run(dir.path(), &["agent", "check", "mock"]).exits(0);
    let all = machine.run(dir.path(), &["agent", "check", "--json"]).exits(0).json();
    assert_eq!(all.as_array().unwrap().len(), 8);
}

#[test]
fn a_profile_beside_the_blueprint_wins_and_its_mistakes_are_told() {
    let machine = Machine::new(&[("own", "echo own 1")]);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("azollas");
    fs::create_dir_all(folder.join("profiles")).unwrap();
    let own = "name = \"claude\"\nargv = [\"own\"]\nversion = [\"own\"]\ndialect = \"text\"\n";
    fs::write(folder.join("profiles/claude.toml"), own).unwrap();
    fs::write(folder.join("profiles/bad.toml"), "name = \"bad\"\nargv = [\"x\"]\ndialect = \"txt\"\n")
        .unwrap();
    let blueprint = |profile: &str| {
        let text = format!(
            "extends = \"mec\"\nazolla_id = \"a\"\n[executors.PATCH_DIAZOTROPH]\nkind = \"agent\"\nprofile = \"{profile}\"\n\
             [[gates]]\nkind = \"patch\"\n[[gates]]\nkind = \"applies\"\n"
        );
        fs::write(folder.join("a.toml"), text).unwrap();
    };
    blueprint("claude");
    fs::write(dir.path().join("fernery.toml"), "azolla = [\"azollas/a.toml\"]\n").unwrap();
    let listed = machine.run(dir.path(), &["agent", "list", "--json"]).exits(0).json();
    let claude = &listed[0];
    assert_eq!(claude["from"], "azollas/profiles/claude.toml");
    assert_eq!((claude["version"].as_str(), claude["usable"].as_bool()), (Some("own 1"), Some(true)));
    let bad = listed.as_array().unwrap().iter().find(|row| row["name"] == "bad").unwrap();
    assert_eq!((bad["usable"].as_bool(), bad["flaws"][0]["line"].as_u64()), (Some(false), Some(3)));
    let shown = machine.run(dir.path(), &["agent", "list"]).exits(0).stdout;
    assert!(shown.contains("claude    ok") && shown.contains("bad       wrong"), "{shown}");
    assert_eq!(machine.run(dir.path(), &["agent", "show", "claude"]).exits(0).stdout, own);

    machine.run(dir.path(), &["azolla", "check", "azollas/a.toml"]).exits(0);
    let text = fs::read_to_string(folder.join("a.toml")).unwrap();
    fs::write(folder.join("a.toml"), text.replace("applies", "outcome")).unwrap();
    machine.run(dir.path(), &["azolla", "check", "azollas/a.toml"]).exits(0);
    // A type of its own has the gates that it names.
    let own = text.replace("applies", "outcome").replace("PATCH_DIAZOTROPH", "OWN_DIAZOTROPH");
    let own = own.replace("\n[executors", "\ndiazotroph_type = \"OWN_DIAZOTROPH\"\n[executors");
    fs::write(folder.join("a.toml"), own).unwrap();
    let unguarded = machine.run(dir.path(), &["azolla", "check", "azollas/a.toml"]).exits(1);
    assert!(unguarded.stdout.contains("add the gates `patch` and `applies`"), "{unguarded:?}");
    for (profile, why) in [
        (
            "bad",
            "a.toml:5:11: executors.PATCH_DIAZOTROPH.profile: in the profile `bad` at 3:11: dialect: unknown word `txt`",
        ),
        ("cluade", "unknown profile `cluade`; did you mean `claude`?"),
    ] {
        blueprint(profile);
        let answer = machine.run(dir.path(), &["azolla", "check", "azollas/a.toml"]).exits(1);
        assert!(answer.stdout.contains(why), "{answer:?}");
    }
}

/// Two kinds of executor cannot have the workorders of one type.
#[test]
fn the_built_in_azolla_stays_away_where_its_workorders_are_carried_out_here() {
    let dir = tempfile::tempdir().unwrap();
    let hosted = |lines: &str| {
        let file = dir.path().join("own.toml");
        fs::write(&file, format!("extends = \"mec\"\nazolla_id = \"own\"\n{lines}")).unwrap();
        let blueprints = fernery::workers::blueprints::read(&[file]).unwrap();
        blueprints.iter().map(|blueprint| blueprint.azolla_id.to_string()).collect::<Vec<_>>()
    };
    let agent = "[executors.PATCH_DIAZOTROPH]\nkind = \"agent\"\nprofile = \"mock\"\nsandbox = \"none\"\n";
    assert_eq!(hosted(agent), ["task_management", "tasks", "own"]);
    assert_eq!(hosted(""), ["mec", "task_management", "tasks", "own"]);
}

#[test]
fn init_writes_two_files_that_work_and_overwrites_none() {
    let machine = Machine::new(&[("codex", "echo codex 1"), ("claude", "echo claude 1")]);
    fs::create_dir(machine.home().join(".codex")).unwrap();
    fs::write(machine.home().join(".codex/auth.json"), "{}").unwrap();
    let parent = repository();
    let dir = parent.path().join("My App");
    fs::create_dir(&dir).unwrap();
    git(&dir, &["init", "--quiet", "--initial-branch", "trunk"]);
    let answer = machine.run(&dir, &["init"]).exits(2);
    assert!(answer.stderr.contains("no commit yet"), "{answer:?}");
    fs::write(dir.join("Makefile"), "test:\n\ttrue\n").unwrap();
    fs::create_dir(dir.join("src")).unwrap();
    git(&dir, &["add", "-A"]);
    git(&dir, &["commit", "--quiet", "--message", "first"]);

    // From a folder below the root: the root is what is set up.
    let answer = machine.run(&dir.join("src"), &["init", "--json"]).exits(0).json();
    assert_eq!(answer["agent"], "codex", "claude is installed and has no login");
    assert_eq!(answer["logged_out"], serde_json::json!(["claude"]));
    assert_eq!((answer["azolla_id"].as_str(), answer["base"].as_str()), (Some("My-App"), Some("trunk")));
    assert_eq!(changes(&dir), "?? azolla.toml\n?? fernery.toml\n");
    let checked = machine.run(&dir, &["azolla", "check", "azolla.toml", "--json"]).exits(0).json();
    assert_eq!(checked[0]["azolla_id"], "My-App");
    let text = fs::read_to_string(dir.join("azolla.toml")).unwrap();
    assert!(text.contains("argv = [\"make\", \"test\"]"), "{text}");

    for file in ["fernery.toml", "azolla.toml"] {
        fs::remove_file(dir.join(file)).unwrap();
    }
    let said = machine.run(&dir, &["init"]).exits(0).stdout;
    assert!(said.contains("claude is installed but not logged in: `fernery agent check claude`"), "{said}");

    fs::remove_file(dir.join("fernery.toml")).unwrap();
    let answer = machine.run(&dir, &["init"]).exits(4);
    assert!(answer.stderr.contains("azolla.toml is there already"), "{answer:?}");
    assert_eq!(fs::read_to_string(dir.join("azolla.toml")).unwrap(), text);
    assert!(!dir.join("fernery.toml").exists(), "all or nothing");

    assert!(!said.contains("no tests were found"), "{said}");
    for file in ["azolla.toml", "Makefile"] {
        fs::remove_file(dir.join(file)).unwrap();
    }
    let said = machine.run(&dir, &["init"]).exits(0).stdout;
    assert!(said.contains("no tests were found: nothing but a patch that applies"), "{said}");
}

#[test]
fn init_outside_of_a_repository_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let answer = run_in(dir.path(), ["init"]).exits(2);
    assert!(
        answer.stderr.contains("not a git repository") && answer.stderr.contains("git init"),
        "{answer:?}"
    );
    git(dir.path(), &["init", "--quiet", "--bare"]);
    let answer = run_in(dir.path(), ["init"]).exits(2);
    assert!(
        answer.stderr.contains("this repository is bare") && answer.stderr.contains("clone"),
        "{answer:?}"
    );
    let repository = repository();
    git(repository.path(), &["checkout", "--quiet", "--detach"]);
    let answer = run_in(repository.path(), ["init"]).exits(2);
    assert!(answer.stderr.contains("git switch"), "{answer:?}");
    assert_eq!(changes(repository.path()), "");
}
