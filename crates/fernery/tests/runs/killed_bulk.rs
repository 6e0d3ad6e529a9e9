//! The program killed in an act on all jobs that match, at each of its steps: what is started anew comes to the same counts, and no
//! job is done twice (invariants 5, 13, 17, 19).

use crate::fresh_database::{FreshDatabase, fresh_database};
use crate::program::at_once::at_once;
use crate::shop::{Call, REMOTE, Shop, dies_while, eventually, write};
use serde_json::{Value, json};

/// Three steps of jobs.
const JOBS: u64 = 450;

const STEPS: [&str; 6] = [
    "act-written",
    "act-durable",
    // In the transaction of a step with jobs, and after it; then in that of the last step.
    "bulk-stepped@2",
    "bulk-step-durable@2",
    "bulk-stepped@3",
    "bulk-stepped@6",
];

/// Cancels all jobs. They have ids, and so has the act: whoever does not know whether it was heard asks again.
fn cancel_all(call: &Call<'_>) -> Option<Value> {
    let job = |n: u64| json!({ "stream": "s", "payload": {}, "job_id": format!("019a8c5e-7b1a-7cc3-98c4-{n:012x}") });
    call("POST", "/v1/jobs", Value::Array((0..JOBS).map(job).collect()))?;
    // Until now, and with this very millisecond: no later instant is taken.
    let asked =
        json!({ "verb": "cancel", "status": "QUEUED", "act_id": "all", "before": "2100-01-01T00:00:00Z" });
    call("POST", "/v1/bulk", asked)?;
    let mut seen = None;
    let ended = eventually(|| {
        seen = call("GET", "/v1/bulk/all", Value::Null);
        seen.as_ref().is_none_or(|act| act["state"] != "RUNNING")
    });
    assert!(ended, "{seen:?}");
    seen
}

fn killed_at_every_step(database: impl Fn() -> Option<FreshDatabase> + Sync) {
    at_once(&STEPS, |step| {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), REMOTE);
        let database = database();
        let url = database.as_ref().map(FreshDatabase::url);
        let flags: Vec<&str> = url.iter().flat_map(|url| ["--database", url]).collect();
        dies_while(step, dir.path(), &flags, cancel_all);
        let shop = Shop::open_in(dir, REMOTE, &flags);
        let act = cancel_all(&|method, path, body| shop.call(method, path, body)).expect("it answers");
        assert_eq!((&act["state"], &act["done"]), (&json!("DONE"), &json!(JOBS)), "killed at {step}");
        let stream = shop.get("/v1/streams/s");
        assert_eq!((&stream["cancelled"], &stream["depth"]), (&json!(JOBS), &json!(0)), "killed at {step}");
        let told = shop.get("/v1/journal?subject=all");
        let acts: Vec<_> = told["entries"].as_array().unwrap().iter().map(|entry| &entry["act"]).collect();
        assert_eq!(acts, ["bulk_ended", "bulk_started"], "killed at {step}");
    });
}

#[test]
fn a_bulk_act_killed_at_every_step_comes_to_the_same_on_sqlite() {
    killed_at_every_step(|| None);
}

#[test]
fn a_bulk_act_killed_at_every_step_comes_to_the_same_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    killed_at_every_step(|| Some(runtime.block_on(fresh_database())));
}
