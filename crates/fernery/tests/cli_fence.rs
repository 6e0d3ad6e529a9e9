//! `fernery fence`: after a restore, nobody from before can write.

mod program;

use fernery_client::Client;
use program::{Server, run_in};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

fn post(url: &str, token: &str, path: &str, body: &Value) -> Result<Value, u16> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(url, Some(token.trim()), None).unwrap();
        match client.post::<Value>(path, body, Duration::from_secs(5)).await {
            Ok(reply) => Ok(reply.read().unwrap()),
            Err(fernery_client::ClientError::Refused { problem, .. }) => Err(problem.status),
            Err(other) => panic!("{other}"),
        }
    })
}

#[test]
fn a_worker_from_before_the_restore_is_refused_and_its_job_is_claimed_anew() {
    let server = Server::start(&[]);
    let token = std::fs::read_to_string(server.data().join("worker.token")).unwrap();
    server.run(["job", "enqueue", "--stream", "s", "--payload", "{}"]).exits(0);
    let ask = json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": 0 });
    let held = post(&server.url, &token, "/internal/worker/claim", &ask).unwrap();
    let busy = server.run(["fence"]).exits(1);
    assert!(busy.stderr.contains("in use by process"), "{busy:?}");

    server.signal(Signal::TERM);
    let (_, dir) = server.ended();
    let fenced = run_in(dir.path(), ["fence", "--json"]).exits(0).json();
    assert_eq!(fenced["leases_freed"], 1);
    assert!(run_in(dir.path(), ["fence"]).exits(0).stdout.contains("0 leases freed"));

    let data = dir.path().join(".fernery");
    let server = Server::start(&["--data", data.to_str().unwrap()]);
    let mut late = held.clone();
    late["worker_id"] = json!("w");
    late["result"] = json!({});
    assert_eq!(post(&server.url, &token, "/internal/worker/complete", &late), Err(409));
    let again = post(&server.url, &token, "/internal/worker/claim", &ask).unwrap();
    assert_eq!((&again["job_id"], &again["attempt_no"]), (&held["job_id"], &json!(2)));
}

#[test]
fn where_there_is_no_database_none_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let refused = run_in(dir.path(), ["fence"]).exits(1);
    assert!(refused.stderr.contains("nothing to fence"), "{refused:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_database_of_somebody_else_is_left_alone() {
    let server = std::env::var("FERNERY_TEST_POSTGRES")
        .expect("run ./test, or scripts/with-services cargo nextest run");
    let name = format!("fence_{:032x}", u128::from_ne_bytes(fernery_engine::door::random_bytes()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (admin, connection) =
        runtime.block_on(tokio_postgres::connect(&server, tokio_postgres::NoTls)).unwrap();
    runtime.spawn(connection);
    runtime.block_on(admin.batch_execute(&format!("CREATE DATABASE {name}"))).unwrap();
    let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
    let dir = tempfile::tempdir().unwrap();
    let refused: program::Answer = program::fernery()
        .current_dir(dir.path())
        .env("FERNERY_DATABASE", &url)
        .arg("fence")
        .output()
        .unwrap()
        .into();
    assert!(refused.exits(1).stderr.contains("nothing to fence"));
    runtime.block_on(admin.batch_execute(&format!("DROP DATABASE {name}"))).unwrap();
}
