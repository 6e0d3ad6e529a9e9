//! The stream that says that something has changed.

use crate::browser::{Browser, Site, attribute, signed_in};
use crate::server::{PATIENCE, TestServer};
use serde_json::json;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

crate::on_both_backends!(
    a_change_is_told_by_its_topic,
    every_change_that_pages_show_is_told,
    a_browser_that_comes_back_is_told_what_it_missed,
    a_stream_begins_where_its_page_was_made,
);

/// A stream as a browser reads it.
struct Stream(BufReader<TcpStream>);

/// One event.
#[derive(Debug, Default)]
struct Told {
    id: String,
    topics: Vec<String>,
}

impl Stream {
    async fn open(browser: &Browser, site: &Site, known: Option<&str>) -> Self {
        Self::open_at(browser, site, "/events", known).await
    }

    async fn open_at(browser: &Browser, site: &Site, path: &str, known: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(site.addr).await.expect("a connection");
        let mut head = browser.head(site, "GET", path);
        if let Some(known) = known {
            head.push_str(&format!("last-event-id: {known}\r\n"));
        }
        stream.write_all((head + "\r\n").as_bytes()).await.expect("sent");
        Self(BufReader::new(stream))
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.0.read_line(&mut line)).await.expect("a line in time");
        read.ok().filter(|n| *n > 0).map(|_| line.trim_end().to_string())
    }

    async fn next(&mut self) -> Told {
        let mut told = Told::default();
        loop {
            let line = self.line().await.expect("the stream is open");
            if let Some(id) = line.strip_prefix("id: ") {
                told.id = id.to_string();
            }
            if let Some(data) = line.strip_prefix("data:") {
                told.topics = data.split_whitespace().map(str::to_string).collect();
                return told;
            }
        }
    }

    /// Until one of these topics has changed.
    async fn until(&mut self, topic: &str) -> Told {
        loop {
            let told = self.next().await;
            if told.topics.iter().any(|other| other == topic) {
                return told;
            }
        }
    }

    async fn until_over(mut self) {
        while self.line().await.is_some() {}
    }
}

async fn a_change_is_told_by_its_topic(server: TestServer) {
    let (browser, site) = signed_in(&server, &server.operator).await;
    let mut stream = Stream::open(&browser, &site, None).await;
    let first = stream.next().await;
    assert!(first.topics.is_empty() && !first.id.is_empty(), "{first:?}");
    server.enqueue("build").await;
    let told = stream.until("jobs").await;
    assert!(!told.topics.contains(&"tickets".to_string()), "{told:?}");
    assert_ne!(told.id, first.id);
    server.stop().await;
}

async fn every_change_that_pages_show_is_told(server: TestServer) {
    let held = server.leased("build").await;
    let (job, other) = (held["job_id"].as_str().expect("an id"), server.token("viewer").await);
    let (browser, site) = signed_in(&server, &server.operator).await;
    let mut stream = Stream::open(&browser, &site, None).await;
    stream.next().await;
    // The counts of the stream stay as they are.
    for act in ["pause", "resume"] {
        assert_eq!(server.post(&format!("/v1/streams/build/{act}"), &json!({})).await.status, 200);
        let told = stream.until("jobs").await;
        assert!(!told.topics.contains(&"tickets".to_string()), "{told:?}");
    }
    let mut beat = json!({ "worker_id": "w", "job_id": job, "lease_token": held["lease_token"] });
    for progress in [json!({ "percent": 40, "note": "4 of 10" }), json!(null)] {
        beat["progress"] = progress;
        assert_eq!(server.work("heartbeat", &beat).await.status, 200);
        let told = stream.until("beats").await;
        assert!(!told.topics.contains(&"jobs".to_string()), "a heartbeat moves no job: {told:?}");
    }
    assert_eq!(server.post(&format!("/v1/jobs/{job}/cancel"), &json!({})).await.status, 200);
    stream.until("beats").await;
    // How far an act on all that match is, where it moves no job.
    server.bulk_acts_come_to(0).await;
    server.enqueue("later").await;
    stream.until("jobs").await;
    let act =
        json!({ "verb": "cancel", "status": "QUEUED", "before": "2999-01-01T00:00:00Z", "act_id": "all" });
    assert_eq!(server.post("/v1/bulk", &act).await.status, 201);
    stream.until("jobs").await;
    server.bulk_acts_are_refused_one().await;
    stream.until("jobs").await;
    server.token("worker").await;
    stream.until("tokens").await;
    let (mut elsewhere, _) = signed_in(&server, &other).await;
    stream.until("tokens").await;
    let page = elsewhere.get(&site, "/").await;
    elsewhere.submit(&site, &page, "/sign-out", &[]).await;
    stream.until("tokens").await;
    let id = other.split('_').nth(1).expect("an id");
    server.call(&server.operator, "DELETE", &format!("/v1/tokens/{id}"), "").await;
    stream.until("tokens").await;
    server.stop().await;
}

async fn a_stream_begins_where_its_page_was_made(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let mut beside = Stream::open(&browser, &site, None).await;
    beside.next().await;
    let page = browser.get(&site, "/streams").await;
    let before = attribute(&page.body, "data-before");
    // The reader has seen it before the stream of the page opens.
    server.enqueue("between").await;
    beside.until("jobs").await;
    let path = format!("/events?known={before}");
    let missed = Stream::open_at(&browser, &site, &path, None).await.next().await;
    assert!(missed.topics.contains(&"jobs".to_string()), "{missed:?}");
    // A stream that comes back knows more than its page.
    let mut again = Stream::open_at(&browser, &site, &path, Some(&missed.id)).await;
    server.token("worker").await;
    let told = again.next().await;
    assert!(!told.topics.contains(&"jobs".to_string()), "{told:?}");
    // A part of a page is no beginning, and neither is a page for nobody.
    assert!(!browser.get(&site, "/streams?part=main").await.body.contains("data-before"));
    assert!(!Browser::default().get(&site, "/sign-in").await.body.contains("data-before"));
    server.stop().await;
}

async fn a_browser_that_comes_back_is_told_what_it_missed(server: TestServer) {
    let (browser, site) = signed_in(&server, &server.operator).await;
    let mut stream = Stream::open(&browser, &site, None).await;
    let before = stream.next().await.id;
    drop(stream);
    server.enqueue("build").await;
    let mut again = Stream::open(&browser, &site, Some(&before)).await;
    let missed = again.until("jobs").await;
    drop(again);
    // Whoever knows all is told nothing: the next thing that it hears is the next change.
    let mut up_to_date = Stream::open(&browser, &site, Some(&missed.id)).await;
    server.enqueue("other").await;
    assert_ne!(up_to_date.until("jobs").await.id, missed.id);
    // What another server or an earlier version said is no reason to miss anything.
    let mut foreign = Stream::open(&browser, &site, Some("x")).await;
    assert!(foreign.next().await.topics.contains(&"tickets".to_string()));
    server.stop().await;
}

#[tokio::test]
async fn nobody_listens_without_a_session_and_the_reader_rests_without_listeners() {
    let server = TestServer::start().await;
    let site = Site::own(&server);
    assert_eq!(Browser::default().get(&site, "/events").await.status, 401);
    assert_eq!(server.running.open_streams(), 0);
    let (browser, site) = signed_in(&server, &server.operator).await;
    let mut stream = Stream::open(&browser, &site, None).await;
    stream.next().await;
    assert_eq!(server.running.open_streams(), 1);
    drop(stream);
    let gone = async {
        while server.running.open_streams() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.expect("the stream is given back");
    server.stop().await;
}

#[tokio::test]
async fn open_streams_end_when_the_server_stops() {
    let server = TestServer::start().await;
    let (browser, site) = signed_in(&server, &server.operator).await;
    let mut stream = Stream::open(&browser, &site, None).await;
    stream.next().await;
    let begun = fernery_engine::door::stop_watch();
    server.stop().await;
    stream.until_over().await;
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "it did not wait for the browser: {:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_browser_has_a_few_streams_and_no_more() {
    let server = TestServer::start().await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut stream = Stream::open(&browser, &site, None).await;
        stream.next().await;
        open.push(stream);
    }
    assert_eq!(browser.get(&site, "/events").await.status, 429);
    let (other, _) = signed_in(&server, &server.operator).await;
    Stream::open(&other, &site, None).await.next().await;
    drop(open);
    server.stop().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_session_or_its_token() {
    let server = TestServer::start().await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let mut stream = Stream::open(&browser, &site, None).await;
    stream.next().await;
    let page = browser.get(&site, "/").await;
    browser.submit(&site, &page, "/sign-out", &[("everywhere", "yes")]).await;
    stream.until_over().await;
    let viewer = server.token("viewer").await;
    let (other, _) = signed_in(&server, &viewer).await;
    let mut stream = Stream::open(&other, &site, None).await;
    stream.next().await;
    let id = viewer.split('_').nth(1).expect("an id");
    server.call(&server.operator, "DELETE", &format!("/v1/tokens/{id}"), "").await;
    stream.until_over().await;
    server.stop().await;
}
