//! What a process leaves behind, be it killed or started with other blueprints, is found, said and put right.

use crate::shop::{REMOTE, Shop, blueprint, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn why(objective: &Value) -> &str {
    objective["waiting"]["code"].as_str().unwrap_or("")
}

#[test]
fn a_ticket_whose_executors_are_gone_says_so_and_goes_on_with_others() {
    let shop = Shop::open(REMOTE, &[]);
    shop.ticket("t");
    shop.until("t", "nobody executes it", |objective| {
        objective["objective"]["status"] == "IN_PROGRESS" && why(objective) == "no_worker"
    });
    let said = shop.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert!(said.contains("no worker polls stream diazotroph:TEXT_DIAZOTROPH"), "{said}");
    assert!(said.contains("1 of 5 attempts"), "{said}");
    shop.server.signal(Signal::TERM);
    let (_, dir) = shop.server.ended();

    let other = blueprint("cat >/dev/null; echo hello", "");
    let shop = Shop::open_in(dir, &other, &[]);
    let blocked = shop.until("t", "its run has ended", |objective| {
        objective["objective"]["status"] == "BLOCKED" && !objective["runs"].as_array().unwrap().is_empty()
    });
    let blocker = &blocked["objective"]["blocked_on"][0];
    assert_eq!(blocker["kind"], "DEPENDENCY_CHANGE");
    assert!(blocker["description"].as_str().unwrap().contains("SHELL_DIAZOTROPH"), "{blocker}");
    let unblocked = shop.server.run(["ticket", "unblock", "t", "--all"]).exits(0);
    assert!(unblocked.stdout.contains("t is NEW") && unblocked.stderr.contains("ticket approve t"));
    shop.ticket("t");
    shop.until_status("t", "DONE");
    let confirmed = shop.server.run(["ticket", "confirm", "t"]).exits(0).stdout;
    assert!(confirmed.contains("t is confirmed: run "), "{confirmed}");
    shop.server.run(["ticket", "reopen", "t", "--note", "more"]).exits(0);
    shop.until("t", "its second run", |objective| objective["runs"].as_array().unwrap().len() == 3);
}

#[test]
fn what_nobody_was_shown_is_not_reopened_unasked() {
    let shop = Shop::open(&blueprint("cat >/dev/null; echo one", ""), &[]);
    shop.ticket("t");
    shop.until_status("t", "DONE");
    let other = blueprint("cat >/dev/null; echo two", "");
    std::fs::write(shop.server.dir.path().join("shop.toml"), other).unwrap();
    shop.server.run(["azolla", "reload"]).exits(0);
    let refused = shop.server.run(["ticket", "reopen", "t", "--note", "z"]).exits(2).stderr;
    assert!(refused.contains("has changed since it was last approved") && refused.contains("--yes"));
    let changed = |sign: &str, word: &str| refused.lines().any(|l| l.contains(sign) && l.contains(word));
    assert!(changed("- runs", "echo one") && changed("+ runs", "echo two"), "{refused}");
    assert_eq!(shop.objective("t")["objective"]["status"], "DONE");
    let reopened = shop.server.run(["ticket", "reopen", "t", "--note", "z", "--yes"]).exits(0).stdout;
    assert!(reopened.contains("changed since the last approval") && reopened.contains("t is TODO"));
    let again = |n: usize| {
        shop.until("t", "it is done again", |of| {
            of["objective"]["status"] == "DONE" && of["runs"].as_array().is_some_and(|runs| runs.len() == n)
        })
    };
    again(2);
    // What is confirmed is behind what is open in a sorted list, and not hidden.
    shop.server.run(["ticket", "confirm", "t"]).exits(0);
    shop.server.run(["ticket", "new", "--id", "u", "--title", "later", "--importance", "4"]).exits(0);
    for (args, wanted) in [(&["importance"][..], &["u", "t"][..]), (&["due", "--status", "DONE"], &["t"])] {
        let args = ["ticket", "list", "--json", "--sort"].into_iter().chain(args.iter().copied());
        let listed = shop.server.run(args).exits(0).json();
        let ids = listed["objectives"].as_array().unwrap().iter().map(|of| &of["objective"]["objective_id"]);
        assert_eq!(ids.collect::<Vec<_>>(), wanted);
    }
    // What was approved last needs no question.
    shop.server.run(["ticket", "reopen", "t", "--from-scratch", "--note", "z"]).exits(0);
    again(3);
    let shown = shop.server.run(["run", "show", "t"]).exits(0).stdout;
    assert!(shown.contains("output:\n  │ two\n"), "{shown}");
    assert_eq!(shop.server.run(["run", "show", "t", "--json"]).exits(0).json()["output"], "two\n");
    let no_patch = shop.server.run(["run", "diff", "t"]).exits(1).stderr;
    assert!(no_patch.contains("fernery run show t"), "{no_patch}");
    shop.server.run(["ticket", "reopen", "t", "--note", "z"]).exits(0);
}

#[test]
fn an_azolla_that_nobody_hosts_is_shown_so_and_its_tickets_can_be_ended() {
    let shop = Shop::open(REMOTE, &[]);
    shop.ticket("runs");
    shop.until_status("runs", "IN_PROGRESS");
    assert_eq!(shop.get("/v1/azollas/shop")["hosted"], true);
    shop.server.signal(Signal::TERM);
    let (_, dir) = shop.server.ended();
    // A while ago.
    let database = dir.path().join(".fernery/fernery.db");
    let db = rusqlite::Connection::open(database).unwrap();
    db.execute_batch("UPDATE azollas SET hosted_at = hosted_at - 120000").unwrap();
    drop(db);

    let shop = Shop { server: crate::program::Server::start_in(dir, &[]) };
    let azollas = shop.get("/v1/azollas")["azollas"].clone();
    let hosted: Vec<_> =
        azollas.as_array().unwrap().iter().map(|a| (&a["azolla_id"], &a["hosted"])).collect();
    let expected = [("mec", true), ("shop", false), ("task_management", true), ("tasks", true)]
        .map(|(id, is)| (json!(id), json!(is)));
    assert!(hosted.iter().copied().eq(expected.iter().map(|(id, is)| (id, is))), "{hosted:?}");
    let listed = shop.server.run(["azolla", "list"]).exits(0).stdout;
    assert!(listed.contains("not since"), "{listed}");
    assert!(shop.server.run(["ticket", "list"]).exits(0).stdout.contains("not hosted"));
    assert_eq!(why(&shop.objective("runs")), "azolla_not_hosted");
    shop.ticket("waits");
    assert_eq!(why(&shop.objective("waits")), "azolla_not_hosted");
    let said = shop.server.run(["ticket", "show", "waits"]).exits(0).stdout;
    assert!(said.contains("no process hosts azolla shop"), "{said}");
    for ticket in ["runs", "waits"] {
        shop.server.run(["ticket", "cancel", ticket]).exits(0);
    }
    let ended = shop.until("runs", "its run", |objective| !objective["runs"].as_array().unwrap().is_empty());
    assert_eq!(ended["objective"]["blocked_reason"], "cancelled");
    for ticket in ["runs", "waits"] {
        shop.server.run(["ticket", "unblock", ticket, "--all"]).exits(0);
    }
}

/// The database of a server that has ended, whose workorders can be changed at will.
fn without_triggers(dir: &Path) -> rusqlite::Connection {
    let db = rusqlite::Connection::open(dir.join(".fernery/fernery.db")).unwrap();
    let triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'workorders'";
    let triggers: Vec<String> = {
        let mut found = db.prepare(triggers).unwrap();
        found.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    for trigger in triggers {
        db.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    db
}

#[test]
fn a_damaged_objective_keeps_no_other_from_being_scheduled() {
    let shop = Shop::open(&format!("{REMOTE}[limits]\nconcurrency = 1\n"), &[]);
    shop.ticket("first");
    shop.until_status("first", "IN_PROGRESS");
    for ticket in ["damaged", "sound"] {
        shop.ticket(ticket);
        shop.until(ticket, "its event", |objective| !objective["events"].as_array().unwrap().is_empty());
    }
    shop.server.signal(Signal::TERM);
    let (_, dir) = shop.server.ended();
    let db = without_triggers(dir.path());
    db.execute_batch("UPDATE objectives SET metadata = '[]' WHERE objective_id = 'damaged'").unwrap();
    drop(db);

    let shop = Shop::open_in(dir, &format!("{REMOTE}[limits]\nconcurrency = 0\n"), &[]);
    shop.until_status("sound", "IN_PROGRESS");
}

#[test]
fn a_damaged_workorder_keeps_no_other_from_its_verdict() {
    let shop = Shop::open(REMOTE, &[]);
    for ticket in ["damaged", "sound"] {
        shop.ticket(ticket);
        shop.until_status(ticket, "IN_PROGRESS");
    }
    shop.server.signal(Signal::TERM);
    let (_, dir) = shop.server.ended();
    let db = without_triggers(dir.path());
    db.execute_batch(&format!(
        "INSERT INTO bundles (output_id, work_order_id, objective_id, created_at, document)
         SELECT 'o-' || objective_id, work_order_id, objective_id, created_at,
                json_object('output_id', 'o-' || objective_id, 'objective_id', objective_id, 'title', 'done',
                            'metadata', json('{{\"outcome\": \"OUTPUT\"}}'), 'content', 'the output', 'notes', '',
                            'created_at', '2026-01-01T00:00:00Z')
         FROM workorders;
         UPDATE workorders SET status = 'EXECUTED', executed_at = created_at, output_id = 'o-' || objective_id;
         UPDATE workorders SET blueprint = '{}' WHERE objective_id = 'damaged'",
        "0".repeat(64)
    ))
    .unwrap();
    drop(db);

    let shop = Shop::open_in(dir, REMOTE, &[]);
    shop.until_status("sound", "DONE");
}

#[test]
fn a_damaged_workorder_keeps_no_other_from_its_end() {
    let shop = Shop::open(REMOTE, &[]);
    let [damaged, sound] = ["damaged", "sound"].map(|ticket| {
        shop.ticket(ticket);
        shop.until_status(ticket, "IN_PROGRESS");
        ticket
    });
    shop.server.signal(Signal::TERM);
    let (_, dir) = shop.server.ended();
    let db = without_triggers(dir.path());
    db.execute_batch(&format!(
        "PRAGMA foreign_keys = OFF;
         UPDATE workorders SET blueprint = '{}' WHERE objective_id = '{damaged}';
         UPDATE azollas SET hosted_at = hosted_at - 120000",
        "0".repeat(64)
    ))
    .unwrap();
    drop(db);

    let shop = Shop { server: crate::program::Server::start_in(dir, &["--lease-ttl", "2s"]) };
    for ticket in [damaged, sound] {
        shop.server.run(["ticket", "cancel", ticket]).exits(0);
    }
    shop.until(sound, "its run", |objective| !objective["runs"].as_array().unwrap().is_empty());
}

#[test]
fn the_passes_of_workers_over_all_azollas_are_shown_under_each() {
    let shop = Shop::open(REMOTE, &[]);
    let workers = |azolla: &str| -> Vec<(String, bool)> {
        let of = shop.get(&format!("/v1/azollas/{azolla}"))["workers"].clone();
        let of = of.as_array().unwrap().iter();
        of.map(|w| (w["worker"].as_str().unwrap().to_string(), w["over_all"].as_bool().unwrap())).collect()
    };
    for azolla in ["mec", "shop"] {
        let all = [
            ("cleanup", true),
            ("runner", true),
            ("sealer", true),
            ("gate", false),
            // Only where patches are made.
            ("landing", false),
            ("readiness", false),
            ("scheduler", false),
        ];
        let here = all.iter().filter(|(name, _)| azolla == "mec" || *name != "landing");
        let all: Vec<_> = here.map(|(name, over_all)| (name.to_string(), *over_all)).collect();
        assert!(eventually(|| workers(azolla) == all), "{azolla}: {:?}", workers(azolla));
    }
}

#[test]
fn work_folders_of_a_killed_process_go_once_nobody_holds_them() {
    let flags = tempfile::tempdir().unwrap();
    let flag = flags.path().join("second");
    let script = format!("if [ -e {0} ]; then echo done; else touch {0}; sleep 600; fi", flag.display());
    let shop = Shop::open(&blueprint(&script, ""), &[]);
    shop.ticket("t");
    assert!(eventually(|| flag.exists()), "it never started");
    shop.server.signal(Signal::KILL);
    let (_, dir) = shop.server.ended();
    let work = dir.path().join(".fernery/work");
    let of_this: Vec<_> = std::fs::read_dir(&work).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [of_this] = &of_this[..] else { panic!("one database works here: {of_this:?}") };
    // Those of another database are none of ours, be they of workorders that this one does not know.
    let run = "run-01a1e3e2-734c-733e-bc35-21863cbd72e5-01a1e3e2-734c-733e-bc35-21863cbd72e6";
    let others = [work.join(run), work.join("0123456789abcdef").join(run)];
    others.iter().for_each(|other| std::fs::create_dir_all(other).unwrap());
    std::fs::create_dir(of_this.join("of-somebody-else")).unwrap();
    let folders = || -> Vec<PathBuf> {
        let mut found: Vec<_> =
            std::fs::read_dir(of_this).unwrap().map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    };
    assert_eq!(folders().len(), 2, "{:?}", folders());
    let shop = Shop::open_in(dir, &blueprint(&script, ""), &[]);
    shop.until_status("t", "DONE");
    let kept = [of_this.join("of-somebody-else")];
    assert!(eventually(|| folders() == kept), "{:?}", folders());
    assert!(others.iter().all(|other| other.is_dir()));
}
