//! How `fernery worker` is called, how it is refused, and what it shows.

use crate::processes;
use crate::workshop;
use crate::workshop::{PATIENCE, Worker, Workshop, fernery};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

async fn output(mut command: Command) -> (Option<i32>, String, String) {
    let output = timeout(PATIENCE, command.output()).await.expect("it ends").expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Arguments that can never work, and a word of what is said about them.
fn wrong() -> Vec<(Vec<String>, &'static str)> {
    let words = |line: &str| line.split(' ').map(|w| w.replace("''", "")).collect::<Vec<_>>();
    let mut table: Vec<(Vec<String>, &'static str)> = [
        ("", "--stream"),
        ("--stream a", "COMMAND"),
        ("--stream a --", "COMMAND"),
        ("-- true", "--stream"),
        ("--stream '' -- true", "a stream name has"),
        ("--stream a,b -- true", "a stream name has"),
        ("--stream a --stream b --stream a -- true", "twice"),
        ("--stream a --concurrency 0 -- true", "0"),
        ("--stream a --concurrency 1001 -- true", "1001"),
        ("--stream a --concurrency x -- true", "x"),
        ("--stream a --no-retry-exit 0 -- true", "success"),
        ("--stream a --no-retry-exit 256 -- true", "exit code"),
        ("--stream a --kill-grace 5 -- true", "unit"),
        ("--stream a --drain 1.5s -- true", "unit"),
        ("--stream a --output xml -- true", "xml"),
        ("--stream a --id '' -- true", "worker_id"),
        ("--stream a --nope -- true", "--nope"),
        ("--stream a true", "true"),
        ("--stream a -- fernery-no-such-program", "not found in PATH"),
        ("--stream a -- ./no/such/program", "does not exist"),
        ("--stream a -- ./plain-file", "not executable"),
        ("--stream a -- /etc", "is a directory"),
        ("--stream a --url nonsense -- true", "URL"),
        ("--stream a --spool /dev/null -- true", "it is not a directory"),
        ("--stream a --spool /dev/null --id w -- true", "it is not a directory"),
        ("--stream a --spool /dev/null/spool -- true", "Not a directory"),
    ]
    .map(|(line, said)| (words(line), said))
    .into();
    table[0].0.clear();
    let many = (0..33).flat_map(|n| ["--stream".to_string(), format!("s{n}")]);
    table.push((many.chain(["--".to_string(), "true".to_string()]).collect(), "at most 32"));
    table
}

#[tokio::test]
async fn a_wrong_call_is_refused_at_once_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("plain-file"), "").unwrap();
    for (args, said) in wrong() {
        for json in [false, true] {
            let mut command = fernery();
            command.current_dir(dir.path()).args(json.then_some("--json")).arg("worker").args(&args);
            let (code, stdout, stderr) = output(command).await;
            assert_eq!(code, Some(2), "{args:?}: {stdout}{stderr}");
            let told = if json {
                let object: Value =
                    serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{args:?}: {e}: {stdout}"));
                assert_eq!(object["exit_code"], 2, "{object}");
                object["message"].as_str().unwrap().to_string()
            } else {
                stderr
            };
            assert!(told.contains(said), "{args:?}: {told}");
        }
    }
}

#[tokio::test]
async fn a_refused_token_ends_the_worker_and_is_named() {
    let workshop = Workshop::open(&[]).await;
    let token = json!({"role": "producer", "name": "p"});
    let made = workshop.client().post::<Value>("/v1/tokens", &token, Duration::ZERO).await.unwrap();
    let producer = made.read().unwrap()["token"].as_str().unwrap().to_string();
    for (token, said) in [("frn_wrong".to_string(), "does not accept the token"), (producer, "FERNERY_TOKEN")]
    {
        let mut command = fernery();
        command.current_dir(workshop.dir.path()).env("FERNERY_TOKEN", token);
        command.args(["worker", "--stream", "s", "--", "true"]);
        let (code, _, stderr) = output(command).await;
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(said) && stderr.contains("error: "), "{stderr}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_waited_for_until_somebody_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = fernery();
    command.current_dir(dir.path()).env("FERNERY_TOKEN", "x").env("FERNERY_URL", "http://127.0.0.1:1");
    command.args(["worker", "--json", "--stream", "s", "--spool", "spool", "--", "true"]);
    let worker = Worker::start(command);
    worker.tells(2, |event| event["event"] == "reconnecting" && event["call"] == "claim").await;
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

#[tokio::test]
async fn two_workers_never_share_a_name_and_its_spool() {
    let workshop = Workshop::open(&[]).await;
    let _first = workshop.worker("s", &["--id", "mine"], "true");
    workshop::appears(&workshop.data().join("spool/mine/lock")).await;
    let mut command = fernery();
    command.current_dir(workshop.dir.path()).args(["worker", "--stream", "s", "--id", "mine", "--", "true"]);
    let (code, _, told) = output(command).await;
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("spool"), "{told}");
    let unnamed = [workshop.worker("s", &[], "true"), workshop.worker("s", &[], "true")];
    let mut names = Vec::new();
    for worker in &unnamed {
        worker.tells_of("started").await;
        names.push(worker.events()[0]["worker_id"].clone());
    }
    assert_ne!(names[0], names[1]);
}

#[tokio::test]
async fn people_see_a_line_for_each_event_and_what_a_terminal_would_obey_is_shown_inert() {
    let workshop = Workshop::open(&[]).await;
    let good = workshop.enqueue("s", json!({})).await;
    let bad = workshop.enqueue("s", json!({"max_attempts": 1})).await;
    let mut command = fernery();
    let script = "[ $FERNERY_JOB_MAX_ATTEMPTS = 1 ] && { printf 'red \\033[31m text' >&2; exit 9; }; echo 1";
    command.current_dir(workshop.dir.path()).args(["worker", "--stream", "s", "--", "sh", "-c", script]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    workshop.ended(good).await;
    workshop.ended(bad).await;
    let pid = rustix::process::Pid::from_raw(child.id().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let output = timeout(PATIENCE, child.wait_with_output()).await.unwrap().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "events are no answer");
    for line in [
        format!("claimed   {good} s attempt 1 of 5"),
        format!("succeeded {good} s in "),
        format!("failed    {bad} s in "),
        "exit_9: red \\u{1b}[31m text".into(),
        "draining".into(),
        "ended: 2 claimed, 1 succeeded, 1 failed, 0 released".into(),
    ] {
        assert!(stderr.contains(&line), "{line}: {stderr}");
    }
    assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
}

#[tokio::test]
async fn a_terminal_shows_what_runs_and_closing_it_drains() {
    let workshop = Workshop::open(&[]).await;
    let id = workshop.enqueue("s", json!({})).await;
    let line =
        format!("'{}' worker --stream s --drain 0s -- sh -c 'sleep 1000'", env!("CARGO_BIN_EXE_fernery"));
    let mark = processes::Mark::new("WORKER_TEST_MARK");
    let mut command = Command::new("script");
    command.current_dir(workshop.dir.path()).env("TERM", "xterm").args(["-qec", &line, "/dev/null"]);
    command.env(mark.name(), mark.value());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FERNERY_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("script, of util-linux");
    let mut shown = String::new();
    let mut stdout = child.stdout.take().unwrap();
    let reading = async {
        let mut bytes = vec![0; 4_096];
        loop {
            let n = tokio::io::AsyncReadExt::read(&mut stdout, &mut bytes).await.unwrap();
            shown.push_str(&String::from_utf8_lossy(&bytes[..n]));
            if n == 0
                || shown.contains(&format!("{id} s")) && shown.contains("1 running, 0 succeeded, 0 failed")
            {
                return;
            }
        }
    };
    let _ = timeout(PATIENCE, reading).await;
    assert!(
        shown.contains(&format!("{id} s")) && shown.contains("1 running, 0 succeeded, 0 failed"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_reader_who_does_not_read_holds_nothing_up() {
    let workshop = Workshop::open(&[]).await;
    let ids = workshop.enqueue_many("s", vec![json!({}); 250]).await;
    let mut command = fernery();
    command.current_dir(workshop.dir.path()).args([
        "--json",
        "worker",
        "--stream",
        "s",
        "--concurrency",
        "4",
    ]);
    // Its pipe holds the events of some 150 jobs, and nobody empties it.
    let mut child = command.args(["--", "true"]).stdout(Stdio::piped()).spawn().unwrap();
    for id in ids {
        assert_eq!(workshop.ended(id).await["status"], "SUCCEEDED");
    }
    let pid = rustix::process::Pid::from_raw(child.id().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert!(timeout(PATIENCE, child.wait()).await.expect("it ends").unwrap().success());
}

#[tokio::test]
async fn its_help_teaches() {
    let mut command = fernery();
    command.args(["worker", "--help"]);
    let (code, stdout, _) = output(command).await;
    assert_eq!(code, Some(0));
    for word in ["FERNERY_JOB_ID", "Examples:", "output_too_large", "exit_N", "--no-retry-exit", "SIGTERM"] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    let mut command = fernery();
    command.arg("--help");
    let (_, stdout, _) = output(command).await;
    assert!(stdout.contains("worker") && !stdout.contains("worker-guard"), "{stdout}");
}
