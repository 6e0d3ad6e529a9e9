//! What goes wrong on the way of a patch to its branch is told, and a patch that nobody can land says so.

use super::{asking, decisions, done, landed, merge, on_both, plain, stands_still, status};
use crate::fresh_database::fresh_database;
use crate::program::Server;
use crate::yard::{FLAGS, Yard, eventually, git, lay_out};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use tokio::runtime::Runtime;

/// A landing whose branch moved, and whose server could not see that: the repository was away when git answered.
fn moved_unseen(blueprint: &str, flags: &[&str], seen: impl Fn(&Value) -> bool) -> Yard {
    let flags = [&FLAGS[..], flags].concat();
    let server = Server::start_told(lay_out(blueprint), &flags, ("FERNERY_FAILPOINT", "hold:land-brought"));
    let yard = Yard { server };
    let (repo, away) = (yard.repo(), yard.repo().with_file_name("away"));
    done(&yard, "t", "mock: write new.txt new");
    let mut merging = asking(&yard, &["ticket", "merge", "t", "--yes"]);
    stands_still(&yard);
    fs::rename(&repo, &away).unwrap();
    yard.server.signal(Signal::CONT);
    yard.until("t", "told", |objective| seen(&objective["landing"]));
    let _ = merging.kill();
    merging.wait().unwrap();
    // Until somebody has looked, nothing forgets that the branch may have moved.
    let refused = yard.server.run(["ticket", "cancel", "t"]).exits(4).stderr;
    assert!(refused.contains("main is being moved") || refused.contains("main may have moved"), "{refused}");
    git(&away, &["update-ref", "refs/heads/main", "azolla/t"]);
    fs::rename(&away, &repo).unwrap();
    yard
}

#[test]
fn trouble_after_the_branch_moved_is_told_and_the_working_tree_follows() {
    on_both(|flags| {
        let yard = moved_unseen(&plain(), flags, |landing| {
            landing["state"] == "MOVING" && landing["why"] != Value::Null
        });
        let repo = yard.repo();
        let landing = landed(&yard, "t")["landing"].clone();
        assert_eq!(landing["commit"], git(&repo, &["rev-parse", "azolla/t"]).as_str(), "{landing:#}");
        assert_eq!((status(&repo), repo.join("new.txt").exists()), (String::new(), true), "{landing:#}");
        let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
        assert!(shown.contains("it took 2 tries; what went wrong before: "), "{shown}");
        let read = yard.server.read("/v1/objectives/t/landing").1;
        assert!(read["remarks"].to_string().contains("what went wrong before"), "{read:#}");
    });
}

#[test]
fn a_landing_that_is_given_up_after_its_branch_moved_is_found_there_and_names_the_command_for_the_tree() {
    on_both(|flags| {
        let once = plain().replace("[retry]\n", "[retry]\ninfrastructure = 1\n");
        let yard = moved_unseen(&once, flags, |landing| {
            let why = landing["why"].as_str().unwrap_or_default();
            landing["state"] == "OPEN" && why.contains("main may have moved to commit")
        });
        let repo = yard.repo();
        let landing = landed(&yard, "t")["landing"].clone();
        assert_eq!(landing["commit"], git(&repo, &["rev-parse", "azolla/t"]).as_str(), "{landing:#}");
        let remark = landing["remarks"][0].as_str().unwrap_or_else(|| panic!("{landing:#}"));
        let (_, command) = remark.split_once("in each: ").unwrap_or_else(|| panic!("{remark}"));
        assert_ne!(status(&repo), "", "the tree is behind its branch");
        assert!(Command::new("sh").current_dir(&repo).args(["-c", command]).status().unwrap().success());
        assert_eq!((status(&repo), repo.join("new.txt").exists()), (String::new(), true), "{command}");
    });
}

#[test]
fn a_tree_that_cannot_be_looked_at_is_told_and_keeps_no_other_from_following() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    git(&repo, &["switch", "-q", "--detach"]);
    let linked = ["bad", "good"].map(|name| repo.with_file_name(name));
    for tree in &linked {
        git(&repo, &["worktree", "add", "-q", "-f", tree.to_str().unwrap(), "main"]);
    }
    // An index that git cannot read.
    fs::write(repo.join(".git/worktrees/bad/index"), "broken").unwrap();
    done(&yard, "t", "mock: write new.txt new");
    let said = merge(&yard, "t").exits(0).stderr;
    assert!(said.contains("bad is left as it is: git could not look at it"), "{said}");
    assert!(linked[1].join("new.txt").exists(), "{said}");
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert!(shown.contains("git could not look at it"), "{shown}");
}

fn stopped(yard: Yard) -> tempfile::TempDir {
    yard.server.signal(Signal::TERM);
    yard.server.ended().1
}

#[test]
fn a_merge_that_no_server_can_carry_out_says_so_and_lands_when_one_can() {
    on_both(|flags| {
        let yard = Yard::open_in_with(lay_out(&plain()), flags);
        done(&yard, "t", "mock: write new.txt new");
        let dir = stopped(yard);
        let other = plain().replace("azolla_id = \"yard\"", "azolla_id = \"other\"");
        fs::write(dir.path().join("other.toml"), other).unwrap();
        let others = [&["--azolla", "other.toml"], flags].concat();
        let other = Yard { server: Server::start_in(dir, &others) };
        let since = fernery_engine::door::stop_watch();
        let said = merge(&other, "t").exits(4).stderr;
        assert!(since.elapsed().as_secs() < 30, "within seconds, also on a busy machine");
        assert!(said.contains("t does not land: no process hosts azolla yard"), "{said}");
        assert!(
            said.contains("fernery up --azolla FILE") && said.contains("your wish is recorded and stays"),
            "{said}"
        );
        let shown = other.server.run(["ticket", "show", "t"]).exits(0).stdout;
        assert!(
            shown.contains("is wanted on main and does not land: no process hosts azolla yard"),
            "{shown}"
        );
        let yard = Yard::open_in_with(stopped(other), flags);
        assert_eq!(decisions(&landed(&yard, "t")), ["APPROVE", "CONFIRM", "MERGE"]);
    });
}

/// Two servers host the azolla, and one of them has its repository.
#[test]
fn a_server_without_the_repository_leaves_a_landing_to_one_that_has_it() {
    let database = Runtime::new().unwrap().block_on(fresh_database());
    let url = database.url();
    let with = Yard::open_in_with(lay_out(&plain()), &["--database", &url]);
    let flags =
        ["--azolla", "yard.toml", "--azolla", "quick.toml", "--repos", "web=repo#main", "--database", &url];
    let without = Yard { server: Server::start_in(lay_out(&plain()), &flags) };
    let seen = done(&with, "t", "mock: write new.txt new")["landing"].clone();
    // Killed and not stopped: a stopped one may hold a row. Who dies so counts as host for a minute.
    with.server.signal(Signal::KILL);
    let dir = with.server.ended().1;
    without.post("/v1/objectives/t/confirm", json!({"run_id": seen["run_id"]}));
    let body =
        json!({"run_id": seen["run_id"], "patch_sha256": seen["patch_sha256"], "tip": seen["base_commit"]});
    let wanted = without.post("/v1/objectives/t/merge", body);
    assert_eq!(wanted["landing"]["state"], "WANTED", "{wanted:#}");
    // It has looked since, and left it alone.
    let passed = || {
        let workers = without.server.read("/v1/azollas/yard").1["workers"].clone();
        let of = workers.as_array().unwrap().iter().find(|pass| pass["worker"] == "landing").cloned();
        of.unwrap_or_else(|| panic!("{workers:#}"))
    };
    let before = passed();
    assert!(eventually(|| passed() != before), "{before}");
    let waits = without.objective("t")["landing"].clone();
    assert_eq!((&waits["state"], &waits["why"]), (&json!("WANTED"), &Value::Null), "{waits:#}");
    let with = Yard::open_in_with(dir, &["--database", &url]);
    let landing = landed(&with, "t")["landing"].clone();
    assert!(!landing["remarks"].to_string().contains("tries"), "none was used up: {landing:#}");
}
