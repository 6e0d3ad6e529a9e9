//! The inbox, one candidate at a time.

use crate::browser::{Browser, Site, attribute, signed_in, unescaped, words};
use crate::inbox::{triaged, workers};
use crate::server::{Answer, TestServer};
use serde_json::{Value, json};

crate::on_both_backends!(
    each_act_is_carried_out_once_and_the_next_one_is_shown,
    a_discard_and_a_snooze_are_taken_back,
    later_leaves_it_waiting_and_goes_on,
    a_merge_names_both_and_asks,
    an_edit_keeps_what_it_does_not_name_and_a_refused_one_is_not_lost,
    a_form_decides_about_the_candidate_that_it_showed,
    viewers_look_at_the_inbox_and_decide_nothing,
    hostile_captures_do_nothing,
);

async fn ready(server: &TestServer, lines: &[&str]) -> (Browser, Site, Vec<String>) {
    let workers = workers(server).await;
    let found = triaged(server, lines).await;
    // Triage is done: nothing changes by itself any more.
    workers.stop().await;
    let (browser, site) = signed_in(server, &server.operator).await;
    let id = |of: &Value| of["candidate_id"].as_str().expect("an id").to_string();
    (browser, site, found.iter().map(id).collect())
}

async fn read(server: &TestServer, id: &str) -> Value {
    server.get(&format!("/v1/candidates/{id}")).await.json()
}

#[track_caller]
fn location(answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{}", words(&answer.body));
    answer.headers["location"].clone()
}

fn form_of(id: &str, act: &str) -> String {
    format!("/candidate/{id}/{act}")
}

async fn each_act_is_carried_out_once_and_the_next_one_is_shown(server: TestServer) {
    let (mut browser, site, ids) =
        ready(&server, &["buy milk tomorrow", "call the plumber", "read a book"]).await;
    let page = browser.get(&site, "/triage").await;
    let said = words(&page.body);
    assert!(said.contains("buy milk tomorrow") && said.contains("3 waiting"), "{said}");
    for key in ["p", "e", "m", "d", "z", "s"] {
        assert!(page.body.contains(&format!("data-key=\"{key}\"")), "{key}");
    }
    for command in ["triage promote", "triage edit", "triage merge", "triage discard", "snooze"] {
        assert!(said.contains(&format!("fernery {command} {}", ids[0])), "{command}: {said}");
    }
    for _ in 0..2 {
        let next = location(&browser.submit(&site, &page, &form_of(&ids[0], "promote"), &[]).await);
        assert_eq!(next, format!("/triage?last={}", ids[0]));
    }
    let all = server.get("/v1/objectives?azolla_id=tasks").await.json();
    let tickets = all["objectives"].as_array().expect("tickets");
    assert_eq!(
        (tickets.len(), &tickets[0]["objective"]["status"]),
        (1, &json!("NEW")),
        "once, and NEW: {all}"
    );
    let page = browser.get(&site, &format!("/triage?last={}", ids[0])).await;
    let said = words(&page.body);
    assert!(
        said.contains("Promoted") && said.contains("call the plumber") && said.contains("2 waiting"),
        "{said}"
    );
    assert!(page.body.contains("href=\"/ticket/tasks-"), "{said}");
    location(&browser.submit(&site, &page, &form_of(&ids[1], "discard"), &[]).await);
    let page = browser.get(&site, "/triage").await;
    let next = browser.submit(&site, &page, &form_of(&ids[2], "snooze"), &[("until", "in 3 days")]).await;
    let empty = browser.get(&site, &location(&next)).await;
    let said = words(&empty.body);
    assert!(said.contains("Nothing waits in the inbox") && said.contains("Out of sight until"), "{said}");
    assert!(empty.body.contains("id=\"candidate\" data-live=\"inbox\""), "what comes is shown by itself");
    server.stop().await;
}

async fn a_discard_and_a_snooze_are_taken_back(server: TestServer) {
    let (mut browser, site, ids) = ready(&server, &["buy milk", "read a book"]).await;
    let page = browser.get(&site, "/triage").await;
    for (act, undo, typed) in
        [("discard", "restore", vec![]), ("snooze", "wake", vec![("until", "tomorrow")])]
    {
        let next = location(&browser.submit(&site, &page, &form_of(&ids[0], act), &typed).await);
        let after = browser.get(&site, &next).await;
        assert!(after.body.contains("data-key=\"u\"") && words(&after.body).contains("read a book"), "{act}");
        let back = browser.submit(&site, &after, &form_of(&ids[0], undo), &[]).await;
        assert_eq!(location(&back), format!("/candidate/{}", ids[0]), "it is shown again at once");
        let now = read(&server, &ids[0]).await;
        assert_eq!((&now["status"], now.get("snoozed_until")), (&json!("WAITING"), None), "{act}: {now}");
        let shown = browser.get(&site, &format!("/candidate/{}", ids[0])).await;
        assert!(words(&shown.body).contains("buy milk"));
        let page = browser.get(&site, "/triage").await;
        assert!(words(&page.body).contains("2 waiting"), "{}", words(&page.body));
    }
    server.stop().await;
}

async fn later_leaves_it_waiting_and_goes_on(server: TestServer) {
    let (mut browser, site, ids) = ready(&server, &["buy milk", "read a book"]).await;
    let mut path = "/triage".to_string();
    for id in &ids {
        let page = browser.get(&site, &path).await.body;
        assert!(page.contains(&form_of(id, "promote")), "{path}");
        let later =
            page.split("<a class=\"button\" ").find(|tag| tag.contains("data-key=\"s\"")).expect("a way on");
        path = unescaped(attribute(later, "href"));
    }
    let end = words(&browser.get(&site, &path).await.body);
    assert!(end.contains("That was the last one") && end.contains("Begin again"), "{end}");
    assert_eq!(crate::inbox::waiting(&server).await.len(), 2, "nothing was decided");
    server.stop().await;
}

async fn a_merge_names_both_and_asks(server: TestServer) {
    let (mut browser, site, ids) = ready(&server, &["buy some milk", "call mother", "buy milk!"]).await;
    let page = browser.get(&site, "/triage").await;
    let near = page.body.split("id=\"near\"").nth(1).expect("a near duplicate");
    let near = near.split("</div>").next().expect("an end");
    assert!(near.contains(&ids[2]) && !near.contains(&ids[1]), "{near}");
    let none = browser.get(&site, &form_of(&ids[0], "merge")).await;
    assert!(none.status == 422 && words(&none.body).contains("nothing is ticked"), "{}", words(&none.body));
    let asked = browser.get(&site, &format!("{}?other={}", form_of(&ids[0], "merge"), ids[2])).await;
    let said = words(&asked.body);
    assert!(said.contains("buy some milk") && said.contains("buy milk!"), "both are named: {said}");
    assert_eq!(read(&server, &ids[2]).await["status"], "WAITING", "looking merges nothing");
    for _ in 0..2 {
        let next = location(&browser.submit(&site, &asked, &form_of(&ids[0], "merge"), &[]).await);
        assert_eq!(next, format!("/candidate/{}?last={}", ids[0], ids[2]));
    }
    let merged = read(&server, &ids[2]).await;
    assert_eq!((&merged["status"], &merged["merged_into"]), (&json!("MERGED"), &json!(ids[0])));
    let left = browser.get(&site, &format!("/candidate/{}?last={}", ids[0], ids[2])).await;
    let said = words(&left.body);
    assert!(said.contains("Merged") && said.matches("from api").count() == 2, "with both captures: {said}");
    let again = browser.get(&site, &format!("{}?other={}", form_of(&ids[1], "merge"), ids[2])).await;
    let refused = browser.submit(&site, &again, &form_of(&ids[1], "merge"), &[]).await;
    assert!((400..500).contains(&refused.status) && refused.body.contains("role=\"alert\""), "{refused:?}");
    server.stop().await;
}

async fn an_edit_keeps_what_it_does_not_name_and_a_refused_one_is_not_lost(server: TestServer) {
    let (mut browser, site, ids) = ready(&server, &["buy milk +shop"]).await;
    let page = browser.get(&site, "/triage").await;
    let act = form_of(&ids[0], "edit");
    let typed = |title: &'static str, due: &'static str| {
        vec![
            ("title", title),
            ("acceptance_criteria", "two litres"),
            ("importance", "1"),
            ("urgency", "0"),
            ("due", due),
        ]
    };
    let refused = browser.submit(&site, &page, &act, &typed("Buy <oat> milk", "some day")).await;
    assert_eq!(refused.status, 422);
    let edit = refused.body.split("<details id=\"act-edit\" open>").nth(1).expect("it is open");
    assert!(
        edit.contains("role=\"alert\"") && unescaped(edit).contains("value=\"Buy <oat> milk\""),
        "{edit}"
    );
    assert!(edit.contains("value=\"some day\"") && edit.contains("field-problem"), "{edit}");
    let before = read(&server, &ids[0]).await;
    assert_eq!(
        (&before["title"], &before["importance"]),
        (&json!("buy milk"), &json!(2)),
        "nothing was changed"
    );
    let saved = browser.submit(&site, &refused, &act, &typed("Buy oat milk", "2026-12-01")).await;
    assert_eq!(location(&saved), format!("/candidate/{}", ids[0]), "it stays to be decided about");
    let after = read(&server, &ids[0]).await;
    assert_eq!((&after["title"], &after["importance"]), (&json!("Buy oat milk"), &json!(1)));
    assert_eq!(after["metadata"]["due_at"], "2026-12-01");
    assert_eq!(after["metadata"]["projects"], before["metadata"]["projects"], "{after}");
    assert!(before["metadata"]["projects"].is_array(), "{before}");
    server.stop().await;
}

async fn a_form_decides_about_the_candidate_that_it_showed(server: TestServer) {
    let (mut browser, site, ids) = ready(&server, &["buy milk", "read a book"]).await;
    let page = browser.get(&site, "/triage").await;
    let gone = server.post(&format!("/v1/candidates/{}/discard", ids[0]), &json!({})).await;
    assert_eq!(gone.status, 200);
    let refused = browser.submit(&site, &page, &form_of(&ids[0], "promote"), &[]).await;
    assert!((400..500).contains(&refused.status), "{refused:?}");
    assert_eq!(read(&server, &ids[1]).await["status"], "WAITING", "nobody has read that one");
    let shown = browser.get(&site, &format!("/candidate/{}", ids[0])).await;
    assert!(words(&shown.body).contains("Take the discard back"), "{}", words(&shown.body));
    assert_eq!(browser.get(&site, "/candidate/none").await.status, 404);
    server.stop().await;
}

async fn viewers_look_at_the_inbox_and_decide_nothing(server: TestServer) {
    let (_, _, ids) = ready(&server, &["buy milk"]).await;
    let viewer = server.token("viewer").await;
    let (mut browser, site) = signed_in(&server, &viewer).await;
    let page = browser.get(&site, "/triage").await;
    assert!(words(&page.body).contains("buy milk") && !page.body.contains(&form_of(&ids[0], "discard")));
    let key = crate::browser::form(&page.body, "/sign-out").into_iter().find(|(name, _)| name == "form_key");
    let key = key.expect("a key").1;
    let sent = browser.post(&site, &form_of(&ids[0], "discard"), &[("form_key", &key)]).await;
    assert_eq!((sent.status, &read(&server, &ids[0]).await["status"]), (403, &json!("WAITING")));
    server.stop().await;
}

async fn hostile_captures_do_nothing(server: TestServer) {
    let hostile = format!("<script>alert(1)</script> </textarea> {}", "\u{202e}".repeat(10_000));
    let (mut browser, site, ids) = ready(&server, &[&hostile]).await;
    for path in ["/triage".to_string(), format!("/candidate/{}", ids[0]), "/".to_string()] {
        let page = browser.get(&site, &path).await;
        assert_eq!(page.status, 200);
        assert!(!page.body.contains("<script>alert") && !page.body.contains("</textarea> "), "{path}");
        assert!(page.body.len() < 500_000, "{path}: {} bytes", page.body.len());
    }
    server.stop().await;
}
