//! Tickets: the board, one ticket with its acts, a new one, and its approval.

use crate::browser::{Browser, Site, form, signed_in, unescaped, words};
use crate::now::with_azollas;
use crate::server::{Answer, TestServer};
use crate::worked::{approved, begun, scheduled};
use serde_json::{Value, json};
use std::time::Duration;

crate::on_both_backends!(
    a_ticket_is_written_once_however_often_its_form_is_sent,
    a_refused_ticket_comes_back_with_what_was_typed,
    every_act_on_a_ticket_is_carried_out_once_and_shown,
    the_forms_of_a_ticket_are_those_that_are_possible_now,
    a_refused_act_says_why_where_it_was_typed,
    an_approval_covers_exactly_what_was_shown,
    approving_wants_somebody_who_signed_in_a_short_while_ago,
    the_board_shows_what_the_filter_means,
    hostile_criteria_are_shown_and_do_nothing,
    the_repository_of_a_ticket_is_edited_and_the_rest_is_kept,
    lost_attempts_and_their_workers_are_part_of_what_happened,
    what_changed_since_an_approval_is_marked_word_by_word,
);

async fn ready(server: &TestServer) -> (Browser, Site) {
    with_azollas(server).await;
    signed_in(server, &server.operator).await
}

async fn make(server: &TestServer, id: &str, criteria: &str) {
    let ticket = json!({
        "objective_id": id, "azolla_id": "tasks", "title": format!("The work of {id}"), "acceptance_criteria": criteria,
    });
    let made = server.post("/v1/objectives", &ticket).await;
    assert_eq!(made.status, 201, "{made:?}");
}

async fn read(server: &TestServer, id: &str) -> Value {
    server.get(&format!("/v1/objectives/{id}")).await.json()
}

#[track_caller]
fn leads(answer: &Answer, path: &str) {
    assert_eq!(
        (answer.status, answer.headers.get("location").map(String::as_str)),
        (303, Some(path)),
        "{answer:?}"
    );
}

async fn a_ticket_is_written_once_however_often_its_form_is_sent(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    let page = browser.get(&site, "/new-ticket").await;
    assert!(page.body.contains("<option value=\"tasks\""), "{}", page.body);
    let typed = [
        ("title", "Fix the footer"),
        ("acceptance_criteria", "it is at the bottom"),
        ("azolla_id", "tasks"),
        ("importance", "1"),
        ("urgency", "2"),
    ];
    let first = browser.submit(&site, &page, "/new-ticket", &typed).await;
    let again = browser.submit(&site, &page, "/new-ticket", &typed).await;
    assert_eq!((first.status, &first.headers["location"]), (303, &again.headers["location"]), "{first:?}");
    let all = server.get("/v1/objectives?azolla_id=tasks").await.json();
    assert_eq!(all["objectives"].as_array().map(Vec::len), Some(1), "{all}");
    let shown = browser.get(&site, &first.headers["location"]).await;
    assert_eq!(shown.status, 200);
    let shown = words(&shown.body);
    assert!(
        shown.contains("Fix the footer") && shown.contains("it is at the bottom") && shown.contains("NEW"),
        "{shown}"
    );
    server.stop().await;
}

async fn a_refused_ticket_comes_back_with_what_was_typed(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    let page = browser.get(&site, "/new-ticket").await;
    let title = "x".repeat(501);
    let typed = [
        ("title", title.as_str()),
        ("acceptance_criteria", "a <b> & c"),
        ("azolla_id", "tasks"),
        ("importance", "4"),
        ("urgency", "0"),
    ];
    let refused = browser.submit(&site, &page, "/new-ticket", &typed).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("<p class=\"field-problem\">"), "beside its field");
    assert!(
        refused.body.contains(&format!("value=\"{title}\""))
            && unescaped(&refused.body).contains("a <b> & c")
    );
    assert!(
        refused.body.contains("<option value=\"4\" selected>")
            && refused.body.contains("<option value=\"0\" selected>")
    );
    let before = form(&page.body, "/new-ticket");
    let act = |fields: &[(String, String)]| fields.iter().find(|(name, _)| name == "act_id").cloned();
    assert_eq!(act(&before), act(&form(&refused.body, "/new-ticket")), "it is still the same ticket");
    let sent = browser
        .submit(
            &site,
            &refused,
            "/new-ticket",
            &[("title", "x"), ("azolla_id", "tasks"), ("importance", "4"), ("urgency", "0")],
        )
        .await;
    assert_eq!(sent.status, 303, "{sent:?}");
    server.stop().await;
}

async fn every_act_on_a_ticket_is_carried_out_once_and_shown(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    make(&server, "T-1", "done when it is done").await;
    let page = async |browser: &mut Browser| browser.get(&site, "/ticket/T-1").await;
    let shown = page(&mut browser).await;
    let block = [("kind", "USER_INPUT"), ("description", "which one?")];
    for _ in 0..2 {
        leads(&browser.submit(&site, &shown, "/ticket/T-1/block", &block).await, "/ticket/T-1");
    }
    let ticket = read(&server, "T-1").await;
    assert_eq!(
        ticket["objective"]["blocked_on"].as_array().map(Vec::len),
        Some(1),
        "sent twice, blocked once: {ticket}"
    );
    let shown = page(&mut browser).await;
    assert!(words(&shown.body).contains("which one?") && shown.body.contains("class=\"tag BLOCKED\""));
    let blocker = ticket["objective"]["blocked_on"][0]["blocker_id"].as_str().expect("an id").to_string();
    leads(
        &browser.submit(&site, &shown, "/ticket/T-1/unblock", &[("blocker", &blocker)]).await,
        "/ticket/T-1",
    );
    let shown = page(&mut browser).await;
    let edit = [
        ("title", "Another title"),
        ("acceptance_criteria", "one\ntwo"),
        ("importance", "0"),
        ("urgency", "1"),
    ];
    leads(&browser.submit(&site, &shown, "/ticket/T-1/edit", &edit).await, "/ticket/T-1");
    let ticket = read(&server, "T-1").await["objective"].clone();
    assert_eq!(
        (ticket["title"].as_str(), ticket["acceptance_criteria"].as_str()),
        (Some("Another title"), Some("one\ntwo"))
    );
    let shown = page(&mut browser).await;
    leads(
        &browser.submit(&site, &shown, "/ticket/T-1/snooze", &[("until", "in 3 days")]).await,
        "/ticket/T-1",
    );
    let shown = page(&mut browser).await;
    assert!(words(&shown.body).contains("snoozed until"), "{}", words(&shown.body));
    leads(&browser.submit(&site, &shown, "/ticket/T-1/snooze", &[]).await, "/ticket/T-1");
    assert!(!words(&page(&mut browser).await.body).contains("snoozed until"));
    let shown = page(&mut browser).await;
    leads(&browser.submit(&site, &shown, "/ticket/T-1/done", &[("note", "I did it")]).await, "/ticket/T-1");
    let shown = words(&page(&mut browser).await.body);
    assert!(shown.contains("DONE") && shown.contains("confirmed it") && shown.contains("PASS"), "{shown}");
    make(&server, "T-2", "").await;
    let shown = browser.get(&site, "/ticket/T-2").await;
    leads(
        &browser.submit(&site, &shown, "/ticket/T-2/cancel", &[("note", "not needed")]).await,
        "/ticket/T-2",
    );
    assert!(words(&browser.get(&site, "/ticket/T-2").await.body).contains("CANCELLED"));
    server.stop().await;
}

async fn a_refused_act_says_why_where_it_was_typed(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    make(&server, "T-1", "").await;
    let shown = browser.get(&site, "/ticket/T-1").await;
    let refused = browser.submit(&site, &shown, "/ticket/T-1/snooze", &[("until", "some <day>")]).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let act = refused.body.split("<details id=\"act-snooze\" open>").nth(1).expect("it is open");
    let act = act.split("</details>").next().expect("an end");
    assert!(act.contains("role=\"alert\"") && unescaped(act).contains("value=\"some <day>\""), "{act}");
    let nothing = browser.get(&site, "/ticket/none").await;
    assert_eq!(nothing.status, 404);
    assert!(words(&nothing.body).contains("there is no ticket with the id none"));
    server.stop().await;
}

async fn an_approval_covers_exactly_what_was_shown(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    make(&server, "T-1", "the first words").await;
    let shown = browser.get(&site, "/approve/T-1").await;
    let digest = |page: &Answer| {
        let fields = form(&page.body, "/approve/T-1");
        fields.into_iter().find(|(name, _)| name == "digest").expect("a digest").1
    };
    assert_eq!(json!(digest(&shown)), read(&server, "T-1").await["approval"]["digest"]);
    assert!(
        words(&shown.body).contains("the first words") && words(&shown.body).contains("The most it may use")
    );
    let edit = json!({ "acceptance_criteria": "other words" });
    assert_eq!(
        server.call(&server.operator, "PATCH", "/v1/objectives/T-1", &edit.to_string()).await.status,
        200
    );
    let refused = browser.submit(&site, &shown, "/approve/T-1", &[("note", "looks <good>")]).await;
    assert_eq!(refused.status, 409, "what is there now was never shown");
    assert_eq!(read(&server, "T-1").await["objective"]["status"], "NEW");
    let again = words(&refused.body);
    assert!(again.contains("changed after it was read") && again.contains("other words"), "{again}");
    assert!(refused.body.contains("value=\"looks &#60;good&#62;\""), "the note is not lost");
    assert_ne!(digest(&refused), digest(&shown));
    for _ in 0..2 {
        leads(&browser.submit(&site, &refused, "/approve/T-1", &[]).await, "/ticket/T-1");
    }
    let ticket = read(&server, "T-1").await;
    assert_eq!(ticket["decisions"].as_array().map(Vec::len), Some(1), "sent twice, approved once: {ticket}");
    let later = browser.get(&site, "/approve/T-1").await;
    assert!(
        words(&later.body).contains("there is nothing to approve")
            && !later.body.contains("action=\"/approve/T-1\"")
    );
    server.stop().await;
}

async fn approving_wants_somebody_who_signed_in_a_short_while_ago(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    make(&server, "T-1", "words").await;
    let shown = browser.get(&site, "/approve/T-1").await;
    server.advance(Duration::from_secs(15 * 60)).await;
    let asked = browser.submit(&site, &shown, "/approve/T-1", &[("note", "my note")]).await;
    assert_eq!(asked.status, 401);
    assert!(words(&asked.body).contains("younger than 15 minutes"));
    assert_eq!(read(&server, "T-1").await["objective"]["status"], "NEW");
    assert_eq!(browser.get(&site, "/approve/T-1").await.status, 200, "reading needs no more than a session");
    let old = browser.clone();
    let back = browser.submit(&site, &asked, "/sign-in", &[("token", &server.operator)]).await;
    assert!(words(&back.body).contains("my note"), "{}", words(&back.body));
    leads(&browser.submit(&site, &back, "/approve/T-1", &[]).await, "/ticket/T-1");
    let decision = read(&server, "T-1").await["decisions"][0].clone();
    assert_eq!((decision["kind"].as_str(), decision["note"].as_str()), (Some("APPROVE"), Some("my note")));
    assert_eq!(old.clone().get(&site, "/").await.status, 401, "the earlier session ended with the new one");
    server.stop().await;
}

async fn the_board_shows_what_the_filter_means(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    let empty = words(&browser.get(&site, "/board").await.body);
    assert!(empty.contains("No ticket is here."), "{empty}");
    for n in 0..25 {
        make(&server, &format!("T-{n}"), "").await;
    }
    let block = json!({ "kind": "USER_INPUT", "description": "which one?" });
    server.post("/v1/objectives/T-7/block", &block).await;
    let page = browser.get(&site, "/board").await.body;
    let cards = |page: &str| page.matches("<article class=\"card\"").count();
    assert_eq!(cards(&page), 21, "twenty that are NEW, and the blocked one");
    let more = page
        .split("<a href=\"/board?")
        .nth(1)
        .expect("a link to the rest")
        .split('"')
        .next()
        .expect("an end");
    let alone = browser.get(&site, &unescaped(&format!("/board?{more}"))).await.body;
    assert_eq!(cards(&alone), 24);
    let blocked = browser.get(&site, "/board?status=BLOCKED&azolla=tasks").await.body;
    assert!(cards(&blocked) == 1 && words(&blocked).contains("which one?"));
    assert_eq!(cards(&browser.get(&site, "/board?search=T-13").await.body), 1);
    let wrong = browser.get(&site, "/board?azolla=a%20b").await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    server.stop().await;
}

async fn hostile_criteria_are_shown_and_do_nothing(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    let criteria = format!("<img src=x onerror=alert(1)>\n{}z\n</textarea><script>", "y".repeat(20_000));
    make(&server, "T-1", &criteria).await;
    for path in ["/ticket/T-1", "/approve/T-1", "/board"] {
        let page = browser.get(&site, path).await.body;
        assert!(!page.contains("<img src=x") && !page.contains("</textarea><script>"), "{path}");
    }
    let ticket = browser.get(&site, "/ticket/T-1").await.body;
    assert!(ticket.contains("more bytes in this line"), "a long line has an end");
    let approve = browser.get(&site, "/approve/T-1").await.body;
    assert!(approve.contains("yyyz\n&lt;/textarea"), "what is approved is shown to the last character");
    server.stop().await;
}

async fn the_forms_of_a_ticket_are_those_that_are_possible_now(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    make(&server, "T", "it works").await;
    let shown = async |browser: &mut Browser| {
        let page = browser.get(&site, "/ticket/T").await;
        let acts = ["edit", "block", "unblock", "keep", "reopen", "cancel", "done"];
        let there = acts.iter().filter(|act| page.body.contains(&format!("id=\"act-{act}\"")));
        (there.copied().collect::<Vec<_>>(), page)
    };
    assert_eq!(shown(&mut browser).await.0, ["edit", "block", "cancel", "done"]);
    assert_eq!(server.post("/v1/objectives/T/cancel", &json!({})).await.status, 200);
    let (acts, page) = shown(&mut browser).await;
    assert_eq!(acts, ["edit", "block", "unblock"]);
    assert!(page.body.contains("Take it up again"), "{}", page.body);
    let approve = browser.get(&site, "/approve/T").await;
    assert!(approve.body.contains("It is CANCELLED: there is nothing to approve"), "{}", approve.body);
    let page = browser.get(&site, "/ticket/T").await;
    leads(&browser.submit(&site, &page, "/ticket/T/unblock", &[("all", "yes")]).await, "/ticket/T");
    assert_eq!(read(&server, "T").await["objective"]["status"], "NEW");
    server.stop().await;
}

async fn the_repository_of_a_ticket_is_edited_and_the_rest_is_kept(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    let ticket = json!({
        "objective_id": "T-1", "azolla_id": "tasks", "title": "x", "metadata": { "repo_ref": "app", "labels": ["web"] },
    });
    assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
    let page = browser.get(&site, "/ticket/T-1").await;
    assert!(page.body.contains("<option selected>app</option>"), "{}", page.body);
    let typed =
        |repo: &'static str| [("title", "y"), ("importance", "2"), ("urgency", "2"), ("repo_ref", repo)];
    let edit = "/ticket/T-1/edit";
    leads(&browser.submit(&site, &page, edit, &typed("app")).await, "/ticket/T-1");
    let facts = read(&server, "T-1").await["objective"]["metadata"].clone();
    assert_eq!(facts, json!({ "repo_ref": "app", "labels": ["web"] }), "nobody chose another one");
    leads(&browser.submit(&site, &page, edit, &typed("")).await, "/ticket/T-1");
    assert_eq!(read(&server, "T-1").await["objective"]["metadata"], json!({ "labels": ["web"] }));
    server.stop().await;
}

async fn lost_attempts_and_their_workers_are_part_of_what_happened(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    approved(&server, "WEB-1", "Greet the world").await;
    scheduled(&server).await;
    let first = begun(&server).await;
    server.advance(Duration::from_secs(120)).await;
    let second = begun(&server).await;
    assert_eq!(first["job_id"], second["job_id"]);
    browser.sign_in(&site, &server.operator).await;
    let history = async |browser: &mut Browser, path: &str| {
        let page = browser.get(&site, path).await;
        assert_eq!(page.status, 200, "{page:?}");
        page.body
            .split("id=\"history\"")
            .nth(1)
            .and_then(|rest| rest.split("</section>").next())
            .expect("a history")
            .to_string()
    };
    let all = history(&mut browser, "/ticket/WEB-1").await;
    let said = words(&all);
    let job = first["job_id"].as_str().expect("an id");
    for happened in [
        format!("w claimed workorder {job}, attempt 1 worker"),
        "attempt 1 of w ended LOST".to_string(),
        format!("w claimed workorder {job}, attempt 2, and works on it"),
    ] {
        assert!(said.contains(&happened), "{happened}: {said}");
    }
    assert!(!all.contains("?until="), "all of it stands here");
    let oldest = history(&mut browser, "/ticket/WEB-1?until=1").await;
    assert!(words(&oldest).contains("created it") && !words(&oldest).contains("claimed"), "{oldest}");
    assert!(oldest.contains("href=\"/ticket/WEB-1#history\"") && words(&oldest).contains("more"), "{oldest}");
    for odd in ["0", "99999", "x", "-1", ""] {
        history(&mut browser, &format!("/ticket/WEB-1?until={odd}")).await;
    }
    let attempts = read(&server, "WEB-1").await["attempts"].clone();
    let outcomes: Vec<&Value> =
        attempts.as_array().expect("attempts").iter().map(|of| &of["outcome"]).collect();
    assert_eq!(outcomes, [&json!("LOST"), &json!(null)], "{attempts}");
    let brief = server.get("/v1/objectives/WEB-1?documents=false").await.json();
    assert_eq!(brief["attempts"], json!([]));
    server.stop().await;
}

async fn what_changed_since_an_approval_is_marked_word_by_word(server: TestServer) {
    let (mut browser, site) = ready(&server).await;
    approved(&server, "WEB-1", "Greet the world").await;
    let criteria = "- it says hello\n- it says <b>goodbye</b>\n- three\n- four\n- five\n- it ends";
    let edit = |text: &str| json!({ "acceptance_criteria": text }).to_string();
    let change = async |text: &str| {
        let done = server.call(&server.operator, "PATCH", "/v1/objectives/WEB-1", &edit(text)).await;
        assert_eq!(done.status, 200, "{done:?}");
    };
    change(criteria).await;
    let shown = server.get("/v1/objectives/WEB-1").await.json()["approval"]["digest"].clone();
    let approve = json!({ "digest": shown });
    assert_eq!(server.post("/v1/objectives/WEB-1/approve", &approve).await.status, 200);
    let same = browser.get(&site, "/approve/WEB-1").await.body;
    assert!(words(&same).contains("Changed since the last approval Nothing."), "{}", words(&same));
    change(&criteria.replace("hello", "hello twice")).await;
    let page = browser.get(&site, "/approve/WEB-1").await.body;
    let part = page
        .split("id=\"changes-head\"")
        .nth(1)
        .and_then(|rest| rest.split("</section>").next())
        .expect("changes");
    assert!(part.contains("<tr class=d><td>1<td><td>- it says hello"), "{part}");
    assert!(part.contains("<tr class=a><td><td>1<td>- it says hello<ins> twice</ins>"), "{part}");
    assert!(
        part.contains("&lt;b&gt;goodbye") && !part.contains("it ends"),
        "two lines around, and no more: {part}"
    );
    assert_eq!(part.matches("<h3>").count(), 1, "only the criteria changed: {part}");
    server.stop().await;
}
