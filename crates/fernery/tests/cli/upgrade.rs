//! This version on what a server of an earlier one left when it was killed: a job of every kind, tickets under way, an inbox and
//! tokens. The folder beside this file has it as text, for both databases; `scripts/make-upgrade-fixture` made it.

use crate::fresh_database::empty_database;
use crate::program::Server;
use crate::program::patience::until;
use crate::upkeep::{database_version, file_version};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const TEXT: &str = "diazotroph:TEXT_DIAZOTROPH";
const PATCH: &str = "diazotroph:PATCH_DIAZOTROPH";

/// The blueprints of before, and a retention that keeps what finished when the fixture was made.
const AS_BEFORE: [&str; 6] = ["--azolla", "patches.toml", "--azolla", "notes.toml", "--retention", "36500d"];

fn left() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/upgrade/b9f2f0a")
}

/// A folder with the configuration of before.
fn configured() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["patches.toml", "notes.toml"] {
        std::fs::copy(left().join(name), dir.path().join(name)).unwrap();
    }
    dir
}

/// What a server on this database left.
struct Left {
    dir: TempDir,
    /// As SQL.
    database: String,
    /// What its workers knew.
    held: Value,
}

fn left_on(database: &str) -> Left {
    let (dir, from) = (configured(), left().join(database));
    let data = dir.path().join(".fernery");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
    for name in ["operator.token", "worker.token", "shop.token", "journal.head"] {
        std::fs::copy(from.join(name), data.join(name)).unwrap();
        std::fs::set_permissions(data.join(name), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let read = |name: &str| std::fs::read_to_string(from.join(name)).unwrap();
    Left { dir, database: read("database.sql"), held: serde_json::from_str(&read("held.json")).unwrap() }
}

fn complete(server: &Server, claimed: &Value, result: &Value) -> (u16, Value) {
    let mut report = json!({ "result": result });
    for key in ["worker_id", "job_id", "attempt_id", "lease_token", "stream", "message_id"] {
        report[key] = claimed[key].clone();
    }
    server.post("worker.token", "/internal/worker/complete", &report)
}

/// Claims the next job of a stream and completes it; what was claimed.
#[track_caller]
fn work(server: &Server, stream: &str, result: &Value) -> Value {
    let mut claimed = until(|| server.claim(stream));
    claimed["worker_id"] = "w1".into();
    let (status, answer) = complete(server, &claimed, result);
    assert_eq!(status, 200, "{answer}");
    claimed
}

/// The worker of before wakes up, and changes nothing.
#[track_caller]
fn is_fenced(server: &Server, held: &Value) {
    let (status, answer) = complete(server, held, &json!({ "late": true }));
    assert_eq!((status, &answer["code"]), (409, &json!("lease_lost")), "{answer}");
}

fn job(server: &Server, number: u32) -> Value {
    let (status, job) = server.read(&format!("/v1/jobs/00000000-0000-7000-8000-{number:012}"));
    assert_eq!(status, 200, "{job}");
    job
}

fn outcomes(job: &Value) -> Vec<&str> {
    job["attempts"].as_array().unwrap().iter().map(|one| one["outcome"].as_str().unwrap()).collect()
}

fn jobs_go_on(server: &Server, held: &Value) {
    assert_eq!(job(server, 1)["status"], "QUEUED");
    work(server, "queued", &json!({ "sent": true }));
    assert_eq!(
        (&job(server, 1)["status"], &job(server, 1)["result"]),
        (&json!("SUCCEEDED"), &json!({"sent": true}))
    );

    // A claim settles leases that have expired, and so does the reaper.
    let again = work(server, "running", &json!({}));
    assert_eq!((&again["job_id"], &again["attempt_no"]), (&held["running"]["job_id"], &json!(2)));
    is_fenced(server, &held["running"]);
    assert_eq!(outcomes(&job(server, 2)), ["LOST", "SUCCEEDED"]);

    let dead = server.run(["dlq", "list", "--json"]).exits(0).json();
    assert_eq!(dead["dead_letters"].as_array().map(Vec::len), Some(1), "{dead}");
    let id = job(server, 3)["job_id"].clone();
    assert_eq!(
        (&dead["dead_letters"][0]["job_id"], &job(server, 3)["error"]["code"]),
        (&id, &json!("broken"))
    );
    server.run(["dlq", "redrive", id.as_str().unwrap()]).exits(0);
    work(server, "dead", &json!({}));
    assert_eq!(outcomes(&job(server, 3)), ["FAILED", "SUCCEEDED"]);

    let finished = job(server, 4);
    assert_eq!((&finished["status"], &finished["result"]), (&json!("SUCCEEDED"), &json!({ "total": 12 })));
    let (status, answer) = complete(server, &held["finished"], &held["finished"]["result"]);
    assert_eq!((status, &answer["ok"]), (200, &json!(true)), "the answer of before is given again: {answer}");
    assert_eq!(job(server, 4), finished);
}

fn ticket(server: &Server, id: &str) -> Value {
    server.run(["ticket", "show", id, "--json"]).exits(0).json()
}

#[track_caller]
fn comes_to(server: &Server, id: &str, status: &str) -> Value {
    until(|| Some(ticket(server, id)).filter(|ticket| ticket["objective"]["status"] == status))
}

/// Tickets whose output is text: what was approved holds.
fn tickets_go_on(server: &Server, held: &Value) {
    let output = json!({"title": "done", "content": "it", "notes": "", "metadata": {"outcome": "OUTPUT"}});
    for id in ["N-RUN", "N-TODO", "N-NEW"] {
        if id == "N-NEW" {
            assert_eq!(ticket(server, id)["objective"]["status"], "NEW");
            server.run(["ticket", "approve", id, "--yes"]).exits(0);
        }
        let claimed = work(server, TEXT, &output);
        assert_eq!(claimed["payload"]["workorder"]["objective_id"], id, "{claimed}");
        if id == "N-RUN" {
            assert_eq!((&claimed["job_id"], &claimed["attempt_no"]), (&held[id]["job_id"], &json!(2)));
            is_fenced(server, &held[id]);
        }
        let done = comes_to(server, id, "DONE");
        assert_eq!(done["runs"][0]["gate_result"], "PASS", "{done}");
    }
    server.run(["ticket", "confirm", "N-DONE"]).exits(0);
}

/// Patches are held to more than before: they need a repository, and what was approved without one is approved again.
fn patches_are_judged_by_the_rules_of_now(server: &Server, held: &Value) {
    let claimed = work(
        server,
        PATCH,
        &json!({"title": "done", "content": "no patch", "notes": "", "metadata": {"outcome": "OUTPUT"}}),
    );
    assert_eq!(claimed["job_id"], held["M-RUN"]["job_id"]);
    is_fenced(server, &held["M-RUN"]);
    let judged = comes_to(server, "M-RUN", "NEW");
    assert_eq!(judged["runs"][0]["gate_result"], "FAIL", "{judged}");
    assert!(judged["runs"][0]["gate_reason"].as_str().unwrap().starts_with("gate patch: "), "{judged}");
    for id in ["M-RUN", "M-TODO", "M-NEW"] {
        comes_to(server, id, "NEW");
        let refused = server.run(["ticket", "approve", id, "--yes", "--json"]).exits(4).json();
        assert_eq!(refused["code"], "no_repository", "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains("`fernery init`"), "{refused}");
    }
}

fn inbox_goes_on(server: &Server) {
    let waiting = until(|| {
        let page = server.run(["triage", "list", "--json"]).exits(0).json();
        Some(page["candidates"].as_array().unwrap().clone()).filter(|found| found.len() == 2)
    });
    let titles: Vec<_> = waiting.iter().map(|one| one["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Call the printer about the invoice", "Buy more paper"], "the oldest first");
    for (candidate, ticket_id) in waiting.iter().zip(["C-1", "C-2"]) {
        let id = candidate["candidate_id"].as_str().unwrap();
        server.run(["triage", "promote", id, "--azolla", "notes", "--id", ticket_id]).exits(0);
        let promoted = ticket(server, ticket_id);
        assert_eq!(promoted["objective"]["title"], candidate["title"]);
        assert_eq!(promoted["objective"]["status"], "NEW");
    }
}

/// All of it, and what came of it, leaves in a folder that a new instance takes.
fn moves_away(server: &Server) {
    let verified = server.run(["verify"]).exits(0).stdout;
    assert!(verified.contains("is intact") && verified.contains("matches the saved head"), "{verified}");
    server.run(["export", "out"]).exits(0);
    let other = Server::start_in(configured(), &AS_BEFORE);
    other.run(["import", server.dir.path().join("out").to_str().unwrap()]).exits(0);
    assert_eq!(ticket(&other, "N-DONE")["objective"], ticket(server, "N-DONE")["objective"]);
    other.run(["verify"]).exits(0);
}

fn goes_on(server: &Server, held: &Value) {
    let job = json!({ "stream": "orders", "payload": {} });
    assert_eq!(server.post("shop.token", "/v1/jobs", &job).0, 201, "a token of before");
    jobs_go_on(server, held);
    tickets_go_on(server, held);
    patches_are_judged_by_the_rules_of_now(server, held);
    inbox_goes_on(server);
    moves_away(server);
}

#[test]
fn what_an_earlier_version_left_in_a_file_goes_on() {
    let Left { dir, database, held } = left_on("sqlite");
    let path = dir.path().join(".fernery/fernery.db");
    Connection::open(&path).unwrap().execute_batch(&database).unwrap();
    assert_eq!(file_version(&path), 5);
    let server = Server::start_in(dir, &AS_BEFORE);
    goes_on(&server, &held);
    assert!(file_version(&path) > 5);
    let copy = server.data().join("fernery.db.schema-v5");
    assert_eq!(file_version(&copy), 5);
    let running: i64 = Connection::open(&copy)
        .unwrap()
        .query_row("SELECT count(*) FROM leases", [], |row| row.get(0))
        .unwrap();
    assert_eq!(running, 3, "the copy is of before the first write");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_earlier_version_left_in_postgresql_goes_on() {
    let Left { dir, database, held } = left_on("postgres");
    let restored = empty_database().await;
    restored.client().await.batch_execute(&database).await.unwrap();
    assert_eq!(database_version(&restored).await, 8);
    let url = restored.url();
    let mut flags = AS_BEFORE.to_vec();
    flags.extend(["--database", &url]);
    let server = Server::start_in(dir, &flags);
    goes_on(&server, &held);
    assert!(database_version(&restored).await > 8);
}

/// What a candidate can have as its date: days that only some months have, times of other zones, and what is no date at all.
const DATES: [&str; 16] = [
    "\"2026-01-29\"",
    "\"2026-04-30\"",
    "\"2026-12-31\"",
    "\"2028-02-29\"",
    "\"2027-02-29\"",
    "\"2026-02-31\"",
    "\"2026-11-31\"",
    "\"2026-08-31T09:30:00Z\"",
    "\"2026-12-31T23:30:00.123Z\"",
    "\"2026-10-30T01:00:00+02:00\"",
    "\"2026-09-31T01:00:00Z\"",
    "\"2026-08-31T24:30:00Z\"",
    "\"2026-08-31T09:30:00\"",
    "\"friday\"",
    "\"now\"",
    "20260131",
];

/// A statement that writes a candidate for each of them, and when each is due.
fn dated(table: &str, at: &str) -> (String, Vec<Option<i64>>) {
    let (mut rows, mut due) = (Vec::new(), Vec::new());
    for (n, date) in DATES.iter().enumerate() {
        let metadata = format!("{{\"due_at\":{date}}}");
        rows.push(format!(
            "('d-{n:02}', 'task_management', '{{\"acceptance_criteria\":\"\",\"importance\":2,\"metadata\":{metadata},\
              \"title\":\"T\",\"urgency\":1}}', 'builtin', 'WAITING', {at}, {at})"
        ));
        let metadata = serde_json::from_str(&metadata).unwrap();
        due.push(fernery_core::inbox::deadline::due_of(&metadata).map(|at| at.as_millis()));
    }
    let columns = "candidate_id, azolla_id, document, made_by, status, created_at, updated_at";
    (format!("INSERT INTO {table} ({columns}) VALUES {}", rows.join(", ")), due)
}

#[test]
fn dates_of_candidates_are_taken_over_in_a_file() {
    let Left { dir, database, .. } = left_on("sqlite");
    let path = dir.path().join(".fernery/fernery.db");
    let (insert, due) = dated("candidates", "1794978626613");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&database).unwrap();
    db.execute_batch(&insert).unwrap();
    drop(db);
    let server = Server::start_in(dir, &AS_BEFORE);
    let db = Connection::open(&path).unwrap();
    let asked = "SELECT due_at, urgency FROM candidates WHERE candidate_id LIKE 'd-%' ORDER BY candidate_id";
    let mut statement = db.prepare(asked).unwrap();
    let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let found: Vec<(Option<i64>, i64)> = found.map(Result::unwrap).collect();
    assert_eq!(found, due.into_iter().map(|at| (at, 1)).collect::<Vec<_>>(), "{DATES:?}");
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dates_of_candidates_are_taken_over_in_postgresql() {
    let Left { dir, database, .. } = left_on("postgres");
    let restored = empty_database().await;
    let client = restored.client().await;
    let (insert, due) = dated("fernery.candidates", "now()");
    client.batch_execute(&database).await.unwrap();
    client.batch_execute(&insert).await.unwrap();
    let url = restored.url();
    let mut flags = AS_BEFORE.to_vec();
    flags.extend(["--database", &url]);
    let server = Server::start_in(dir, &flags);
    let asked = "SELECT (extract(epoch FROM due_at) * 1000)::bigint, urgency FROM fernery.candidates
                 WHERE candidate_id LIKE 'd-%' ORDER BY candidate_id";
    let rows = client.query(asked, &[]).await.unwrap();
    let found: Vec<(Option<i64>, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, due.into_iter().map(|at| (at, 1)).collect::<Vec<_>>(), "{DATES:?}");
    let helpers = "SELECT 1 FROM pg_proc WHERE proname = 'due_taken_over'";
    assert!(client.query(helpers, &[]).await.unwrap().is_empty(), "nothing of the upgrade is left");
    drop(server);
}
