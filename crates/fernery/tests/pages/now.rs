//! The first page.

use crate::browser::{Browser, form, signed_in, words};
use crate::inbox::{triaged, workers};
use crate::server::TestServer;
use crate::worked::{Made, PATCH, approved, attempt, begun, handed_in, judged, scheduled, tried};
use fernery_core::blueprint::Blueprint;
use fernery_core::pipeline::landing::Fit;
use fernery_engine::pipeline::azollas;
use serde_json::json;

crate::on_both_backends!(
    an_empty_page_says_what_to_do,
    a_thought_is_kept_once_however_often_its_form_is_sent,
    a_refused_thought_is_not_lost,
    what_is_stuck_is_shown_with_its_reason,
    what_did_not_land_beyond_the_rows_shown_is_on_the_board,
    hostile_words_are_shown_and_do_nothing,
    minutes_of_review_are_counted_from_what_waits,
    what_was_done_since_the_look_is_left_out,
    a_candidate_and_a_merge_are_left_out_once_they_are_dealt_with,
    a_run_under_way_shows_its_limits_before_it_says_a_line,
);

/// A server with the azollas that come with it.
pub(crate) async fn with_azollas(server: &TestServer) {
    for blueprint in [Blueprint::mec(), Blueprint::tasks(), Blueprint::task_management()] {
        let done = server.engine.substrate().transact(move |sql| azollas::register(sql, &blueprint)).await;
        done.expect("registered");
    }
}

async fn an_empty_page_says_what_to_do(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = words(&browser.get(&site, "/").await.body);
    assert!(page.contains("hosts task_management by default"), "{page}");
    with_azollas(&server).await;
    let page = words(&browser.get(&site, "/").await.body);
    assert!(page.contains("No orientation was made yet") && page.contains("Nothing runs."), "{page}");
    assert!(page.contains("Press “Look now”"), "{page}");
    let (mut looks, _) = signed_in(&server, &server.token("viewer").await).await;
    let seen = words(&looks.get(&site, "/").await.body);
    assert!(seen.contains("An operator makes one") && !seen.contains("Press"), "no such button: {seen}");
    let first = browser.get(&site, "/").await;
    let asked = browser.submit(&site, &first, "/orient", &[]).await;
    assert_eq!(asked.status, 303, "{asked:?}");
    assert_eq!(browser.submit(&site, &first, "/orient", &[]).await.status, 303, "sent twice");
    let events = server.get("/v1/events").await.json();
    assert_eq!(events["events"].as_array().map(Vec::len), Some(1), "asked once: {events}");
    server.stop().await;
}

async fn a_thought_is_kept_once_however_often_its_form_is_sent(server: TestServer) {
    with_azollas(&server).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await;
    for _ in 0..3 {
        let sent = browser.submit(&site, &page, "/capture", &[("raw_content", "buy milk tomorrow")]).await;
        assert_eq!((sent.status, sent.headers["location"].as_str()), (303, "/"), "{sent:?}");
    }
    let captures = server.get("/v1/captures").await.json();
    assert_eq!(captures["captures"].as_array().map(Vec::len), Some(1), "{captures}");
    assert_eq!(captures["captures"][0]["raw_content"], "buy milk tomorrow");
    let ids =
        |page: &str| form(page, "/capture").into_iter().find(|(name, _)| name == "act_id").map(|(_, id)| id);
    let next = browser.get(&site, "/").await;
    assert_ne!(ids(&page.body), ids(&next.body), "the next thought is another one");
    server.stop().await;
}

async fn a_refused_thought_is_not_lost(server: TestServer) {
    with_azollas(&server).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await;
    let blank = browser.submit(&site, &page, "/capture", &[("raw_content", "  \n ")]).await;
    assert!(blank.status == 422 && blank.body.contains("write down a thought"), "{}", blank.body);
    let long = "<thought> ".repeat(7_000);
    let refused = browser.submit(&site, &page, "/capture", &[("raw_content", &long)]).await;
    assert!((400..500).contains(&refused.status), "{}", refused.status);
    assert!(refused.body.contains("role=\"alert\" id=\"capture-problem\""));
    let kept = refused.body.split("<textarea id=\"capture\"").nth(1).expect("a box");
    let kept = kept.split_once('>').expect("a text").1.split("</textarea>").next().expect("an end");
    assert_eq!(crate::browser::unescaped(kept), long.trim_end().to_string() + " ");
    server.stop().await;
}

async fn what_is_stuck_is_shown_with_its_reason(server: TestServer) {
    with_azollas(&server).await;
    let ticket = json!({ "objective_id": "WEB-1", "azolla_id": "tasks", "title": "Fix the footer" });
    assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
    let block = json!({ "kind": "USER_INPUT", "description": "which footer?" });
    assert_eq!(server.post("/v1/objectives/WEB-1/block", &block).await.status, 200);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await;
    assert!(page.body.contains("href=\"/ticket/WEB-1\""), "{}", page.body);
    assert!(words(&page.body).contains("which footer?"));
    server.stop().await;
}

async fn what_did_not_land_beyond_the_rows_shown_is_on_the_board(server: TestServer) {
    for nth in 1..=11 {
        let id = format!("WEB-{nth}");
        approved(&server, &id, "Greet the world").await;
        attempt(&server, &id, Made { patch: PATCH, log: "", passes: true }).await;
        tried(&server, &id, Fit::Conflicts, Some("main changed greet.sh")).await;
    }
    let ticket = json!({ "objective_id": "NEW-1", "azolla_id": "mec", "title": "Fix the footer" });
    assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await.body;
    assert_eq!(page.matches("id=\"stuck-WEB-").count(), 10, "{page}");
    assert!(
        page.contains("href=\"/board?unlanded=yes\"") && !page.contains("href=\"/board?status=BLOCKED\"")
    );
    let board = browser.get(&site, "/board?unlanded=yes").await.body;
    assert_eq!(board.matches("id=\"card-").count(), 11, "{board}");
    server.stop().await;
}

async fn hostile_words_are_shown_and_do_nothing(server: TestServer) {
    with_azollas(&server).await;
    let title = "<script>alert(1)</script> \"quoted\" & 'so'";
    let ticket = json!({ "objective_id": "X-1", "azolla_id": "tasks", "title": title });
    let made = server.post("/v1/objectives", &ticket).await;
    assert_eq!(made.status, 201, "{made:?}");
    let block = json!({ "kind": "USER_INPUT", "description": title });
    assert_eq!(server.post("/v1/objectives/X-1/block", &block).await.status, 200);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await.body;
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
    let found = browser.get(&site, "/find?q=%3Cscript%3E").await.body;
    assert!(!found.contains("<script>") && found.contains("/ticket/X-1"), "{found}");
    server.stop().await;
}

async fn minutes_of_review_are_counted_from_what_waits(server: TestServer) {
    with_azollas(&server).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let viewer = server.token("viewer").await;
    let time = async || server.call(&viewer, "GET", "/v1/review_time", "").await.json();
    assert_eq!(time().await["minutes"], 0);
    assert!(!browser.get(&site, "/").await.body.contains("of review wait"), "nothing waits");
    approved(&server, "WEB-1", "Greet the world").await;
    let run = attempt(&server, "WEB-1", Made { patch: PATCH, log: "", passes: true }).await;
    let new = |id: &str, azolla: &str| json!({ "objective_id": id, "azolla_id": azolla, "title": id });
    for (id, azolla) in [("WEB-2", "mec"), ("T-1", "tasks")] {
        assert_eq!(server.post("/v1/objectives", &new(id, azolla)).await.status, 201);
    }
    // Two minutes, half a minute for each of two files, three lines; two minutes to approve WEB-2. T-1 is nobody's to approve.
    let all = time().await;
    let expected = json!({ "minutes": 6, "at_least": false, "runs": 1, "files": 2, "lines": 3, "approvals": 1,
        "candidates": 0, "rule": all["rule"] });
    assert_eq!(all, expected);
    let page = browser.get(&site, "/").await.body;
    let said = words(&page);
    assert!(
        said.contains("about 6 minutes of review wait: 1 run to confirm (2 files, 3 lines), 1 ticket to"),
        "{said}"
    );
    assert!(page.contains("title=\"An estimate. A run that waits to be confirmed: 2 minutes"), "{page}");
    // What is put off waits for nobody; what is confirmed neither.
    assert_eq!(server.post("/v1/objectives/WEB-2/snooze", &json!({ "until": "tomorrow" })).await.status, 200);
    assert_eq!(time().await["minutes"], 4);
    let confirmed = server.post("/v1/objectives/WEB-1/confirm", &json!({ "run_id": run })).await;
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    assert_eq!(time().await["minutes"], 0);
    server.stop().await;
}

async fn what_was_done_since_the_look_is_left_out(server: TestServer) {
    let workers = workers(&server).await;
    for nth in 1..=8 {
        let ticket = json!({ "objective_id": format!("T-{nth}"), "azolla_id": "tasks", "title": format!("Task {nth}.") });
        assert_eq!(server.post("/v1/objectives", &ticket).await.status, 201);
    }
    let path = "/v1/azollas/task_management/manifests";
    assert_eq!(server.post(path, &json!({ "request_id": "o-1" })).await.status, 202);
    let made = server.get("/v1/manifest_requests/o-1?wait_ms=60000").await.json();
    assert!(made["manifest"].is_object(), "{made}");
    workers.stop().await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let look = async |browser: &mut Browser| browser.get(&site, "/").await.body;
    let cards = |page: &str| -> Vec<String> {
        let cards = page.split("<article").skip(1).map(|card| card.split("</h2>").next().expect("a title"));
        cards.map(|card| words(card).split_once("Task ").expect("a task").1.to_string()).collect()
    };
    let before = look(&mut browser).await;
    let first = cards(&before);
    assert!(
        first.len() == 5 && before.contains("Look now") && words(&before).contains("3 more"),
        "{first:?}"
    );
    let id = |nth: usize| format!("/v1/objectives/T-{}", first[nth].trim_end_matches('.'));
    assert_eq!(server.post(&format!("{}/done", id(0)), &json!({})).await.status, 200);
    assert_eq!(server.post(&format!("{}/snooze", id(1)), &json!({ "until": "tomorrow" })).await.status, 200);
    let after = look(&mut browser).await;
    let (second, said) = (cards(&after), words(&after));
    assert_eq!(second[..3], first[2..], "what is left moves up");
    assert_eq!(second.len(), 5, "and what came after it in the same look follows: {second:?}");
    assert!(said.contains("2 things of that look are done") && said.contains("Look again"), "{said}");
    assert!(said.contains("1 more"), "{said}");
    for nth in 1..=8 {
        server.post(&format!("/v1/objectives/T-{nth}/cancel"), &json!({})).await;
    }
    let none = words(&look(&mut browser).await);
    assert!(none.contains("All of it is done."), "{none}");
    let events = server.get("/v1/events").await.json();
    let looks = events["events"].as_array().expect("events").iter();
    let looks = looks.filter(|event| event["type"] == "MANIFEST_REQUESTED").count();
    assert_eq!(looks, 1, "who only looks at the page asks for nothing");
    server.stop().await;
}

async fn a_candidate_and_a_merge_are_left_out_once_they_are_dealt_with(server: TestServer) {
    approved(&server, "WEB-1", "Greet the world").await;
    let run = attempt(&server, "WEB-1", Made { patch: PATCH, log: "", passes: true }).await;
    tried(&server, "WEB-1", Fit::Merges, None).await;
    let confirmed = server.post("/v1/objectives/WEB-1/confirm", &json!({ "run_id": run })).await;
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    let workers = workers(&server).await;
    let found = triaged(&server, &["read a book some day", "pay the rent today"]).await;
    let made = server.post("/v1/azollas/task_management/manifests", &json!({ "request_id": "o-1" })).await;
    assert_eq!(made.status, 202, "{made:?}");
    let made = server.get("/v1/manifest_requests/o-1?wait_ms=60000").await.json();
    assert!(made["manifest"].is_object(), "{made}");
    workers.stop().await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/").await.body;
    let rent = found[1]["candidate_id"].as_str().expect("an id");
    let path = format!("/candidate/{}", fernery_core::id_part::short(rent));
    assert!(page.contains(&format!("href=\"{path}\"")), "{page}");
    assert!(words(&page).contains("Confirmed and not merged: WEB-1"), "{}", words(&page));
    let led = browser.get(&site, &path).await;
    assert_eq!((led.status, led.headers["location"].as_str()), (303, format!("/candidate/{rent}").as_str()));
    assert_eq!(server.post(&format!("/v1/candidates/{rent}/discard"), &json!({})).await.status, 200);
    let said = words(&browser.get(&site, "/").await.body);
    assert!(said.contains("1 thing of that look is done") && said.contains("not merged: WEB-1"), "{said}");
    assert_eq!(server.post("/v1/objectives/WEB-1/cancel", &json!({})).await.status, 200);
    let said = words(&browser.get(&site, "/").await.body);
    assert!(said.contains("2 things of that look are done"), "{said}");
    server.stop().await;
}

async fn a_run_under_way_shows_its_limits_before_it_says_a_line(server: TestServer) {
    with_azollas(&server).await;
    approved(&server, "WEB-1", "Greet the world").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    scheduled(&server).await;
    let runs = async |browser: &mut Browser| {
        let page = browser.get(&site, "/").await.body;
        words(
            page.split("id=\"runs\"").nth(1).and_then(|rest| rest.split("</section>").next()).expect("runs"),
        )
    };
    let said = runs(&mut browser).await;
    assert!(said.contains("nobody has begun yet") && said.contains("attempts 20 % 1 of 5"), "{said}");
    let job = begun(&server).await;
    let said = runs(&mut browser).await;
    assert!(said.contains("w works on it since"), "{said}");
    assert!(said.contains("time of this run 0 % 0:") && said.contains(" min of 30:00 min"), "{said}");
    assert!(!said.contains("says its executor"), "{said}");
    let beat = json!({ "worker_id": "w", "job_id": job["job_id"], "lease_token": job["lease_token"],
        "progress": { "percent": 40, "note": "reading <the> tests" } });
    assert_eq!(server.work("heartbeat", &beat).await.status, 200);
    let said = runs(&mut browser).await;
    assert!(said.contains("40 % done, says its executor") && said.contains("reading <the> tests"), "{said}");
    let view = server.get("/v1/objectives/WEB-1").await.json();
    let work = &view["work"];
    assert_eq!(
        (&work["worker_id"], &work["own_progress"], &work["judging"]),
        (&json!("w"), &json!(true), &json!(false))
    );
    assert_eq!((&work["budget_ms"], &work["envelope"]["attempts"]), (&json!(1_800_000), &json!(5)));
    handed_in(&server, "WEB-1", &job, PATCH).await;
    let said = runs(&mut browser).await;
    assert!(said.contains("its gates judge it") && !said.contains("time of this run"), "{said}");
    judged(&server, Made { patch: PATCH, log: "", passes: true }).await;
    assert!(runs(&mut browser).await.contains("Nothing runs."));
    server.stop().await;
}
