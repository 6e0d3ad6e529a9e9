//! All jobs that match: ticked, counted, asked for, done.

use crate::chromium::{Chromium, site};
use crate::server::TestServer;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn all_jobs_that_match_are_cancelled_from_the_list() {
    let server = TestServer::start().await;
    let jobs: Vec<_> = (0..60).map(|_| json!({ "stream": "mail", "payload": {} })).collect();
    assert_eq!(server.post("/v1/jobs", &json!(jobs)).await.status, 201);
    let other = server.enqueue("reports").await;
    server.advance(Duration::from_secs(1)).await;
    let browser = Chromium::start().await;
    browser.sign_in(&server, &server.operator).await;
    browser.open(&format!("{}/jobs?status=QUEUED&stream=mail", site(&server))).await;
    browser.press("Tick all on this page").await;
    browser.reads("#all", "60 jobs").await;
    browser.see("#live.open").await;
    let ticked = "return document.querySelectorAll('input[name=job]:checked').length";
    assert_eq!(browser.script(ticked).await, 50, "the page is ticked");
    // A box that somebody unticks stays so when the page is brought up to date, and a job that comes is not ticked.
    browser.click("tr:nth-of-type(2) input[name=job]").await;
    let held = server.claim("mail").await["job_id"].clone();
    browser.until(&format!("return document.getElementById('tick-' + {held}) === null")).await;
    assert_eq!(
        browser.script(ticked).await,
        48,
        "the first one is gone, and the one that moved up is not ticked"
    );
    let there = "return document.querySelectorAll('input[name=job]').length";
    assert_eq!(browser.script(there).await, 50);
    browser.press("Cancel all …").await;
    browser.reads("#count", "59 jobs").await;
    browser.click("button[data-key=y]").await;
    browser.reads("#act", "DONE").await;
    assert!(browser.path().await.starts_with("/bulk/"));
    let left = server.get("/v1/streams/mail").await.json();
    assert_eq!((&left["running"], &left["cancelled"]), (&json!(1), &json!(59)), "it did not wait: {left}");
    assert_eq!(server.get(&format!("/v1/jobs/{other}")).await.json()["status"], "QUEUED");
    browser.close().await;
    server.stop().await;
}
