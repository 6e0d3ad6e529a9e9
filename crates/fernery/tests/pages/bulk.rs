//! Acts on all jobs that match, from the list of jobs to their end.

use crate::browser::{signed_in, words};
use crate::queue::{ended, location};
use crate::server::TestServer;
use serde_json::json;
use std::time::Duration;

crate::on_both_backends!(
    all_that_match_are_counted_asked_for_and_cancelled,
    an_act_is_stopped_by_its_button,
    what_cannot_be_done_is_said_and_nothing_is_asked,
    viewers_see_acts_and_begin_none,
);

async fn status(server: &TestServer, job_id: &str) -> String {
    let job = server.get(&format!("/v1/jobs/{job_id}")).await.json();
    job["status"].as_str().expect("a status").to_string()
}

async fn all_that_match_are_counted_asked_for_and_cancelled(server: TestServer) {
    let meant = [server.enqueue("s").await, server.enqueue("s").await, server.enqueue("s").await];
    let other = server.enqueue("t").await;
    server.advance(Duration::from_secs(1)).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/jobs").await.body;
    assert!(words(&page).contains("Choose a status to act on all that match."), "{}", words(&page));
    let page = browser.get(&site, "/jobs?status=QUEUED&stream=s").await.body;
    assert_eq!(page.matches(" checked>").count(), 0);
    assert!(page.contains("href=\"/jobs?status=QUEUED&#38;stream=s&#38;tick=all\""), "{page}");
    let page = browser.get(&site, "/jobs?status=QUEUED&stream=s&tick=all").await.body;
    assert_eq!(page.matches(" checked>").count(), 3, "{page}");
    assert!(words(&page).contains("All that match, on every page: 3 jobs"), "{}", words(&page));
    assert!(page.contains("href=\"/bulk-ask?verb=cancel&#38;status=QUEUED&#38;stream=s\""), "{page}");
    let ask = browser.get(&site, "/bulk-ask?verb=cancel&status=QUEUED&stream=s").await;
    let said = words(&ask.body);
    assert!(said.contains("Cancel all QUEUED jobs of the stream s") && said.contains("3 jobs"), "{said}");
    assert!(said.contains("fernery job bulk cancel --status QUEUED --stream s --before "), "{said}");
    server.advance(Duration::from_secs(1)).await;
    let later = server.enqueue("s").await;
    let began = browser.submit(&site, &ask, "/bulk", &[]).await;
    let act = location(&began).to_string();
    assert_eq!(ended(&server, &act).await, ("DONE".into(), 3));
    let again = browser.submit(&site, &ask, "/bulk", &[]).await;
    assert_eq!(location(&again), act, "a form that is sent twice acts once");
    for job_id in &meant {
        assert_eq!(status(&server, job_id).await, "CANCELLED");
    }
    assert_eq!(status(&server, &other).await, "QUEUED");
    assert_eq!(status(&server, &later).await, "QUEUED", "it came after the count");
    let page = browser.get(&site, &act).await.body;
    let said = words(&page);
    assert!(said.contains("DONE") && said.contains("3 jobs cancelled"), "{said}");
    assert!(!page.contains("/stop\""), "an act that has ended is not stopped");
    assert!(browser.get(&site, "/bulk").await.body.contains(&format!("href=\"{act}\"")));
    let journal = browser.get(&site, "/journal").await.body;
    assert_eq!(journal.matches(&format!("href=\"{act}\"")).count(), 2, "it began and it ended");
    server.stop().await;
}

async fn an_act_is_stopped_by_its_button(server: TestServer) {
    // Two steps of 200 jobs each, and the next ones fail: it does not come to its end by itself.
    server.bulk_acts_come_to(400).await;
    let jobs: Vec<_> = (0..1_000).map(|_| json!({ "stream": "s", "payload": {} })).collect();
    assert_eq!(server.post("/v1/jobs", &json!(jobs)).await.status, 201);
    server.advance(Duration::from_secs(1)).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let ask = browser.get(&site, "/bulk-ask?verb=cancel&status=QUEUED").await;
    let act = location(&browser.submit(&site, &ask, "/bulk", &[]).await).to_string();
    let page = browser.get(&site, &act).await;
    let far = words(&page.body);
    assert!(
        page.body.contains("<progress value=") && far.contains("of at most 1000 jobs cancelled"),
        "{far}"
    );
    assert!(words(&page.body).contains(&format!("fernery job bulk stop {}", &act["/bulk/".len()..])));
    let stop = format!("{act}/stop");
    assert_eq!(location(&browser.submit(&site, &page, &stop, &[]).await), act);
    let (state, done) = ended(&server, &act).await;
    assert!(state == "STOPPED" && done <= 400, "{state} {done}");
    let stream = server.get("/v1/streams/s").await.json();
    assert_eq!(stream["cancelled"], done, "what was done stays done, and no more");
    assert!(words(&browser.get(&site, &act).await.body).contains("STOPPED"));
    assert_eq!(location(&browser.submit(&site, &page, &stop, &[]).await), act, "once more");
    server.stop().await;
}

async fn what_cannot_be_done_is_said_and_nothing_is_asked(server: TestServer) {
    server.enqueue("s").await;
    server.advance(Duration::from_secs(1)).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    for (query, status, said) in [
        ("verb=purge&status=QUEUED", 422, "purge is for jobs that are DEAD, not QUEUED"),
        ("verb=paint&status=QUEUED", 422, "expected one of cancel, retry, purge"),
        ("verb=cancel&status=QUEUED&stream=diazotroph:x", 409, "carry workorders"),
        ("verb=cancel&status=QUEUED&stream=nobody", 200, "No job matches."),
    ] {
        let page = browser.get(&site, &format!("/bulk-ask?{query}")).await;
        assert_eq!(page.status, status, "{query}");
        assert!(words(&page.body).contains(said), "{query}: {}", words(&page.body));
        assert!(!page.body.contains("action=\"/bulk\""), "{query}");
        assert!(!page.body.contains("href=\"/bulk-ask\""), "{query} leads back to a page that refuses again");
    }
    assert_eq!(browser.get(&site, "/bulk/nobody").await.status, 404);
    assert!(words(&browser.get(&site, "/bulk").await.body).contains("Nobody has done anything"));
    server.stop().await;
}

async fn viewers_see_acts_and_begin_none(server: TestServer) {
    server.enqueue("s").await;
    server.advance(Duration::from_secs(1)).await;
    let made =
        server.post("/v1/bulk", &json!({ "verb": "cancel", "status": "QUEUED", "act_id": "all" })).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(ended(&server, "/bulk/all").await, ("DONE".into(), 1));
    let viewer = server.token("viewer").await;
    let (mut browser, site) = signed_in(&server, &viewer).await;
    for path in ["/bulk", "/bulk/all", "/jobs?status=CANCELLED&tick=all"] {
        let page = browser.get(&site, path).await;
        assert_eq!((page.status, page.body.matches("method=\"post\"").count()), (200, 1), "{path}");
    }
    assert_eq!(browser.get(&site, "/bulk-ask?verb=retry&status=CANCELLED").await.status, 403);
    server.stop().await;
}
