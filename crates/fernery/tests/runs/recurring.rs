//! The real program killed around the firing of lines that come again, on both databases: each time that has come makes exactly
//! one candidate.

use crate::fresh_database::{FreshDatabase, fresh_database};
use crate::inbox::blueprint;
use crate::program::at_once::at_once;
use crate::shop::{Call, Shop, dies_while, eventually, write};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// In the transaction that moves the next time and stores the capture, of the first line and of the last; after it; and on the way
/// to the candidate.
const STEPS: [&str; 8] = [
    "recurrence-advanced",
    "recurrence-captured",
    "recurrence-advanced@3",
    "recurrence-captured@3",
    "recurrence-durable",
    "captures-announced",
    "triage-scheduled",
    "gate-judged",
];

const LINES: [&str; 3] = ["water the plants", "feed the cat", "air the room"];

/// Captures the lines as of long ago: the time of each has come, many times over, which counts as once. It may be done again.
fn acts(call: &Call<'_>) -> Option<Value> {
    for (n, line) in LINES.iter().enumerate() {
        let body = json!({"capture_id": format!("line-{n}"), "raw_content": format!("every day {line}"),
                          "source_label": "test", "captured_at": "2026-01-05T12:00:00Z"});
        call("POST", "/v1/captures", body)?;
    }
    Some(Value::Null)
}

/// How many candidates there are of each title.
fn titles(shop: &Shop) -> BTreeMap<String, usize> {
    let mut titles = BTreeMap::new();
    for one in shop.get("/v1/candidates?status=ALL&limit=500")["candidates"].as_array().unwrap() {
        *titles.entry(one["title"].as_str().unwrap().to_string()).or_default() += 1;
    }
    titles
}

fn at_rest(shop: &Shop) -> bool {
    let lines = shop.get("/v1/recurrences")["recurrences"].clone();
    let passed = |line: &Value| line["next_at"].as_str().unwrap() < "2026-02";
    let fired = lines.as_array().is_some_and(|all| all.len() == LINES.len() && !all.iter().any(passed));
    fired && shop.get("/v1/candidates")["pending_captures"] == 0
}

fn killed_around_a_firing(database: impl Fn() -> Option<FreshDatabase> + Sync) {
    let blueprint = blueprint("");
    at_once(&STEPS, |step| {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &blueprint);
        let database = database();
        let url = database.as_ref().map(FreshDatabase::url);
        let flags: Vec<&str> = url.iter().flat_map(|url| ["--database", url]).collect();
        dies_while(step, dir.path(), &flags, acts);
        let shop = Shop::open_in(dir, &blueprint, &flags);
        acts(&|method, path, body| shop.call(method, path, body)).expect("answered");
        assert!(eventually(|| at_rest(&shop)), "killed at {step}: {:#}", shop.get("/v1/recurrences"));
        // The line itself, and the one time that is made up for.
        let wanted: BTreeMap<String, usize> = LINES.map(|line| (line.to_string(), 2)).into();
        assert!(eventually(|| titles(&shop) == wanted), "killed at {step}: {:?}", titles(&shop));
        assert_eq!(shop.get("/v1/journal/verify")["fault"], Value::Null, "killed at {step}");
    });
}

#[test]
fn campaign_killed_around_a_firing_each_time_makes_one_candidate_on_sqlite() {
    killed_around_a_firing(|| None);
}

#[test]
fn campaign_killed_around_a_firing_each_time_makes_one_candidate_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    killed_around_a_firing(|| Some(runtime.block_on(fresh_database())));
}
