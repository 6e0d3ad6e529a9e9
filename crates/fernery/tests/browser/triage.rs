//! The inbox by single keys: decided, taken back, merged.

use crate::chromium::Chromium;
use crate::inbox::{triaged, waiting, workers};
use crate::server::TestServer;

crate::on_both_backends!(an_inbox_is_emptied_by_single_keys);

async fn an_inbox_is_emptied_by_single_keys(server: TestServer) {
    let workers = workers(&server).await;
    let lines = ["buy some milk", "call mother", "buy milk!", "read a book"];
    triaged(&server, &lines).await;
    workers.stop().await;
    let browser = Chromium::start().await;
    let site = browser.sign_in(&server, &server.operator).await;
    browser.open(&format!("{site}/triage")).await;
    browser.reads("#waiting", "4 waiting").await;

    // A near duplicate is merged: the next page names both and asks.
    browser.reads("#near", "buy milk!").await;
    browser.click("#act-merge input[name=other]").await;
    browser.press("Merge …").await;
    browser.reads("h1", "Merge this one?").await;
    browser.keys("y").await;
    browser.reads("#waiting", "3 waiting").await;
    let merged = browser.words("#candidate").await;
    assert!(merged.contains("buy some milk") && merged.contains("buy milk!"), "with both texts: {merged}");

    // Discarded by one key, and taken back by another.
    browser.keys("d").await;
    browser.reads("#last", "buy some milk").await;
    browser.reads("#waiting", "2 waiting").await;
    browser.keys("u").await;
    browser.reads("#waiting", "3 waiting").await;
    browser.reads("#candidate", "buy some milk").await;

    // Letters in a field are letters.
    browser.keys("e").await;
    browser.until("return document.activeElement?.id === 'title'").await;
    browser.keys("dps").await;
    assert_eq!(waiting(&server).await.len(), 3);
    browser.fill("#title", "Buy two bottles of milk").await;
    browser.press("Save").await;
    browser.reads("#candidate", "Buy two bottles of milk").await;

    browser.keys("p").await;
    browser.reads("#last", "Promoted").await;
    browser.reads("#candidate", "call mother").await;
    browser.keys("s").await;
    browser.reads("#candidate", "read a book").await;
    browser.keys("z").await;
    browser.until("return document.activeElement?.id === 'until'").await;
    browser.keys("\u{e007}").await;
    browser.reads("#waiting", "1 waiting").await;
    assert_eq!(waiting(&server).await.len(), 1);
    browser.close().await;
    server.stop().await;
}
