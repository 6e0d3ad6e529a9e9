//! What every page carries, and what its files are.

use crate::browser::{Browser, Site, attribute, signed_in};
use crate::server::TestServer;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action \
                      'self'; frame-ancestors 'none'; base-uri 'none'";

#[tokio::test]
async fn every_page_has_the_headers_of_a_page() {
    let server = TestServer::start().await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let shared = Site::named(&server, "localhost");
    let pages = [
        (&site, "/"),
        (&site, "/find?q=x"),
        (&site, "/keys"),
        (&site, "/streams"),
        (&site, "/jobs"),
        (&site, "/dead"),
        (&site, "/dead?code=E"),
        (&site, "/workers"),
        (&site, "/triage"),
        (&site, "/manifests"),
        (&site, "/azollas"),
        (&site, "/journal"),
        (&site, "/tokens"),
        (&site, "/nowhere"),
        (&site, "/sign-in"),
        (&shared, "/"),
    ];
    for (site, path) in pages {
        let page = browser.get(site, path).await;
        let header = |name: &str| page.headers.get(name).map(String::as_str);
        assert_eq!(header("content-security-policy"), Some(POLICY), "{path}");
        assert_eq!(header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(header("referrer-policy"), Some("same-origin"), "{path}");
        assert_eq!(header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(header("access-control-allow-origin"), None, "{path}");
        for inline in ["<script>", " style=", " onclick=", "javascript:"] {
            assert!(!page.body.contains(inline), "{path}: {inline}");
        }
        assert!(page.body.contains("<main id=\"main\"") && page.body.contains("lang=\"en\""), "{path}");
    }
    server.stop().await;
}

#[tokio::test]
async fn files_may_be_kept_for_ever_under_the_hash_of_their_content() {
    let server = TestServer::start().await;
    let (mut browser, site) = (Browser::default(), Site::own(&server));
    let page = browser.get(&site, "/sign-in").await;
    let style =
        page.body.find("rel=\"stylesheet\"").map(|at| attribute(&page.body[at..], "href")).expect("a style");
    let script = page.body.find("<script ").map(|at| attribute(&page.body[at..], "src")).expect("a script");
    for (path, kind) in [(style, "text/css"), (script, "text/javascript")] {
        for site in [&site, &Site::named(&server, "localhost")] {
            let file = browser.get(site, path).await;
            assert_eq!(file.status, 200, "{path}");
            assert!(file.headers["content-type"].starts_with(kind));
            assert_eq!(file.headers["cache-control"], "public, max-age=31536000, immutable");
        }
    }
    assert_eq!(browser.get(&site, "/assets/style-0000000000000000.css").await.status, 404);
    let head = browser.head(&site, "GET", style) + "accept-encoding: br, gzip\r\n\r\n";
    let zipped = browser.send(&site, &head).await;
    assert_eq!(zipped.headers["content-encoding"], "gzip");
    let length =
        |answer: &crate::server::Answer| answer.headers["content-length"].parse::<usize>().expect("a length");
    let plain = browser.get(&site, style).await;
    assert!(length(&zipped) * 2 < length(&plain), "{} of {}", length(&zipped), length(&plain));
    server.stop().await;
}

#[tokio::test]
async fn pages_are_counted_by_their_row_in_the_table() {
    let server = TestServer::start().await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    browser.get(&site, "/assets/x.css").await;
    browser.get(&site, "/made-up-1").await;
    browser.get(&site, "/made-up-2").await;
    let metrics = server.get("/metrics").await.body;
    let count =
        |route: &str, status: u16| metrics.contains(&format!("route=\"{route}\",status=\"{status}\"}} "));
    assert!(count("/sign-in", 303), "{metrics}");
    assert!(count("/assets/{name}", 404), "{metrics}");
    assert!(
        metrics.contains("route=\"unknown\",status=\"404\"} 2") && !metrics.contains("made-up"),
        "{metrics}"
    );
    server.stop().await;
}

#[tokio::test]
async fn a_page_is_asked_for_alone_to_bring_it_up_to_date() {
    let server = TestServer::start().await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let alone = browser.get(&site, "/?part=main").await;
    assert!(alone.body.trim_start().starts_with("<main "), "{}", alone.body);
    assert!(!alone.body.contains("<nav"));
    server.stop().await;
}

#[tokio::test]
async fn every_page_of_the_navigation_is_there_for_who_sees_it() {
    let server = TestServer::start().await;
    let viewer = server.token("viewer").await;
    for (token, count) in [(&server.operator, 12), (&viewer, 11)] {
        let (mut browser, site) = signed_in(&server, token).await;
        let page = browser.get(&site, "/keys").await.body;
        let nav =
            page.split("<nav").nth(1).and_then(|rest| rest.split("</nav>").next()).expect("a navigation");
        let doors: Vec<&str> = nav.split("<a ").skip(1).collect();
        assert_eq!(doors.len(), count, "{nav}");
        let mut keys: Vec<&str> = doors.iter().map(|door| attribute(door, "data-go")).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count, "each has a key of its own");
        for path in doors.iter().map(|door| attribute(door, "href")) {
            assert_eq!(browser.get(&site, path).await.status, 200, "{path}");
            assert!(page.matches(&format!("href=\"{path}\"")).count() >= 2, "{path} is in the help");
        }
        let found = browser.get(&site, "/find?q=journal").await.body;
        assert!(found.contains("<a href=\"/journal\">"), "the palette finds pages: {found}");
    }
    server.stop().await;
}
