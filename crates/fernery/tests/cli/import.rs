//! `fernery import` against a real server: what a folder must be before it is sent, and what people are told.

use crate::fresh_database::fresh_database;
use crate::program::patience::{PATIENCE, until};
use crate::program::{Answer, Server};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

fn exported(server: &Server) -> String {
    server.run(["ticket", "new", "--id", "T", "--title", "x", "--meta", "n:=0.1234567890123456789"]).exits(0);
    server.run(["ticket", "approve", "T", "--yes"]).exits(0);
    server.run(["export", "out"]).exits(0).stdout
}

fn brought(server: &Server, folder: &Path, more: &[&str]) -> Answer {
    server.run(["import", folder.to_str().unwrap()].iter().chain(more))
}

#[test]
fn a_folder_moves_from_one_server_to_another() {
    let (one, two) = (Server::start_for_text(), Server::start_for_text());
    let said = exported(&one);
    let digest = said.lines().find_map(|line| line.strip_prefix("digest ")).expect("a digest").to_string();
    let folder = one.dir.path().join("out");
    one.run(["schema", "check", "out/objectives/T.json"]).exits(0);
    let wrong = brought(&two, &folder, &["--digest", &"0".repeat(64)]).exits(1);
    assert!(wrong.stderr.contains(&digest), "{wrong:?}");
    let said = brought(&two, &folder, &["--digest", &digest]).exits(0).stdout;
    assert!(said.contains("is in: ") && said.contains("2 objectives"), "{said}");
    assert!(said.contains("to be approved again, because they were in progress: T"), "{said}");
    let said = brought(&two, &folder, &["--json"]).exits(0).json();
    assert_eq!((&said["before"], &said["digest"]), (&true.into(), &digest.into()));
    let ticket = two.run(["ticket", "show", "T", "--json"]).exits(0).json();
    assert_eq!(ticket["objective"]["status"], "NEW");
    assert_eq!(
        ticket["objective"]["metadata"],
        one.run(["ticket", "show", "T", "--json"]).exits(0).json()["objective"]["metadata"]
    );
    two.run(["verify"]).exits(0);
    let full = brought(&one, &folder, &[]).exits(4);
    assert!(full.stderr.contains("import needs an instance without tickets"), "{full:?}");
    two.run(["ticket", "approve", "T", "--yes"]).exits(0);
}

#[test]
fn import_refuses_large_and_irregular_files_by_name() {
    let (one, two) = (Server::start_for_text(), Server::start_for_text());
    exported(&one);
    let folder = one.dir.path().join("out");
    let strange = folder.join("objectives/strange.json");
    let refused = |code: i32, said: &str| {
        let answer = brought(&two, &folder, &[]).exits(code);
        assert!(answer.stderr.contains("strange.json") && answer.stderr.contains(said), "{answer:?}");
        std::fs::remove_file(&strange).or_else(|_| std::fs::remove_dir_all(&strange)).unwrap();
    };
    symlink(folder.join("objectives/T.json"), &strange).unwrap();
    refused(2, "no links");
    symlink("/nowhere", &strange).unwrap();
    refused(2, "no links");
    std::fs::write(&strange, b"\"\xff\"").unwrap();
    refused(2, "not UTF-8");
    std::fs::File::create(&strange).unwrap().set_len(9 << 20).unwrap();
    refused(2, "at most 8388608 bytes");
    rustix::fs::mkfifoat(rustix::fs::CWD, &strange, rustix::fs::Mode::RUSR).unwrap();
    refused(2, "not a regular file");
    std::fs::create_dir_all(strange.join("a/b/c/d")).unwrap();
    refused(2, "so deep");
    std::fs::write(&strange, "{}\n").unwrap();
    refused(1, "manifest.json does not name it");
    std::fs::write(&strange, "[".repeat(1 << 20)).unwrap();
    refused(1, "manifest.json does not name it");
    // Within JSON it is twice as long.
    let quotes: Vec<_> = (0..6).map(|n| folder.join(format!("objectives/quotes-{n}.json"))).collect();
    quotes.iter().for_each(|path| std::fs::write(path, "\"".repeat(7 << 20)).unwrap());
    let large = brought(&two, &folder, &[]).exits(2);
    assert!(large.stderr.contains("as a request") && large.stderr.contains("nothing was sent"), "{large:?}");
    quotes.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let nothing = tempfile::tempdir().unwrap();
    assert!(brought(&two, nothing.path(), &[]).exits(2).stderr.contains("the folder is empty"));
    assert!(brought(&two, &folder.join("nowhere"), &[]).exits(2).stderr.contains("nowhere"));
    let missing = brought(&two, &folder.join("objectives"), &[]).exits(1);
    assert!(missing.stderr.contains("manifest.json: it is missing"), "{missing:?}");
    assert_eq!(two.run(["ticket", "list", "--json"]).exits(0).json()["objectives"], serde_json::json!([]));
    brought(&two, &folder, &[]).exits(0);
}

/// An export takes a while, and the server goes on meanwhile: what it writes fits together all the same.
#[test]
fn a_folder_that_is_exported_while_tickets_run_is_whole() {
    let blueprint = r#"
extends = "mec"
azolla_id = "busy"
diazotroph_type = "BUSY_DIAZOTROPH"
branch_prefix = ""
[limits]
concurrency = 3
review_limit = 0
[executors.BUSY_DIAZOTROPH]
kind = "command"
argv = ["/bin/sh", "-c", "cat >/dev/null; echo done"]
sandbox = "none"
"#;
    let start = || {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("busy.toml"), blueprint).unwrap();
        Server::start_in(dir, &["--azolla", "busy.toml"])
    };
    let (one, two) = (start(), start());
    let ids: Vec<String> = (0..30).map(|n| format!("T-{n}")).collect();
    for id in &ids {
        one.run(["ticket", "new", "--azolla", "busy", "--id", id, "--title", "x"]).exits(0);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in &ids {
                one.run(["ticket", "approve", id, "--yes"]).exits(0);
            }
        });
        one.run(["export", "out"]).exits(0);
    });
    for folder in [
        "objectives",
        "events",
        "context_snapshots",
        "workorders",
        "output_bundles",
        "run_records",
        "pause_states",
    ] {
        for file in std::fs::read_dir(one.dir.path().join("out").join(folder)).into_iter().flatten().take(2) {
            one.run(["schema", "check", file.unwrap().path().to_str().unwrap()]).exits(0);
        }
    }
    let said = brought(&two, &one.dir.path().join("out"), &["--json"]).exits(0).json();
    // Beside the tickets there is the standing objective of the inbox.
    assert_eq!(said["counts"]["objectives"], 31, "{said}");
    assert_eq!(said["counts"]["attempts"], said["counts"]["output_bundles"], "{said}");
    two.run(["verify"]).exits(0);
    two.run(["run", "replay", "--all"]).exits(0);
}

/// The address of a line to a server that stops at the first request with this text: it says so, and goes on when told to.
fn stopping_at(server: &Server, text: &'static str) -> (String, Receiver<()>, Sender<()>) {
    let to = server.url.strip_prefix("http://").unwrap().to_string();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let ((came, comes), (go_on, goes_on)) = (channel(), channel());
    let goes_on = Arc::new(Mutex::new(goes_on));
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(&to).unwrap());
            let (mut back_from, mut back_to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut back_from, &mut back_to));
            let (came, goes_on) = (came.clone(), goes_on.clone());
            std::thread::spawn(move || {
                let (mut seen, mut piece) = (String::new(), [0; 4096]);
                while let Ok(read @ 1..) = client.read(&mut piece) {
                    let before = seen.contains(text);
                    seen.push_str(&String::from_utf8_lossy(&piece[..read]));
                    if !before && seen.contains(text) {
                        let _ = came.send(());
                        let _ = goes_on.lock().unwrap().recv();
                    }
                    server.write_all(&piece[..read]).unwrap();
                }
                let _ = server.shutdown(Shutdown::Write);
            });
        }
    });
    (url, comes, go_on)
}

/// Attempts are read after their workorders. One that ends in between would stand beside a workorder that knows nothing of it.
#[test]
fn an_attempt_that_ends_while_it_is_exported_is_not_without_its_bundle() {
    let (one, two) = (Server::start_for_text(), Server::start_for_text());
    one.run(["ticket", "new", "--id", "T", "--title", "x"]).exits(0);
    one.run(["ticket", "approve", "T", "--yes"]).exits(0);
    let claim = || until(|| one.claim("diazotroph:TEXT_DIAZOTROPH"));
    let report = |verb: &str, held: &Value, field: &str, content: Value| {
        let mut body = json!({ "worker_id": "w1", field: content });
        for name in ["job_id", "attempt_id", "lease_token", "stream", "message_id"] {
            body[name] = held[name].clone();
        }
        let (status, answer) = one.post("worker.token", &format!("/internal/worker/{verb}"), &body);
        assert_eq!(status, 200, "{answer}");
    };
    // Its workorder knows of this one.
    let first = claim();
    report("fail", &first, "error", json!({ "code": "AGAIN", "message": "m", "retryable": true }));
    let second = claim();
    let (url, at_the_attempts, go_on) = stopping_at(&one, "GET /v1/export/attempts");
    std::thread::scope(|scope| {
        let export = scope.spawn(|| one.run(["--url", &url, "export", "out"]).exits(0));
        at_the_attempts.recv_timeout(PATIENCE).expect("the attempts are asked for");
        let output =
            json!({ "title": "done", "content": "c", "notes": "", "metadata": { "outcome": "OUTPUT" } });
        report("complete", &second, "result", output);
        go_on.send(()).unwrap();
        export.join().unwrap();
    });
    let out = one.dir.path().join("out");
    let names = |folder: &str| -> Vec<String> {
        let files = std::fs::read_dir(out.join(folder)).into_iter().flatten();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names("output_bundles"), [""; 0]);
    assert_eq!(names("attempts"), [format!("{}.json", first["attempt_id"].as_str().unwrap())]);
    brought(&two, &out, &[]).exits(0);
    // Later it is there, with its bundle.
    one.run(["export", "later"]).exits(0);
    let later = one.dir.path().join("later");
    let count = |folder: &str| std::fs::read_dir(later.join(folder)).unwrap().count();
    assert_eq!((count("output_bundles"), count("attempts")), (1, 2));
}

/// A server that dies while it imports has all of the folder, or nothing of it.
fn killed_while_it_imports(folder: &Path, failpoint: &str, is_in: bool, flags: &[&str]) {
    let dying = Server::start_told(tempfile::tempdir().unwrap(), flags, ("FERNERY_FAILPOINT", failpoint));
    let lost = brought(&dying, folder, &[]);
    assert!(lost.code != Some(0) && !lost.stderr.contains("nothing was written"), "{lost:?}");
    let (_, dir) = dying.ended();
    let two = Server::start_in(dir, flags);
    let count = |path: &str, rows: &str| two.read(path).1[rows].as_array().unwrap().len();
    let expected = usize::from(is_in);
    assert_eq!(count("/v1/objectives", "objectives"), expected, "{failpoint}");
    assert_eq!(count("/v1/captures", "captures"), expected, "{failpoint}");
    assert_eq!(count("/v1/candidates", "candidates"), expected, "{failpoint}");
    assert_eq!(count("/v1/azollas/task_management/manifests", "manifests"), expected, "{failpoint}");
    let again = brought(&two, folder, &["--json"]).exits(0).json();
    assert_eq!(again["before"], is_in, "{failpoint}: {again}");
    two.run(["verify"]).exits(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_during_an_import_leaves_all_or_nothing() {
    let one = Server::start_for_text();
    one.run(["capture", "first"]).exits(0);
    until(|| (one.run(["triage", "--json"]).exits(0).json()["candidates"][0].is_object()).then_some(()));
    one.run(["orient"]).exits(0);
    exported(&one);
    let folder = one.dir.path().join("out");
    for (failpoint, is_in) in [("import-written", false), ("import-durable", true)] {
        killed_while_it_imports(&folder, failpoint, is_in, &[]);
        let database = fresh_database().await;
        killed_while_it_imports(&folder, failpoint, is_in, &["--database", &database.url()]);
    }
}

/// An inbox that is used while it is exported: what is written fits together all the same.
#[test]
fn an_inbox_that_is_exported_while_it_is_used_is_whole() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..30 {
                one.run(["capture", &format!("line {n}")]).exits(0);
            }
        });
        scope.spawn(|| drop(one.run(["orient"]).exits(0)));
        one.run(["export", "out"]).exits(0);
    });
    one.run(["schema", "check", "out"]).exits(0);
    let said = brought(&two, &one.dir.path().join("out"), &[]).exits(0).stdout;
    if said.contains("held: ") {
        let released = two.run(["triage", "release"]).exits(0).stdout;
        assert!(released.contains("released to triage"), "{released}");
    }
    two.run(["verify"]).exits(0);
    assert!(two.run(["triage", "release", "--json"]).exits(0).json()["released"] == 0);
    // And from there on.
    two.run(["capture", "more"]).exits(0);
    two.run(["export", "out"]).exits(0);
    let three = Server::start(&[]);
    brought(&three, &two.dir.path().join("out"), &[]).exits(0);
    three.run(["verify"]).exits(0);
}
