//! A ticket from its first word to the merge, in the pages alone.

use crate::chromium::Chromium;
use crate::fresh_database::fresh_database;
use crate::yard::{GATES, Yard, blueprint, git, lay_out};

async fn from_new_to_merged(more: &[&str]) {
    let yard = Yard::open_in_with(lay_out(&blueprint(GATES)), more);
    let browser = Chromium::start().await;
    let link = yard.server.run(["open", "--print"]).exits(0).stdout;
    browser.open(link.trim()).await;
    browser.press("Sign in").await;

    browser.press("Board").await;
    browser.press("New ticket n").await;
    browser.fill("#title", "Greet twice").await;
    browser.fill("#acceptance_criteria", "mock: write one.txt 1").await;
    browser.see("#azolla_id").await.select_by_value("yard").await.expect("chosen");
    browser.fill("#objective_id", "WEB-1").await;
    browser.press("Create").await;
    browser.reads("#standing", "NEW").await;
    browser.press("Read and approve").await;
    browser.reads("main", "mock: write one.txt 1").await;
    browser.fill("#note", "go on").await;
    browser.press("Approve exactly this").await;

    // It runs, and the page says so without being asked for again.
    browser.see("#standing").await;
    assert_eq!(browser.path().await, "/ticket/WEB-1");
    browser.script("window.stayed = true").await;
    browser.reads("#standing", "DONE").await;
    assert_eq!(browser.script("return window.stayed").await, true, "it was not loaded again");
    browser.press("Review").await;
    browser.reads(".changes", "one.txt").await;
    browser.reads("#standing", "not confirmed").await;

    // Something is missing: the next attempt reads the note, and builds on the first.
    browser.press("Reopen: something is missing").await;
    browser.fill("#reopen-note", "mock: write two.txt 2").await;
    browser.press("Reopen and approve another attempt").await;
    browser.reads("#history", "mock: write two.txt 2").await;
    browser.reads("#standing", "DONE").await;
    browser.press("Review").await;
    browser.reads(".changes", "two.txt").await;
    assert!(browser.words(".changes").await.contains("one.txt"));
    browser.press("what changed since").await;
    browser.reads("#changes", "What changed since attempt 1").await;
    let since = browser.words(".changes").await;
    assert!(since.contains("two.txt") && !since.contains("one.txt"), "{since}");
    browser.press("Show the whole patch").await;
    browser.press("Show what changed since you last looked").await;
    browser.reads("#changes", "What changed since attempt 1").await;
    browser.press("Show the whole patch").await;

    browser.fill("#confirm-note", "looks good").await;
    browser.press("Confirm this run").await;
    browser.until("return !document.getElementById('act-confirm')").await;
    assert!(!browser.words("#standing").await.contains("not confirmed"));
    browser.reads("#standing", "merges with main").await;
    browser.fill("#merge-note", "and home").await;
    browser.click("#act-merge form button.main").await;
    let landed = yard.until("WEB-1", "landed", |of| of["landing"]["state"] == "LANDED");
    browser.reads("#standing", "merged").await;
    assert_eq!(git(&yard.repo(), &["show", "main:two.txt"]), "2");
    let kinds: Vec<_> =
        landed["decisions"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["APPROVE", "REOPEN", "CONFIRM", "MERGE"]);
    browser.open(&browser_ticket(link.trim())).await;
    for note in ["go on", "mock: write two.txt 2", "looks good", "and home"] {
        browser.reads("#history", note).await;
    }
    browser.close().await;
}

fn browser_ticket(link: &str) -> String {
    let end = link.find("/open/").expect("a link");
    format!("{}/ticket/WEB-1", &link[..end])
}

#[tokio::test]
async fn a_ticket_goes_from_new_to_merged_in_the_pages_on_sqlite() {
    from_new_to_merged(&[]).await;
}

#[tokio::test]
async fn a_ticket_goes_from_new_to_merged_in_the_pages_on_postgres() {
    let database = fresh_database().await;
    from_new_to_merged(&["--database", &database.url()]).await;
}
