//! The program killed in an operator's act, before it is durable and before it is answered: the same acts again, each under
//! its own id, come to the same as ones that nobody disturbed (invariants 13, 17, 19).

use crate::fresh_database::{FreshDatabase, fresh_database};
use crate::kills::artifacts;
use crate::program::at_once::at_once;
use crate::shop::{Call, REMOTE, Shop, blueprint, comes_to, dies_while, new_ticket, write};
use serde_json::{Value, json};

fn is(objective: &Value, status: &str) -> bool {
    objective["objective"]["status"] == status
}

fn runs(objective: &Value) -> usize {
    objective["runs"].as_array().map_or(0, Vec::len)
}

fn act(call: &Call<'_>, act: &str, mut body: Value) -> Option<Value> {
    body["record_id"] = json!(format!("the-{act}"));
    call("POST", &format!("/v1/objectives/t/{act}"), body)
}

/// Five acts, one after the other.
fn five_acts(call: &Call<'_>) -> Option<Value> {
    call("POST", "/v1/objectives", new_ticket("t"))?;
    act(call, "block", json!({"kind": "USER_INPUT", "description": "Which?"}))?;
    act(call, "unblock", json!({"all": true}))?;
    let digest = call("GET", "/v1/objectives/t", Value::Null)?["approval"]["digest"].clone();
    act(call, "approve", json!({"digest": digest}))?;
    let done = comes_to(call, "t", |seen| is(seen, "DONE"))?;
    // Asked again after the second run it is still the first that was looked at.
    let first = done["runs"].as_array()?.first()?["run_id"].clone();
    act(call, "confirm", json!({"run_id": first}))?;
    act(call, "reopen", json!({"digest": digest, "note": "once more"}))?;
    comes_to(call, "t", |seen| is(seen, "DONE") && runs(seen) == 2)
}

/// A ticket that is cancelled while its workorder waits for somebody.
fn a_cancel(call: &Call<'_>) -> Option<Value> {
    call("POST", "/v1/objectives", new_ticket("t"))?;
    let digest = call("GET", "/v1/objectives/t", Value::Null)?["approval"]["digest"].clone();
    act(call, "approve", json!({"digest": digest}))?;
    comes_to(call, "t", |seen| is(seen, "IN_PROGRESS") || is(seen, "BLOCKED"))?;
    act(call, "cancel", json!({}))?;
    comes_to(call, "t", |seen| runs(seen) == 1)
}

/// A ticket that is done, and that nobody wants any more.
fn a_late_cancel(call: &Call<'_>) -> Option<Value> {
    call("POST", "/v1/objectives", new_ticket("t"))?;
    let digest = call("GET", "/v1/objectives/t", Value::Null)?["approval"]["digest"].clone();
    act(call, "approve", json!({"digest": digest}))?;
    comes_to(call, "t", |seen| is(seen, "DONE") || is(seen, "BLOCKED"))?;
    act(call, "cancel", json!({}))?;
    comes_to(call, "t", |seen| is(seen, "BLOCKED"))
}

/// A ticket that is written down with a blocker and approved, BLOCKED by the scheduler, unblocked and done.
fn blocked_from_the_start(call: &Call<'_>) -> Option<Value> {
    let mut ticket = new_ticket("t");
    ticket["blocked_on"] = json!([{"kind": "USER_INPUT", "description": "Which?"}]);
    call("POST", "/v1/objectives", ticket)?;
    let seen = call("GET", "/v1/objectives/t", Value::Null)?;
    act(call, "approve", json!({"digest": seen["approval"]["digest"]}))?;
    comes_to(call, "t", |seen| is(seen, "BLOCKED") || is(seen, "DONE"))?;
    act(call, "unblock", json!({"all": true}))?;
    comes_to(call, "t", |seen| is(seen, "DONE"))
}

/// What was done to the ticket, by name.
fn acts_in_the_journal(shop: &Shop) -> Vec<String> {
    let entries = shop.get("/v1/journal?limit=200")["entries"].clone();
    let of_operators = |entry: &&Value| {
        entry["subject"] == "t" && entry["actor"].as_str().is_some_and(|who| who.starts_with("operator"))
    };
    let name = |entry: &Value| entry["act"].as_str().unwrap().to_string();
    let mut acts: Vec<String> = entries.as_array().unwrap().iter().filter(of_operators).map(name).collect();
    acts.reverse();
    acts
}

/// Kills a process at each step of a play, plays it again to a new one, and hands over what that came to.
fn killed_at_each(
    steps: &[String],
    blueprint: &str,
    database: &(dyn Fn() -> Option<FreshDatabase> + Sync),
    play: fn(&Call<'_>) -> Option<Value>,
    check: impl Fn(&str, &Shop, &Value) + Sync,
) {
    at_once(steps, |step| {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), blueprint);
        let database = database();
        let url = database.as_ref().map(FreshDatabase::url);
        let flags: Vec<&str> = url.iter().flat_map(|url| ["--database", url]).collect();
        dies_while(step, dir.path(), &flags, play);
        let shop = Shop::open_in(dir, blueprint, &flags);
        let done = play(&|method, path, body| shop.call(method, path, body)).expect("it answers");
        check(step, &shop, &done);
        assert_eq!(shop.get("/v1/journal/verify")["fault"], Value::Null, "killed at {step}");
    });
}

fn killed_in_every_act(database: &(dyn Fn() -> Option<FreshDatabase> + Sync)) {
    let steps: Vec<String> =
        (1..=5).flat_map(|n| [format!("act-written@{n}"), format!("act-durable@{n}")]).collect();
    let blueprint = blueprint("cat >/dev/null; echo hello", "");
    killed_at_each(&steps, &blueprint, database, five_acts, |step, shop, done| {
        let wanted = json!({
            "status": "DONE",
            "unconfirmed": true,
            "decisions": 3,
            "events": ["SCHEDULED", "SCHEDULED"],
            "workorders": ["EXECUTED", "EXECUTED"],
            "contents": ["hello\n", "hello\n"],
            "verdicts": ["PASS", "PASS"],
            "pauses": ["GATE_FAILED", "RUN_COMPLETE", "RUN_COMPLETE"],
        });
        assert_eq!(artifacts(done), wanted, "killed at {step}");
        let acts = acts_in_the_journal(shop);
        assert_eq!(acts, ["created", "blocked", "unblocked", "approve", "confirm", "reopen"], "at {step}");
    });
}

fn killed_around_a_blocker(database: &(dyn Fn() -> Option<FreshDatabase> + Sync)) {
    let steps = [
        "act-written@1",
        "act-durable@1",
        "readiness-emitted",
        "event-claimed",
        "event-scheduled",
        "act-written@2",
        "act-durable@2",
    ];
    let blueprint = blueprint("cat >/dev/null; echo hello", "");
    killed_at_each(
        &steps.map(String::from),
        &blueprint,
        database,
        blocked_from_the_start,
        |step, shop, done| {
            let wanted = json!({
                "status": "DONE",
                "unconfirmed": true,
                "decisions": 1,
                "events": ["BLOCKED", "SCHEDULED"],
                "workorders": ["EXECUTED"],
                "contents": ["hello\n"],
                "verdicts": ["PASS"],
                "pauses": ["GATE_FAILED", "RUN_COMPLETE"],
            });
            assert_eq!(artifacts(done), wanted, "killed at {step}");
            assert_eq!(acts_in_the_journal(shop), ["created", "approve", "unblocked"], "killed at {step}");
        },
    );
}

fn killed_while_cancelling(database: &(dyn Fn() -> Option<FreshDatabase> + Sync)) {
    let steps =
        ["act-written@2", "act-durable@2", "cancel-found", "bundle-written", "cancel-told", "gate-judged"];
    killed_at_each(&steps.map(String::from), REMOTE, database, a_cancel, |step, shop, done| {
        let wanted = json!({
            "status": "BLOCKED",
            "unconfirmed": false,
            "decisions": 1,
            "events": ["SCHEDULED"],
            "workorders": ["EXECUTED"],
            "contents": [""],
            "verdicts": ["FAIL"],
            "pauses": ["GATE_FAILED"],
        });
        assert_eq!(artifacts(done), wanted, "killed at {step}");
        assert_eq!(done["objective"]["blocked_reason"], "cancelled", "killed at {step}");
        assert_eq!(acts_in_the_journal(shop), ["created", "approve", "cancelled"], "killed at {step}");
    });
}

fn killed_while_putting_away(database: &(dyn Fn() -> Option<FreshDatabase> + Sync)) {
    let blueprint = blueprint("cat >/dev/null; echo hello", "");
    let steps = ["act-written@2", "act-durable@2"].map(String::from);
    killed_at_each(&steps, &blueprint, database, a_late_cancel, |step, shop, done| {
        let wanted = json!({
            "status": "BLOCKED",
            "unconfirmed": false,
            "decisions": 1,
            "events": ["SCHEDULED"],
            "workorders": ["EXECUTED"],
            "contents": ["hello\n"],
            "verdicts": ["PASS"],
            "pauses": ["RUN_COMPLETE", "RUN_COMPLETE"],
        });
        assert_eq!(artifacts(done), wanted, "killed at {step}");
        assert_eq!(done["objective"]["blocked_reason"], "cancelled", "killed at {step}");
        assert_eq!(acts_in_the_journal(shop), ["created", "approve", "cancelled"], "killed at {step}");
    });
}

/// A ticket of what people do, under the id `t`.
fn new_task() -> Value {
    json!({"objective_id": "t", "azolla_id": "tasks", "title": "Buy milk", "acceptance_criteria": "There is milk"})
}

/// A person's own work, said to be done while it is still NEW.
fn done_at_once(call: &Call<'_>) -> Option<Value> {
    call("POST", "/v1/objectives", new_task())?;
    let seen = call("GET", "/v1/objectives/t", Value::Null)?;
    act(call, "done", json!({"digest": seen["approval"]["digest"], "note": "oat milk"}))?;
    comes_to(call, "t", |seen| is(seen, "DONE"))
}

/// The same, approved before, with its workorder made by the scheduler.
fn done_after_its_approval(call: &Call<'_>) -> Option<Value> {
    call("POST", "/v1/objectives", new_task())?;
    let digest = call("GET", "/v1/objectives/t", Value::Null)?["approval"]["digest"].clone();
    act(call, "approve", json!({"digest": digest}))?;
    comes_to(call, "t", |seen| is(seen, "IN_PROGRESS") || is(seen, "DONE"))?;
    act(call, "snooze", json!({"until": "2h"}))?;
    act(call, "done", json!({"note": "oat milk"}))?;
    comes_to(call, "t", |seen| is(seen, "DONE"))
}

fn killed_while_a_person_does_it(database: &(dyn Fn() -> Option<FreshDatabase> + Sync)) {
    let wanted = json!({
        "status": "DONE",
        "unconfirmed": false,
        "decisions": 2,
        "events": ["SCHEDULED"],
        "workorders": ["EXECUTED"],
        "contents": ["oat milk"],
        "verdicts": ["PASS"],
        "pauses": ["RUN_COMPLETE"],
    });
    let at_once = ["act-written@1", "act-durable@1", "bundle-written"].map(String::from);
    killed_at_each(&at_once, REMOTE, database, done_at_once, |step, shop, done| {
        assert_eq!(artifacts(done), wanted, "killed at {step}");
        let mut acts = acts_in_the_journal(shop);
        acts.sort();
        assert_eq!(acts, ["approve", "confirm", "created"], "killed at {step}");
    });
    let steps = [
        "act-written@1",
        "act-durable@1",
        "readiness-emitted",
        "event-claimed",
        "event-scheduled",
        "act-written@2",
        "act-durable@2",
        "act-written@3",
        "bundle-written",
        "act-durable@3",
    ];
    killed_at_each(
        &steps.map(String::from),
        REMOTE,
        database,
        done_after_its_approval,
        |step, shop, done| {
            assert_eq!(artifacts(done), wanted, "killed at {step}");
            assert_eq!(
                acts_in_the_journal(shop),
                ["created", "approve", "snoozed", "confirm"],
                "killed at {step}"
            );
        },
    );
}

macro_rules! on_both_databases {
    ($($play:ident: $sqlite:ident, $postgres:ident;)+) => {$(
        #[test]
        fn $sqlite() {
            $play(&|| None);
        }

        #[test]
        fn $postgres() {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            $play(&|| Some(runtime.block_on(fresh_database())));
        }
    )+};
}

on_both_databases!(
    killed_while_a_person_does_it:
        campaign_killed_while_a_person_does_it_it_comes_to_the_same_on_sqlite,
        campaign_killed_while_a_person_does_it_it_comes_to_the_same_on_postgres;
    killed_in_every_act:
        campaign_killed_in_every_act_of_an_operator_it_comes_to_the_same_on_sqlite,
        campaign_killed_in_every_act_of_an_operator_it_comes_to_the_same_on_postgres;
    killed_around_a_blocker:
        campaign_killed_around_a_blocker_of_a_new_ticket_it_comes_to_the_same_on_sqlite,
        campaign_killed_around_a_blocker_of_a_new_ticket_it_comes_to_the_same_on_postgres;
    killed_while_cancelling:
        campaign_killed_at_every_step_of_a_cancel_it_comes_to_the_same_on_sqlite,
        campaign_killed_at_every_step_of_a_cancel_it_comes_to_the_same_on_postgres;
    killed_while_putting_away:
        campaign_killed_while_a_finished_ticket_is_put_away_it_comes_to_the_same_on_sqlite,
        campaign_killed_while_a_finished_ticket_is_put_away_it_comes_to_the_same_on_postgres;
);
