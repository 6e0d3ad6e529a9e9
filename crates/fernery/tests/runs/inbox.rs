//! The inbox through the real program, killed at every step of its way, by name, on both databases: what is started anew has lost
//! nothing that was captured and doubles none of it (invariants 1, 2, 12, 13, 15–17).

use crate::fresh_database::{FreshDatabase, fresh_database};
use crate::program::at_once::at_once;
use crate::shop::{Call, Shop, dies_while, eventually, write};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// An inbox whose notices a program writes to a file, and whose deadlines are looked at all the time.
pub(crate) fn blueprint(more: &str) -> String {
    format!(
        "extends = \"task_management\"\nazolla_id = \"task_management\"\n\
         [workers.deadline_monitor]\ninterval = \"100ms\"\n\
         [notices]\ncommand = [\"/bin/sh\", \"-c\", \"cat >> told; echo >> told\"]\n{more}\n"
    )
}

const STEPS: [&str; 16] = [
    "captures-announced",
    "capture-event-claimed",
    "triage-scheduled",
    "workorder-claimed",
    "question-answered",
    // In the transaction that ends the job and writes the bundle.
    "bundle-written",
    "gate-claimed@2",
    "gate-judged",
    "manifest-event-claimed",
    "azollas-asked",
    "manifest-scheduled",
    // The manifest's.
    "bundle-written@2",
    "deadlines-watched",
    "deadlines-told",
    "notices-dispatched",
    "notice-told",
];

fn capture(n: usize) -> Value {
    json!({"capture_id": format!("c-{n}"), "raw_content": format!("do thing {n}"), "source_label": "test"})
}

/// What somebody does: captures, asks for a page, and writes down what is overdue already. All of it may be done again.
pub(crate) fn acts(call: &Call<'_>) -> Option<Value> {
    for n in 0..3 {
        call("POST", "/v1/captures", capture(n))?;
    }
    let late =
        json!({"objective_id": "late", "title": "Late", "metadata": {"due_at": "2020-01-01T00:00:00Z"}});
    call("POST", "/v1/objectives", late)?;
    call("POST", "/v1/azollas/task_management/manifests", json!({"request_id": "r"}))
}

/// Everything that came of it.
pub(crate) fn came_to(shop: &Shop) -> bool {
    let candidates = shop.get("/v1/candidates")["candidates"].as_array().map_or(0, Vec::len);
    let (status, request) = shop.server.read("/v1/manifest_requests/r");
    let pauses = shop.get("/v1/pauses?limit=500");
    let overdue =
        pauses["pauses"].as_array().is_some_and(|all| all.iter().any(|one| one["objective_id"] == "late"));
    candidates == 3 && status == 200 && !request["manifest"].is_null() && overdue
}

/// Programs whose answers never pass, so that the built-in rules stand in.
const USELESS: &str = "[retry]\ngate_failures = 0\n\
    [executors.TRIAGE_DIAZOTROPH]\nkind = \"command\"\nargv = [\"/bin/sh\", \"-c\", \"echo no\"]\nsandbox = \"none\"\n\
    [executors.MANIFEST_BUILDER_DIAZOTROPH]\nkind = \"command\"\nargv = [\"/bin/sh\", \"-c\", \"echo no\"]\nsandbox = \"none\"\n";

/// From the verdict that has them stand in to theirs; the last are the manifest's.
const STEPS_OF_STAND_INS: [&str; 4] =
    ["gate-judged", "triage-scheduled@2", "question-answered", "manifest-scheduled@2"];

fn killed_at(steps: &[&str], more: &str, database: impl Fn() -> Option<FreshDatabase> + Sync) {
    let blueprint = blueprint(more);
    at_once(steps, |step| {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &blueprint);
        let database = database();
        let url = database.as_ref().map(FreshDatabase::url);
        let flags: Vec<&str> = url.iter().flat_map(|url| ["--database", url]).collect();
        dies_while(step, dir.path(), &flags, acts);
        let told = dir.path().join("told");
        let shop = Shop::open_in(dir, &blueprint, &flags);
        acts(&|method, path, body| shop.call(method, path, body)).expect("answered");
        assert!(eventually(|| came_to(&shop)), "killed at {step}: {:#}", shop.get("/v1/azollas"));
        let candidates = shop.get("/v1/candidates?status=ALL")["candidates"].as_array().unwrap().clone();
        let titles: BTreeSet<String> = candidates.iter().map(|one| one["title"].to_string()).collect();
        assert_eq!((candidates.len(), titles.len()), (3, 3), "killed at {step}");
        let duty = shop.objective("operator-continuity");
        assert_eq!(duty["objective"]["status"], "IN_PROGRESS");
        let (runs, works) = (duty["runs"].as_array().unwrap().len(), duty["workorders"].as_array().unwrap());
        assert!(
            works.iter().all(|work| work["judged"] == true) && runs == works.len(),
            "killed at {step}: {duty:#}"
        );
        let of_late = shop.get("/v1/pauses?limit=500");
        let of_late =
            of_late["pauses"].as_array().unwrap().iter().filter(|one| one["objective_id"] == "late").count();
        assert_eq!(of_late, 1, "one pause for one deadline; killed at {step}");
        assert_eq!(shop.objective("late")["objective"]["status"], "NEW", "and nothing there was touched");
        let manifest = shop.get("/v1/manifest_requests/r")["manifest"]["manifest_id"].clone();
        let is_told =
            || std::fs::read_to_string(&told).is_ok_and(|text| text.contains(manifest.as_str().unwrap()));
        assert!(eventually(is_told), "killed at {step}");
        assert_eq!(shop.get("/v1/journal/verify")["fault"], Value::Null, "killed at {step}");
    });
}

#[test]
fn campaign_killed_at_every_step_the_inbox_comes_to_the_same_on_sqlite() {
    killed_at(&STEPS, "", || None);
}

#[test]
fn campaign_killed_around_a_stand_in_the_inbox_comes_to_the_same_on_sqlite() {
    killed_at(&STEPS_OF_STAND_INS, USELESS, || None);
}

#[test]
fn campaign_killed_around_a_stand_in_the_inbox_comes_to_the_same_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    killed_at(&STEPS_OF_STAND_INS, USELESS, || Some(runtime.block_on(fresh_database())));
}

#[test]
fn campaign_killed_at_every_step_the_inbox_comes_to_the_same_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    killed_at(&STEPS, "", || Some(runtime.block_on(fresh_database())));
}

/// A program in the place of the built-in triage: it reads the workorder, and its answer is judged like any other.
#[test]
fn a_program_may_look_through_captures() {
    let script = r#"import json, sys
work = json.load(sys.stdin)
captures = work["context_snapshot"]["metadata"]["captures"]
print(json.dumps({"candidates": [
    {"capture_ids": [c["capture_id"]], "title": c["text"].upper(), "acceptance_criteria": "done", "importance": 1, "urgency": 2}
    for c in captures]}))"#;
    let executor = format!(
        "[executors.TRIAGE_DIAZOTROPH]\nkind = \"command\"\nargv = [\"python3\", \"-c\", {}]\nsandbox = \"none\"\nenv = [\"PATH\"]\n",
        json!(script)
    );
    let shop = Shop::open(&blueprint(&executor), &[]);
    shop.call("POST", "/v1/captures", capture(1));
    let mut seen = Value::Null;
    let so = eventually(|| {
        seen = shop.get("/v1/candidates")["candidates"][0].clone();
        !seen.is_null()
    });
    assert!(so && seen["title"] == "DO THING 1" && seen["made_by"] == "command", "{seen:#}");
}
