//! What viewers do not see: what the jobs of a stream hold, where an operator has said so. Every route and every page is asked.

use crate::browser::{Browser, Site, signed_in, words};
use crate::server::TestServer;
use fernery::http::pages::{PAGES, Sees};
use fernery::http::route::{Route, Who};
use fernery::http::routes::ROUTES;
use fernery_client::wire::Role;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

crate::on_both_backends!(
    viewers_read_nowhere_what_the_jobs_of_a_redacted_stream_hold,
    a_stream_is_set_before_its_first_job_and_shown_again,
    settings_that_mean_nothing_are_refused,
);

/// It stands in each payload, result, error and note of progress.
const SECRET: &str = "Verschlusssache";

async fn set(server: &TestServer, stream: &str, redact: bool) {
    let body = json!({ "redact": redact }).to_string();
    let answer = server.call(&server.operator, "PUT", &format!("/v1/streams/{stream}"), &body).await;
    assert_eq!((answer.status, &answer.json()["redact"]), (200, &json!(redact)), "{answer:?}");
}

async fn made(server: &TestServer, token: &str, stream: &str) -> String {
    let job = json!({ "stream": stream, "payload": { "is": SECRET }, "max_attempts": 2 }).to_string();
    let answer = server.call(token, "POST", "/v1/jobs", &job).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["job_id"].as_str().expect("an id").to_string()
}

/// The next job of a stream, and what proves that it is held.
async fn held(server: &TestServer, stream: &str) -> (String, Value) {
    let held = loop {
        let held = server.claim(stream).await;
        if held["claimed"] == true {
            break held;
        }
    };
    let job_id = held["job_id"].as_str().expect("an id").to_string();
    let [attempt_id, lease_token] = ["attempt_id", "lease_token"].map(|field| held[field].clone());
    let proof =
        json!({ "worker_id": "w", "job_id": job_id, "attempt_id": attempt_id, "lease_token": lease_token });
    (job_id, proof)
}

async fn reported(server: &TestServer, verb: &str, proof: &Value, more: Value) {
    let mut body = proof.clone();
    more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
    if verb == "heartbeat" {
        body.as_object_mut().expect("an object").remove("attempt_id");
    }
    let answer = server.work(verb, &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Jobs of this stream in every state, each with the secret wherever a text of its maker or its worker can stand.
async fn jobs(server: &TestServer, token: &str, stream: &str) -> Vec<String> {
    let error = json!({ "error": { "code": "E_SEEN", "message": SECRET, "stack": SECRET } });
    let done = made(server, token, stream).await;
    let (_, proof) = held(server, stream).await;
    reported(server, "complete", &proof, json!({ "result": { "is": SECRET } })).await;
    let (dead, running) = (made(server, token, stream).await, made(server, token, stream).await);
    for _ in 0..2 {
        let (_, proof) = held(server, stream).await;
        reported(server, "fail", &proof, error.clone()).await;
    }
    server.advance(Duration::from_secs(3_600)).await;
    for _ in 0..2 {
        match held(server, stream).await {
            (job_id, proof) if job_id == dead => reported(server, "fail", &proof, error.clone()).await,
            (_, proof) => {
                let progress = json!({ "progress": { "percent": 40, "note": SECRET } });
                reported(server, "heartbeat", &proof, progress).await;
            }
        }
    }
    let waiting = made(server, token, stream).await;
    vec![done, dead, running, waiting]
}

/// The addresses of a row of a table, for these jobs. A row with a variable part that nobody thought of here fails.
fn addresses(path: &str, stream: &str, jobs: &[String]) -> Vec<String> {
    let filled: Vec<String> = match path.split_once('{') {
        None => vec![path.to_string()],
        Some((_, rest)) => match rest.split_once('}').expect("closed").0 {
            "id" | "part" | "link" => jobs
                .iter()
                .map(|id| path.replace("{id}", id).replace("{part}", id).replace("{link}", id))
                .collect(),
            "name" if path.contains("/export/") => {
                ["inbox", "journal", "azollas"].map(|part| path.replace("{name}", part)).to_vec()
            }
            "name" => vec![path.replace("{name}", stream)],
            other => panic!("{path}: say here what stands for {{{other}}}, so that it is asked too"),
        },
    };
    let of_parts = |path: &String| match path.ends_with("/download") {
        true => ["part=payload", "part=result"].map(|part| format!("{path}?{part}")).to_vec(),
        false => vec![path.clone()],
    };
    filled.iter().flat_map(of_parts).collect()
}

/// The routes and pages that show the secret to this token, of all that it may read.
async fn showing(
    server: &TestServer,
    token: &str,
    role: Role,
    stream: &str,
    jobs: &[String],
) -> BTreeSet<String> {
    let mut shows = BTreeSet::new();
    // What an operator may do beside reading would change the jobs.
    let read = |route: &&Route| match route.method {
        http::Method::GET => route.who.allows(role) || matches!(route.who, Who::Open | Who::Metrics),
        _ => role == Role::Viewer && route.who.allows(role),
    };
    for route in ROUTES.iter().filter(read) {
        for path in addresses(route.path, stream, jobs) {
            let answer = server.call(token, route.method.as_str(), &path, "").await;
            assert!(!matches!(answer.status, 401 | 403 | 405 | 500), "{path}: {answer:?}");
            if answer.body.contains(SECRET) {
                shows.insert(route.path.to_string());
            }
        }
    }
    let (mut browser, site): (Browser, Site) = signed_in(server, token).await;
    // A stream of events has no end, and none of its words is ours.
    let pages = PAGES.iter().filter(|page| page.method == http::Method::GET && page.path != "/events");
    for page in pages.filter(|page| role == Role::Operator || page.sees != Sees::Operators) {
        for path in addresses(page.path, stream, jobs) {
            let shown = browser.get(&site, &path).await;
            assert!(!matches!(shown.status, 401 | 403 | 405 | 500), "{path}: {shown:?}");
            if shown.body.contains(SECRET) {
                shows.insert(page.path.to_string());
            }
        }
    }
    shows
}

async fn viewers_read_nowhere_what_the_jobs_of_a_redacted_stream_hold(server: TestServer) {
    let (viewer, producer) = (server.token("viewer").await, server.token("producer").await);
    let jobs = jobs(&server, &producer, "hidden").await;
    let everywhere: BTreeSet<String> = [
        "/v1/jobs/{id}",
        "/v1/dlq",
        "/v1/dlq/groups",
        "/dead",
        "/job/{id}",
        "/job/{id}/again",
        "/job/{id}/download",
    ]
    .map(str::to_string)
    .into();
    let mut of_viewers = everywhere.clone();
    of_viewers.remove("/job/{id}/again");
    let show = async |token: &str, role| showing(&server, token, role, "hidden", &jobs).await;
    // Before it is set, so that it is known where the walk finds it.
    assert_eq!(show(&viewer, Role::Viewer).await, of_viewers);
    set(&server, "hidden", true).await;
    assert_eq!(show(&viewer, Role::Viewer).await, BTreeSet::new(), "all that a viewer may read");
    assert_eq!(show(&server.operator, Role::Operator).await, everywhere, "operators see it");
    for id in &jobs {
        let own = server.call(&producer, "GET", &format!("/v1/jobs/{id}"), "").await;
        assert!(own.status == 200 && own.body.contains(SECRET), "its producer sees it: {own:?}");
        assert_eq!(own.json().get("redacted"), None);
        let read = server.call(&viewer, "GET", &format!("/v1/jobs/{id}?wait_ms=1"), "").await;
        assert!(!read.body.contains(SECRET), "also after waiting: {read:?}");
        assert_eq!(
            (&read.json()["redacted"], &read.json()["payload"]),
            (&json!(true), &json!({ "redacted": true }))
        );
    }
    // What a viewer works with is there.
    let dead = server.call(&viewer, "GET", &format!("/v1/jobs/{}", jobs[1]), "").await.json();
    assert_eq!(dead["error"], json!({ "code": "E_SEEN", "message": "redacted" }));
    assert_eq!(dead["attempts"].as_array().map(Vec::len), Some(2));
    let running = server.call(&viewer, "GET", &format!("/v1/jobs/{}", jobs[2]), "").await.json();
    assert_eq!(running["attempts"][1]["progress"], json!({ "percent": 40, "note": "redacted" }));
    let listed = server.call(&viewer, "GET", "/v1/dlq?stream=hidden&code=E_SEEN", "").await.json();
    assert_eq!(listed["dead_letters"][0]["message"], "redacted");
    let (mut browser, site) = signed_in(&server, &viewer).await;
    let page = words(&browser.get(&site, &format!("/job/{}", jobs[1])).await.body);
    assert!(
        page.contains("Viewers do not see what the jobs of this stream hold") && page.contains("E_SEEN"),
        "{page}"
    );
    set(&server, "hidden", false).await;
    assert_eq!(show(&viewer, Role::Viewer).await, of_viewers);
    server.stop().await;
}

async fn a_stream_is_set_before_its_first_job_and_shown_again(server: TestServer) {
    set(&server, "pay%2Froll", true).await;
    let read = server.get("/v1/streams/pay%2Froll").await.json();
    assert_eq!(
        (&read["stream"], &read["redact"], &read["depth"]),
        (&json!("pay/roll"), &json!(true), &json!(0))
    );
    // Sent again it is as it was; a field that is absent stays.
    set(&server, "pay%2Froll", true).await;
    let same = server.call(&server.operator, "PUT", "/v1/streams/pay%2Froll", "{}").await;
    assert_eq!((same.status, &same.json()["redact"]), (200, &json!(true)), "{same:?}");
    let told = server.get("/v1/journal?subject=pay%2Froll").await.json();
    assert_eq!(told["entries"].as_array().map(Vec::len), Some(1), "what was so already is not told: {told}");
    let entry = &told["entries"][0];
    assert_eq!((&entry["act"], &entry["why"]), (&json!("stream_set"), &json!({ "redact": true })));
    let viewer = server.token("viewer").await;
    let job_id = made(&server, &server.operator, "pay/roll").await;
    let first = server.call(&viewer, "GET", &format!("/v1/jobs/{job_id}"), "").await;
    assert!(first.status == 200 && !first.body.contains(SECRET), "{first:?}");
    let (mut browser, site) = signed_in(&server, &viewer).await;
    let page = browser.get(&site, "/streams").await;
    assert!(words(&page.body).contains("redacted"), "{}", page.body);
    server.stop().await;
}

async fn settings_that_mean_nothing_are_refused(server: TestServer) {
    for (path, body, status, code) in [
        ("/v1/streams/s", r#"{"redact":"yes"}"#, 422, "invalid"),
        ("/v1/streams/s", r#"{"retention":"1d"}"#, 422, "unknown_field"),
        ("/v1/streams/s", "[true]", 422, "invalid"),
        ("/v1/streams/a%20b", r#"{"redact":true}"#, 422, "invalid"),
        ("/v1/streams/diazotroph:patch", r#"{"redact":true}"#, 409, "conflict"),
        ("/v1/streams/notice:office", r#"{"redact":true}"#, 409, "conflict"),
        ("/v1/streams/jobs:dlq", r#"{"redact":true}"#, 409, "conflict"),
    ] {
        let refused = server.call(&server.operator, "PUT", path, body).await;
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{path} {body}: {refused:?}");
    }
    let viewer = server.token("viewer").await;
    let refused = server.call(&viewer, "PUT", "/v1/streams/s", r#"{"redact":false}"#).await;
    assert_eq!(refused.status, 403);
    assert_eq!(server.get("/v1/streams/s").await.status, 404, "nothing was made");
    server.stop().await;
}
