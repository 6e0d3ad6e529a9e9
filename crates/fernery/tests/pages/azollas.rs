//! Azollas: what their workers did, and what their files would change.

use crate::browser::{Browser, Site, signed_in, words};
use crate::server::{Backend, PATIENCE, TestServer};
use fernery_engine::door;
use std::time::Duration;

fn file(description: &str, more: &str) -> String {
    format!(
        "extends = \"mec\"\nazolla_id = \"one\"\ndescription = \"{description}\"\ndiazotroph_type = \"TEXT_DIAZOTROPH\"\n\
         {more}\n[executors.TEXT_DIAZOTROPH]\nkind = \"remote\"\n"
    )
}

async fn shown(browser: &mut Browser, site: &Site, path: &str) -> String {
    let page = browser.get(site, path).await;
    assert_eq!(page.status, 200, "{path}: {}", words(&page.body));
    page.body
}

async fn an_edited_file_is_shown_and_reloaded(backend: Backend) {
    let (server, workers) = TestServer::working(backend, &[("one.toml", &file("first", ""))]).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let list = shown(&mut browser, &site, "/azollas").await;
    assert!(
        list.contains("href=\"/azolla/one\"") && words(&list).contains("The files are as they are in force"),
        "{list}"
    );
    assert!(!list.contains("action=\"/azollas/reload\""), "there is nothing to reload");
    let until = door::stop_watch() + PATIENCE;
    // Over HTTP nobody says that a worker has made its first pass.
    while !shown(&mut browser, &site, "/azolla/one").await.contains("id=\"pass-1\"") {
        assert!(door::stop_watch() < until, "no worker has looked");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let one = words(&shown(&mut browser, &site, "/azolla/one").await);
    assert!(
        one.contains("scheduler") && one.contains("readiness") && one.contains("fernery azolla show one"),
        "{one}"
    );
    assert!(one.contains("\"azolla_id\": \"one\""), "the blueprint in force: {one}");

    let path = server.folder.path().join("one.toml");
    std::fs::write(&path, file("second <b>", "[limits]\nconcurrency = 2\n")).expect("written");
    let edited = browser.get(&site, "/azolla/one").await;
    let said = words(&edited.body);
    assert!(said.contains("description first → second <b>") && said.contains("limits.concurrency"), "{said}");
    assert_eq!(server.get("/v1/azollas/one").await.json()["description"], "first", "looking applies nothing");
    let viewer = server.token("viewer").await;
    let (mut other, _) = signed_in(&server, &viewer).await;
    let theirs = shown(&mut other, &site, "/azolla/one").await;
    assert!(!theirs.contains("id=\"files\""), "who may not reload is told nothing of files");
    let reloaded = browser.submit(&site, &edited, "/azollas/reload", &[]).await;
    assert_eq!(reloaded.status, 200);
    assert!(
        words(&reloaded.body).contains("Applied") && !reloaded.body.contains("<b>"),
        "{}",
        words(&reloaded.body)
    );
    assert_eq!(server.get("/v1/azollas/one").await.json()["description"], "second <b>");
    let again = browser.submit(&site, &edited, "/azollas/reload", &[]).await;
    assert!(words(&again.body).contains("Nothing has changed"), "sent twice, applied once");

    std::fs::write(&path, file("third", "colour = 1\n")).expect("written");
    let wrong = words(&shown(&mut browser, &site, "/azollas").await);
    assert!(wrong.contains("unknown key `colour`"), "{wrong}");
    let refused = browser.submit(&site, &edited, "/azollas/reload", &[]).await;
    assert_eq!(refused.status, 422);
    assert!(words(&refused.body).contains("Nothing was applied"), "{}", words(&refused.body));
    assert_eq!(server.get("/v1/azollas/one").await.json()["description"], "second <b>");
    assert_eq!(browser.get(&site, "/azolla/none").await.status, 404);
    workers.stop().await;
    server.stop().await;
}

#[tokio::test]
async fn an_edited_file_is_shown_and_reloaded_on_sqlite() {
    an_edited_file_is_shown_and_reloaded(Backend::Sqlite).await;
}

#[tokio::test]
async fn an_edited_file_is_shown_and_reloaded_on_postgres() {
    an_edited_file_is_shown_and_reloaded(Backend::Postgres).await;
}

crate::on_both_backends!(a_server_without_files_says_so);

async fn a_server_without_files_says_so(server: TestServer) {
    crate::now::with_azollas(&server).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = words(&shown(&mut browser, &site, "/azollas").await);
    assert!(page.contains("this server hosts no azollas") && page.contains("mec"), "{page}");
    let one = words(&shown(&mut browser, &site, "/azolla/mec").await);
    assert!(one.contains("No worker of this process has looked at it"), "{one}");
    server.stop().await;
}
