//! Tokens and sessions: made, shown once, ended.

use crate::browser::{Browser, Site, form, signed_in, words};
use crate::server::{Answer, TestServer};
use serde_json::{Value, json};
use std::time::Duration;

crate::on_both_backends!(
    a_token_is_made_once_and_shown_once,
    a_refused_token_comes_back_with_what_was_typed,
    a_token_and_a_session_are_ended,
    the_last_operator_token_wants_to_be_sure,
    tokens_want_somebody_who_signed_in_a_short_while_ago,
);

async fn tokens(server: &TestServer) -> Vec<Value> {
    server.get("/v1/tokens").await.json()["tokens"].as_array().expect("tokens").clone()
}

fn secret(page: &Answer) -> Option<String> {
    let from = page.body.split("id=\"secret\">").nth(1)?;
    from.split("</pre>").next().map(str::to_string)
}

async fn open(browser: &mut Browser, site: &Site) -> Answer {
    let page = browser.get(site, "/tokens").await;
    assert_eq!(page.status, 200, "{}", words(&page.body));
    page
}

async fn a_token_is_made_once_and_shown_once(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = open(&mut browser, &site).await;
    let had = tokens(&server).await.len();
    let typed = [("name", "gpu <box>"), ("role", "worker"), ("streams", "gpu, build:*"), ("days", "30")];
    let made = browser.submit(&site, &page, "/tokens", &typed).await;
    assert_eq!((made.status, made.headers["cache-control"].as_str()), (201, "no-store"));
    let token = secret(&made).expect("the secret");
    let works = server.call(&token, "GET", "/v1/whoami", "").await;
    assert_eq!((works.status, &works.json()["role"]), (200, &json!("worker")), "{works:?}");
    assert!(!made.body.contains("gpu <box>"), "inert");
    let again = browser.submit(&site, &page, "/tokens", &typed).await;
    assert_eq!((again.status, secret(&again)), (409, None), "sent twice, made once: {}", words(&again.body));
    let all = tokens(&server).await;
    assert_eq!(all.len(), had + 1);
    let id = |page: &Answer| form(&page.body, "/tokens").into_iter().find(|(name, _)| name == "token_id");
    assert_ne!(id(&page), id(&again), "the next one can be made");
    let row = all.iter().find(|row| row["name"] == "gpu <box>").expect("a row");
    assert_eq!(row["streams"], json!(["gpu", "build:*"]));
    assert!(row["expires_at"].is_string(), "{row}");
    let later = open(&mut browser, &site).await;
    assert!(!later.body.contains(&token) && secret(&later).is_none(), "never again");
    assert!(words(&later.body).contains("gpu <box>"));
    let chosen = json!({ "role": "viewer", "name": "x", "token_id": "ABC" });
    assert_eq!(server.post("/v1/tokens", &chosen).await.pointers(), ["/token_id"]);
    server.stop().await;
}

async fn a_refused_token_comes_back_with_what_was_typed(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = open(&mut browser, &site).await;
    let had = tokens(&server).await.len();
    for (typed, field) in [
        ([("name", "x"), ("role", "visitor"), ("days", "")], "must name the azolla"),
        ([("name", "x"), ("role", "viewer"), ("days", "soon")], "a whole number of days"),
        ([("name", ""), ("role", "viewer"), ("days", "1")], "printable characters"),
    ] {
        let refused = browser.submit(&site, &page, "/tokens", &typed).await;
        assert_eq!(refused.status, 422, "{typed:?}");
        assert!(words(&refused.body).contains(field), "{field}: {}", words(&refused.body));
        assert!(refused.body.contains(&format!("<option selected>{}</option>", typed[1].1)), "{typed:?}");
    }
    assert_eq!(tokens(&server).await.len(), had);
    server.stop().await;
}

async fn a_token_and_a_session_are_ended(server: TestServer) {
    let viewer = server.token("viewer").await;
    let id = viewer.split('_').nth(1).expect("an id").to_string();
    let (mut theirs, _) = signed_in(&server, &viewer).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let (mut elsewhere, _) = signed_in(&server, &server.operator).await;
    assert_eq!(theirs.get(&site, "/tokens").await.status, 403, "viewers see no tokens");
    let page = open(&mut browser, &site).await;
    let said = words(&page.body);
    assert!(
        said.contains("this browser") && said.contains("yours") && said.contains("fernery token revoke"),
        "{said}"
    );
    for _ in 0..2 {
        let ended = browser.submit(&site, &page, &format!("/token/{id}/revoke"), &[]).await;
        assert_eq!((ended.status, ended.headers["location"].as_str()), (303, "/tokens"), "{ended:?}");
    }
    assert_eq!(theirs.get(&site, "/").await.status, 401, "its sessions end");
    let page = open(&mut browser, &site).await;
    assert!(words(&page.body).contains("Revoked or expired: 1"), "{}", words(&page.body));
    assert_eq!(page.body.matches("data-row id=\"session-").count(), 2, "a session ends with its token");
    let sessions = server.get("/v1/sessions").await.json()["sessions"].as_array().expect("sessions").clone();
    let own = page
        .body
        .split("data-row id=\"session-")
        .skip(1)
        .find(|row| row.split("</li>").next().is_some_and(|row| row.contains("this browser")));
    let own = own.and_then(|row| row.split('"').next()).expect("this browser").to_string();
    let other = sessions
        .iter()
        .filter_map(|row| row["session_id"].as_str())
        .find(|id| **id != own && page.body.contains(*id));
    let other = other.expect("another one");
    let ended = browser.submit(&site, &page, &format!("/session/{other}/end"), &[]).await;
    assert_eq!(ended.status, 303, "{ended:?}");
    assert_eq!(elsewhere.get(&site, "/").await.status, 401);
    assert_eq!(browser.get(&site, "/").await.status, 200);
    let page = open(&mut browser, &site).await;
    let out = browser.submit(&site, &page, "/sign-out", &[]).await;
    assert_eq!((out.status, browser.get(&site, "/").await.status), (303, 401), "signed out everywhere");
    server.stop().await;
}

async fn the_last_operator_token_wants_to_be_sure(server: TestServer) {
    let id = server.operator.split('_').nth(1).expect("an id").to_string();
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = open(&mut browser, &site).await;
    let act = format!("/token/{id}/revoke");
    let refused = browser.submit(&site, &page, &act, &[]).await;
    assert_eq!(refused.status, 409);
    let said = words(&refused.body);
    assert!(said.contains("last token of an operator") && said.contains("the page Tokens"), "{said}");
    assert!(refused.body.contains("<a href=\"/tokens\">Back to the page"), "{}", refused.body);
    assert_eq!(server.get("/v1/whoami").await.status, 200, "nothing was revoked");
    assert_eq!(browser.submit(&site, &page, &act, &[("sure", "yes")]).await.status, 303);
    assert_eq!((server.get("/v1/whoami").await.status, browser.get(&site, "/").await.status), (401, 401));
    server.stop().await;
}

async fn tokens_want_somebody_who_signed_in_a_short_while_ago(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = open(&mut browser, &site).await;
    server.advance(Duration::from_secs(15 * 60)).await;
    let had = tokens(&server).await.len();
    assert_eq!(browser.get(&site, "/tokens").await.status, 401, "to look, too");
    let asked = browser.submit(&site, &page, "/tokens", &[("name", "x"), ("role", "viewer")]).await;
    assert_eq!((asked.status, tokens(&server).await.len()), (401, had));
    let back = browser.submit(&site, &asked, "/sign-in", &[("token", &server.operator)]).await;
    let made = browser.submit(&site, &back, "/tokens", &[]).await;
    assert_eq!((made.status, tokens(&server).await.len()), (201, had + 1), "what was typed is sent again");
    server.stop().await;
}
