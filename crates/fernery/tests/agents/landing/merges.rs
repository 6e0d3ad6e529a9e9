//! What lands, how, and what stops it.

use super::{
    commit_on_main, decisions, done, fits, landed, landing_by, merge, plain, stands_still, status,
    with_check, yard_with,
};
use crate::program::{fernery, run_in};
use crate::yard::{Yard, git};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

#[test]
fn one_command_confirms_and_merges_and_a_second_one_says_that_it_has_landed() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    done(&yard, "t", "mock: write new.txt new");
    fits(&yard, "t", "MERGES");
    let listed = yard.server.run(["ticket", "list"]).exits(0).stdout;
    assert!(listed.contains("merges with main"), "{listed}");
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    let candidate = git(&repo, &["rev-parse", "azolla/t"]);
    assert!(shown.contains(&format!("git switch main && git merge --ff-only {candidate}")), "{shown}");
    let said = merge(&yard, "t").exits(0);
    assert!(said.stdout.contains("landed on main as commit"), "{}", said.stdout);
    assert!(
        said.stdout.contains("new.txt  +1 −0") && said.stdout.contains("no: your yes confirms it"),
        "{}",
        said.stdout
    );
    assert_eq!(
        git(&repo, &["rev-parse", "main"]),
        git(&repo, &["rev-parse", "azolla/t"]),
        "it goes straight on"
    );
    assert_eq!(
        (fs::read_to_string(repo.join("new.txt")).unwrap(), status(&repo)),
        ("new\n".into(), String::new())
    );
    let now = landed(&yard, "t");
    assert_eq!(decisions(&now), ["APPROVE", "CONFIRM", "MERGE"]);
    let record = &now["decisions"][2]["shown"];
    assert_eq!(record["run_id"], now["runs"][0]["run_id"]);
    assert_eq!(record["patch_sha256"], now["landing"]["patch_sha256"]);
    assert_eq!(record["tip"], now["landing"]["base_commit"]);
    assert_eq!(now["objective"]["status"], "DONE");
    let log = git(&repo, &["reflog", "-1", "main"]);
    assert!(log.contains("fernery: land t"), "{log}");
    let tip = git(&repo, &["rev-parse", "main"]);
    let again = merge(&yard, "t").exits(0).stdout;
    assert!(again.contains("landed on main as commit"), "{again}");
    assert_eq!(git(&repo, &["rev-parse", "main"]), tip);
    assert_eq!(decisions(&yard.objective("t")).len(), 3, "nothing was asked for twice");
}

#[test]
fn what_an_earlier_attempt_had_and_nobody_reviewed_does_not_come_to_main() {
    for how in ["merge = \"ff\"", "merge = \"commit\""] {
        let yard = Yard::open(&landing_by(how));
        let repo = yard.repo();
        let script =
            "mock: first write pw.txt hunter2\nmock: again delete pw.txt\nmock: again write ok.txt ok";
        done(&yard, "t", script);
        yard.server.run(["ticket", "reopen", "t", "--note", "take the password out"]).exits(0);
        yard.until("t", "its second run", |objective| {
            objective["objective"]["status"] == "DONE"
                && objective["runs"].as_array().is_some_and(|runs| runs.len() == 2)
        });
        merge(&yard, "t").exits(0);
        assert!(repo.join("ok.txt").exists(), "{how}");
        assert_eq!(git(&repo, &["log", "--format=%h", "-S", "hunter2", "main"]), "", "{how}");
    }
}

#[test]
fn on_a_base_that_went_on_one_commit_comes_on_top_or_a_merge_commit_as_the_blueprint_says() {
    for (how, parents) in [("merge = \"ff\"", 1), ("merge = \"commit\"", 2)] {
        let yard = Yard::open(&landing_by(how));
        let repo = yard.repo();
        done(&yard, "t", "mock: write new.txt new");
        commit_on_main(&repo, "other.txt", "other\n");
        let tip = git(&repo, &["rev-parse", "main"]);
        merge(&yard, "t").exits(0);
        let of: Vec<String> =
            git(&repo, &["log", "-1", "--format=%P", "main"]).split(' ').map(str::to_string).collect();
        assert_eq!((of.len(), &of[0]), (parents, &tip), "{how}");
        assert_eq!(git(&repo, &["show", "main:new.txt"]), "new", "{how}");
        assert_eq!(git(&repo, &["show", "main:other.txt"]), "other", "{how}");
        assert_eq!((status(&repo), repo.join("new.txt").exists()), (String::new(), true), "{how}");
        if parents == 2 {
            assert_eq!(of[1], git(&repo, &["rev-parse", "azolla/t"]));
        }
        let message = git(&repo, &["log", "-1", "--format=%B", "main"]);
        assert!(
            message.contains("Do it") && message.contains("Run: ") && message.contains("Merge: "),
            "{message}"
        );
    }
}

#[test]
fn what_is_there_already_is_not_merged_again_and_a_part_of_it_stops() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    done(&yard, "whole", "mock: write new.txt new");
    git(&repo, &["merge", "-q", "--ff-only", "azolla/whole"]);
    let tip = git(&repo, &["rev-parse", "main"]);
    landed(&yard, "whole");
    let said = merge(&yard, "whole").exits(0).stdout;
    assert!(said.contains("main has it already"), "{said}");
    done(&yard, "part", "mock: write a.txt a\nmock: write b.txt b");
    commit_on_main(&repo, "a.txt", "a\n");
    yard.server.run(["ticket", "confirm", "part"]).exits(0);
    let said = merge(&yard, "part").exits(4).stderr;
    assert!(
        said.contains("not make exactly the changes that were reviewed") && said.contains("a.txt"),
        "{said}"
    );
    assert_eq!(git(&repo, &["rev-parse", "main~1"]), tip, "nothing was moved");
}

#[test]
fn a_base_that_moves_during_the_merge_loses_nothing() {
    let yard = Yard::open_to_hold(&plain(), "land-brought");
    let repo = yard.repo();
    done(&yard, "t", "mock: write new.txt new");
    let merging = fernery()
        .current_dir(yard.server.dir.path())
        .args(["ticket", "merge", "t", "--yes"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    stands_still(&yard);
    commit_on_main(&repo, "other.txt", "other\n");
    let between = git(&repo, &["rev-parse", "main"]);
    yard.server.signal(Signal::CONT);
    let said = merging.wait_with_output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
    assert_eq!(git(&repo, &["rev-parse", "main~1"]), between);
    assert_eq!(git(&repo, &["show", "main:new.txt"]), "new");
    assert_eq!(status(&repo), "");
}

#[test]
fn two_merges_at_once_both_land_one_on_top_of_the_other() {
    let yard = Yard::open(&with_check("sleep 0.2"));
    let repo = yard.repo();
    for id in ["a", "b"] {
        done(&yard, id, &format!("mock: write {id}.txt {id}"));
    }
    let merging = ["a", "b"].map(|id| {
        let mut command = fernery();
        command
            .current_dir(yard.server.dir.path())
            .args(["ticket", "merge", id, "--yes"])
            .stdout(Stdio::null());
        command.spawn().unwrap()
    });
    for mut merging in merging {
        assert!(merging.wait().unwrap().success());
    }
    assert_eq!(git(&repo, &["rev-list", "--count", "main"]), "3");
    assert_eq!(git(&repo, &["show", "main:a.txt", "main:b.txt"]), "a\nb");
    assert_eq!(status(&repo), "");
}

#[test]
fn a_base_whose_history_was_changed_is_left_alone() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    done(&yard, "t", "mock: write new.txt new");
    git(&repo, &["checkout", "-q", "--orphan", "fresh"]);
    git(&repo, &["commit", "-q", "-m", "another start"]);
    git(&repo, &["branch", "-q", "-f", "main", "fresh"]);
    let tip = git(&repo, &["rev-parse", "main"]);
    fits(&yard, "t", "CONFLICTS");
    let said = merge(&yard, "t").exits(4).stderr;
    assert!(said.contains("no longer has") && said.contains("nothing was confirmed"), "{said}");
    yard.server.run(["ticket", "confirm", "t"]).exits(0);
    let said = merge(&yard, "t").exits(4).stderr;
    assert!(said.contains("no longer has"), "{said}");
    assert_eq!(git(&repo, &["rev-parse", "main"]), tip);
}

#[test]
fn a_bare_repository_gets_its_patch() {
    let yard = yard_with(&plain(), |repo| {
        let bare = repo.with_file_name("bare");
        git(
            repo.parent().unwrap(),
            &["clone", "-q", "--bare", repo.to_str().unwrap(), bare.to_str().unwrap()],
        );
        fs::remove_dir_all(repo).unwrap();
        fs::rename(bare, repo).unwrap();
    });
    let repo = yard.repo();
    done(&yard, "t", "mock: write new.txt new");
    let said = merge(&yard, "t").exits(0);
    assert!(!said.stderr.contains("working tree"), "{}", said.stderr);
    assert_eq!(git(&repo, &["show", "main:new.txt"]), "new");
}

#[test]
fn a_merge_that_was_asked_for_twice_by_one_id_is_one() {
    let yard = Yard::open(&plain());
    let seen = done(&yard, "t", "mock: write new.txt new");
    let landing = &seen["landing"];
    let body = json!({"run_id": landing["run_id"], "patch_sha256": landing["patch_sha256"], "tip": landing["base_commit"],
        "record_id": "the-merge"});
    let (status, refused) = yard.server.post("operator.token", "/v1/objectives/t/merge", &body);
    assert_eq!(status, 409, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("nobody has confirmed"), "{refused}");
    yard.post("/v1/objectives/t/confirm", json!({"run_id": landing["run_id"]}));
    let mut other = body.clone();
    other["patch_sha256"] = json!("0".repeat(64));
    assert_eq!(yard.server.post("operator.token", "/v1/objectives/t/merge", &other).0, 409);
    let first = yard.post("/v1/objectives/t/merge", body.clone());
    let again = yard.post("/v1/objectives/t/merge", body);
    assert_eq!(first["decision"], again["decision"]);
    landed(&yard, "t");
    let worker = yard.server.post("worker.token", "/v1/objectives/t/merge", &json!({}));
    assert_eq!(worker.0, 403, "{}", worker.1);
}

#[test]
fn a_ticket_that_has_no_patch_to_merge_says_so() {
    let yard = Yard::open(&plain());
    yard.post("/v1/objectives", crate::yard::new_ticket("yard", "t", "mock: write new.txt new"));
    let said = merge(&yard, "t").exits(4).stderr;
    assert!(said.contains("t is NEW: only a ticket that is DONE can be merged"), "{said}");
    let dir = yard.server.dir.path();
    let asked = run_in(dir, ["ticket", "merge", "t"]).exits(4).stderr;
    assert!(asked.contains("t is NEW") && !asked.contains("--yes"), "{asked}");
    let missing = yard.server.read("/v1/objectives/t/landing");
    assert_eq!(missing.0, 404, "{}", missing.1);
}

/// A repository of another name than the ticket's is never touched, and one that this server does not have is named.
#[test]
fn a_repository_that_this_server_no_longer_has_is_told_at_once() {
    let yard = Yard::open(&plain());
    done(&yard, "t", "mock: write new.txt new");
    yard.server.signal(Signal::TERM);
    let dir = yard.server.ended().1;
    let flags =
        ["--azolla", "yard.toml", "--azolla", "quick.toml", "--repos", "web=repo#main", "--lease-ttl", "2s"];
    let server = crate::program::Server::start_in(dir, &flags);
    let said = server.run(["ticket", "merge", "t", "--yes"]).exits(4).stderr;
    assert!(said.contains("no process that hosts azolla yard has repository app"), "{said}");
    let seen: Value = server.read("/v1/objectives/t").1;
    assert_eq!(decisions(&seen), ["APPROVE", "CONFIRM"]);
}

/// What landed, what did not, and what waits in vain is all told by the journal: an export is accepted elsewhere.
#[test]
fn an_export_with_landings_is_complete() {
    let yard = Yard::open(&landing_by("rework = 1"));
    let repo = yard.repo();
    done(&yard, "t", "mock: write new.txt new");
    merge(&yard, "t").exits(0);
    done(&yard, "u", "mock: first append greeting.txt u\nmock: again write greeting.txt Good morning\\nu");
    commit_on_main(&repo, "greeting.txt", "Good morning\n");
    yard.server.run(["ticket", "confirm", "u"]).exits(0);
    let said = merge(&yard, "u").exits(4).stderr;
    assert!(said.contains("it is worked on again by itself"), "{said}");
    yard.until("u", "done again", |objective| {
        objective["objective"]["status"] == "DONE"
            && objective["runs"].as_array().is_some_and(|runs| runs.len() == 2)
    });
    for id in ["x", "y"] {
        let mut ticket = crate::yard::new_ticket("yard", id, "mock: write x.txt x");
        ticket["after"] = if id == "y" { json!(["x", "u"]) } else { json!([]) };
        yard.post("/v1/objectives", ticket);
    }
    yard.server.run(["ticket", "cancel", "x"]).exits(0);
    let said = merge(&yard, "u").exits(0).stdout;
    assert!(said.contains("landed on main"), "{said}");
    assert_eq!(yard.objective("y")["objective"]["blocked_on"][1]["resolved"], true);
    yard.server.run(["export", "out"]).exits(0);
    let other = Yard::open(&landing_by("rework = 1"));
    let folder = yard.server.dir.path().join("out");
    other.server.run(["import", folder.to_str().unwrap()]).exits(0);
    let seen = other.objective("t");
    assert_eq!(
        (decisions(&seen), &seen["landing"]),
        (vec!["APPROVE".into(), "CONFIRM".into(), "MERGE".into()], &Value::Null)
    );
    // Its gates are those of another instance, which nobody here has approved: they do not run here.
    let said = merge(&other, "t").exits(4).stderr;
    assert!(said.contains("another instance judged it"), "{said}");
}
