//! What nobody can carry out is said before the approval and afterwards, in the same words everywhere.

use super::{Detached, repository};
use crate::fresh_database::fresh_database;
use crate::program::patience::{eventually, until};
use crate::program::{Server, run_in};
use serde_json::Value;
use std::fs;

fn text_azolla() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let blueprint = "extends = \"mec\"\nazolla_id = \"text\"\ndiazotroph_type = \"TEXT_DIAZOTROPH\"\n\
                     [executors.TEXT_DIAZOTROPH]\nkind = \"remote\"\n";
    fs::write(dir.path().join("text.toml"), blueprint).unwrap();
    dir
}

/// The ticket waits for a worker, and everything that shows it says so.
fn says_that_no_worker_comes(server: &Server) {
    const SAID: &str = "no worker polls stream diazotroph:TEXT_DIAZOTROPH";
    server.run(["ticket", "new", "--id", "T", "--title", "Write it"]).exits(0);
    let approved = server.run(["ticket", "approve", "T", "--yes"]).exits(0).stdout;
    assert!(
        approved.contains(&format!("warning: approved, it would wait: {SAID}: start one (fernery worker")),
        "{approved}"
    );
    assert!(approved.contains("fernery init"), "{approved}");
    let job = until(|| {
        let ticket = server.run(["ticket", "show", "T", "--json"]).exits(0).json();
        ticket["workorders"][0]["work_order_id"].as_str().map(str::to_string)
    });
    let explained = server.run(["job", "explain", &job]).exits(0).stdout;
    assert!(explained.contains(SAID), "{explained}");
    for args in [&["ticket", "list"][..], &["ticket", "show", "T"], &["orient"]] {
        let shown = server.run(args.iter().copied()).exits(0).stdout;
        assert!(shown.contains(SAID), "{args:?}: {shown}");
    }
    let listed = server.run(["ticket", "list", "--json"]).exits(0).json();
    assert_eq!(listed["objectives"][0]["waiting"]["code"], "no_worker");
    // Somebody works on it: nothing is said any more.
    let claimed = until(|| server.claim("diazotroph:TEXT_DIAZOTROPH"));
    let listed = server.run(["ticket", "list", "--json"]).exits(0).json();
    assert_eq!(listed["objectives"][0]["waiting"], Value::Null, "{claimed}");
}

#[test]
fn a_ticket_without_a_worker_says_so_everywhere() {
    says_that_no_worker_comes(&Server::start_in(text_azolla(), &["--azolla", "text.toml"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_without_a_worker_says_so_everywhere_on_postgresql() {
    let database = fresh_database().await;
    let flags = ["--azolla", "text.toml", "--database", &database.url()];
    says_that_no_worker_comes(&Server::start_in(text_azolla(), &flags));
}

#[test]
fn an_agent_that_is_not_installed_is_named_before_the_approval() {
    let dir = repository("shop");
    let shop = dir.path().join("shop");
    run_in(&shop, ["init"]).exits(0);
    let file = shop.join("azolla.toml");
    fs::create_dir(shop.join("profiles")).unwrap();
    let profile =
        "name = \"absent\"\ninstall = \"get it somewhere\"\nargv = [\"no-such-agent\"]\ndialect = \"text\"\n";
    fs::write(shop.join("profiles/absent.toml"), profile).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let start = text.find("profile = ").unwrap();
    let end = start + text[start..].find('\n').unwrap();
    fs::write(&file, format!("{}profile = \"absent\"{}", &text[..start], &text[end..])).unwrap();
    let server = Detached::start(&shop, &[]);
    server.run(["ticket", "new", "--id", "T", "--title", "x"]).exits(0);
    let ticket = server.run(["ticket", "show", "T", "--json"]).exits(0).json();
    let unmanned = &ticket["approval"]["unmanned"];
    assert_eq!(unmanned["code"], "executor_unusable");
    let why = unmanned["why"].as_str().unwrap();
    assert!(why.contains("no-such-agent was not found") && why.contains("get it somewhere"), "{why}");
}

#[test]
fn a_worker_that_left_is_not_waited_for_a_minute() {
    let server = Server::start(&[]);
    let token = fs::read_to_string(server.data().join("worker.token")).unwrap();
    let id = server.run(["job", "enqueue", "--stream", "other", "--payload", "{}"]).exits(0).stdout;
    let explained =
        |id: &str| server.run(["job", "explain", id.trim(), "--json"]).exits(0).json()["code"].clone();
    assert_eq!(explained(&id), "no_worker");
    // A worker waits for jobs, and hangs up.
    let address = server.url.strip_prefix("http://").unwrap();
    let mut worker = std::net::TcpStream::connect(address).unwrap();
    let body = "{\"worker_id\":\"w\",\"streams\":[\"mail\"],\"max_wait_ms\":20000}";
    std::io::Write::write_all(
        &mut worker,
        format!(
            "POST /internal/worker/claim HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n{body}",
            token.trim(),
            body.len()
        )
        .as_bytes(),
    )
    .unwrap();
    let waiting = |claims: u32| {
        let line = format!("fernery_claims_waiting {claims}");
        eventually(|| server.get("/metrics").lines().any(|seen| seen == line))
    };
    assert!(waiting(1));
    drop(worker);
    assert!(waiting(0));
    let id = server.run(["job", "enqueue", "--stream", "mail", "--payload", "{}"]).exits(0).stdout;
    let since = fernery_engine::door::stop_watch();
    assert!(eventually(|| explained(&id) == "no_worker"));
    assert!(since.elapsed().as_secs() < 30, "it was waited for: {:?}", since.elapsed());
}
