//! Dead letters: one first, then the rest.

use crate::chromium::Chromium;
use crate::server::TestServer;
use serde_json::json;

crate::on_both_backends!(a_group_of_dead_jobs_is_redriven_one_first_and_then_the_rest);

pub(crate) async fn dead(server: &TestServer, stream: &str, code: &str) -> String {
    let job = json!({ "stream": stream, "payload": { "n": 1 }, "max_attempts": 1 });
    let made = server.post("/v1/jobs", &job).await.json();
    let held = server.claim(stream).await;
    let body = json!({ "worker_id": "w", "job_id": held["job_id"], "attempt_id": held["attempt_id"],
        "lease_token": held["lease_token"], "error": { "code": code, "message": "no" } });
    assert_eq!(server.work("fail", &body).await.status, 200);
    made["job_id"].as_str().expect("an id").to_string()
}

/// How many of these jobs stand so.
async fn count(server: &TestServer, jobs: &[String], status: &str) -> usize {
    let mut count = 0;
    for job in jobs {
        let job = server.get(&format!("/v1/jobs/{job}")).await.json();
        count += usize::from(job["status"] == status);
    }
    count
}

async fn a_group_of_dead_jobs_is_redriven_one_first_and_then_the_rest(server: TestServer) {
    let (mut lost, mut other) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        lost.push(dead(&server, "mail", "SMTP_550").await);
    }
    for _ in 0..2 {
        other.push(dead(&server, "reports", "TIMEOUT").await);
    }
    let browser = Chromium::start().await;
    browser.sign_in(&server, &server.operator).await;
    browser.press("Queue").await;
    browser.press("Dead letters").await;
    let of_group =
        |label: &str| format!("//article[contains(., 'SMTP_550')]//button[normalize-space()='{label}']");
    browser.press_at(&of_group("Redrive one")).await;
    // It leads to that job, so that it can be seen whether it succeeds now.
    browser.reads("#standing", "QUEUED").await;
    assert!(browser.path().await.starts_with("/job/"));
    assert_eq!((count(&server, &lost, "DEAD").await, count(&server, &lost, "QUEUED").await), (3, 1));
    browser.press("Queue").await;
    browser.press("Dead letters").await;
    browser.press_at(&of_group("Redrive all 3")).await;
    browser.reads("#act", "DONE").await;
    browser.reads("#far", "3 jobs queued again").await;
    assert_eq!(count(&server, &lost, "QUEUED").await, 4);
    assert_eq!(count(&server, &other, "DEAD").await, 2, "the other group is left alone");
    browser.press("Queue").await;
    browser.press("Dead letters").await;
    let left = browser.words("#dead").await;
    assert!(left.contains("TIMEOUT") && !left.contains("SMTP_550"), "{left}");
    // A purge wants a tick first: without it the browser sends nothing.
    browser.press("Purge …").await;
    browser.press("Purge").await;
    assert_eq!(count(&server, &other, "DEAD").await, 2);
    browser.click("input[name=sure]").await;
    browser.press("Purge").await;
    browser.reads("#act", "DONE").await;
    browser.press("Queue").await;
    browser.press("Dead letters").await;
    browser.reads("#dead", "No job is dead").await;
    for job in &other {
        assert_eq!(server.get(&format!("/v1/jobs/{job}")).await.status, 404);
    }
    browser.close().await;
    server.stop().await;
}
