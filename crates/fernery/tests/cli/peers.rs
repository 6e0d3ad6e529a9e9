//! Several servers on one PostgreSQL: each is seen by all, for as long as it lives, and says where it is not as the others.

use crate::fresh_database::fresh_database;
use crate::program::Server;
use fernery_core::Timestamp;
use fernery_core::limits::PROCESS_ALIVE;
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

fn listed(server: &Server) -> Vec<Value> {
    let (status, mut answer) = server.read("/v1/processes");
    assert_eq!(status, 200, "{answer}");
    let Value::Array(processes) = answer["processes"].take() else { panic!("no list: {answer}") };
    processes
}

fn pids(server: &Server) -> Vec<u64> {
    listed(server).iter().map(|process| process["pid"].as_u64().unwrap()).collect()
}

fn pid(server: &Server) -> u64 {
    u64::from(server.pid())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_lists_all_servers_and_a_killed_one_for_15_seconds() {
    let database = fresh_database().await;
    let url = database.url();
    let one = Server::start(&["--database", &url]);
    let two = Server::start(&["--database", &url]);
    let both = [pid(&one), pid(&two)];
    assert_eq!((pids(&one), pids(&two)), (both.to_vec(), both.to_vec()));
    let first = &listed(&two)[0];
    for (field, value) in [
        ("url", one.url.as_str().into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("lease_ttl_ms", Value::from(60_000)),
        ("heartbeat_interval_ms", 20_000.into()),
        ("reap_interval_ms", 5_000.into()),
        ("transport", "none".into()),
    ] {
        assert_eq!(first[field], value, "{first}");
    }
    let table = two.run(["process", "list"]).exits(0).stdout;
    assert!(table.contains(&one.url) && table.contains(&two.url), "{table}");

    let killed = pid(&two);
    two.signal(Signal::KILL);
    two.ended();
    let client = database.client().await;
    let sql = "SELECT (extract(epoch FROM seen_at) * 1000)::bigint FROM fernery.processes WHERE pid = $1";
    let seen: i64 = client.query_one(sql, &[&(killed as i32)]).await.unwrap().get(0);
    // The clock stands at the last moment of its life.
    let last = Timestamp::from_millis(seen).after(PROCESS_ALIVE - Duration::from_millis(1));
    database.stop_clock(last).await;
    let is_now = |process: &Value| process["seen_at"] == last.to_string();
    while !listed(&one).iter().any(is_now) {
        tokio::task::yield_now().await;
    }
    assert_eq!(pids(&one), both);
    database.step_clock(1).await;
    assert_eq!(pids(&one), [pid(&one)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_in_good_order_is_listed_no_more() {
    let database = fresh_database().await;
    let url = database.url();
    let one = Server::start(&["--database", &url]);
    let two = Server::start(&["--database", &url]);
    assert_eq!(pids(&one).len(), 2);
    two.signal(Signal::TERM);
    assert!(two.ended().0.success());
    assert_eq!(pids(&one), [pid(&one)]);
    one.signal(Signal::TERM);
    assert!(one.ended().0.success());
    let left = database.client().await.query("SELECT FROM fernery.processes", &[]).await.unwrap();
    assert!(left.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_another_lease_says_so_and_the_doctor_too() {
    let database = fresh_database().await;
    let url = database.url();
    let one = Server::start(&["--database", &url]);
    let like_it = Server::start(&["--database", &url]);
    let doctor = || {
        // Its exit code is about the machine as well.
        let answer = one.run(["doctor", "--json", "--database", &url]);
        let Value::Array(findings) = answer.json() else { panic!("no array: {answer:?}") };
        findings
    };
    let said = |findings: &[Value], check: &str| -> Vec<(String, String)> {
        let of_check = findings.iter().filter(|finding| finding["check"] == check);
        let text = |value: &Value| value.as_str().unwrap().to_string();
        of_check.map(|finding| (text(&finding["level"]), text(&finding["found"]))).collect()
    };
    let alike = doctor();
    assert_eq!(said(&alike, "processes"), [("ok".into(), "2 are alive, all with the same settings".into())]);
    let shown = said(&alike, "process");
    assert!(shown[0].1.contains(&one.url) && shown[1].1.contains(&like_it.url), "{shown:?}");

    let other = Server::start(&["--database", &url, "--lease-ttl", "30s"]);
    let host = listed(&one)[0]["host"].as_str().unwrap().to_string();
    let name = |server: &Server| format!("{host}:{}", server.pid());
    let alike = format!("60s at {}, {}", name(&one), name(&like_it));
    let told = format!("lease_ttl differs: 30s at {}; {alike}", name(&other));
    assert_eq!(said(&doctor(), "processes"), [("warning".into(), told)]);
    let differs =
        format!("this process has other settings than its peers differs=lease_ttl is 30s here and {alike}");
    other.signal(Signal::TERM);
    let (_, log) = other.ended_with_log();
    assert_eq!(
        log.lines().filter(|line| line.contains("WARN") && line.contains(&differs)).count(),
        1,
        "{log}"
    );
    like_it.signal(Signal::TERM);
    let (_, log) = like_it.ended_with_log();
    assert!(!log.contains("other settings than its peers"), "{log}");
}

#[test]
fn a_server_on_sqlite_lists_itself() {
    let server = Server::start(&[]);
    assert_eq!(pids(&server), [pid(&server)]);
    let listed = server.run(["process", "list", "--json"]).exits(0).json();
    assert_eq!(listed["processes"][0]["url"], server.url.as_str());
}
