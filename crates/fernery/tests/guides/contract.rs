//! The bodies in `worker-in-any-language.md` are those of the wire: each request is sent, each answer compared.

use super::pages::block;
use super::program::Server;
use serde_json::{Value, json};

const GUIDE: &str = "worker-in-any-language.md";
/// What is another value every time.
const VARIES: [&str; 8] = [
    "job_id",
    "attempt_id",
    "lease_token",
    "message_id",
    "server_time",
    "lease_expires_at",
    "detail",
    "heartbeat_at",
];

fn written(name: &str) -> Value {
    let text = block(GUIDE, name);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}: {text}"))
}

/// The request in the guide, about this claimed job.
fn about(name: &str, claimed: &Value) -> Value {
    let mut request = written(name);
    let parts: Vec<&mut Value> = match request.get("items") {
        Some(_) => request["items"].as_array_mut().unwrap().iter_mut().collect(),
        None => vec![&mut request],
    };
    for part in parts {
        for field in ["job_id", "attempt_id", "lease_token", "message_id"] {
            if let Some(value) = part.get_mut(field) {
                *value = claimed[field].clone();
            }
        }
    }
    request
}

/// The same without what varies, but with its names and kinds.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let varies = VARIES.contains(&name.as_str());
                let kind = json!(format!("a string: {}", value.is_string()));
                (name.clone(), if varies { kind } else { shape(value) })
            })
            .collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        other => other.clone(),
    }
}

#[track_caller]
fn answers(server: &Server, path: &str, request: &Value, status: u16, response: &str) -> Value {
    let (got, body) = server.post("worker.token", path, request);
    assert_eq!(got, status, "{path}: {body}");
    assert_eq!(shape(&body), shape(&written(response)), "{path} against {response}: {body}");
    body
}

fn enqueue(server: &Server) {
    let body = json!({"stream": "mail", "payload": {"to": "ada@example.org"}});
    assert_eq!(server.post("operator.token", "/v1/jobs", &body).0, 201);
}

#[test]
fn the_bodies_of_the_guide_are_those_of_the_wire() {
    let server = Server::start(&[]);
    let claim = |response: &str| {
        let mut request = written("claim.request");
        request["max_wait_ms"] = json!(0);
        answers(&server, "/internal/worker/claim", &request, 200, response)
    };
    claim("claim.nothing");
    enqueue(&server);
    let job = claim("claim.response");
    let heartbeat = "/internal/worker/heartbeat";
    answers(&server, heartbeat, &about("heartbeat.request", &job), 200, "heartbeat.response");
    let stale = written("claim.response")["lease_token"].clone();
    let mut refused = about("heartbeat.request", &job);
    refused["lease_token"] = stale;
    answers(&server, heartbeat, &refused, 409, "heartbeat.refused");
    let complete = about("complete.request", &job);
    for _ in 0..2 {
        answers(&server, "/internal/worker/complete", &complete, 200, "complete.response");
    }
    enqueue(&server);
    let job = claim("claim.response");
    answers(&server, "/internal/worker/fail", &about("fail.request", &job), 200, "fail.response");

    let many = |verb: &str, request: &Value| {
        let (status, body) = server.post("worker.token", &format!("/v1/worker/{verb}"), request);
        assert_eq!(status, 200, "{body}");
        body
    };
    enqueue(&server);
    let claimed = many("claim", &written("many-claim.request"))["jobs"][0].clone();
    let released = many("release", &about("many-release.request", &claimed));
    assert_eq!(released["items"][0]["outcome"], "accepted", "{released}");
    let again = many("claim", &written("many-claim.request"))["jobs"][0].clone();
    assert_eq!((&again["job_id"], &again["attempt_no"]), (&claimed["job_id"], &json!(2)), "{again}");
    let complete = about("many-complete.request", &again);
    answers(&server, "/v1/worker/complete", &complete, 200, "many-complete.response");
    let outcome = |body: Value| body["items"][0]["outcome"].clone();
    assert_eq!(outcome(many("complete", &complete)), "duplicate");
    assert_eq!(outcome(many("complete", &about("many-complete.request", &claimed))), "stale");
}
