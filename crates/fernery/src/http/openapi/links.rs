//! Which call can follow which, for programs that read the OpenAPI document: the id of a job leads to the calls about the
//! job, a lease to the reports of its holder.

use super::operation_id;
use crate::http::route::Route;
use crate::http::routes::ROUTES;
use http::Method;
use serde_json::{Map, Value, json};

/// One call that can follow.
#[derive(Debug)]
pub(super) struct Link {
    from: (Method, &'static str, u16),
    to: (Method, &'static str),
    gives: Gives,
}

/// What the next call gets from this answer.
#[derive(Clone, Copy, Debug)]
enum Gives {
    /// `{id}`, from this place of the answer.
    Id(&'static str),
    /// The lease that was claimed, and these fields with it.
    Lease(fn() -> Value),
}

const ENQUEUED: (Method, &str, u16) = (Method::POST, "/v1/jobs", 201);
const CLAIMED: (Method, &str, u16) = (Method::POST, "/internal/worker/claim", 200);
const CANCELLED: (Method, &str, u16) = (Method::POST, "/v1/jobs/{id}/cancel", 200);
const LISTED: (Method, &str, u16) = (Method::GET, "/v1/jobs", 200);

macro_rules! links {
    ($($from:expr => $method:ident $to:literal, $gives:expr;)+) => {
        &[$(Link { from: $from, to: (Method::$method, $to), gives: $gives },)+]
    };
}

pub(super) static LINKS: &[Link] = links![
    ENQUEUED => GET "/v1/jobs/{id}", Gives::Id("/job_id");
    ENQUEUED => GET "/v1/jobs/{id}/explain", Gives::Id("/job_id");
    ENQUEUED => POST "/v1/jobs/{id}/cancel", Gives::Id("/job_id");
    ENQUEUED => POST "/v1/jobs/{id}/retry", Gives::Id("/job_id");
    CANCELLED => POST "/v1/jobs/{id}/retry", Gives::Id("/job_id");
    LISTED => GET "/v1/jobs/{id}", Gives::Id("/jobs/0/job_id");
    CLAIMED => GET "/v1/jobs/{id}", Gives::Id("/job_id");
    CLAIMED => POST "/v1/jobs/{id}/cancel", Gives::Id("/job_id");
    CLAIMED => POST "/internal/worker/heartbeat", Gives::Lease(|| json!({}));
    CLAIMED => POST "/internal/worker/complete", Gives::Lease(|| json!({ "result": {} }));
    CLAIMED => POST "/internal/worker/fail", Gives::Lease(|| json!({ "error": { "code": "E", "message": "failed" } }));
    (Method::POST, "/v1/bulk", 201) => GET "/v1/bulk/{id}", Gives::Id("/act_id");
    (Method::POST, "/v1/bulk", 201) => POST "/v1/bulk/{id}/stop", Gives::Id("/act_id");
    (Method::POST, "/v1/tokens", 201) => DELETE "/v1/tokens/{id}", Gives::Id("/info/token_id");
];

/// The links of one answer, by name.
pub(super) fn of(route: &Route, status: u16) -> Map<String, Value> {
    let ours = LINKS.iter().filter(|link| link.from == (route.method.clone(), route.path, status));
    ours.filter_map(|link| {
        let target = ROUTES.iter().find(|to| (to.method.clone(), to.path) == link.to)?;
        Some((operation_id(target), written(link.gives, &operation_id(target))))
    })
    .collect()
}

fn written(gives: Gives, operation_id: &str) -> Value {
    match gives {
        Gives::Id(place) => json!({
            "operationId": operation_id, "parameters": { "id": format!("$response.body#{place}") }
        }),
        Gives::Lease(with) => {
            let mut body = with();
            body["worker_id"] = "$request.body#/worker_id".into();
            for field in ["job_id", "attempt_id", "lease_token"] {
                body[field] = format!("$response.body#/{field}").into();
            }
            json!({ "operationId": operation_id, "parameters": {}, "requestBody": body })
        }
    }
}
