//! Host names: another server on this machine is opened in the same browser.

use crate::chromium::{Chromium, site};
use crate::program::patience::eventually;
use crate::server::TestServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A server of somebody else, which notes the head of each request and answers with this page.
pub(crate) async fn nosy(page: String) -> (u16, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (note, noted) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (note, page) = (note.clone(), page.clone());
            tokio::spawn(async move {
                let mut head = vec![0; 16_384];
                // A browser opens connections in advance and asks nothing on them.
                let n = stream.read(&mut head).await.unwrap_or(0);
                if n == 0 {
                    return;
                }
                let _ = note.send(String::from_utf8_lossy(&head[..n]).into_owned());
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
                    page.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    (port, noted)
}

#[tokio::test]
async fn another_server_on_this_machine_never_gets_the_session() {
    let server = TestServer::start().await;
    let browser = Chromium::start().await;
    let own = browser.sign_in(&server, &server.operator).await;
    let cookies = browser.client.get_all_cookies().await.expect("cookies");
    let [session] = &cookies[..] else { panic!("one cookie: {cookies:?}") };
    assert_eq!((session.http_only(), session.domain()), (Some(true), Some(server.running.pages_host())));
    let link = format!("<!doctype html><title>x</title><a href=\"{own}/\">to the pages</a>");
    let (port, mut noted) = nosy(link).await;
    for host in ["localhost", "127.0.0.1", "somebody.localhost"] {
        browser.open(&format!("http://{host}:{port}/")).await;
        // The page, and what a browser asks for by itself: its icon.
        loop {
            let head = noted.recv().await.expect("a visit");
            assert!(!head.to_ascii_lowercase().contains("\r\ncookie:"), "{head}");
            assert!(!head.contains(server.running.pages_host()), "no referrer either: {head}");
            if head.starts_with("GET / ") && head.contains(&format!("Host: {host}:{port}")) {
                break;
            }
        }
        assert!(browser.client.get_all_cookies().await.expect("cookies").is_empty());
    }
    // The control: what such a server sets itself, the browser does send to every port of that name.
    browser.script("document.cookie = 'shared=1'").await;
    let (other, mut noted_by_other) = nosy(String::new()).await;
    browser.open(&format!("http://somebody.localhost:{other}/")).await;
    assert!(noted_by_other.recv().await.expect("a visit").contains("shared=1"));
    // A link of that server leads to the pages without the session: nothing is shown to whoever was led there.
    browser.open(&format!("http://localhost:{port}/")).await;
    browser.press("to the pages").await;
    browser.reads("h1", "Sign in").await;
    browser.open(&format!("{own}/")).await;
    browser.reads("h1", "Now").await;
    browser.close().await;
    server.stop().await;
}

#[tokio::test]
async fn a_browser_ends_with_its_driver() {
    let server = TestServer::start().await;
    let mut browser = Chromium::start().await;
    browser.open(&format!("{}/sign-in", site(&server))).await;
    assert!(browser.processes().len() > 2, "{:?}", browser.processes());
    browser.kill_driver();
    assert!(eventually(|| browser.processes().is_empty()), "left: {:?}", browser.processes());
    server.stop().await;
}
