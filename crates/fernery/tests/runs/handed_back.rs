//! A server that is asked to end while a gate runs gives its claim back: the next one need not wait until it expires.

use crate::fresh_database::fresh_database;
use crate::program::Server;
use crate::shop::{Shop, blueprint, eventually, write};
use fernery_engine::door::stop_watch;
use rustix::process::Signal;
use serde_json::json;
use std::fs;

/// The lease of a gate lasts a minute here.
fn a_gate_is_handed_back(database: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap();
    let script =
        format!("echo began >>{0}/gate.log; test -e {0}/go || exec tail -f /dev/null", place.display());
    let gates = format!(
        "gates = [{{ kind = \"command\", name = \"check\", argv = [\"/bin/sh\", \"-c\", {}], timeout = \"10m\", sandbox = \"none\" }}]\n",
        json!(script)
    );
    write(dir.path(), &blueprint("cat >/dev/null; echo hello", &gates));
    let flags: Vec<&str> = ["--azolla", "shop.toml"].iter().chain(database).copied().collect();
    let shop = Shop { server: Server::start_in(dir, &flags) };
    shop.ticket("t");
    let began = || fs::read_to_string(place.join("gate.log")).unwrap_or_default().lines().count();
    assert!(eventually(|| began() == 1));
    shop.server.signal(Signal::TERM);
    let (status, dir) = shop.server.ended();
    assert!(status.success(), "{status}");
    fs::write(place.join("go"), "").unwrap();
    let since = stop_watch();
    let shop = Shop { server: Server::start_in(dir, &flags) };
    shop.until_status("t", "DONE");
    assert!(since.elapsed().as_secs() < 30, "its claim had to expire: {:?}", since.elapsed());
    assert_eq!(began(), 2);
}

#[test]
fn a_gate_is_handed_back_on_sqlite() {
    a_gate_is_handed_back(&[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_is_handed_back_on_postgresql() {
    let database = fresh_database().await;
    let url = database.url();
    tokio::task::spawn_blocking(move || a_gate_is_handed_back(&["--database", &url])).await.unwrap();
}
