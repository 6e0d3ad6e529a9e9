//! Coming in, going out, and what happens in between.

use crate::browser::{Browser, Site, form, signed_in, words};
use crate::server::TestServer;
use serde_json::json;
use std::time::Duration;

crate::on_both_backends!(
    a_link_signs_one_browser_in_once,
    a_link_is_too_old_after_five_minutes,
    a_session_lasts_twelve_hours_and_no_longer,
    whoever_signs_out_is_out,
    signing_out_everywhere_ends_every_session_and_link_of_the_token,
    a_revoked_token_ends_its_sessions,
    a_cookie_is_no_token_and_a_token_is_no_cookie,
    viewers_look_and_operators_act,
    tokens_of_programs_get_no_pages,
    a_form_without_the_key_of_its_session_does_nothing,
    what_was_typed_survives_signing_in,
    a_session_can_be_listed_and_ended_by_an_operator,
);

async fn link(server: &TestServer) -> String {
    let made = server.post("/v1/sign-in-links", &json!({})).await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    assert_eq!(made["host"], server.running.pages_host());
    made["path"].as_str().expect("a path").to_string()
}

async fn a_link_signs_one_browser_in_once(server: TestServer) {
    let (path, site) = (link(&server).await, Site::own(&server));
    let (mut mine, mut other) = (Browser::default(), Browser::default());
    // Looking at it does not spend it.
    for _ in 0..2 {
        let page = mine.get(&site, &path).await;
        assert_eq!(page.status, 200);
        assert!(page.body.contains("<form method=\"post\">") && mine.cookies(&site.host).is_empty());
    }
    let entered = mine.post(&site, &path, &[]).await;
    assert_eq!((entered.status, entered.headers["location"].as_str()), (303, "/"), "{entered:?}");
    assert_eq!(mine.get(&site, "/").await.status, 200);
    let cookie = &entered.headers["set-cookie"];
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "it is for this host name only: {cookie}");
    let late = other.post(&site, &path, &[]).await;
    assert_eq!(late.status, 401, "{late:?}");
    assert!(words(&late.body).contains("works once") && other.cookies(&site.host).is_empty());
    server.stop().await;
}

async fn a_link_is_too_old_after_five_minutes(server: TestServer) {
    let (path, site) = (link(&server).await, Site::own(&server));
    server.advance(Duration::from_secs(5 * 60)).await;
    let mut browser = Browser::default();
    assert_eq!(browser.post(&site, &path, &[]).await.status, 401);
    assert!(browser.cookies(&site.host).is_empty());
    server.stop().await;
}

async fn a_session_lasts_twelve_hours_and_no_longer(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    assert_eq!(browser.get(&site, "/").await.status, 200);
    server.advance(Duration::from_secs(12 * 3_600)).await;
    let ended = browser.get(&site, "/").await;
    assert_eq!(ended.status, 401);
    assert!(words(&ended.body).contains("Sign in"));
    server.stop().await;
}

async fn whoever_signs_out_is_out(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let (mut other, _) = signed_in(&server, &server.operator).await;
    let stolen = browser.clone();
    let page = browser.get(&site, "/").await;
    let out = browser.submit(&site, &page, "/sign-out", &[("everywhere", "no")]).await;
    assert_eq!((out.status, out.headers["location"].as_str()), (303, "/sign-in"));
    assert!(browser.cookies(&site.host).is_empty());
    assert_eq!(stolen.clone().get(&site, "/").await.status, 401, "the secret works no more");
    assert_eq!(other.get(&site, "/").await.status, 200);
    server.stop().await;
}

async fn signing_out_everywhere_ends_every_session_and_link_of_the_token(server: TestServer) {
    let viewer = server.token("viewer").await;
    let (mut mine, site) = signed_in(&server, &server.operator).await;
    let (mut elsewhere, _) = signed_in(&server, &server.operator).await;
    let (mut theirs, _) = signed_in(&server, &viewer).await;
    let left = link(&server).await;
    let page = mine.get(&site, "/").await;
    mine.submit(&site, &page, "/sign-out", &[("everywhere", "yes")]).await;
    assert_eq!(elsewhere.get(&site, "/").await.status, 401);
    assert_eq!(Browser::default().post(&site, &left, &[]).await.status, 401);
    assert_eq!(theirs.get(&site, "/").await.status, 200, "another token's session goes on");
    server.stop().await;
}

async fn a_revoked_token_ends_its_sessions(server: TestServer) {
    let token = server.token("viewer").await;
    let (mut browser, site) = signed_in(&server, &token).await;
    assert_eq!(browser.get(&site, "/").await.status, 200);
    let id = token.split('_').nth(1).expect("an id");
    let revoked = server.call(&server.operator, "DELETE", &format!("/v1/tokens/{id}"), "").await;
    assert_eq!(revoked.status, 200);
    assert_eq!(browser.get(&site, "/").await.status, 401);
    server.stop().await;
}

async fn a_cookie_is_no_token_and_a_token_is_no_cookie(server: TestServer) {
    let (browser, site) = signed_in(&server, &server.operator).await;
    let cookies = browser.cookies(&site.host);
    let [(name, secret)] = &cookies[..] else { panic!("{cookies:?}") };
    assert_eq!(name, "fernery");
    assert_eq!(server.call(secret, "GET", "/v1/whoami", "").await.status, 401);
    // Not even in the form of a token: its checksum is another, and no token has its id.
    let as_token = secret.replacen("ferns_", "fern_", 1);
    assert_eq!(server.call(&as_token, "GET", "/v1/whoami", "").await.status, 401);
    let with_cookie = server.send("GET", "/v1/whoami", &[("cookie", &format!("{name}={secret}"))], "").await;
    assert_eq!(with_cookie.status, 401, "the API knows no cookies");
    let mut forged = Browser::default();
    forged.set_cookie(&site.host, "fernery", &server.operator);
    assert_eq!(forged.get(&site, "/").await.status, 401);
    let bearer = format!("Bearer {}", server.operator);
    let head = Browser::default().head(&site, "GET", "/") + &format!("authorization: {bearer}\r\n\r\n");
    assert_eq!(Browser::default().send(&site, &head).await.status, 401, "pages know no tokens");
    server.stop().await;
}

async fn viewers_look_and_operators_act(server: TestServer) {
    let viewer = server.token("viewer").await;
    let (mut looks, site) = signed_in(&server, &viewer).await;
    let (mut acts, _) = signed_in(&server, &server.operator).await;
    let page = looks.get(&site, "/").await;
    assert_eq!(page.status, 200);
    assert!(!page.body.contains("action=\"/capture\""), "no button that would be refused");
    let key =
        form(&page.body, "/sign-out").into_iter().find(|(name, _)| name == "form_key").expect("a key").1;
    let fields = [("form_key", key.as_str()), ("raw_content", "a thought")];
    let refused = looks.post(&site, "/capture", &fields).await;
    assert_eq!(refused.status, 403);
    assert!(words(&refused.body).contains("signed in as a viewer"));
    assert!(acts.get(&site, "/").await.body.contains("action=\"/capture\""));
    server.stop().await;
}

async fn tokens_of_programs_get_no_pages(server: TestServer) {
    let site = Site::own(&server);
    for role in ["worker", "producer", "visitor"] {
        let token = server.token(role).await;
        let mut browser = Browser::default();
        let refused = browser.post(&site, "/sign-in", &[("token", &token)]).await;
        assert_eq!(refused.status, 403, "{role}: {refused:?}");
        assert!(words(&refused.body).contains(&format!("a {role} token gets no pages")), "{role}");
        assert!(browser.cookies(&site.host).is_empty());
    }
    let wrong = Browser::default().post(&site, "/sign-in", &[("token", "fern_nonsense")]).await;
    assert_eq!(wrong.status, 401);
    assert!(!wrong.body.contains("fern_nonsense"), "a secret is not shown again");
    server.stop().await;
}

async fn a_form_without_the_key_of_its_session_does_nothing(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let (mut other, _) = signed_in(&server, &server.operator).await;
    let others = other.get(&site, "/").await;
    let foreign =
        form(&others.body, "/sign-out").into_iter().find(|(name, _)| name == "form_key").expect("a key").1;
    for key in ["", "00000000000000000000000000000000", foreign.as_str()] {
        let answer = browser.post(&site, "/sign-out", &[("form_key", key), ("everywhere", "yes")]).await;
        assert_eq!(answer.status, 200, "it is shown to be sent again");
        assert!(words(&answer.body).contains("Nothing was sent yet"), "{key}");
        assert_eq!(browser.get(&site, "/").await.status, 200, "and still signed in");
    }
    let page = browser.get(&site, "/").await;
    let fields = form(&page.body, "/sign-out");
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for headers in [
        &[("origin", "http://evil.example")][..],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
    ] {
        let refused = browser.post_from(&site, "/sign-out", &fields, headers).await;
        assert_eq!(refused.status, 403, "{headers:?}");
        assert_eq!(browser.get(&site, "/").await.status, 200);
    }
    server.stop().await;
}

async fn what_was_typed_survives_signing_in(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let thought = "a \"long\" <thought>\nof two lines & more";
    server.advance(Duration::from_secs(12 * 3_600)).await;
    let asked = browser
        .post(&site, "/sign-out", &[("form_key", "old"), ("everywhere", "no"), ("typed", thought)])
        .await;
    assert_eq!(asked.status, 401);
    let back = browser.submit(&site, &asked, "/sign-in", &[("token", &server.operator)]).await;
    assert_eq!(back.status, 200, "{back:?}");
    let waiting = form(&back.body, "/sign-out");
    assert!(waiting.contains(&("typed".to_string(), thought.to_string())), "{waiting:?}");
    let sent = browser.submit(&site, &back, "/sign-out", &[]).await;
    assert_eq!(sent.status, 303, "{sent:?}");
    // The same with a sign-in in another tab of this browser.
    let again = browser.submit(&site, &asked, "/again", &[]).await;
    assert_eq!(again.status, 401, "nobody is signed in");
    browser.sign_in(&site, &server.operator).await;
    let back = browser.submit(&site, &asked, "/again", &[]).await;
    assert!(form(&back.body, "/sign-out").contains(&("typed".to_string(), thought.to_string())), "{back:?}");
    server.stop().await;
}

async fn a_session_can_be_listed_and_ended_by_an_operator(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let list = server.get("/v1/sessions").await;
    let secret = &browser.cookies(&site.host)[0].1;
    let id = secret.split('_').nth(1).expect("an id");
    assert_eq!(list.json()["sessions"][0]["session_id"], id, "{list:?}");
    assert!(!list.body.contains(secret.rsplit('_').next().expect("a secret")));
    assert_eq!(
        server.get("/v1/tokens").await.json()["tokens"].as_array().map(Vec::len),
        Some(2),
        "no session is a token"
    );
    let path = format!("/v1/sessions/{id}");
    assert_eq!(server.call(&server.operator, "DELETE", &path, "").await.status, 200);
    assert_eq!(server.call(&server.operator, "DELETE", &path, "").await.status, 404);
    assert_eq!(browser.get(&site, "/").await.status, 401);
    server.stop().await;
}

#[tokio::test]
async fn signing_in_is_limited_and_a_guesser_locks_nobody_out() {
    let server = TestServer::start().await;
    let (mut browser, site) = (Browser::default(), Site::own(&server));
    let mut statuses = Vec::new();
    for _ in 0..11 {
        statuses.push(browser.post(&site, "/sign-in", &[("token", "guess")]).await.status);
    }
    assert_eq!(statuses[..10], [401; 10]);
    assert_eq!(statuses[10], 429);
    browser.sign_in(&site, &server.operator).await;
    server.stop().await;
}

#[tokio::test]
async fn two_who_spend_one_link_at_once_get_one_session() {
    let server = TestServer::start().await;
    let (path, site) = (link(&server).await, Site::own(&server));
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (path, site) = (path.clone(), site.clone());
        tries.spawn(async move { Browser::default().post(&site, &path, &[]).await.status });
    }
    let mut statuses = tries.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses.iter().filter(|status| **status == 303).count(), 1, "{statuses:?}");
    server.stop().await;
}
