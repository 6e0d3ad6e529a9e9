//! The program killed at every step of a run, by name, on both databases: what is started anew comes to the same artifacts
//! as one that nobody disturbed (invariants 1, 2, 13, 17).

use crate::fresh_database::{FreshDatabase, fresh_database};
use crate::program::at_once::at_once;
use crate::shop::{Shop, blueprint, dies_at, write};
use serde_json::{Value, json};

const STEPS: [&str; 13] = [
    "readiness-emitted",
    "event-claimed",
    "event-scheduled",
    "workorder-claimed",
    "workorder-ran",
    "gate-claimed",
    "gate-evidence",
    "gate-judged",
    // In the transaction that ends the job and writes the bundle.
    "bundle-written",
    // In the approval's transaction, and after it with the answer on its way.
    "act-written",
    "act-durable",
    // The first time it is the blueprint's entry.
    "seals-written@2",
    "sealed@2",
];

/// What a run leaves, without what differs from run to run.
pub(crate) fn artifacts(objective: &Value) -> Value {
    let count = |list: &str| objective[list].as_array().map_or(0, Vec::len);
    json!({
        "status": objective["objective"]["status"],
        "unconfirmed": objective["unconfirmed"],
        "decisions": count("decisions"),
        "events": objective["events"].as_array().unwrap().iter().map(|e| &e["reason"]).collect::<Vec<_>>(),
        "workorders": objective["workorders"].as_array().unwrap().iter().map(|w| &w["status"]).collect::<Vec<_>>(),
        "contents": objective["output_bundles"].as_array().unwrap().iter().map(|b| &b["content"]).collect::<Vec<_>>(),
        "verdicts": objective["runs"].as_array().unwrap().iter().map(|r| &r["gate_result"]).collect::<Vec<_>>(),
        "pauses": objective["pauses"].as_array().unwrap().iter().map(|p| &p["reason"]).collect::<Vec<_>>(),
    })
}

fn undisturbed() -> Value {
    json!({
        "status": "DONE",
        "unconfirmed": true,
        "decisions": 1,
        "events": ["SCHEDULED"],
        "workorders": ["EXECUTED"],
        "contents": ["hello\n"],
        "verdicts": ["PASS"],
        "pauses": ["RUN_COMPLETE"],
    })
}

fn killed_at_every_step(database: impl Fn() -> Option<FreshDatabase> + Sync) {
    // With a program as a gate: one that needs none judges in one transaction, which has no step inside.
    let gates = "gates = [{ kind = \"outcome\" }, { kind = \"command\", name = \"check\", argv = [\"/bin/grep\", \"-q\", \"hello\", \"content\"], timeout = \"10s\", sandbox = \"none\" }]\n";
    let blueprint = blueprint("cat >/dev/null; echo hello", gates);
    at_once(&STEPS, |step| {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &blueprint);
        let database = database();
        let url = database.as_ref().map(FreshDatabase::url);
        let flags: Vec<&str> = url.iter().flat_map(|url| ["--database", url]).collect();
        dies_at(step, dir.path(), &flags);
        let shop = Shop::open_in(dir, &blueprint, &flags);
        // It may have died before it had answered.
        shop.ticket("t");
        let done = shop.until("t", step, |objective| objective["objective"]["status"] == "DONE");
        assert_eq!(artifacts(&done), undisturbed(), "killed at {step}");
        assert_eq!(shop.get("/v1/journal/verify")["fault"], Value::Null, "killed at {step}");
    });
}

#[test]
fn campaign_killed_at_every_step_of_a_run_it_comes_to_the_same_on_sqlite() {
    killed_at_every_step(|| None);
}

#[test]
fn campaign_killed_at_every_step_of_a_run_it_comes_to_the_same_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    killed_at_every_step(|| Some(runtime.block_on(fresh_database())));
}
