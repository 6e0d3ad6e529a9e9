//! Pages that keep up with the server by themselves.

use crate::chromium::{Chromium, site};
use crate::fresh_database::fresh_database;
use crate::port::Port;
use crate::program::Server;
use crate::server::TestServer;

async fn a_page_outlives_its_server(more: &[&str]) {
    let port = Port::reserve();
    let server = Server::start_at(&port.address(), tempfile::tempdir().expect("a folder"), more);
    let enqueue = |server: &Server, stream: &str| {
        server.run(["job", "enqueue", "--stream", stream, "--payload", "{}"]).exits(0);
    };
    let browser = Chromium::start().await;
    browser.open(server.run(["open", "--print"]).exits(0).stdout.trim()).await;
    browser.press("Sign in").await;
    browser.press("Queue").await;
    browser.press("Streams").await;
    browser.reads("#streams", "No stream is here yet").await;
    browser.script("window.stayed = true").await;
    browser.see("#live.open").await;
    enqueue(&server, "first");
    browser.reads("#streams", "first").await;

    server.signal(rustix::process::Signal::KILL);
    let (_, dir) = server.ended();
    browser.see("#live:not(.open)").await;
    let server = Server::start_at(&port.address(), dir, more);
    enqueue(&server, "second");
    browser.reads("#streams", "second").await;
    browser.see("#live.open").await;
    assert_eq!(browser.script("return window.stayed").await, true, "it was not loaded again");

    // Paused, nothing changes under the eyes of whoever reads; then it is all there.
    browser.click("#live").await;
    enqueue(&server, "third");
    browser
        .until("return fetch('/streams?part=main').then((a) => a.text()).then((t) => t.includes('third'))")
        .await;
    assert!(!browser.words("#streams").await.contains("third"));
    browser.click("#live").await;
    browser.reads("#streams", "third").await;
    browser.close().await;
}

#[tokio::test]
async fn a_page_keeps_up_also_after_the_server_was_killed_on_sqlite() {
    a_page_outlives_its_server(&[]).await;
}

#[tokio::test]
async fn a_page_keeps_up_also_after_the_server_was_killed_on_postgres() {
    let database = fresh_database().await;
    a_page_outlives_its_server(&["--database", &database.url()]).await;
}

#[tokio::test]
async fn ten_tabs_have_one_stream_and_all_keep_up() {
    let server = TestServer::start().await;
    let browser = Chromium::start().await;
    browser.sign_in(&server, &server.operator).await;
    let page = format!("{}/streams", site(&server));
    browser.open(&page).await;
    for _ in 0..9 {
        let tab = browser.client.new_window(true).await.expect("a tab");
        browser.client.switch_to_window(tab.handle).await.expect("shown");
        browser.open(&page).await;
    }
    let tabs = browser.client.windows().await.expect("tabs");
    assert_eq!(tabs.len(), 10);
    for tab in &tabs {
        browser.client.switch_to_window(tab.clone()).await.expect("shown");
        browser.see("#live.open").await;
        assert_eq!(server.running.open_streams(), 1);
    }
    server.enqueue("mail").await;
    for tab in &tabs {
        browser.client.switch_to_window(tab.clone()).await.expect("shown");
        browser.reads("#streams", "mail").await;
    }
    // The tab that listens goes: another one takes over.
    browser.client.switch_to_window(tabs[0].clone()).await.expect("shown");
    browser.client.close_window().await.expect("closed");
    server.enqueue("other").await;
    for tab in &tabs[1..] {
        browser.client.switch_to_window(tab.clone()).await.expect("shown");
        browser.reads("#streams", "other").await;
    }
    assert_eq!(server.running.open_streams(), 1);
    browser.close().await;
    server.stop().await;
}
