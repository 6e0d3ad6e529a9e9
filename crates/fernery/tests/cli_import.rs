//! `fernery import` against a real server: what a folder must be before it is sent, and what people are told.

mod program;

use program::patience::until;
use program::{Answer, Server};
use std::os::unix::fs::symlink;
use std::path::Path;

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
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    let said = exported(&one);
    let digest = said.lines().find_map(|line| line.strip_prefix("digest ")).expect("a digest").to_string();
    let folder = one.dir.path().join("out");
    one.run(["schema", "check", "out/objectives/T.json"]).exits(0);
    let wrong = brought(&two, &folder, &["--digest", &"0".repeat(64)]).exits(1);
    assert!(wrong.stderr.contains(&digest), "{wrong:?}");
    let said = brought(&two, &folder, &["--digest", &digest]).exits(0).stdout;
    assert!(said.contains("is in: ") && said.contains("1 objectives"), "{said}");
    assert!(said.contains("to be approved anew, for they were under way: T"), "{said}");
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
    assert!(full.stderr.contains("import goes into an empty one"), "{full:?}");
    two.run(["ticket", "approve", "T", "--yes"]).exits(0);
}

#[test]
fn what_is_no_plain_file_of_bounded_size_is_refused_by_its_name() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
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
    refused(2, "no plain file");
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
    assert!(brought(&two, nothing.path(), &[]).exits(2).stderr.contains("nothing in it"));
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
    assert_eq!(said["counts"]["objectives"], 30, "{said}");
    two.run(["verify"]).exits(0);
    two.run(["run", "replay", "--all"]).exits(0);
}

/// Captures, candidates and manifests stay behind, and what the journal tells of them hinders nobody.
#[test]
fn tickets_move_from_a_server_whose_inbox_was_used() {
    let (one, two) = (Server::start(&[]), Server::start(&[]));
    for text in ["first", "second", "third", "fourth", "fifth"] {
        one.run(["capture", text]).exits(0);
    }
    let there = until(|| {
        let found = one.run(["triage", "--json"]).exits(0).json()["candidates"].as_array().unwrap().clone();
        (found.len() == 5).then_some(found)
    });
    let candidate = |n: usize| there[n]["candidate_id"].as_str().unwrap().to_string();
    one.run(["triage", "promote", &candidate(0), "--id", "T-promoted"]).exits(0);
    one.run(["triage", "edit", &candidate(1), "--title", "Second!"]).exits(0);
    one.run(["triage", "merge", &candidate(1), &candidate(2)]).exits(0);
    one.run(["triage", "discard", &candidate(3)]).exits(0);
    one.run(["ticket", "new", "--id", "T-late", "--title", "x", "--meta", "due_at=2020-01-01"]).exits(0);
    one.run(["orient"]).exits(0);
    one.run(["orient"]).exits(0);
    // A request may have the name of a ticket.
    let request = serde_json::json!({ "request_id": "T-late" });
    let (status, said) = one.post("operator.token", "/v1/azollas/task_management/manifests", &request);
    assert!(status < 300, "{said}");
    let asked = || one.read("/v1/manifest_requests/T-late").1;
    until(|| (!asked()["reason"].is_null()).then_some(()));
    let overdue = |pause: &serde_json::Value| {
        pause["objective_id"] == "T-late" && pause["azolla_id"] == "task_management"
    };
    until(|| {
        let pauses = one.run(["pause", "list", "--json"]).exits(0).json();
        pauses["pauses"].as_array().unwrap().iter().any(overdue).then_some(())
    });
    one.run(["ticket", "block", "T-promoted", "--description", "Which?"]).exits(0);
    one.run(["export", "out"]).exits(0);
    let folder = one.dir.path().join("out");
    assert!(!folder.join("objectives/operator-continuity.json").exists());
    assert!(!folder.join("pause_states/T-late.1.json").exists(), "it is the other azolla's");
    for kind in ["objectives", "pause_states"] {
        for file in std::fs::read_dir(folder.join(kind)).unwrap() {
            one.run(["schema", "check", file.unwrap().path().to_str().unwrap()]).exits(0);
        }
    }
    let said = brought(&two, &folder, &["--json"]).exits(0).json();
    assert_eq!(said["counts"]["objectives"], 2, "{said}");
    for id in ["T-promoted", "T-late"] {
        let shown = |server: &Server| server.run(["ticket", "show", id, "--json"]).exits(0).json();
        let (there, here) = (shown(&one), shown(&two));
        assert_eq!(there["objective"], here["objective"]);
        assert_eq!(there["pauses"], here["pauses"]);
        assert_eq!(there["pauses"].as_array().unwrap().len(), usize::from(id == "T-promoted"), "{there}");
    }
    two.run(["verify"]).exits(0);
    // And from there on: its own inbox was used since, and the other's is in its journal.
    two.run(["capture", "sixth"]).exits(0);
    two.run(["orient"]).exits(0);
    two.run(["export", "out"]).exits(0);
    let three = Server::start(&[]);
    brought(&three, &two.dir.path().join("out"), &[]).exits(0);
    three.run(["verify"]).exits(0);
}
