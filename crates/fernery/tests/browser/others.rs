//! What others do meanwhile is shown on the pages that show such things, and nothing is missed while a page begins to listen.

use crate::chromium::Chromium;
use crate::inbox::workers;
use crate::server::TestServer;
use serde_json::json;

crate::on_both_backends!(pages_show_what_others_do_meanwhile);

impl Chromium {
    /// Opens a page and waits until it listens.
    async fn listens(&self, url: &str) {
        self.open(url).await;
        self.see("#live.open").await;
        self.script("window.stayed = true").await;
    }

    async fn stayed(&self) {
        assert_eq!(self.script("return window.stayed").await, true, "{} was loaded again", self.path().await);
    }
}

async fn pages_show_what_others_do_meanwhile(server: TestServer) {
    let held = server.leased("mail").await;
    let browser = Chromium::start().await;
    let site = browser.sign_in(&server, &server.operator).await;
    let pauses = async |act: &str| {
        assert_eq!(server.post(&format!("/v1/streams/mail/{act}"), &json!({})).await.status, 200);
    };
    browser.listens(&format!("{site}/streams")).await;
    pauses("pause").await;
    browser.reads("#streams", "paused").await;
    pauses("resume").await;
    browser.until("return !document.querySelector('#streams').innerText.includes('paused')").await;
    browser.stayed().await;

    let job = held["job_id"].as_str().expect("an id");
    browser.listens(&format!("{site}/job/{job}")).await;
    let beat = json!({ "worker_id": "w", "job_id": job, "lease_token": held["lease_token"],
        "progress": { "percent": 40, "note": "4 of 10 sent" } });
    assert_eq!(server.work("heartbeat", &beat).await.status, 200);
    browser.reads("#attempts", "4 of 10 sent").await;
    let other = server.leased("mail").await;
    browser.stayed().await;

    browser.listens(&format!("{site}/workers")).await;
    let cancel = format!("/v1/jobs/{}/cancel", other["job_id"].as_str().expect("an id"));
    assert_eq!(server.post(&cancel, &json!({})).await.status, 200);
    browser.reads("#workers", "to be cancelled").await;
    browser.stayed().await;

    browser.listens(&format!("{site}/tokens")).await;
    let viewer = server.token("viewer").await;
    browser.reads("#tokens", "viewer").await;
    let form = format!("token={viewer}&next=%2F");
    let host = site.trim_start_matches("http://");
    let headers = [("host", host), ("origin", &site), ("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(server.send("POST", "/sign-in", &headers, &form).await.status, 303);
    browser.until("return document.querySelectorAll('#sessions li').length === 2").await;
    let id = viewer.split('_').nth(1).expect("an id");
    server.call(&server.operator, "DELETE", &format!("/v1/tokens/{id}"), "").await;
    browser.reads("#tokens", "Revoked or expired: 1").await;
    browser.until("return document.querySelectorAll('#sessions li').length === 1").await;
    browser.stayed().await;

    let workers = workers(&server).await;
    browser.listens(&format!("{site}/manifests")).await;
    browser.reads("#manifests", "No manifest was made yet").await;
    let asked = server.post("/v1/azollas/task_management/manifests", &json!({ "request_id": "o-1" })).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    browser.see("#manifests a[href^='/manifest/']").await;
    browser.stayed().await;
    workers.stop().await;
    browser.close().await;
    server.stop().await;
}

/// Lets a tab listen only when the test says so.
const HOLD: &str = "const ask = navigator.locks.request.bind(navigator.locks);
    const held = new Promise((go) => { window.letListen = go; });
    navigator.locks.request = async (name, then) => { await held; return ask(name, then); };";

/// Listens beside the tab until a job is told of, so that the reader of the server has seen it.
const BESIDE: &str = "window.hears = window.seen = false;
    fetch('/events').then(async (answer) => {
        const reader = answer.body.getReader();
        let text = '';
        while (!/^data:.*jobs/m.test(text)) {
            text += new TextDecoder().decode((await reader.read()).value);
            window.hears ||= text.includes('id: ');
        }
        window.seen = true;
    })";

#[tokio::test]
async fn what_changes_before_a_page_listens_is_not_missed() {
    let server = TestServer::start().await;
    let browser = Chromium::start().await;
    let site = browser.sign_in(&server, &server.operator).await;
    let page = format!("{site}/streams");
    browser.tools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": HOLD })).await;
    browser.open(&page).await;
    browser.reads("#streams", "No stream is here yet").await;
    let beside = async || {
        browser.script(BESIDE).await;
        browser.until("return window.hears === true").await;
    };
    beside().await;
    server.enqueue("between").await;
    browser.until("return window.seen === true").await;
    assert!(browser.words("#streams").await.contains("No stream is here yet"), "nothing is told to it yet");
    browser.script("window.letListen()").await;
    browser.reads("#streams", "between").await;
    browser.see("#live.open").await;

    // A tab that takes over goes on where the one before it ended.
    let first = browser.client.window().await.expect("a tab");
    let tab = browser.client.new_window(true).await.expect("a tab");
    browser.client.switch_to_window(tab.handle.clone()).await.expect("shown");
    browser.tools("Page.addScriptToEvaluateOnNewDocument", json!({ "source": HOLD })).await;
    browser.open(&page).await;
    browser.see("#live.open").await;
    browser.client.switch_to_window(first).await.expect("shown");
    browser.client.close_window().await.expect("closed");
    browser.client.switch_to_window(tab.handle).await.expect("shown");
    beside().await;
    server.enqueue("handed-over").await;
    browser.until("return window.seen === true").await;
    assert!(!browser.words("#streams").await.contains("handed-over"), "nothing is told to it yet");
    browser.script("window.letListen()").await;
    browser.reads("#streams", "handed-over").await;
    browser.close().await;
    server.stop().await;
}
