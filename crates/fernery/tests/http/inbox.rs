//! A server with an inbox, and the workers that look through it.

use crate::server::{PATIENCE, TestServer};
use fernery::workers::{Pipeline, Surroundings, blueprints};
use fernery_core::blueprint::Blueprint;
use fernery_engine::door;
use fernery_engine::pipeline::azollas;
use serde_json::{Value, json};
use std::time::Duration;

/// Puts `mec` and `task_management` in force; nobody works for them.
pub(crate) async fn register(server: &TestServer) {
    for blueprint in [Blueprint::mec(), Blueprint::task_management()] {
        let done = server.engine.substrate().transact(move |sql| azollas::register(sql, &blueprint)).await;
        done.expect("registered");
    }
}

/// Starts the workers of `mec` and `task_management`.
pub(crate) async fn workers(server: &TestServer) -> Pipeline {
    let both = blueprints::read(&[]).expect("blueprints");
    let data = server.folder.path().join("data");
    Pipeline::start(server.engine.clone(), both, data, Surroundings::default()).await.expect("workers")
}

pub(crate) async fn waiting(server: &TestServer) -> Vec<Value> {
    let page = server.get("/v1/candidates").await;
    assert_eq!(page.status, 200, "{page:?}");
    page.json()["candidates"].as_array().expect("candidates").clone()
}

/// Captures lines, one call each, and waits for the candidates that triage makes of them; they come in the order of the lines.
pub(crate) async fn triaged(server: &TestServer, lines: &[&str]) -> Vec<Value> {
    let had = waiting(server).await.len();
    let mut ids = Vec::new();
    for line in lines {
        let made = server.post("/v1/captures", &json!({ "raw_content": line })).await;
        assert_eq!(made.status, 201, "{made:?}");
        ids.push(made.json()["capture_id"].clone());
    }
    let until = door::stop_watch() + PATIENCE;
    loop {
        let found = waiting(server).await;
        if found.len() == had + lines.len() {
            let of = |id: &Value| found.iter().find(|row| row["captures"][0]["capture_id"] == *id).cloned();
            return ids.iter().map(|id| of(id).expect("its candidate")).collect();
        }
        assert!(door::stop_watch() < until, "never triaged: {found:?}");
        // Over HTTP nobody says that triage is done.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Where something can be done to a candidate.
pub(crate) fn at(candidate: &Value, act: &str) -> String {
    let id = candidate["candidate_id"].as_str().expect("an id");
    if act.is_empty() { format!("/v1/candidates/{id}") } else { format!("/v1/candidates/{id}/{act}") }
}
