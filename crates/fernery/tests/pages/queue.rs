//! The pages of the queue: streams, jobs, one job, dead letters, workers.

use crate::browser::{Browser, Site, form, signed_in, unescaped, words};
use crate::server::{Answer, TestServer};
use serde_json::{Value, json};
use std::time::Duration;

crate::on_both_backends!(
    a_stream_is_paused_and_resumed_by_its_buttons,
    streams_are_charted_over_an_hour_a_day_and_a_week,
    jobs_are_filtered_by_the_address_and_come_in_pages,
    a_filter_that_means_nothing_is_shown_with_what_is_wrong,
    ticked_jobs_are_cancelled_and_the_rest_is_left,
    what_is_refused_is_said_job_by_job,
    a_job_explains_itself_and_shows_its_attempts,
    a_job_is_retried_once_however_often_its_form_is_sent,
    a_cancelled_job_is_retried_once_too,
    a_job_is_enqueued_again_with_exact_numbers_and_once,
    an_edit_that_is_refused_is_not_lost,
    dead_jobs_are_grouped_and_one_goes_first,
    a_form_moves_only_the_deaths_that_it_showed,
    a_purge_wants_to_be_sure,
    the_holder_of_a_job_is_shown_with_its_heartbeat,
    viewers_see_the_queue_and_change_nothing,
    hostile_words_of_workers_do_nothing,
);

/// A job of one attempt that a worker fails.
async fn dead(server: &TestServer, stream: &str, code: &str, message: &str) -> String {
    let job = json!({ "stream": stream, "payload": { "n": 1 }, "max_attempts": 1 });
    let job_id = server.post("/v1/jobs", &job).await.json()["job_id"].as_str().expect("an id").to_string();
    fail(server, stream, code, message).await;
    assert_eq!(status(server, &job_id).await, "DEAD");
    job_id
}

async fn fail(server: &TestServer, stream: &str, code: &str, message: &str) {
    let held = server.claim(stream).await;
    let body = json!({
        "worker_id": "w", "job_id": held["job_id"], "attempt_id": held["attempt_id"],
        "lease_token": held["lease_token"], "error": { "code": code, "message": message },
    });
    let failed = server.work("fail", &body).await;
    assert_eq!(failed.status, 200, "{failed:?}");
}

async fn job(server: &TestServer, job_id: &str) -> Value {
    server.get(&format!("/v1/jobs/{job_id}")).await.json()
}

async fn status(server: &TestServer, job_id: &str) -> String {
    job(server, job_id).await["status"].as_str().expect("a status").to_string()
}

pub(crate) fn location(answer: &Answer) -> &str {
    assert_eq!(answer.status, 303, "{}", words(&answer.body));
    &answer.headers["location"]
}

/// How a bulk act ended, and to how many jobs it was done.
pub(crate) async fn ended(server: &TestServer, page: &str) -> (String, u64) {
    for _ in 0..500 {
        let act = server.get(&format!("/v1{page}")).await.json();
        if act["state"] != "RUNNING" {
            return (
                act["state"].as_str().expect("a state").to_string(),
                act["done"].as_u64().expect("a count"),
            );
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{page} does not come to its end");
}

/// What happened in a stream, once the server has written that so many jobs succeeded: it does so every few seconds.
async fn stats(server: &TestServer, stream: &str, range: &str, completed: u64) -> Value {
    for _ in 0..300 {
        let read = server.get(&format!("/v1/streams/{stream}?range={range}")).await;
        assert_eq!(read.status, 200, "{read:?}");
        let stats = read.json()["stats"].take();
        if stats["total"]["completed"] == completed {
            return stats;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{completed} jobs of {stream} are not counted");
}

async fn streams_are_charted_over_an_hour_a_day_and_a_week(server: TestServer) {
    for _ in 0..3 {
        server.post("/v1/jobs", &json!({ "stream": "s", "payload": {} })).await;
        let held = server.claim("s").await;
        let mut done = json!({ "worker_id": "w", "result": {} });
        for field in ["job_id", "attempt_id", "lease_token"] {
            done[field] = held[field].clone();
        }
        assert_eq!(server.work("complete", &done).await.status, 200);
    }
    for (range, point_ms) in [("1h", 60_000), ("24h", 900_000), ("7d", 7_200_000)] {
        let stats = stats(&server, "s", range, 3).await;
        assert_eq!((&stats["range"], &stats["point_ms"]), (&json!(range), &json!(point_ms)));
        assert_eq!((&stats["total"]["enqueued"], &stats["total"]["failed"]), (&json!(3), &json!(0)));
        let sum: u64 =
            stats["points"].as_array().expect("points").iter().filter_map(|p| p["completed"].as_u64()).sum();
        assert_eq!(sum, 3, "{stats}");
        assert!(stats["total"]["wait_p95_ms"].is_u64() && stats["total"]["run_p50_ms"].is_u64(), "{stats}");
    }
    assert_eq!(server.get("/v1/streams/s").await.json().get("stats"), None, "only for whoever asks");
    assert_eq!(
        server.get("/v1/streams?range=1h").await.json()["streams"][0]["stats"]["total"]["completed"],
        3
    );
    let refused = server.get("/v1/streams?range=2h").await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.body.contains("expected one of 1h, 24h, 7d"), "{}", refused.body);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/streams").await;
    assert!(page.body.contains("aria-label=\"3 jobs succeeded in the last hour, at most "), "{}", page.body);
    assert_eq!(page.body.matches("<svg class=\"spark\"").count(), 2, "{}", page.body);
    for (range, words) in [("24h", "24 hours"), ("7d", "7 days"), ("of mine", "hour")] {
        let page = browser.get(&site, &format!("/streams?range={}", range.replace(' ', "+"))).await;
        assert_eq!(page.status, 200);
        assert!(page.body.contains(&format!("3 jobs succeeded in the last {words}, ")), "{}", page.body);
    }
    let page = browser.get(&site, "/streams?range=7d").await;
    let paused = browser.submit(&site, &page, "/stream/s/pause", &[]).await;
    assert_eq!(location(&paused), "/streams?range=7d", "the range stays");
    server.stop().await;
}

/// The value of the box of a job.
fn box_of(page: &str, job_id: &str) -> String {
    let from = page.find(&format!("name=\"job\" value=\"{job_id}")).expect("a box");
    crate::browser::attribute(&page[from..], "value").to_string()
}

async fn a_stream_is_paused_and_resumed_by_its_buttons(server: TestServer) {
    server.enqueue("mail/out").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/streams").await;
    let first = words(&page.body);
    assert!(
        first.contains("mail/out") && first.contains("Pause") && !page.body.contains("tag late"),
        "{first}"
    );
    assert!(first.contains("fernery stream pause mail/out"), "{first}");
    for _ in 0..2 {
        let paused = browser.submit(&site, &page, "/stream/mail%2Fout/pause", &[]).await;
        assert_eq!(location(&paused), "/streams");
    }
    assert_eq!(server.get("/v1/streams/mail%2Fout").await.json()["paused"], true);
    let page = browser.get(&site, "/streams").await;
    assert!(page.body.contains("<span class=\"tag late\">paused</span>"), "{}", page.body);
    browser.submit(&site, &page, "/stream/mail%2Fout/resume", &[]).await;
    assert_eq!(server.get("/v1/streams/mail%2Fout").await.json()["paused"], false);
    browser.post(&site, "/stream/mail%2Fout/pause", &[("form_key", "x")]).await;
    assert_eq!(server.get("/v1/streams/mail%2Fout").await.json()["paused"], false, "the form is not ours");
    server.stop().await;
}

async fn jobs_are_filtered_by_the_address_and_come_in_pages(server: TestServer) {
    let jobs: Vec<Value> = (0..60).map(|n| json!({ "stream": "many", "payload": { "n": n } })).collect();
    assert_eq!(server.post("/v1/jobs", &json!(jobs)).await.status, 201);
    let other = server.enqueue("other").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let all = browser.get(&site, "/jobs").await.body;
    assert!(all.contains(&format!("/job/{other}")));
    let first = browser.get(&site, "/jobs?stream=many&status=QUEUED").await.body;
    assert!(!first.contains(&other) && first.matches("data-row").count() == 50, "{first}");
    let next = first
        .find("rel=\"next\"")
        .map(|at| first[..at].rfind("href=\"").expect("a link"))
        .expect("a next page");
    let next = unescaped(crate::browser::attribute(&first[next..], "href"));
    assert!(next.starts_with("/jobs?status=QUEUED&stream=many&cursor="), "{next}");
    let second = browser.get(&site, &next).await.body;
    assert_eq!(second.matches("data-row").count(), 10);
    assert!(second.contains("First page") && !second.contains("rel=\"next\""));
    server.stop().await;
}

async fn a_filter_that_means_nothing_is_shown_with_what_is_wrong(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/jobs?stream=a%20b%22%3E&status=LOST").await;
    assert!((400..500).contains(&page.status), "{}", page.status);
    assert!(page.body.contains("id=\"filter-problem\""), "{}", page.body);
    assert!(unescaped(&page.body).contains("value=\"a b\">\""), "what was typed stays: {}", page.body);
    let page = browser.get(&site, "/jobs?cursor=nonsense").await;
    assert_eq!(page.status, 400, "{}", words(&page.body));
    server.stop().await;
}

async fn ticked_jobs_are_cancelled_and_the_rest_is_left(server: TestServer) {
    let (a, b, c) = (server.enqueue("s").await, server.enqueue("s").await, server.enqueue("s").await);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/jobs?stream=s").await;
    let here = "/jobs?stream=s";
    let mut fields = form(&page.body, here);
    fields.push(("act".into(), "cancel".into()));
    fields.extend([&a, &b].map(|id| ("job".to_string(), box_of(&page.body, id))));
    let sent: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    for _ in 0..2 {
        assert_eq!(location(&browser.post(&site, here, &sent).await), here);
    }
    for (job_id, is) in [(&a, "CANCELLED"), (&b, "CANCELLED"), (&c, "QUEUED")] {
        assert_eq!(status(&server, job_id).await, is);
    }
    let one = browser.submit(&site, &page, here, &[("cancel_one", &c)]).await;
    location(&one);
    assert_eq!(status(&server, &c).await, "CANCELLED");
    // Enter presses the first button.
    let buttons = page.body.split("<form method=\"post\" action=\"/jobs?stream=s\">").nth(1).expect("a form");
    let first = &buttons[buttons.find("<button").expect("a button")..];
    let (name, value) = (crate::browser::attribute(first, "name"), crate::browser::attribute(first, "value"));
    let waits = server.enqueue("s").await;
    let pressed = browser.submit(&site, &page, here, &[(name, value), ("job", &waits)]).await;
    assert_eq!((pressed.status, status(&server, &waits).await.as_str()), (422, "QUEUED"));
    let none = browser.submit(&site, &page, here, &[("act", "cancel")]).await;
    assert_eq!(none.status, 422);
    assert!(words(&none.body).contains("Tick the jobs that are meant"));
    // A page that answers an act is asked for again under its own address, and its form sends there.
    let filtered = "/jobs?status=QUEUED&stream=s";
    let other = server.enqueue("t").await;
    let page = browser.get(&site, filtered).await;
    let key = form(&page.body, &filtered.replace('&', "&#38;")).remove(0).1;
    let sent = [("form_key", key.as_str()), ("act", "cancel")];
    let refused = browser.post(&site, filtered, &sent).await;
    assert_eq!(refused.status, 422);
    assert!(refused.body.contains("<form method=\"post\" action=\"/jobs?status=QUEUED&#38;stream=s\">"));
    assert!(refused.body.contains(&waits) && !refused.body.contains(&other), "{}", refused.body);
    server.stop().await;
}

async fn what_is_refused_is_said_job_by_job(server: TestServer) {
    let lost = dead(&server, "s", "E", "").await;
    let waits = server.enqueue("s").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/jobs").await;
    let key = form(&page.body, "/jobs").into_iter().find(|(name, _)| name == "form_key").expect("a key").1;
    let sent = [("form_key", key.as_str()), ("act", "cancel"), ("job", &lost), ("job", &waits)];
    let answer = browser.post(&site, "/jobs", &sent).await;
    assert_eq!(answer.status, 409);
    let said = words(&answer.body);
    assert!(said.contains("1 done. Refused:") && said.contains("the job has already ended: DEAD"), "{said}");
    assert_eq!(status(&server, &waits).await, "CANCELLED");
    server.stop().await;
}

async fn a_job_explains_itself_and_shows_its_attempts(server: TestServer) {
    let job_id = server.enqueue("s").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let path = format!("/job/{job_id}");
    let explained = server.get(&format!("/v1/jobs/{job_id}/explain")).await;
    let sentence = explained.json()["sentence"].as_str().expect("a sentence").to_string();
    let page = words(&browser.get(&site, &path).await.body);
    assert!(page.contains(&sentence) && page.contains("No worker has claimed it yet"), "{sentence}: {page}");
    fail(&server, "s", "E_SMTP", "the other side hung up").await;
    server.advance(Duration::from_secs(3_600)).await;
    let held = loop {
        let held = server.claim("s").await;
        if held["claimed"] == true {
            break held;
        }
    };
    let beat = json!({
        "worker_id": "w", "job_id": held["job_id"], "lease_token": held["lease_token"],
        "progress": { "percent": 40, "note": "half of it" },
    });
    assert_eq!(server.work("heartbeat", &beat).await.status, 200);
    let page = browser.get(&site, &path).await.body;
    let said = words(&page);
    for part in
        ["E_SMTP", "the other side hung up", "FAILED", "RUNNING", "half of it", "40 %", "Last heartbeat"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.contains(&format!("fernery job cancel --force {job_id}")), "{said}");
    assert!(page.find("id=\"attempt-2\"") < page.find("id=\"attempt-1\""), "newest first");
    assert!(page.contains("<details class=\"card\" id=\"payload\">"), "collapsed");
    let page = browser.get(&site, &path).await;
    let forced = browser.submit(&site, &page, &format!("{path}/cancel"), &[]).await;
    assert_eq!((location(&forced), status(&server, &job_id).await.as_str()), (path.as_str(), "CANCELLED"));
    assert_eq!(browser.get(&site, "/job/019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f").await.status, 404);
    assert_eq!(browser.get(&site, "/job/nonsense").await.status, 400);
    server.stop().await;
}

async fn a_job_is_retried_once_however_often_its_form_is_sent(server: TestServer) {
    let job_id = dead(&server, "s", "E", "no").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let (path, act) = (format!("/job/{job_id}"), format!("/job/{job_id}/retry"));
    let page = browser.get(&site, &path).await;
    let list = browser.get(&site, "/jobs").await;
    for _ in 0..2 {
        assert_eq!(location(&browser.submit(&site, &page, &act, &[]).await), path);
        assert_eq!(status(&server, &job_id).await, "QUEUED");
    }
    server.advance(Duration::from_secs(1)).await;
    fail(&server, "s", "E", "again").await;
    assert_eq!(status(&server, &job_id).await, "DEAD");
    // The form of the first death does nothing to the second, nor does that of the list.
    assert_eq!(location(&browser.submit(&site, &page, &act, &[]).await), path);
    let ended = box_of(&list.body, &job_id);
    location(&browser.submit(&site, &list, "/jobs", &[("retry_one", &ended)]).await);
    assert_eq!(status(&server, &job_id).await, "DEAD");
    let list = browser.get(&site, "/jobs").await;
    let ended = box_of(&list.body, &job_id);
    location(&browser.submit(&site, &list, "/jobs", &[("retry_one", &ended)]).await);
    assert_eq!(status(&server, &job_id).await, "QUEUED");
    server.stop().await;
}

async fn a_cancelled_job_is_retried_once_too(server: TestServer) {
    let job_id = server.enqueue("s").await;
    let cancel = format!("/v1/jobs/{job_id}/cancel");
    assert_eq!(server.post(&cancel, &json!({})).await.status, 200);
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let (path, act) = (format!("/job/{job_id}"), format!("/job/{job_id}/retry"));
    let page = browser.get(&site, &path).await;
    location(&browser.submit(&site, &page, &act, &[]).await);
    assert_eq!(status(&server, &job_id).await, "QUEUED");
    server.advance(Duration::from_secs(1)).await;
    assert_eq!(server.post(&cancel, &json!({})).await.status, 200);
    location(&browser.submit(&site, &page, &act, &[]).await);
    assert_eq!(status(&server, &job_id).await, "CANCELLED", "the second end was never shown");
    server.stop().await;
}

/// What stands in the box of the payload.
fn payload_in(page: &str) -> String {
    let text =
        page.split("<textarea id=\"payload\"").nth(1).expect("a box").split_once('>').expect("a text").1;
    unescaped(
        text.split("</textarea>")
            .next()
            .expect("an end")
            .strip_prefix('\n')
            .expect("a line end that browsers drop"),
    )
}

async fn a_job_is_enqueued_again_with_exact_numbers_and_once(server: TestServer) {
    let sent = r#"{"stream":"s","payload":{"n":12345678901234567890.1000,"t":"<b>"},"max_attempts":7}"#;
    let made = server.call(&server.operator, "POST", "/v1/jobs", sent).await.json();
    let first = made["job_id"].as_str().expect("an id");
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let shown = words(&browser.get(&site, &format!("/job/{first}")).await.body);
    assert!(shown.contains("12345678901234567890.1000"), "{shown}");
    let path = format!("/job/{first}/again");
    let page = browser.get(&site, &path).await;
    let payload = payload_in(&page.body);
    assert!(payload.contains("12345678901234567890.1000") && payload.contains("<b>"), "{payload}");
    let edited = payload.replace("<b>", "<i>");
    let typed = [("stream", "s"), ("payload", edited.as_str()), ("max_attempts", "7")];
    let sent = browser.submit(&site, &page, &path, &typed).await;
    let second = location(&sent).strip_prefix("/job/").expect("the new job").to_string();
    assert_ne!(second, first);
    assert_eq!(
        location(&browser.submit(&site, &page, &path, &typed).await),
        format!("/job/{second}"),
        "sent twice"
    );
    assert_eq!(server.get("/v1/streams/s").await.json()["ready"], 2, "made once");
    let raw = server.get(&format!("/v1/jobs/{second}")).await.body;
    assert!(raw.contains("12345678901234567890.1000") && raw.contains("<i>"), "{raw}");
    assert_eq!(job(&server, &second).await["max_attempts"], 7);
    server.stop().await;
}

async fn an_edit_that_is_refused_is_not_lost(server: TestServer) {
    let made = json!({ "stream": "s", "payload": {}, "unique_key": "only-one" });
    let first = server.post("/v1/jobs", &made).await.json()["job_id"].as_str().expect("an id").to_string();
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let path = format!("/job/{first}/again");
    let page = browser.get(&site, &path).await;
    let cases = [
        ("payload", "{\"a\": </textarea>", "it is not JSON"),
        ("payload", "[1]", "object"),
        ("stream", "not a name", ""),
        ("max_attempts", "many", ""),
        ("max_attempts", "0", ""),
        ("run_at", "soon", ""),
        ("timeout_seconds", "-1", ""),
        ("unique_key", "only-one", "an unfinished job has this unique key"),
    ];
    for (field, typed, said) in cases {
        let mut fields = vec![("stream", "s"), ("payload", "{\"kept\": 1}")];
        fields.retain(|(name, _)| *name != field);
        fields.push((field, typed));
        let refused = browser.submit(&site, &page, &path, &fields).await;
        assert!((400..500).contains(&refused.status), "{field} {typed}: {}", refused.status);
        let text = words(&refused.body);
        assert!(
            refused.body.contains("id=\"again-problem\"") && text.contains(said),
            "{field} {typed}: {text}"
        );
        match field {
            "payload" => assert_eq!(payload_in(&refused.body), typed),
            _ => {
                assert_eq!(payload_in(&refused.body), "{\"kept\": 1}");
                assert!(refused.body.contains(&format!("value=\"{typed}\"")), "{field} {typed}");
            }
        }
    }
    assert_eq!(server.get("/v1/streams/s").await.json()["ready"], 1, "nothing was enqueued");
    server.stop().await;
}

async fn dead_jobs_are_grouped_and_one_goes_first(server: TestServer) {
    let mut mail = Vec::new();
    for n in 0..3 {
        mail.push(dead(&server, "mail", "E_SMTP", &format!("try {n}")).await);
        server.advance(Duration::from_millis(10)).await;
    }
    let build = dead(&server, "build", "E_DISK", "full").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/dead").await;
    let said = words(&page.body);
    assert!(said.contains("E_SMTP in mail 3") && said.contains("E_DISK in build 1"), "{said}");
    assert!(said.contains("try 2") && said.contains("it failed as often as it may"), "{said}");
    let only = words(&browser.get(&site, "/dead?stream=build").await.body);
    assert!(only.contains("E_DISK") && !only.contains("E_SMTP"), "{only}");
    let list = browser.get(&site, "/dead?stream=mail&code=E_SMTP").await.body;
    assert!(mail.iter().all(|id| list.contains(&format!("/job/{id}"))) && !list.contains(&build));
    // The last form is that of the older group, and sends all of it; the form before it sends one.
    let only_mail = browser.get(&site, "/dead?stream=mail").await;
    let key = form(&only_mail.body, "/dead/redrive")
        .into_iter()
        .find(|(name, _)| name == "form_key")
        .expect("a key")
        .1;
    let at = only_mail.body.find("name=\"ended\"").expect("a form for one");
    let one_death = crate::browser::attribute(&only_mail.body[at..], "value").to_string();
    let one = [("form_key", key.as_str()), ("ended", one_death.as_str())];
    for _ in 0..2 {
        assert_eq!(location(&browser.post(&site, "/dead/redrive", &one).await), format!("/job/{}", mail[2]));
    }
    assert_eq!(status(&server, &mail[2]).await, "QUEUED");
    assert_eq!(status(&server, &mail[0]).await, "DEAD");
    let rest = browser.submit(&site, &only_mail, "/bulk", &[("verb", "retry")]).await;
    assert_eq!(ended(&server, location(&rest)).await, ("DONE".into(), 2));
    let said = words(&browser.get(&site, location(&rest)).await.body);
    assert!(said.contains("Retry all DEAD jobs of the stream mail with the error code E_SMTP"), "{said}");
    assert!(said.contains("2 jobs queued again"), "{said}");
    for job_id in &mail {
        assert_eq!(status(&server, job_id).await, "QUEUED");
    }
    assert_eq!(status(&server, &build).await, "DEAD");
    server.stop().await;
}

async fn a_form_moves_only_the_deaths_that_it_showed(server: TestServer) {
    let first = dead(&server, "s", "E", "").await;
    dead(&server, "s", "E", "").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/dead").await;
    server.advance(Duration::from_secs(1)).await;
    let later = dead(&server, "s", "E", "").await;
    let moved = browser.submit(&site, &page, "/bulk", &[("verb", "retry")]).await;
    assert_eq!(ended(&server, location(&moved)).await, ("DONE".into(), 2));
    assert_eq!(status(&server, &first).await, "QUEUED");
    assert_eq!(status(&server, &later).await, "DEAD", "nobody has seen it");
    server.advance(Duration::from_secs(1)).await;
    fail(&server, "s", "E", "again").await;
    server.advance(Duration::from_secs(3_600)).await;
    let sent_twice = browser.submit(&site, &page, "/bulk", &[("verb", "retry")]).await;
    assert_eq!(location(&sent_twice), location(&moved), "it is the same act");
    let anew = [("verb", "retry"), ("act_id", "another")];
    let anew = browser.submit(&site, &page, "/bulk", &anew).await;
    assert_eq!(ended(&server, location(&anew)).await, ("DONE".into(), 0), "it means these deaths alone");
    let broken = browser.submit(&site, &page, "/bulk", &[("verb", "retry"), ("before", "")]).await;
    assert_eq!(broken.status, 400, "a form without its bound means nothing");
    server.stop().await;
}

async fn a_purge_wants_to_be_sure(server: TestServer) {
    let job_id = dead(&server, "s", "", "no code").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, "/dead").await;
    assert_eq!(browser.submit(&site, &page, "/bulk", &[]).await.status, 422);
    assert_eq!(status(&server, &job_id).await, "DEAD");
    let purged = browser.submit(&site, &page, "/bulk", &[("sure", "yes")]).await;
    assert_eq!(ended(&server, location(&purged)).await, ("DONE".into(), 1));
    assert_eq!(server.get(&format!("/v1/jobs/{job_id}")).await.status, 404);
    assert!(words(&browser.get(&site, "/dead").await.body).contains("No job is dead"));
    server.stop().await;
}

async fn the_holder_of_a_job_is_shown_with_its_heartbeat(server: TestServer) {
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    assert!(words(&browser.get(&site, "/workers").await.body).contains("No worker holds a job now."));
    let held = server.leased("s").await;
    let job_id = held["job_id"].as_str().expect("an id");
    let page = browser.get(&site, "/workers").await.body;
    let said = words(&page);
    assert!(said.contains("1 worker holds 1 job") && page.contains(&format!("/job/{job_id}")), "{said}");
    let listed = server.get("/v1/leases").await.json();
    assert_eq!(listed["held"][0]["worker_id"], "w");
    assert_eq!(listed["held"][0]["job_id"], held["job_id"]);
    assert_eq!(listed["held"][0].get("lease_token"), None, "no secret is told");
    server.stop().await;
}

const PAGES: [&str; 5] = ["/streams", "/jobs", "/dead", "/dead?stream=s&code=E", "/workers"];

async fn viewers_see_the_queue_and_change_nothing(server: TestServer) {
    let lost = dead(&server, "s", "E", "no").await;
    let (waits, viewer) = (server.enqueue("s").await, server.token("viewer").await);
    let (mut browser, site): (Browser, Site) = signed_in(&server, &viewer).await;
    let (of_lost, of_waits) = (format!("/job/{lost}"), format!("/job/{waits}"));
    for path in PAGES.into_iter().chain([of_lost.as_str(), of_waits.as_str()]) {
        let page = browser.get(&site, path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        let posts = page.body.matches("method=\"post\"").count();
        assert_eq!(posts, 1, "only signing out: {path}");
    }
    let key = form(&browser.get(&site, "/").await.body, "/sign-out");
    let key = key.into_iter().find(|(name, _)| name == "form_key").expect("a key").1;
    let acts = [
        "/stream/s/pause".to_string(),
        "/jobs".to_string(),
        format!("/job/{lost}/retry"),
        format!("/job/{waits}/cancel"),
        format!("/job/{waits}/again"),
        "/dead/redrive".to_string(),
        "/bulk".to_string(),
        "/bulk/x/stop".to_string(),
    ];
    for act in acts {
        let sent = [("form_key", key.as_str()), ("act", "cancel"), ("job", waits.as_str()), ("sure", "yes")];
        assert_eq!(browser.post(&site, &act, &sent).await.status, 403, "{act}");
    }
    assert_eq!(
        (status(&server, &lost).await, status(&server, &waits).await),
        ("DEAD".into(), "QUEUED".into())
    );
    server.stop().await;
}

async fn hostile_words_of_workers_do_nothing(server: TestServer) {
    let words = "<script>alert(1)</script>\u{1b}[31m\u{202e}\"'&";
    dead(&server, "s", words, "").await;
    let lost = dead(&server, "s", words, &words.repeat(1_000)).await;
    let job = json!({ "stream": "s", "payload": { words: words }, "unique_key": "<script>" });
    let payload = server.post("/v1/jobs", &job).await;
    assert_eq!(payload.status, 201, "{payload:?}");
    let payload = payload.json()["job_id"].as_str().expect("an id").to_string();
    let claim = json!({ "worker_id": "<script>w\u{202e}", "streams": ["s"], "max_wait_ms": 0 });
    let claimed = server.work("claim", &claim).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let (of_lost, of_payload) = (format!("/job/{lost}"), format!("/job/{payload}"));
    let again = format!("/job/{payload}/again");
    for path in PAGES.into_iter().chain([of_lost.as_str(), of_payload.as_str(), again.as_str()]) {
        let page = browser.get(&site, path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        assert!(!page.body.contains("<script>"), "{path}");
        // A hidden field and the box of a payload send back what they were given; nobody reads them as text.
        let read = crate::browser::words(&page.body);
        assert!(path == again || !read.contains(['\u{1b}', '\u{202e}']), "{path}: {read}");
        for inline in [" style=", " onclick=", "javascript:"] {
            assert!(!page.body.contains(inline), "{path}: {inline}");
        }
    }
    let shown = browser.get(&site, "/dead").await.body;
    assert!(shown.contains("&lt;script&gt;") && shown.contains("U+202E"), "{claimed:?} {shown}");
    // A group with a hostile code is moved by its form all the same.
    let page = browser.get(&site, "/dead").await;
    let moved = browser.submit(&site, &page, "/bulk", &[("verb", "retry")]).await;
    assert_eq!(ended(&server, location(&moved)).await, ("DONE".into(), 2));
    server.stop().await;
}
