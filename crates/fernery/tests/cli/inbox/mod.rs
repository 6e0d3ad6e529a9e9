//! The inbox from the command line, against a real server: captured whatever happens, looked through by a person, and one page
//! that says what needs them.

mod capture;
mod kept;
mod orient;
mod person;
mod suggestions;
mod terminal;
mod triage;

use crate::program::patience::until;
use crate::program::{self, Server};
use serde_json::Value;
use std::path::PathBuf;

/// All captures that the server has, the newest first.
fn captures(server: &Server) -> Vec<Value> {
    let (mut found, mut path) = (Vec::new(), "/v1/captures?limit=100".to_string());
    loop {
        let (status, page) = server.read(&path);
        assert_eq!(status, 200, "{page}");
        found.extend(page["captures"].as_array().unwrap().iter().cloned());
        let Some(cursor) = page["next_cursor"].as_str() else { return found };
        path = format!("/v1/captures?limit=100&cursor={cursor}");
    }
}

/// What was captured, in words, sorted.
fn texts(server: &Server) -> Vec<String> {
    let mut texts: Vec<_> =
        captures(server).iter().map(|c| c["raw_content"].as_str().unwrap().to_string()).collect();
    texts.sort();
    texts
}

/// The files in the spool of a server's data directory.
fn spooled(server: &Server) -> Vec<PathBuf> {
    files(&server.data().join("captures"))
}

fn files(dir: &std::path::Path) -> Vec<PathBuf> {
    let Ok(listed) = std::fs::read_dir(dir) else { return Vec::new() };
    listed.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
}

/// Waits for so many candidates that wait for a person; the oldest first.
#[track_caller]
fn candidates(server: &Server, count: usize) -> Vec<Value> {
    until(|| {
        let page = server.run(["triage", "--json"]).exits(0).json();
        let found = page["candidates"].as_array().unwrap().clone();
        (found.len() == count).then_some(found)
    })
}

fn id(candidate: &Value) -> String {
    candidate["candidate_id"].as_str().unwrap().to_string()
}

/// The end of its id.
fn short(candidate: &Value) -> String {
    let id = id(candidate);
    format!("{}-{}", &id[..8], &id[id.len() - 6..])
}
