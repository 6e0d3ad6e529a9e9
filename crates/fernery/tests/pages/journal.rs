//! The journal: searched by act, subject, actor and time, and the state of its chain.

use crate::browser::{attribute, signed_in, unescaped, words};
use crate::now::with_azollas;
use crate::pipeline::seal;
use crate::server::{Answer, TestServer};
use fernery_engine::pipeline::journal::{self, Act, LOOKED_AT_MAX};
use serde_json::{Value, json};

crate::on_both_backends!(
    entries_are_found_by_act_subject_actor_and_time,
    a_search_looks_at_a_bounded_number_of_entries_and_goes_on,
    the_end_of_the_chain_is_checked,
    what_is_typed_wrong_is_said,
);

async fn make(server: &TestServer, id: &str) {
    let ticket =
        json!({ "objective_id": id, "azolla_id": "tasks", "title": format!("The work of {id} <b>") });
    assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
}

fn rows(page: &Answer) -> usize {
    assert_eq!(page.status, 200, "{}", words(&page.body));
    page.body.matches("data-row id=\"entry-").count()
}

async fn entries_are_found_by_act_subject_actor_and_time(server: TestServer) {
    with_azollas(&server).await;
    for id in ["T-1", "T-2", "T-3"] {
        make(&server, id).await;
    }
    let edit = json!({ "title": "Another" }).to_string();
    assert_eq!(server.call(&server.operator, "PATCH", "/v1/objectives/T-2", &edit).await.status, 200);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let day = server.get("/v1/journal?limit=1").await.json()["entries"][0]["created_at"].clone();
    let day = day.as_str().expect("a time")[..10].to_string();
    for (query, count) in [
        ("".to_string(), 7),
        ("?act=created".to_string(), 3),
        ("?subject=T-2".to_string(), 2),
        ("?subject=T-2&act=edited".to_string(), 1),
        ("?actor=OPERATOR".to_string(), 4),
        ("?actor=nobody".to_string(), 0),
        (format!("?from={day}&to={day}"), 7),
        ("?to=2020-01-01".to_string(), 0),
        ("?from=2090-01-01".to_string(), 0),
    ] {
        let page = browser.get(&site, &format!("/journal{query}")).await;
        assert_eq!(rows(&page), count, "{query}: {}", words(&page.body));
        assert!(!page.body.contains("<b>"), "{query}");
    }
    let page = browser.get(&site, "/journal?subject=T-2&act=edited").await.body;
    assert!(
        page.contains("href=\"/ticket/T-2\"") && words(&page).contains("--act 'edited' --subject 'T-2'"),
        "{page}"
    );
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("/v1/journal?act=created&limit=1{cursor}")).await.json();
        seen.extend(
            page["entries"].as_array().expect("entries").iter().map(|entry| entry["subject"].clone()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    seen.sort_by_key(Value::to_string);
    assert_eq!(seen, ["T-1", "T-2", "T-3"].map(Value::from), "each once");
    server.stop().await;
}

async fn a_search_looks_at_a_bounded_number_of_entries_and_goes_on(server: TestServer) {
    with_azollas(&server).await;
    make(&server, "T-1").await;
    let many = |sql: &mut dyn fernery_engine::pipeline::Sql| {
        for n in 0..LOOKED_AT_MAX {
            journal::note(sql, "somebody", Act::Snoozed, &format!("S-{n}"), &json!({}))?;
        }
        Ok(())
    };
    server.engine.substrate().transact(many).await.expect("written");
    let first = server.get("/v1/journal?act=created").await.json();
    assert_eq!(first["entries"], json!([]), "it stops looking: {first}");
    let cursor = first["next_cursor"].as_str().expect("it goes on");
    let next = server.get(&format!("/v1/journal?act=created&cursor={cursor}")).await.json();
    assert_eq!((next["entries"].as_array().map(Vec::len), &next["next_cursor"]), (Some(1), &Value::Null));
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/journal?act=created").await.body;
    assert!(words(&page).contains("there are older ones"), "{}", words(&page));
    let link = page.split("<a href=\"/journal?").find(|tag| tag.contains("rel=\"next\"")).expect("a way on");
    let path = unescaped(attribute(&format!("href=\"/journal?{link}"), "href"));
    assert_eq!(rows(&browser.get(&site, &path).await), 1);
    let subject = server.get("/v1/journal?subject=T-1").await.json();
    assert_eq!(subject["entries"].as_array().map(Vec::len), Some(1), "a subject is found by its index");
    server.stop().await;
}

async fn the_end_of_the_chain_is_checked(server: TestServer) {
    with_azollas(&server).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    assert!(words(&browser.get(&site, "/journal").await.body).contains("Nothing is sealed yet"));
    for n in 0..5 {
        make(&server, &format!("T-{n}")).await;
    }
    seal(&server).await;
    let page = browser.get(&site, "/journal").await.body;
    assert!(
        words(&page).contains("8 entries at the end of the chain were checked just now, up to seal 8"),
        "{}",
        words(&page)
    );
    let last = server.get("/v1/journal/verify?last=3").await.json();
    assert_eq!(
        (&last["entries"], &last["head"]["place"], &last["fault"]),
        (&json!(3), &json!(8), &Value::Null)
    );
    let both = server.get("/v1/journal/verify?last=3&place=1").await;
    assert_eq!((both.status, both.pointers()), (422, vec!["?last".to_string()]));
    assert_eq!(server.get("/v1/journal/verify?last=10001").await.status, 422);
    // Somebody with the keys to the database writes a seal that does not follow.
    let forged = |sql: &mut dyn fernery_engine::pipeline::Sql| {
        journal::note(sql, "somebody", Act::Approved, "T-1", &json!({}))?;
        let statement = "INSERT INTO seals (place, entry_id, hash) VALUES ($1, $2, $3) RETURNING place";
        let hash = "0".repeat(64);
        sql.write("the journal", statement, &[9.into(), "forged".into(), (&hash).into()])
    };
    server.engine.substrate().transact(forged).await.expect("written");
    let fault = server.get("/v1/journal/verify?last=1").await.json()["fault"].clone();
    assert!(fault.as_str().is_some_and(|fault| fault.contains("forged, number 9, was removed")), "{fault}");
    let page = words(&browser.get(&site, "/journal").await.body);
    assert!(page.contains("chain is broken:") && page.contains("number 9"), "{page}");
    server.stop().await;
}

async fn what_is_typed_wrong_is_said(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/journal?from=friday&subject=%22%3E").await;
    assert_eq!(page.status, 422);
    assert!(words(&page.body).contains("from: a day like 2026-11-20"), "{}", words(&page.body));
    assert!(unescaped(&page.body).contains("value=\"\">\""), "what was typed stays");
    assert_eq!(browser.get(&site, "/journal?act=flew").await.status, 422);
    assert_eq!(browser.get(&site, "/journal?cursor=nonsense").await.status, 400);
    for query in ["act=flew", "since=friday", "subject=", "actor=%00"] {
        assert_eq!(server.get(&format!("/v1/journal?{query}")).await.status, 422, "{query}");
    }
    server.stop().await;
}
