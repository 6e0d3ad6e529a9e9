//! What somebody else does while a form is refused, or while somebody signs in to send it.

use crate::browser::{Browser, Site, form, holds, signed_in, words};
use crate::inbox::{triaged, workers};
use crate::now::with_azollas;
use crate::server::TestServer;
use serde_json::{Value, json};
use std::time::Duration;

crate::on_both_backends!(
    a_refused_edit_undoes_nothing_that_somebody_else_did,
    a_refused_edit_of_a_candidate_undoes_nothing_that_somebody_else_did,
    a_button_that_was_pressed_too_late_waits_for_signing_in,
);

async fn ready(server: &TestServer) -> (Browser, Site) {
    with_azollas(server).await;
    signed_in(server, &server.operator).await
}

async fn a_refused_edit_undoes_nothing_that_somebody_else_did(server: TestServer) {
    let ticket = json!({ "objective_id": "T-1", "azolla_id": "tasks", "title": "x",
        "metadata": { "labels": ["web"], "due_at": "2026-12-01" } });
    let (mut browser, site) = ready(&server).await;
    assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
    let (act, at) = ("/ticket/T-1/edit", "/v1/objectives/T-1");
    let page = browser.get(&site, "/ticket/T-1").await;
    let typed = |title: &'static str| {
        [("title", title), ("importance", "2"), ("urgency", "2"), ("due", "2026-12-01"), ("labels", "web")]
    };
    let others = json!({ "metadata": { "labels": ["garden"], "due_at": "2026-12-24" } });
    assert_eq!(server.call(&server.operator, "PATCH", at, &others.to_string()).await.status, 200);
    let refused = browser.submit(&site, &page, act, &typed("")).await;
    assert_eq!(refused.status, 422, "{}", words(&refused.body));
    let saved = browser.submit(&site, &refused, act, &typed("y")).await;
    assert_eq!(saved.status, 303, "{}", words(&saved.body));
    let after = server.get(at).await.json()["objective"].clone();
    assert_eq!((&after["title"], &after["metadata"]), (&json!("y"), &others["metadata"]), "{after}");
    // A repository that is not there stays chosen, so that nothing else takes its place.
    let page = browser.get(&site, "/ticket/T-1").await;
    let gone = [&typed("y")[..], &[("repo_ref", "gone"), ("labels", "1st")]].concat();
    let refused = browser.submit(&site, &page, act, &gone).await;
    assert_eq!(refused.status, 422, "{}", words(&refused.body));
    assert!(holds(&refused.body, "repo_ref", "gone"), "{}", refused.body);
    server.stop().await;
}

async fn a_refused_edit_of_a_candidate_undoes_nothing_that_somebody_else_did(server: TestServer) {
    let pipeline = workers(&server).await;
    let found = triaged(&server, &["buy milk"]).await;
    pipeline.stop().await;
    let id = found[0]["candidate_id"].as_str().expect("an id");
    let (mut browser, site) = ready(&server).await;
    let (act, at) = (format!("/candidate/{id}/edit"), format!("/v1/candidates/{id}"));
    let page = browser.get(&site, "/triage").await;
    let due = |server: &Value| server["metadata"]["due_at"].clone();
    let typed = |title: &'static str| {
        [("title", title), ("acceptance_criteria", ""), ("importance", "2"), ("urgency", "2"), ("due", "")]
    };
    let others = json!({ "metadata": { "due_at": "2026-12-24" } }).to_string();
    assert_eq!(server.call(&server.operator, "PATCH", &at, &others).await.status, 200);
    let refused = browser.submit(&site, &page, &act, &typed("")).await;
    assert_eq!(refused.status, 422, "{}", words(&refused.body));
    let saved = browser.submit(&site, &refused, &act, &typed("Buy milk")).await;
    assert_eq!(saved.status, 303, "{}", words(&saved.body));
    let after = server.get(&at).await.json();
    assert_eq!((&after["title"], due(&after)), (&json!("Buy milk"), json!("2026-12-24")), "{after}");
    let refused =
        browser.submit(&site, &page, &format!("/candidate/{id}/promote"), &[("azolla_id", "gone")]).await;
    assert!((400..500).contains(&refused.status), "{refused:?}");
    assert!(holds(&refused.body, "azolla_id", "gone"), "{}", refused.body);
    server.stop().await;
}

async fn a_button_that_was_pressed_too_late_waits_for_signing_in(server: TestServer) {
    let worker = server.token("worker").await;
    let id = worker.split('_').nth(1).expect("an id");
    let act = format!("/token/{id}/revoke");
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/tokens").await;
    let names = form(&page.body, &act).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names, ["form_key"], "it says nothing but where it goes");
    server.advance(Duration::from_secs(15 * 60)).await;
    let asked = browser.submit(&site, &page, &act, &[]).await;
    assert_eq!(asked.status, 401, "{}", words(&asked.body));
    let back = browser.submit(&site, &asked, "/sign-in", &[("token", &server.operator)]).await;
    assert_eq!(back.status, 200, "{back:?}");
    let named = format!("<a href=\"/tokens\"><bdi>revoke token {id}</bdi></a>");
    assert!(back.body.contains(&named), "it says what would be sent: {}", words(&back.body));
    let again = browser.submit(&site, &asked, "/again", &[]).await;
    assert!(again.body.contains(&named), "also after signing in elsewhere: {}", words(&again.body));
    assert_eq!(server.call(&worker, "GET", "/v1/whoami", "").await.status, 200, "nothing was sent yet");
    let sent = browser.submit(&site, &back, &act, &[]).await;
    assert_eq!((sent.status, sent.headers["location"].as_str()), (303, "/tokens"), "{sent:?}");
    assert_eq!(server.call(&worker, "GET", "/v1/whoami", "").await.status, 401);
    server.stop().await;
}
