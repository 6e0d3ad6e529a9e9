//! Scripts blocked: everything can be read, and every form works.

use crate::chromium::Chromium;
use crate::dead::dead;
use crate::server::TestServer;
use crate::stage::{Stage, Words};
use crate::worked::{Made, PATCH, approved, attempt, tried};
use fernery::http::pages::PAGES;
use fernery_core::pipeline::landing::Fit;

#[tokio::test]
async fn every_page_can_be_read_and_every_form_has_a_button() {
    let (stage, browser) = (Stage::set(Words::plain()), Chromium::without_script().await);
    let site = stage.sign_in(&browser).await;
    let places = stage.places(&browser, &site).await;
    for place in &places {
        browser.open(&format!("{site}{}", place.path)).await;
        assert_eq!(browser.words("noscript").await, "", "nobody is told to switch scripts on");
        assert!(browser.words("main").await.len() > 40, "{}: {}", place.row, browser.words("main").await);
        // Nothing is left for a script to show, and no form needs one to be sent.
        let left = browser
            .script(
                "return [...document.querySelectorAll('form')].filter((form) => !form.matches('.find') && !form.querySelector('button:not([type=button])'))
                     .concat([...document.querySelectorAll('main [hidden], main a:not([href]), main button[type=button]')]).map((e) => e.outerHTML)",
            )
            .await;
        assert_eq!(left, serde_json::json!([]), "{}", place.row);
        assert!(!browser.has("#live:not([hidden]), .copy").await, "{}: a script ran", place.row);
    }
    browser.open(&format!("{site}/ticket/WEB-3")).await;
    browser.fill("#answer", "In French.").await;
    browser.click("#act-answer form button").await;
    browser.reads("#history", "In French.").await;
    browser.close().await;
}

/// The paths of the table that forms went to and that led on.
async fn worked(server: &TestServer) -> Vec<&'static str> {
    let metrics = server.get("/metrics").await.body;
    let worked = |path: &str| {
        let row = format!("route=\"{path}\",status=\"303\"}} ");
        metrics
            .lines()
            .any(|line| line.contains("method=\"POST\"") && line.contains(&row) && !line.ends_with(" 0"))
    };
    let forms = PAGES.iter().filter(|page| page.method == http::Method::POST).map(|page| page.path);
    forms.filter(|path| worked(path)).collect()
}

#[tokio::test]
async fn every_form_works() {
    let server = TestServer::start().await;
    let browser = Chromium::without_script().await;
    let site = browser.sign_in(&server, &server.operator).await;
    let go = async |path: &str| browser.open(&format!("{site}{path}")).await;

    approved(&server, "WEB-1", "Greet the world").await;
    attempt(&server, "WEB-1", Made { patch: PATCH, log: "ok", passes: true }).await;
    go("/ticket/WEB-1").await;
    browser.press("Review").await;
    browser.press("Reopen: something is missing").await;
    browser.fill("#reopen-note", "say goodbye too").await;
    browser.press("Reopen and approve another attempt").await;
    browser.reads("#history", "say goodbye too").await;
    attempt(&server, "WEB-1", Made { patch: PATCH, log: "ok", passes: true }).await;
    tried(&server, "WEB-1", Fit::Merges, None).await;
    go("/review/WEB-1").await;
    browser.press("Confirm this run").await;
    browser.reads("#standing", "DONE").await;
    browser.click("#act-merge form button.main").await;
    browser.reads("#standing", "is wanted on main").await;

    azollas(&server).await;
    go("/").await;
    browser.fill("#capture", "buy milk").await;
    browser.press("Put it into the inbox").await;
    browser.reads("#inbox", "1 waiting for triage").await;
    browser.press("Look now").await;
    browser.reads("h1", "Now").await;
    go("/new-ticket").await;
    browser.fill("#title", "Call the printer").await;
    browser.see("#azolla_id").await.select_by_value("tasks").await.expect("chosen");
    browser.fill("#objective_id", "T-1").await;
    browser.press("Create").await;
    browser.press("Block").await;
    browser.fill("#description", "which printer?").await;
    browser.click("#act-block form button").await;
    browser.reads("#standing", "which printer?").await;
    browser.press("Unblock").await;
    browser.click("#act-unblock form button").await;
    browser.reads("#standing", "NEW").await;
    browser.press("Edit").await;
    browser.fill("#title", "Call both printers").await;
    browser.press("Save").await;
    browser.reads("h1", "Call both printers").await;
    browser.press("Snooze").await;
    browser.click("#act-snooze form button").await;
    browser.reads("#standing", "snoozed").await;
    browser.press("Show it again now").await;
    browser.press("Read and approve").await;
    browser.press("Approve exactly this").await;
    browser.press("Done: I have done it").await;
    browser.fill("#done-note", "I did").await;
    browser.press("Done").await;
    browser.reads("#standing", "DONE").await;

    go("/new-ticket").await;
    browser.fill("#title", "Call nobody").await;
    browser.see("#azolla_id").await.select_by_value("tasks").await.expect("chosen");
    browser.press("Create").await;
    browser.press("Cancel").await;
    browser.press("Cancel the ticket").await;
    browser.reads("#standing", "CANCELLED").await;

    for code in ["SMTP_550", "TIMEOUT"] {
        dead(&server, "dead", code).await;
    }
    go("/dead").await;
    browser.press("Redrive one").await;
    browser.reads("#standing", "QUEUED").await;
    go("/dead").await;
    browser.press("Purge …").await;
    browser.click("input[name=sure]").await;
    browser.press("Purge").await;
    browser.reads("h1", "Purge all DEAD jobs").await;
    let act = browser.path().await;
    while server.get(&format!("/v1{act}")).await.json()["state"] == "RUNNING" {
        tokio::task::yield_now().await;
    }
    go(&act).await;
    browser.reads("#act", "DONE").await;
    go("/dead").await;
    browser.reads("#dead", "No job is dead").await;

    let job = server.enqueue("mail").await;
    go("/streams").await;
    browser.press("Pause").await;
    browser.press("Resume").await;
    browser.press("Pause").await;
    go(&format!("/job/{job}")).await;
    browser.press("Cancel").await;
    browser.reads("#standing", "CANCELLED").await;
    browser.press("Retry").await;
    browser.reads("#standing", "QUEUED").await;
    browser.press("Enqueue again").await;
    browser.press("Enqueue").await;
    browser.reads("#standing", "QUEUED").await;
    go("/jobs").await;
    browser.click("input[name=job]").await;
    browser.press("Cancel them").await;
    browser.reads("#jobs", "CANCELLED").await;
    browser.click(".person summary").await;
    browser.press("Sign out").await;
    browser.reads("h1", "Sign in").await;

    let worked = worked(&server).await;
    let wanted = [
        "/sign-in",
        "/sign-out",
        "/orient",
        "/capture",
        "/new-ticket",
        "/ticket/{id}/edit",
        "/ticket/{id}/block",
        "/ticket/{id}/unblock",
        "/ticket/{id}/snooze",
        "/ticket/{id}/done",
        "/ticket/{id}/cancel",
        "/dead/redrive",
        "/bulk",
        "/approve/{id}",
        "/review/{id}/confirm",
        "/review/{id}/merge",
        "/review/{id}/reopen",
        "/stream/{name}/pause",
        "/stream/{name}/resume",
        "/jobs",
        "/job/{id}/cancel",
        "/job/{id}/retry",
        "/job/{id}/again",
    ];
    for form in wanted {
        assert!(worked.contains(&form), "{form}: {worked:?}");
    }
    browser.close().await;
    server.stop().await;
}

/// The azollas that come with a server.
async fn azollas(server: &TestServer) {
    use fernery_core::blueprint::Blueprint;
    for blueprint in [Blueprint::tasks(), Blueprint::task_management()] {
        let done = server
            .engine
            .substrate()
            .transact(move |sql| fernery_engine::pipeline::azollas::register(sql, &blueprint))
            .await;
        done.expect("registered");
    }
}
