//! The keyboard alone.

use crate::chromium::Chromium;
use crate::server::TestServer;
use fantoccini::key::Key;
use serde_json::json;

/// A server with three tickets, and a browser on its board.
async fn on_the_board() -> (TestServer, Chromium, String) {
    let server = TestServer::start().await;
    crate::pipeline::register(&server).await;
    for n in 1..=3 {
        let ticket = json!({ "objective_id": format!("T-{n}"), "azolla_id": "mec", "title": format!("Ticket number {n}") });
        assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
    }
    let browser = Chromium::start().await;
    let site = browser.sign_in(&server, &server.operator).await;
    browser.open(&format!("{site}/board")).await;
    (server, browser, site)
}

#[tokio::test]
async fn single_keys_move_open_find_and_write_down() {
    let (server, browser, site) = on_the_board().await;
    let at = async || browser.script("return document.querySelector('.at')?.id ?? ''").await;
    let rows =
        browser.script("return [...document.querySelectorAll('[data-row]')].map((row) => row.id)").await;
    browser.keys("j").await;
    assert_eq!(at().await, rows[0]);
    browser.keys("jj").await;
    assert_eq!(at().await, rows[2]);
    browser.keys("jk").await;
    assert_eq!(at().await, rows[1]);
    // What is there has the focus, so that Enter opens it.
    browser.keys(&Key::Enter.to_string()).await;
    browser.see("#standing").await;
    let ticket = rows[1].as_str().expect("an id").trim_start_matches("card-");
    assert_eq!(browser.path().await, format!("/ticket/{ticket}"));

    browser.keys("?").await;
    browser.reads("h1", "Keys").await;
    browser.keys("gj").await;
    browser.reads("h1", "Jobs").await;
    browser.chord(Key::Control.into(), 'k').await;
    browser.see("#palette[open]").await;
    browser.keys("number 2").await;
    browser.reads("#palette-found", "Ticket number 2").await;
    browser.keys(&Key::Enter.to_string()).await;
    browser.reads("h1", "Ticket number 2").await;
    browser.keys("/").await;
    browser.see("#palette[open]").await;
    browser.keys(&Key::Escape.to_string()).await;
    browser.until("return !document.querySelector('#palette[open]')").await;

    // `c` from anywhere is the box for a thought; letters there are letters.
    browser.keys("c").await;
    browser.until("return document.activeElement?.id === 'capture'").await;
    assert!(browser.path().await.starts_with('/'));
    browser.keys("jk? milk").await;
    assert_eq!(
        browser.see("#capture").await.prop("value").await.expect("a value").as_deref(),
        Some("jk? milk")
    );
    browser.open(&format!("{site}/board")).await;
    browser.keys("n").await;
    browser.reads("h1", "New ticket").await;
    browser.close().await;
    server.stop().await;
}

impl Chromium {
    /// Presses Tab until what has the focus says this.
    async fn tab_to(&self, label: &str) {
        for _ in 0..100 {
            self.keys(&Key::Tab.to_string()).await;
            let says = "const e = document.activeElement; return (e.labels?.[0] ?? e).innerText.trim()";
            if self.script(says).await == label {
                return;
            }
        }
        panic!("no Tab leads to {label:?} at {}", self.path().await);
    }
}

#[tokio::test]
async fn whoever_has_only_a_keyboard_approves() {
    let (server, browser, site) = on_the_board().await;
    let enter = Key::Enter.to_string();
    browser.open(&format!("{site}/")).await;
    browser.keys("gb").await;
    browser.reads("h1", "Board").await;
    browser.tab_to("Skip to the page").await;
    browser.keys(&enter).await;
    browser.tab_to("Ticket number 2").await;
    browser.keys(&enter).await;
    browser.reads("h1", "Ticket number 2").await;
    browser.tab_to("Read and approve").await;
    browser.keys(&enter).await;
    browser.reads("main", "Approve exactly this").await;
    browser.tab_to("Note, for the record").await;
    browser.keys("by hand").await;
    browser.tab_to("Approve exactly this").await;
    browser.keys(&enter).await;
    browser.reads("#history", "by hand").await;
    let ticket = server.get("/v1/objectives/T-2").await.json();
    assert_ne!(ticket["objective"]["status"], "NEW", "{ticket}");
    browser.close().await;
    server.stop().await;
}

#[tokio::test]
async fn a_text_is_copied_also_over_plain_http() {
    let server = TestServer::start_with(|settings| settings.allowed_hosts.push("fernery.test".into())).await;
    let browser = Chromium::that_resolves("fernery.test").await;
    browser.open(&format!("http://fernery.test:{}/sign-in", server.addr().port())).await;
    let secure = browser.script("return [isSecureContext, 'clipboard' in navigator]").await;
    assert_eq!(secure, json!([false, false]), "here a script has no clipboard");
    browser.click("code + .copy").await;
    browser.reads("code + .copy", "Copied").await;
    browser.click("#token").await;
    browser.chord(Key::Control.into(), 'v').await;
    let pasted = browser.see("#token").await.prop("value").await.expect("a value");
    assert_eq!(pasted.as_deref(), Some("fernery open"));
    browser.close().await;
    server.stop().await;
}

#[tokio::test]
async fn whoever_tabs_through_a_page_always_sees_where_they_are() {
    let (server, browser, site) = on_the_board().await;
    for (path, theme) in
        [("/board", "light"), ("/board", "dark"), ("/ticket/T-1", "light"), ("/new-ticket", "light")]
    {
        browser.theme(theme).await;
        browser.open(&format!("{site}{path}")).await;
        let mut seen = Vec::new();
        loop {
            browser.keys(&Key::Tab.to_string()).await;
            let now = browser
                .script(
                    "const e = document.activeElement;
                     if (e === document.body) return null;
                     window.passed ??= new Set();
                     if (window.passed.has(e)) return null;
                     window.passed.add(e);
                     const [box, style] = [e.getBoundingClientRect(), getComputedStyle(e)];
                     const shown = box.width > 0 && box.bottom > 0 && box.right > 0 && box.left < innerWidth && box.top < innerHeight;
                     const marked = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
                     return [e.outerHTML.slice(0, 100), shown && marked]",
                )
                .await;
            if now.is_null() {
                break;
            }
            assert_eq!(now[1], true, "{path} ({theme}): {}", now[0]);
            seen.push(now[0].to_string());
        }
        assert!(seen[0].contains("skip"), "the first leads to the page: {seen:?}");
        assert!(seen.len() > 10, "{path}: {seen:?}");
    }
    // The first of all leads past the top.
    browser.open(&format!("{site}/board")).await;
    browser.keys(&format!("{}{}", char::from(Key::Tab), char::from(Key::Enter))).await;
    browser.until("return document.activeElement?.id === 'main'").await;
    browser.close().await;
    server.stop().await;
}
