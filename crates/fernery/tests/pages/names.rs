//! Host names: a session belongs to this server alone.

use crate::browser::{Browser, Site, attribute, signed_in, unescaped, words};
use crate::server::{TestServer, parse};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server of somebody else on this machine, which notes the head of one request.
async fn nosy() -> (Site, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let noted = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a visitor");
        let mut head = vec![0; 8192];
        let n = stream.read(&mut head).await.expect("a request");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .await
            .expect("answered");
        String::from_utf8_lossy(&head[..n]).into_owned()
    });
    (Site { host: "localhost".into(), addr }, noted)
}

#[tokio::test]
async fn another_server_on_this_machine_never_gets_the_session() {
    let server = TestServer::start().await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    assert_eq!(browser.cookies(&site.host).len(), 1);
    for host in ["localhost", "127.0.0.1"] {
        let (mut other, noted) = nosy().await;
        other.host = host.into();
        browser.get(&other, "/").await;
        let head = noted.await.expect("a head");
        assert!(!head.to_ascii_lowercase().contains("cookie"), "{head}");
        assert!(!head.contains(&site.host), "{head}");
    }
    // The control: the browser of this test does send cookies of a shared name to every port.
    browser.set_cookie("localhost", "shared", "1");
    let (other, noted) = nosy().await;
    browser.get(&other, "/").await;
    assert!(noted.await.expect("a head").contains("cookie: shared=1"));
    server.stop().await;
}

#[tokio::test]
async fn under_a_shared_name_nobody_gets_a_session_or_the_name_of_the_pages() {
    let server = TestServer::start().await;
    let own = server.running.pages_host().to_string();
    for host in ["localhost", "127.0.0.1"] {
        let site = Site::named(&server, host);
        let mut browser = Browser::default();
        for path in ["/", "/find?q=x", "/open/fernl_x", "/events"] {
            let page = browser.get(&site, path).await;
            assert_eq!(page.status, 200, "{path}: {page:?}");
            assert!(words(&page.body).contains("fernery open"), "{path}");
            assert!(!format!("{page:?}").contains(&own), "{path}: {page:?}");
        }
        let wrong = browser.post(&site, "/sign-in", &[("token", "guess")]).await;
        assert_eq!(wrong.status, 401);
        assert!(!format!("{wrong:?}").contains(&own), "{wrong:?}");
        // A cookie that a browser brings here anyway is worth nothing.
        let (signed_in, own_site) = signed_in(&server, &server.operator).await;
        let (name, secret) = &signed_in.cookies(&own_site.host)[0];
        browser.set_cookie(host, name, secret);
        assert!(words(&browser.get(&site, "/").await.body).contains("Fernery runs here"));
        let led = browser.post(&site, "/sign-in", &[("token", &server.operator)]).await;
        assert_eq!(led.status, 200, "{led:?}");
        assert!(!led.headers.contains_key("set-cookie") && !led.headers.contains_key("location"), "{led:?}");
        let at = led.body.find("id=\"go-on\"").expect("a link");
        let link = unescaped(attribute(&led.body[at..], "href"));
        let path = link
            .strip_prefix(&format!("http://{own}:{}", server.addr().port()))
            .expect("the name of the pages");
        let entered = Browser::default().post(&Site::own(&server), path, &[]).await;
        assert_eq!(entered.status, 303, "{entered:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_name_that_is_not_the_servers_gets_nothing() {
    let server = TestServer::start().await;
    for host in ["evil.example", "x.localhost"] {
        let refused = Browser::default().get(&Site::named(&server, host), "/").await;
        assert_eq!(refused.status, 421, "{host}");
        assert!(!refused.body.contains(server.running.pages_host()));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_name_of_the_operator_gets_a_cookie_for_tls_alone() {
    let server = TestServer::start_with(|settings| {
        settings.insecure_http = true;
        settings.allowed_hosts = vec!["fern.example".into()];
    })
    .await;
    let site = Site::named(&server, "fern.example");
    let mut browser = Browser::default();
    let entered = browser.post(&site, "/sign-in", &[("token", &server.operator)]).await;
    assert_eq!(entered.status, 303, "{entered:?}");
    let cookie = &entered.headers["set-cookie"];
    assert!(cookie.starts_with("__Host-fernery=ferns_") && cookie.ends_with("; Secure"), "{cookie}");
    assert_eq!(browser.get(&site, "/").await.status, 200);
    let shared = Browser::default().get(&Site::named(&server, "localhost"), "/").await;
    assert!(words(&shared.body).contains("Fernery runs here"));
    server.stop().await;
}

#[tokio::test]
async fn the_api_is_where_it_was() {
    let server = TestServer::start().await;
    let own = server.running.pages_host().to_string();
    let health = server.send("GET", "/healthz", &[("accept", "text/html")], "").await;
    assert_eq!((health.status, health.headers["content-type"].as_str()), (200, "application/json"));
    for host in ["localhost", own.as_str()] {
        let host = format!("{host}:{}", server.addr().port());
        let unknown =
            server.send("GET", "/v1/nothing", &[("host", &host), ("accept", "text/html")], "").await;
        assert_eq!(unknown.code(), "not_found");
    }
    let program = server.send("GET", "/nowhere", &[], "").await;
    assert_eq!((program.status, program.code()), (404, "not_found".into()), "a program gets the API's words");
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/nowhere").await;
    assert_eq!(page.status, 404);
    assert!(page.headers["content-type"].starts_with("text/html"));
    let wrong = browser.send(&site, &(browser.head(&site, "PUT", "/") + "\r\n")).await;
    assert_eq!(wrong.status, 405);
    assert_eq!(parse("HTTP/1.1 200 OK\r\n\r\n").status, 200);
    server.stop().await;
}
