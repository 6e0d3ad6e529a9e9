//! Notices: nobody is told unless a blueprint says so and the server's own list lets it out.

use crate::shop::{Shop, eventually};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A receiver that answers with these statuses, one after the other, and passes on heads and bodies.
fn receiver(statuses: Vec<u16>) -> (u16, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for (nth, stream) in listener.incoming().flatten().enumerate() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut line, mut length) = (String::new(), String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head.push_str(&line);
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let status = statuses.get(nth).copied().unwrap_or(200);
            let mut stream = stream;
            let _ = write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = tell.send((head, serde_json::from_slice(&body).unwrap()));
        }
    });
    (port, told)
}

fn blueprint(port: u16) -> String {
    format!(
        "extends = \"task_management\"\nazolla_id = \"task_management\"\n\
         [notices]\nwebhook = \"http://127.0.0.1:{port}/hook\"\nsecret_env = \"HOOK_SECRET\"\non = [\"session_manifest\"]\n"
    )
}

fn asks(shop: &Shop, request: &str) {
    shop.post("/v1/azollas/task_management/manifests", json!({"request_id": request}));
    assert!(eventually(|| !shop.get(&format!("/v1/manifest_requests/{request}"))["manifest"].is_null()));
}

#[test]
fn a_new_manifest_is_told_once_it_gets_through_and_unchanged_facts_are_not_told() {
    let (port, told) = receiver(vec![503, 200]);
    let host = format!("127.0.0.1:{port}");
    let flags = ["--notices-hosts", host.as_str(), "--notices-private"];
    let shop = Shop::open_with_env(&blueprint(port), &flags, &[("HOOK_SECRET", "s3cret")]);
    shop.post("/v1/objectives", json!({"objective_id": "t", "title": "Mend it"}));
    asks(&shop, "r1");
    let (first, body) = told.recv_timeout(Duration::from_secs(30)).expect("it was tried");
    let (second, again) = told.recv_timeout(Duration::from_secs(30)).expect("and tried again");
    assert_eq!(body, again);
    assert_eq!(body["kind"], "session_manifest");
    assert!(
        body["artifact"]["prioritized_orientation"][0].as_str().unwrap().contains("fernery ticket cancel t"),
        "{body:#}"
    );
    let header = |head: &str, name: &str| {
        let found = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
        found.unwrap_or_else(|| panic!("{name} in {head}")).to_string()
    };
    assert_eq!(header(&first, "fernery-notice-id"), header(&second, "fernery-notice-id"));
    assert!(header(&first, "fernery-signature").contains("v1="));
    asks(&shop, "r2");
    assert_eq!(shop.get("/v1/manifest_requests/r2")["reason"], "UNCHANGED");
    shop.post("/v1/objectives", json!({"objective_id": "t2", "title": "Mend that too"}));
    asks(&shop, "r3");
    let (_, next) = told.recv_timeout(Duration::from_secs(30)).expect("what has changed is told");
    assert_eq!(
        next["artifact"]["manifest_id"],
        shop.get("/v1/manifest_requests/r3")["manifest"]["manifest_id"]
    );
}

#[test]
fn a_host_that_is_not_listed_is_not_told_and_the_dead_letter_says_why() {
    let (port, told) = receiver(vec![]);
    let shop = Shop::open_with_env(&blueprint(port), &[], &[("HOOK_SECRET", "s3cret")]);
    asks(&shop, "r1");
    let mut seen = Value::Null;
    let so = eventually(|| {
        seen = shop.get("/v1/dlq");
        seen.to_string().contains("notice:task_management")
    });
    assert!(so, "{seen:#}");
    assert!(told.try_recv().is_err(), "nobody was called");
    let (status, refused) =
        shop.post("/v1/jobs", json!({"stream": "notice:task_management", "payload": {"channel": "webhook"}}));
    assert_eq!(
        (status, refused["code"].as_str()),
        (422, Some("reserved_stream")),
        "nobody else makes notices"
    );
}
