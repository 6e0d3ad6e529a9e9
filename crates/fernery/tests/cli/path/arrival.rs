//! A server that is starting is waited for; one without a terminal is started, found and stopped.

use super::Detached;
use crate::program::patience::eventually;
use crate::program::{Answer, Server, fernery, run_in, started_by};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;
use std::process::{Command, Stdio};

#[test]
fn a_client_waits_for_the_server_that_is_starting_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join(".fernery");
    std::fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
    // As a server holds it that has not come further yet.
    let mut options = OpenOptions::new();
    let lock =
        options.read(true).write(true).create(true).truncate(false).open(data.join("server.lock")).unwrap();
    fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut command = fernery();
    command.current_dir(dir.path()).args(["job", "list"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = command.spawn().unwrap();
    let mut stderr = BufReader::new(client.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.starts_with("waiting for the server of .fernery to start"), "{line}");
    let _server = Server::start_in(dir, &[]);
    assert!(client.wait().unwrap().success());
    drop(lock);
}

#[test]
fn up_and_what_follows_can_be_pasted_together() {
    let dir = tempfile::tempdir().unwrap();
    let program = fernery();
    let script = "\"$0\" up --listen 127.0.0.1:0 >up.out 2>up.err &\n\"$0\" job enqueue --stream s --payload '{}' || exit 1\n\
                  \"$0\" job list || exit 1\n\"$0\" down && wait";
    let mut shell = started_by("sh");
    shell.args(["-c", script]).arg(program.get_program()).current_dir(dir.path());
    let answer = Answer::from(shell.output().unwrap()).exits(0);
    assert!(answer.stdout.contains("QUEUED") && answer.stdout.contains("stopped the server"), "{answer:?}");
    // Also where a killed server has left its URL.
    std::fs::write(dir.path().join(".fernery/url"), "http://127.0.0.1:9\n").unwrap();
    let mut shell = started_by("sh");
    shell.args(["-c", script]).arg(program.get_program()).current_dir(dir.path());
    Answer::from(shell.output().unwrap()).exits(0);
}

#[test]
fn without_any_server_a_command_says_so_soon() {
    let dir = tempfile::tempdir().unwrap();
    let nobody = run_in(dir.path(), ["job", "list"]).exits(1);
    assert!(nobody.stderr.contains("no server is running on .fernery"), "{nobody:?}");
}

#[test]
fn a_detached_server_is_found_and_stopped_and_tells_why_it_did_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let started = run_in(dir.path(), ["up", "--detach", "--listen", "127.0.0.1:0", "--json"]).exits(0).json();
    let log = dir.path().canonicalize().unwrap().join(".fernery/server.log");
    assert_eq!(started["log"], log.to_str().unwrap());
    run_in(dir.path(), ["job", "list"]).exits(0);
    let second = run_in(dir.path(), ["up", "--detach", "--listen", "127.0.0.1:0"]).exits(4);
    let (url, pid) = (started["listening"].as_str().unwrap(), &started["pid"]);
    let told =
        format!("a server runs on .fernery already, at {url} (process {pid}); to stop it: fernery down");
    assert!(second.stderr.contains(&told), "{second:?}");
    let again = run_in(dir.path(), ["up", "--detach", "--listen", "127.0.0.1:0", "--json"]).exits(4).json();
    assert!(again["message"].as_str().unwrap().contains("runs on .fernery already"), "{again}");
    run_in(dir.path(), ["job", "list"]).exits(0);
    // Whatever else keeps it from starting is told from its log.
    std::fs::create_dir(dir.path().join("other")).unwrap();
    let taken = url.strip_prefix("http://").unwrap();
    let refused = run_in(dir.path(), ["up", "--detach", "--data", "other/data", "--listen", taken]).exits(1);
    assert!(refused.stderr.contains("server.log"), "{refused:?}");
    let stopped = run_in(dir.path(), ["down", "--json"]).exits(0).json();
    assert_eq!(stopped["stopped"], started["pid"]);
    assert!(!dir.path().join(".fernery/url").exists());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("draining"), "{log}");
    run_in(dir.path(), ["down"]).exits(3);
}

#[test]
fn down_never_signals_a_process_that_is_not_the_server() {
    let server = Server::start(&[]);
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    // A number in a file says nothing: the kernel knows who holds the lock.
    std::fs::write(server.data().join("server.lock"), format!("{}\n", bystander.id())).unwrap();
    let stopped = server.run(["down", "--json"]);
    // The test is the parent of this server, and has to be told of its end.
    let pid = server.pid();
    let (_, dir) = server.ended();
    assert_eq!(stopped.exits(0).json()["stopped"], pid);
    run_in(dir.path(), ["down"]).exits(3);
    assert_eq!(bystander.try_wait().unwrap(), None, "it was left alone");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn a_killed_server_is_not_there_any_more() {
    let server = Server::start(&[]);
    server.signal(Signal::KILL);
    let (_, dir) = server.ended();
    let down = run_in(dir.path(), ["down"]).exits(3);
    assert!(down.stderr.contains("no server is running"), "{down:?}");
    let list = run_in(dir.path(), ["job", "list"]).exits(1);
    assert!(list.stderr.contains("no server answers"), "{list:?}");
}

#[test]
fn a_port_in_use_is_one_line_with_who_holds_it() {
    let server = Server::start(&[]);
    let listen = server.url.strip_prefix("http://").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let refused = run_in(dir.path(), ["up", "--listen", listen]).exits(1);
    let data = server.data().canonicalize().unwrap();
    let said = format!(
        "error: cannot listen on {listen}: process {}, the fernery server of {}, does; stop it with `fernery down --data {}`",
        server.pid(),
        data.display(),
        data.display()
    );
    let lines: Vec<&str> = refused.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].starts_with(&said), "{refused:?}");
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = other.local_addr().unwrap().to_string();
    let refused = run_in(dir.path(), ["up", "--listen", &at]).exits(1);
    assert!(refused.stderr.contains(&format!("process {} (", std::process::id())), "{refused:?}");
}

#[test]
fn the_last_operators_token_is_not_revoked_by_accident() {
    let dir = tempfile::tempdir().unwrap();
    let server = Detached::start(dir.path(), &[]);
    let tokens = server.run(["token", "list", "--json"]).exits(0).json();
    let own = tokens["tokens"].as_array().unwrap().iter().find(|token| token["role"] == "operator").unwrap();
    let id = own["token_id"].as_str().unwrap();
    let refused = server.run(["token", "revoke", id]).exits(4);
    assert!(
        refused.stderr.contains("the last operator token") && refused.stderr.contains("--yes"),
        "{refused:?}"
    );
    server.run(["job", "list"]).exits(0);
    server.run(["token", "revoke", id, "--yes"]).exits(0);
    let told = eventually(|| {
        let found = server.run(["doctor", "--json"]).json();
        let rows = found.as_array().unwrap().clone();
        rows.iter().any(|row| row["check"] == "operator_token" && row["level"] == "problem")
    });
    assert!(told, "the doctor names it");
}
