//! What the pages of the queue draw and hand out: the ways of a job, deaths over time, idle workers, whole documents.

use crate::browser::{signed_in, unescaped, words};
use crate::server::TestServer;
use serde_json::{Value, json};
use std::time::Duration;

crate::on_both_backends!(
    the_way_of_a_job_is_drawn_and_said,
    a_job_that_was_started_over_says_so,
    deaths_are_charted_for_each_group,
    an_idle_worker_is_shown_with_what_it_asks_for,
    a_long_document_is_handed_out_whole_and_as_a_file,
);

async fn enqueued(server: &TestServer, stream: &str, max_attempts: u32) -> String {
    let job = json!({ "stream": stream, "payload": {}, "max_attempts": max_attempts });
    server.post("/v1/jobs", &job).await.json()["job_id"].as_str().expect("an id").to_string()
}

/// Claims the next job of a stream, as soon as there is one, and reports it.
async fn worked(server: &TestServer, stream: &str, verb: &str, report: Value) {
    let held = loop {
        let held = server.claim(stream).await;
        if held["claimed"] == true {
            break held;
        }
    };
    let mut body = report;
    body["worker_id"] = json!("w");
    for field in ["job_id", "attempt_id", "lease_token"] {
        body[field] = held[field].clone();
    }
    let answer = server.work(verb, &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

fn failure() -> Value {
    json!({ "error": { "code": "E", "message": "no" } })
}

/// The boxes of the picture that were gone through, and the one where the job stands.
fn boxes(page: &str) -> (Vec<String>, Vec<String>) {
    let svg =
        page.split("<svg class=\"flow\"").nth(1).expect("a picture").split("</svg>").next().expect("its end");
    let of = |class: &str| -> Vec<String> {
        let marked = format!("<g class=\"{class}\">");
        let texts = svg.split(&marked).skip(1).map(|rest| rest.split("</text>").next().expect("a text"));
        texts.map(|text| text.rsplit('>').next().expect("a name").to_string()).collect()
    };
    (of("node taken"), of("node taken here"))
}

async fn the_way_of_a_job_is_drawn_and_said(server: TestServer) {
    let job_id = enqueued(&server, "s", 3).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let path = format!("/job/{job_id}");
    let page = browser.get(&site, &path).await.body;
    assert_eq!(boxes(&page), (vec![], vec!["ready".to_string()]));
    assert!(
        words(&page).contains("No worker has claimed it. Now it is ready for a worker."),
        "{}",
        words(&page)
    );
    worked(&server, "s", "fail", failure()).await;
    let page = browser.get(&site, &path).await.body;
    let taken = boxes(&page).0;
    assert!(
        taken.contains(&"running × 1".to_string()) && taken.contains(&"failed × 1".to_string()),
        "{taken:?}"
    );
    server.advance(Duration::from_secs(3_600)).await;
    worked(&server, "s", "complete", json!({ "result": {} })).await;
    let page = browser.get(&site, &path).await.body;
    let (taken, here) = boxes(&page);
    assert_eq!(here, ["succeeded"]);
    assert_eq!(taken, ["scheduled", "ready", "running × 2", "failed × 1"]);
    let said = words(&page);
    for part in
        ["Workers claimed it 2 times.", "Failed once; it was tried again later.", "Now it is succeeded."]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let later = json!({ "stream": "later", "payload": {}, "delay_ms": 3_600_000 });
    let later = server.post("/v1/jobs", &later).await.json();
    let page_of = format!("/job/{}", later["job_id"].as_str().expect("an id"));
    let waits = browser.get(&site, &page_of).await.body;
    assert_eq!(boxes(&waits), (vec!["ready".to_string()], vec!["scheduled".to_string()]));
    // The picture has a name and its words for whoever does not see it.
    assert!(page.contains(&format!("aria-labelledby=\"flow-title-{job_id} flow-desc-{job_id}\"")), "{page}");
    assert!(page.contains("Where a job can stand. This one is succeeded</title>"), "{page}");
    server.stop().await;
}

async fn a_job_that_was_started_over_says_so(server: TestServer) {
    let job_id = enqueued(&server, "s", 1).await;
    worked(&server, "s", "fail", failure()).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let path = format!("/job/{job_id}");
    let page = browser.get(&site, &path).await.body;
    assert_eq!(boxes(&page).1, ["dead"]);
    assert!(!words(&page).contains("started over."), "{}", words(&page));
    let over = server.post(&format!("/v1/jobs/{job_id}/retry"), &json!({})).await;
    assert_eq!(over.status, 200, "{over:?}");
    let page = browser.get(&site, &path).await.body;
    assert_eq!(boxes(&page).1, ["ready"]);
    assert!(
        words(&page).contains("It had failed as often as it may, and was started over."),
        "{}",
        words(&page)
    );
    server.stop().await;
}

async fn deaths_are_charted_for_each_group(server: TestServer) {
    for _ in 0..2 {
        enqueued(&server, "mail", 1).await;
        worked(&server, "mail", "fail", failure()).await;
    }
    server.advance(Duration::from_secs(36 * 3_600)).await;
    enqueued(&server, "mail", 1).await;
    worked(&server, "mail", "fail", failure()).await;
    assert_eq!(
        server.get("/v1/dlq/groups").await.json()["groups"][0].get("deaths"),
        None,
        "only if asked for"
    );
    for (range, point_ms, total, points) in [("24h", 900_000, 1, 1), ("7d", 7_200_000, 3, 2)] {
        let found = server.get(&format!("/v1/dlq/groups?range={range}")).await.json();
        let deaths = &found["groups"][0]["deaths"];
        assert_eq!((&deaths["range"], &deaths["point_ms"]), (&json!(range), &json!(point_ms)), "{found}");
        assert_eq!(deaths["total"], total, "{found}");
        // Two that die one after the other may do so on both sides of the beginning of a point.
        let of = deaths["points"].as_array().expect("points");
        assert!((points..=points + 1).contains(&of.len()), "{found}");
        assert_eq!(of.iter().filter_map(|point| point["dead"].as_u64()).sum::<u64>(), total);
        assert_eq!(found.get("looked_from"), None, "all of them were looked at");
    }
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let day = browser.get(&site, "/dead").await.body;
    assert!(day.contains("1 of them died in the last 24 hours, at most 1 in 15 minutes"), "{day}");
    let week = browser.get(&site, "/dead?range=7d").await.body;
    assert!(week.contains("3 of them died in the last 7 days, at most "), "{week}");
    assert_eq!(week.matches("<svg class=\"spark\"").count(), 1);
    assert!(week.contains("<b aria-current=\"true\">7 days</b>"), "{week}");
    server.stop().await;
}

async fn an_idle_worker_is_shown_with_what_it_asks_for(server: TestServer) {
    let ask = |worker: &str, streams: &[&str], wait: u64| json!({ "worker_id": worker, "streams": streams, "max_wait_ms": wait });
    assert_eq!(server.work("claim", &ask("idle <1>", &["mail", "a/b"], 0)).await.status, 200);
    let held = server.leased("s").await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let listed = server.get("/v1/pollers").await.json();
    let pollers = listed["pollers"].as_array().expect("pollers");
    let of =
        |name: &str| pollers.iter().find(|it| it["worker_id"] == name).unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(
        (&of("idle <1>")["streams"], &of("idle <1>")["waiting"]),
        (&json!(["mail", "a/b"]), &json!(false))
    );
    assert_eq!(of("w")["waiting"], false, "it has its answer");
    let page = browser.get(&site, "/workers").await.body;
    let idle =
        page.split("id=\"idle\"").nth(1).expect("a list").split("id=\"processes\"").next().expect("its end");
    let said = words(idle);
    assert!(said.contains("idle <1>") && idle.contains("/jobs?stream=a%2Fb"), "{said}");
    assert!(!idle.contains(">w</th>"), "who holds {} is not idle: {said}", held["job_id"]);
    // One that waits is there for as long as it waits; it is answered by a job.
    let waits = async { server.work("claim", &ask("patient", &["later"], 20_000)).await };
    let looks = async {
        loop {
            let listed = server.get("/v1/pollers").await.json();
            let waits = |it: &Value| it["worker_id"] == "patient" && it["waiting"] == true;
            if listed["pollers"].as_array().expect("pollers").iter().any(waits) {
                break;
            }
        }
        let page = browser.get(&site, "/workers").await.body;
        server.enqueue("later").await;
        page
    };
    let (answer, page) = tokio::join!(waits, looks);
    assert_eq!(answer.json()["claimed"], true);
    assert!(words(&page).contains("waits now"), "{}", words(&page));
    let page = words(&browser.get(&site, "/workers").await.body);
    assert!(page.contains("2 workers hold 2 jobs") && !page.contains("waits now"), "{page}");
    server.stop().await;
}

async fn a_long_document_is_handed_out_whole_and_as_a_file(server: TestServer) {
    // Spaces and digits stay as they were sent, and markup is only a text.
    let lines: Vec<String> = (0..1_500).map(|n| format!("{n}.10")).collect();
    let payload =
        format!("{{\"lines\": [{}], \"t\": \"</pre><script>alert(1)</script>\"}}", lines.join(", "));
    let sent = format!("{{\"stream\":\"s\",\"payload\":{payload}}}");
    let made = server.call(&server.operator, "POST", "/v1/jobs", &sent).await.json();
    let job_id = made["job_id"].as_str().expect("an id");
    worked(&server, "s", "complete", json!({ "result": "x".repeat(150_000) })).await;
    let (mut browser, site) = signed_in(&server, &server.operator).await;
    let page = browser.get(&site, &format!("/job/{job_id}")).await.body;
    let links: Vec<String> = page
        .split("<a href=\"")
        .skip(1)
        .map(|rest| unescaped(rest.split('"').next().expect("an address")))
        .filter(|href| href.contains("/download?"))
        .collect();
    let path = format!("/job/{job_id}/download?part=");
    assert_eq!(links, [format!("{path}payload"), format!("{path}result")]);
    assert_eq!(page.matches("Only the beginning is shown.").count(), 2, "of both");
    let result = format!("\"{}\"", "x".repeat(150_000));
    for (part, whole) in [("payload", &payload), ("result", &result)] {
        let file = browser.get(&site, &format!("{path}{part}")).await;
        assert!(file.status == 200 && file.body == *whole, "{part}: to the byte");
        assert_eq!(file.headers["content-type"], "application/json", "never as a page");
        assert_eq!(file.headers["x-content-type-options"], "nosniff");
        let named = format!("attachment; filename=\"job-{job_id}-{part}.json\"");
        assert_eq!(file.headers["content-disposition"], named);
    }
    let waits = server.enqueue("other").await;
    assert_eq!(browser.get(&site, &format!("/job/{waits}/download?part=result")).await.status, 404);
    for part in ["nonsense", ""] {
        assert_eq!(browser.get(&site, &format!("{path}{part}")).await.status, 404, "{part}");
    }
    server.stop().await;
}
