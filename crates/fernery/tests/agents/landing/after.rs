//! `ticket new --after OTHER`: a blocker that resolves by itself.

use super::{done, landed, landing_by, on_both, plain};
use crate::yard::{Yard, git, lay_out, new_ticket};
use serde_json::{Value, json};

fn wait_for(yard: &Yard, id: &str, other: &str) {
    let mut ticket = new_ticket("yard", id, "mock: write waited.txt w");
    ticket["after"] = json!([other]);
    yard.post("/v1/objectives", ticket);
    yard.approve(id);
    yard.until(id, "blocked", |objective| objective["objective"]["status"] == "BLOCKED");
}

fn blocker(objective: &Value) -> &Value {
    &objective["objective"]["blocked_on"][0]
}

#[test]
fn a_ticket_goes_on_by_itself_when_the_one_before_it_is_confirmed() {
    let yard = Yard::open(&plain());
    let first = done(&yard, "first", "mock: write new.txt new");
    wait_for(&yard, "second", "first");
    let seen = yard.objective("second");
    assert_eq!(blocker(&seen)["kind"], "DEPENDENCY_CHANGE");
    assert!(blocker(&seen)["description"].as_str().unwrap().contains("first"), "{seen:#}");
    // Nobody is told to unblock what resolves by itself, and what moves the other one is named.
    for command in [&["ticket", "show", "second"][..], &["ticket", "list"], &["orient"], &["pause", "list"]] {
        let said = yard.server.run(command.iter().copied()).exits(0).stdout;
        assert!(!said.contains("unblock"), "{command:?}: {said}");
    }
    let shown = yard.server.run(["ticket", "show", "second"]).exits(0).stdout;
    assert!(shown.contains("waits for first, whose result nobody has confirmed yet"), "{shown}");
    assert!(shown.contains("fernery ticket confirm first"), "{shown}");
    let listed = yard.server.run(["ticket", "list"]).exits(0).stdout;
    assert!(listed.contains("waits for first"), "{listed}");
    let page = yard.server.run(["orient"]).exits(0).stdout;
    assert!(page.contains("second waits for it") && page.contains("fernery ticket confirm first"), "{page}");
    yard.post("/v1/objectives/first/confirm", json!({"run_id": first["runs"][0]["run_id"]}));
    // Resolved in the transaction of the confirmation, not some time later.
    assert_eq!(blocker(&yard.objective("second"))["resolved"], true);
    yard.until("second", "DONE", |objective| objective["objective"]["status"] == "DONE");
    // Nobody has to wait for what is confirmed.
    let said = yard
        .server
        .run(["ticket", "new", "--azolla", "yard", "--title", "third", "--after", "first", "--id", "third"]);
    said.exits(0);
    assert_eq!(yard.objective("third")["objective"]["blocked_on"], json!([]));
}

#[test]
fn where_confirmed_tickets_land_by_themselves_the_next_one_waits_for_the_landing() {
    let yard = Yard::open(&landing_by("on = \"confirm\""));
    let first = done(&yard, "first", "mock: write new.txt new");
    wait_for(&yard, "second", "first");
    yard.post("/v1/objectives/first/confirm", json!({"run_id": first["runs"][0]["run_id"]}));
    let commit = landed(&yard, "first")["landing"]["commit"].clone();
    let next = yard.until("second", "DONE", |objective| objective["objective"]["status"] == "DONE");
    assert_eq!(
        next["context_snapshots"][0]["metadata"]["commit_sha"], commit,
        "its work starts from what landed"
    );
}

#[test]
fn a_cancelled_ticket_keeps_others_waiting_and_they_are_told() {
    let yard = Yard::open(&plain());
    yard.post("/v1/objectives", new_ticket("yard", "first", "mock: write new.txt new"));
    wait_for(&yard, "second", "first");
    yard.server.run(["ticket", "cancel", "first"]).exits(0);
    let seen = yard.objective("second");
    assert_eq!(
        (&blocker(&seen)["resolved"], &seen["objective"]["status"]),
        (&json!(false), &json!("BLOCKED"))
    );
    let shown = yard.server.run(["ticket", "show", "second"]).exits(0).stdout;
    assert!(shown.contains("waits for first, which was cancelled"), "{shown}");
    assert!(shown.contains("fernery ticket unblock second --blocker b1"), "{shown}");
    yard.server.run(["ticket", "unblock", "second", "--blocker", "b1"]).exits(0);
    yard.until("second", "DONE", |objective| objective["objective"]["status"] == "DONE");
}

/// What it waits for was confirmed, but did not land before it was exported: here nothing ends the waiting by itself.
#[test]
fn a_ticket_that_waits_for_one_that_was_finished_in_another_instance_says_so() {
    on_both(|flags| {
        let yard = Yard::open(&landing_by("on = \"confirm\""));
        let first = done(&yard, "first", "mock: write new.txt new");
        wait_for(&yard, "second", "first");
        git(&yard.repo(), &["branch", "-m", "main", "other"]);
        yard.post("/v1/objectives/first/confirm", json!({"run_id": first["runs"][0]["run_id"]}));
        yard.until("first", "not landed", |objective| objective["landing"]["state"] == "OPEN");
        yard.server.run(["export", "out"]).exits(0);
        let other = Yard::open_in_with(lay_out(&landing_by("on = \"confirm\"")), flags);
        other.server.run(["import", yard.server.dir.path().join("out").to_str().unwrap()]).exits(0);
        assert_eq!(other.objective("second")["waits_for"][0]["stands"], "FINISHED_ELSEWHERE");
        let shown = other.server.run(["ticket", "show", "second"]).exits(0).stdout;
        assert!(shown.contains("waits for first, which was finished in another instance"), "{shown}");
        assert!(shown.contains("fernery ticket unblock second --blocker b1"), "{shown}");
        other.server.run(["ticket", "unblock", "second", "--blocker", "b1"]).exits(0);
        assert_eq!(blocker(&other.objective("second"))["resolved"], true);
    });
}

#[test]
fn nothing_waits_for_itself_or_for_what_is_not_there() {
    let yard = Yard::open(&plain());
    for (after, said) in [("own", "cannot wait for itself"), ("nobody", "there is no ticket nobody")] {
        let new = ["ticket", "new", "--azolla", "yard", "--id", "own", "--title", "t", "--after", after];
        let refused = yard.server.run(new).exits(2).stderr;
        assert!(refused.contains(said), "{refused}");
        assert_eq!(yard.server.read("/v1/objectives/own").0, 404);
    }
    yard.post("/v1/objectives", new_ticket("yard", "first", ""));
    let mut ticket = new_ticket("yard", "own", "");
    ticket["after"] = json!(["first"]);
    let made = yard.post("/v1/objectives", ticket.clone());
    let again = yard.post("/v1/objectives", ticket.clone());
    assert_eq!(made["objective"], again["objective"], "the same again is the same");
    ticket["after"] = json!([]);
    assert_eq!(yard.server.post("operator.token", "/v1/objectives", &ticket).0, 409);
}

#[test]
fn a_patch_can_be_given_up_until_it_has_landed() {
    let yard = Yard::open(&plain());
    let first = done(&yard, "first", "mock: write new.txt new");
    yard.post("/v1/objectives/first/confirm", json!({"run_id": first["runs"][0]["run_id"]}));
    // Confirmed and not merged: it may still be put away, and then nothing offers its merge any more.
    yard.server.run(["ticket", "cancel", "first"]).exits(0);
    let seen = yard.objective("first");
    assert_eq!((&seen["objective"]["blocked_reason"], &seen["landing"]), (&json!("cancelled"), &json!(null)));
    assert!(!yard.server.run(["orient"]).exits(0).stdout.contains("ticket merge"));
    super::merge(&yard, "first").exits(4);
    done(&yard, "second", "mock: write second.txt new");
    super::merge(&yard, "second").exits(0);
    landed(&yard, "second");
    let refused = yard.server.run(["ticket", "cancel", "second"]).exits(4).stderr;
    assert!(
        refused.contains("it has landed on main") && refused.contains("ticket reopen second"),
        "{refused}"
    );
    assert_eq!(yard.objective("second")["objective"]["status"], "DONE");
}
