//! The first page.

use crate::browser::{form, signed_in, words};
use crate::server::TestServer;
use fernery_core::blueprint::Blueprint;
use fernery_engine::pipeline::azollas;
use serde_json::json;

crate::on_both_backends!(
    an_empty_page_says_what_to_do,
    a_thought_is_kept_once_however_often_its_form_is_sent,
    a_refused_thought_is_not_lost,
    what_is_stuck_is_shown_with_its_reason,
    hostile_words_are_shown_and_do_nothing,
);

/// A server with the azollas that come with it.
pub(crate) async fn with_azollas(server: &TestServer) {
    for blueprint in [Blueprint::mec(), Blueprint::tasks(), Blueprint::task_management()] {
        let done = server.engine.substrate().transact(move |sql| azollas::register(sql, &blueprint)).await;
        done.expect("registered");
    }
}

async fn an_empty_page_says_what_to_do(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = words(&browser.get(&site, "/").await.body);
    assert!(page.contains("hosts task_management by default"), "{page}");
    with_azollas(&server).await;
    let page = words(&browser.get(&site, "/").await.body);
    assert!(page.contains("No orientation was made yet") && page.contains("Nothing runs."), "{page}");
    let first = browser.get(&site, "/").await;
    let asked = browser.submit(&site, &first, "/orient", &[]).await;
    assert_eq!(asked.status, 303, "{asked:?}");
    assert_eq!(browser.submit(&site, &first, "/orient", &[]).await.status, 303, "sent twice");
    let events = server.get("/v1/events").await.json();
    assert_eq!(events["events"].as_array().map(Vec::len), Some(1), "asked once: {events}");
    server.stop().await;
}

async fn a_thought_is_kept_once_however_often_its_form_is_sent(server: TestServer) {
    with_azollas(&server).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await;
    for _ in 0..3 {
        let sent = browser.submit(&site, &page, "/capture", &[("raw_content", "buy milk tomorrow")]).await;
        assert_eq!((sent.status, sent.headers["location"].as_str()), (303, "/"), "{sent:?}");
    }
    let captures = server.get("/v1/captures").await.json();
    assert_eq!(captures["captures"].as_array().map(Vec::len), Some(1), "{captures}");
    assert_eq!(captures["captures"][0]["raw_content"], "buy milk tomorrow");
    let ids =
        |page: &str| form(page, "/capture").into_iter().find(|(name, _)| name == "act_id").map(|(_, id)| id);
    let next = browser.get(&site, "/").await;
    assert_ne!(ids(&page.body), ids(&next.body), "the next thought is another one");
    server.stop().await;
}

async fn a_refused_thought_is_not_lost(server: TestServer) {
    with_azollas(&server).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await;
    let blank = browser.submit(&site, &page, "/capture", &[("raw_content", "  \n ")]).await;
    assert!(blank.status == 422 && blank.body.contains("write down a thought"), "{}", blank.body);
    let long = "<thought> ".repeat(7_000);
    let refused = browser.submit(&site, &page, "/capture", &[("raw_content", &long)]).await;
    assert!((400..500).contains(&refused.status), "{}", refused.status);
    assert!(refused.body.contains("role=\"alert\" id=\"capture-problem\""));
    let kept = refused.body.split("<textarea id=\"capture\"").nth(1).expect("a box");
    let kept = kept.split_once('>').expect("a text").1.split("</textarea>").next().expect("an end");
    assert_eq!(crate::browser::unescaped(kept), long.trim_end().to_string() + " ");
    server.stop().await;
}

async fn what_is_stuck_is_shown_with_its_reason(server: TestServer) {
    with_azollas(&server).await;
    let ticket = json!({ "objective_id": "WEB-1", "azolla_id": "tasks", "title": "Fix the footer" });
    assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
    let block = json!({ "kind": "USER_INPUT", "description": "which footer?" });
    assert_eq!(server.post("/v1/objectives/WEB-1/block", &block).await.status, 200);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await;
    assert!(page.body.contains("href=\"/ticket/WEB-1\""), "{}", page.body);
    assert!(words(&page.body).contains("which footer?"));
    server.stop().await;
}

async fn hostile_words_are_shown_and_do_nothing(server: TestServer) {
    with_azollas(&server).await;
    let title = "<script>alert(1)</script> \"quoted\" & 'so'";
    let ticket = json!({ "objective_id": "X-1", "azolla_id": "tasks", "title": title });
    let made = server.post("/v1/objectives", &ticket).await;
    assert_eq!(made.status, 201, "{made:?}");
    let block = json!({ "kind": "USER_INPUT", "description": title });
    assert_eq!(server.post("/v1/objectives/X-1/block", &block).await.status, 200);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await.body;
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
    let found = browser.get(&site, "/find?q=%3Cscript%3E").await.body;
    assert!(!found.contains("<script>") && found.contains("/ticket/X-1"), "{found}");
    server.stop().await;
}
