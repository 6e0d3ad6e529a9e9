//! Manifests: the list, one of them, and what changed between two.

use crate::browser::{Browser, Site, signed_in, words};
use crate::inbox::workers;
use crate::server::TestServer;
use serde_json::{Value, json};

crate::on_both_backends!(manifests_are_listed_read_and_compared, an_empty_list_says_how_to_make_one);

async fn oriented(server: &TestServer, id: &str) -> String {
    let path = "/v1/azollas/task_management/manifests";
    let asked = server.post(path, &json!({ "request_id": id })).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let made = server.get(&format!("/v1/manifest_requests/{id}?wait_ms=60000")).await.json();
    made["manifest"]["manifest_id"].as_str().unwrap_or_else(|| panic!("no manifest: {made}")).to_string()
}

async fn shown(browser: &mut Browser, site: &Site, path: &str) -> String {
    let page = browser.get(site, path).await;
    assert_eq!(page.status, 200, "{path}: {}", words(&page.body));
    page.body
}

async fn manifests_are_listed_read_and_compared(server: TestServer) {
    let workers = workers(&server).await;
    let ticket = |id: &str, title: &str| json!({ "objective_id": id, "azolla_id": "tasks", "title": title });
    assert_eq!(server.post("/v1/objectives", &ticket("T-1", "Fix <the> footer")).await.status, 201);
    let first = oriented(&server, "o-1").await;
    assert_eq!(server.post("/v1/objectives", &ticket("T-2", "Water the plants")).await.status, 201);
    let block = json!({ "kind": "USER_INPUT", "description": "which footer?" });
    assert_eq!(server.post("/v1/objectives/T-1/block", &block).await.status, 200);
    let second = oriented(&server, "o-2").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let list = shown(&mut browser, &site, "/manifests").await;
    let changes = format!("/manifest/{second}?since={first}");
    assert!(list.contains(&format!("/manifest/{first}")) && list.contains(&changes), "{list}");
    let one = shown(&mut browser, &site, &format!("/manifest/{second}")).await;
    let said = words(&one);
    assert!(
        said.contains("Water the plants") && said.contains("Who was asked") && said.contains("tasks"),
        "{said}"
    );
    assert!(!one.contains("<the>") && !one.contains("id=\"changes\""), "{one}");
    let compared = shown(&mut browser, &site, &changes).await;
    let part = compared
        .split("id=\"changes\"")
        .nth(1)
        .and_then(|rest| rest.split("</section>").next())
        .expect("changes");
    let said = words(part);
    assert!(said.contains("came Water the plants") && said.contains("status: NEW → BLOCKED"), "{said}");
    let same = shown(&mut browser, &site, &format!("/manifest/{first}?since={first}")).await;
    assert!(words(&same).contains("Nothing."), "{}", words(&same));
    assert_eq!(browser.get(&site, "/manifest/none").await.status, 404);
    assert_eq!(browser.get(&site, &format!("/manifest/{first}?since=none")).await.status, 404);
    workers.stop().await;
    server.stop().await;
}

async fn an_empty_list_says_how_to_make_one(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let nobody = words(&shown(&mut browser, &site, "/manifests").await);
    assert!(nobody.contains("No azolla of this server makes manifests"), "{nobody}");
    crate::now::with_azollas(&server).await;
    let page = browser.get(&site, "/manifests").await;
    assert!(words(&page.body).contains("No manifest was made yet"));
    for _ in 0..2 {
        let asked = browser.submit(&site, &page, "/orient", &[]).await;
        assert_eq!((asked.status, asked.headers["location"].as_str()), (303, "/manifests"));
    }
    let events: Value = server.get("/v1/events").await.json();
    assert_eq!(events["events"].as_array().map(Vec::len), Some(1), "asked once: {events}");
    server.stop().await;
}
