//! The one table of what can be called. Router, role check, OpenAPI document and metrics labels are read from it.

use super::answer::{Call, Pending};
use super::problem::{Code, Refusal, Refused};
use super::query::decode;
use super::{
    batch, candidates, captures, contract, decisions, dlq, import, jobs, manifests, objectives, pipeline,
    process, streams, tokens, workorder_log,
};
use fernery_client::wire::{self, Role};
use fernery_core::limits;
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Writes a type's schema.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Everybody, without a token.
    Open,
    /// Every token.
    Anybody,
    /// Workers and operators; everybody on loopback with `--worker-auth none`.
    Workers,
    /// Everybody on loopback; elsewhere viewers and operators.
    Metrics,
    /// These roles.
    Roles(&'static [Role]),
}

impl Who {
    /// Whether a token of this role may.
    pub fn allows(self, role: Role) -> bool {
        match self {
            Self::Open | Self::Anybody => true,
            Self::Workers => matches!(role, Role::Operator | Role::Worker),
            Self::Metrics => matches!(role, Role::Operator | Role::Viewer),
            Self::Roles(roles) => roles.contains(&role),
        }
    }
}

/// Whether a route has a body.
#[derive(Clone, Copy, Debug)]
pub enum BodyRule {
    /// It has none; one that is sent is not read.
    None,
    /// JSON, or nothing at all.
    Optional(Shape),
    /// JSON.
    Json(Shape),
}

/// One row of the table.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path; `{…}` stands for one segment.
    pub path: &'static str,
    /// Who may call it.
    pub who: Who,
    /// One line for people.
    pub summary: &'static str,
    /// The query parameters it knows, and what they mean.
    pub query: &'static [(&'static str, &'static str)],
    /// What it reads.
    pub body: BodyRule,
    /// Bytes of that at most.
    pub body_max: usize,
    /// What it answers when it does not refuse.
    pub answers: &'static [(u16, Shape)],
    /// How it may refuse, beyond what every route may.
    pub errors: &'static [Code],
    /// Whether it answers under every Host name.
    pub any_host: bool,
    /// Whether a holder speaks about its job here: that is never limited in rate.
    pub reports: bool,
    /// The call itself.
    pub run: fn(Call) -> Pending,
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn text(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "string" })
}

fn object(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object" })
}

/// The artifact `substrate_query`.
fn question(_: &mut SchemaGenerator) -> Schema {
    const ID: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": false,
        "required": ["query_id", "source_azolla_id", "target_azolla_id", "artifact_type", "filter", "created_at"],
        "properties": {
            "query_id": { "type": "string", "pattern": ID },
            "source_azolla_id": { "type": "string", "pattern": ID },
            "target_azolla_id": { "type": "string", "pattern": ID, "description": "The azolla that the path names." },
            "artifact_type": { "type": "string", "enum": ["pause_state", "objective", "blocker_ref"] },
            "filter": { "type": "object" },
            "created_at": { "type": "string", "format": "date-time" }
        }
    })
}

/// A body that has no fields.
fn nothing(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object", "additionalProperties": false })
}

fn one_or_many<T: JsonSchema, const MOST: usize>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    schemars::json_schema!({
        "oneOf": [one, {
            "type": "array", "minItems": 1, "maxItems": MOST, "items": one
        }]
    })
}

fn either<A: JsonSchema, B: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let (a, b) = (generator.subschema_for::<A>(), generator.subschema_for::<B>());
    schemars::json_schema!({ "anyOf": [a, b] })
}

const OPERATOR: Who = Who::Roles(&[Role::Operator]);
const PRODUCERS: Who = Who::Roles(&[Role::Operator, Role::Producer]);
const READERS: Who = Who::Roles(&[Role::Operator, Role::Viewer]);
const JOB_READERS: Who = Who::Roles(&[Role::Operator, Role::Viewer, Role::Producer]);
const REPORT: &[Code] = &[Code::NotFound, Code::LeaseLost, Code::AttemptClosed];
const COMPLETE: &[Code] = &[Code::NotFound, Code::LeaseLost, Code::AttemptClosed, Code::UnfitOutput];
const ACT: &[Code] = &[Code::NotFound, Code::WrongStatus, Code::Conflict];
const DECIDE: &[Code] = &[Code::NotFound, Code::Conflict];
const APPROVE: &[Code] = &[Code::NotFound, Code::WrongStatus, Code::Changed];
const PAGED: &[Code] = &[Code::BadCursor];
const FOUND: &[Code] = &[Code::NotFound];

const LIMIT: (&str, &str) = ("limit", "Rows of the page: 1 to 500, 50 if absent.");
const CURSOR: (&str, &str) = ("cursor", "`next_cursor` of the page before.");

macro_rules! routes {
    ($($method:ident $path:literal, $who:expr, $summary:literal, $body:expr,
        [$($status:literal $shape:expr),+], $run:path $(, query: $query:expr)? $(, errors: $errors:expr)?
        $(, any_host: $any_host:literal)? $(, reports: $reports:literal)? $(, body_max: $body_max:expr)?;)+) => {
        &[$(Route {
            method: Method::$method,
            path: $path,
            who: $who,
            summary: $summary,
            query: { let _query: &[(&str, &str)] = &[]; $(let _query = $query;)? _query },
            body: $body,
            body_max: { let _max = limits::BODY_BYTES_MAX; $(let _max = $body_max;)? _max },
            answers: &[$(($status, $shape as Shape),)+],
            errors: { let _errors: &[Code] = &[]; $(let _errors = $errors;)? _errors },
            any_host: { let _any = false; $(let _any = $any_host;)? _any },
            reports: { let _reports = false; $(let _reports = $reports;)? _reports },
            run: |call| Box::pin($run(call)),
        },)+]
    };
}

/// Every route.
pub static ROUTES: &[Route] = routes![
    POST "/internal/worker/claim", Who::Workers, "Take a job under a lease, waiting for one if there is none.",
        BodyRule::Json(of::<wire::ClaimRequest>), [200 of::<wire::ClaimResponse>], contract::claim,
        errors: &[Code::TooManyWaiting];
    POST "/internal/worker/heartbeat", Who::Workers, "Extend a lease, and hear whether the job is to be cancelled.",
        BodyRule::Json(of::<wire::HeartbeatRequest>), [200 of::<wire::HeartbeatResponse>], contract::heartbeat,
        errors: &[Code::NotFound, Code::LeaseLost], reports: true;
    POST "/internal/worker/complete", Who::Workers, "Report success.",
        BodyRule::Json(of::<wire::CompleteRequest>), [200 of::<wire::CompleteResponse>], contract::complete,
        errors: COMPLETE, reports: true;
    POST "/internal/worker/fail", Who::Workers, "Report failure; the answer says whether it is tried again.",
        BodyRule::Json(of::<wire::FailRequest>), [200 of::<wire::FailResponse>], contract::fail,
        errors: REPORT, reports: true;
    POST "/v1/worker/claim", Who::Workers, "Take up to `max` jobs, waiting for the first if there is none.",
        BodyRule::Json(of::<wire::ClaimManyRequest>), [200 of::<wire::ClaimManyResponse>], batch::claim,
        errors: &[Code::TooManyWaiting];
    POST "/v1/worker/heartbeat", Who::Workers, "Extend many leases.",
        BodyRule::Json(of::<wire::WorkerBatch<wire::HeartbeatItem>>), [200 of::<wire::BatchResponse>], batch::heartbeat,
        reports: true;
    POST "/v1/worker/complete", Who::Workers, "Report many successes.",
        BodyRule::Json(of::<wire::WorkerBatch<wire::CompleteItem>>), [200 of::<wire::BatchResponse>], batch::complete,
        reports: true;
    POST "/v1/worker/fail", Who::Workers, "Report many failures.",
        BodyRule::Json(of::<wire::WorkerBatch<wire::FailItem>>), [200 of::<wire::BatchResponse>], batch::fail,
        reports: true;
    POST "/v1/worker/release", Who::Workers, "Hand jobs back unfinished; it costs them no attempt.",
        BodyRule::Json(of::<wire::WorkerBatch<wire::ReleaseItem>>), [200 of::<wire::BatchResponse>], batch::release,
        reports: true;
    POST "/v1/jobs", PRODUCERS, "Enqueue a job, or an array of them.",
        BodyRule::Json(one_or_many::<wire::EnqueueRequest, { limits::ENQUEUE_BATCH_MAX }>),
        [201 either::<wire::EnqueuedJob, wire::EnqueueManyResponse>, 200 of::<wire::EnqueuedJob>,
         207 of::<wire::EnqueueManyResponse>], jobs::enqueue,
        errors: &[Code::Conflict, Code::ReservedStream];
    GET "/v1/jobs", JOB_READERS, "List jobs: newest first, QUEUED ones in the order of their turn.",
        BodyRule::None, [200 of::<wire::JobPage>], jobs::list,
        query: &[("status", "Only in this state."), ("stream", "Only of this stream."), LIMIT, CURSOR],
        errors: &[Code::BadCursor];
    GET "/v1/jobs/{id}", JOB_READERS, "Read a job with its attempts.",
        BodyRule::None, [200 of::<wire::JobDetail>], jobs::read,
        query: &[("wait_ms", "Wait this long for its end: 0 to 60000.")],
        errors: &[Code::BadId, Code::NotFound];
    GET "/v1/jobs/{id}/explain", JOB_READERS, "Say why a job does not run.",
        BodyRule::None, [200 of::<wire::ExplainResponse>], jobs::explain,
        errors: &[Code::BadId, Code::NotFound];
    POST "/v1/jobs/{id}/cancel", OPERATOR, "End a job that waits; ask for the end of one that runs.",
        BodyRule::Optional(of::<wire::CancelRequest>), [200 of::<wire::CancelResponse>], jobs::cancel,
        errors: &[Code::BadId, Code::NotFound, Code::Conflict];
    POST "/v1/jobs/{id}/retry", OPERATOR, "Start a DEAD or CANCELLED job over.",
        BodyRule::Optional(nothing), [200 of::<wire::RetryResponse>], jobs::retry,
        errors: &[Code::BadId, Code::NotFound, Code::Conflict];
    GET "/v1/dlq", READERS, "List DEAD jobs, newest first.",
        BodyRule::None, [200 of::<wire::DeadLetterPage>], dlq::list,
        query: &[("stream", "Only of this stream."), ("code", "Only with this error code."),
            ("before", "Only buried before this instant."), LIMIT, CURSOR],
        errors: &[Code::BadCursor];
    POST "/v1/dlq/redrive", OPERATOR, "Start the DEAD jobs that match over.",
        BodyRule::Json(of::<wire::DeadLetterRequest>), [200 of::<wire::DeadLetterResponse>], dlq::redrive,
        errors: &[Code::Conflict];
    POST "/v1/dlq/purge", OPERATOR, "Delete the DEAD jobs that match.",
        BodyRule::Json(of::<wire::DeadLetterRequest>), [200 of::<wire::DeadLetterResponse>], dlq::purge,
        errors: &[Code::Conflict];
    GET "/v1/streams", READERS, "List all streams with their counts.",
        BodyRule::None, [200 of::<wire::StreamList>], streams::list;
    GET "/v1/streams/{name}", READERS, "Read a stream's counts. A `/` in its name is written %2F.",
        BodyRule::None, [200 of::<wire::StreamDetail>], streams::read,
        errors: &[Code::NotFound];
    POST "/v1/streams/{name}/pause", OPERATOR, "Let nobody claim from a stream.",
        BodyRule::Optional(nothing), [200 of::<wire::StreamDetail>], streams::pause,
        errors: &[Code::NotFound];
    POST "/v1/streams/{name}/resume", OPERATOR, "Allow claims from a stream again.",
        BodyRule::Optional(nothing), [200 of::<wire::StreamDetail>], streams::resume,
        errors: &[Code::NotFound];
    POST "/v1/objectives", OPERATOR, "Write an objective down: NEW. Nothing runs before it is approved.",
        BodyRule::Json(of::<wire::NewObjectiveRequest>),
        [201 of::<wire::ObjectiveView>, 200 of::<wire::ObjectiveView>], objectives::create,
        errors: &[Code::Conflict];
    GET "/v1/objectives", READERS, "List objectives that are tickets, newest first.",
        BodyRule::None, [200 of::<wire::ObjectivePage>], objectives::list,
        query: &[("azolla_id", "Only of this azolla."), ("status", "Only in this state."), LIMIT, CURSOR],
        errors: PAGED;
    GET "/v1/objectives/{id}", READERS, "Read an objective, what an approval would cover, and all that came of it.",
        BodyRule::None, [200 of::<wire::ObjectiveDetail>], objectives::read,
        query: &[("documents", "false: without what executors were told and what came out.")], errors: FOUND;
    PATCH "/v1/objectives/{id}", OPERATOR, "Change parts of an objective. What an approval covers puts TODO back to NEW.",
        BodyRule::Json(of::<wire::EditObjectiveRequest>), [200 of::<wire::ObjectiveView>], objectives::edit,
        errors: ACT;
    POST "/v1/objectives/{id}/approve", OPERATOR, "Approve exactly what was read: NEW becomes TODO.",
        BodyRule::Optional(of::<wire::ApproveRequest>), [200 of::<wire::DecisionResponse>], decisions::approve,
        errors: APPROVE;
    POST "/v1/objectives/{id}/block", OPERATOR, "Put something in an objective's way.",
        BodyRule::Json(of::<wire::BlockRequest>), [200 of::<wire::ObjectiveView>], decisions::block, errors: ACT;
    POST "/v1/objectives/{id}/unblock", OPERATOR, "Take blockers away; once none is open it goes on.",
        BodyRule::Json(of::<wire::UnblockRequest>), [200 of::<wire::ObjectiveView>], decisions::unblock, errors: ACT;
    POST "/v1/objectives/{id}/confirm", OPERATOR, "Say that a person has looked at what the gates passed.",
        BodyRule::Json(of::<wire::ConfirmRequest>), [200 of::<wire::DecisionResponse>], decisions::confirm,
        errors: APPROVE;
    POST "/v1/objectives/{id}/reopen", OPERATOR, "Want a finished objective done again: an approval of what is there.",
        BodyRule::Json(of::<wire::ReopenRequest>), [200 of::<wire::DecisionResponse>], decisions::reopen,
        errors: APPROVE;
    POST "/v1/objectives/{id}/cancel", OPERATOR, "Not want an objective any more: BLOCKED, and its run comes to its end.",
        BodyRule::Optional(of::<wire::NoteRequest>), [200 of::<wire::ObjectiveView>], decisions::cancel, errors: ACT;
    POST "/v1/captures", PRODUCERS, "Throw something into the inbox, or an array of it. By itself it starts nothing.",
        BodyRule::Json(one_or_many::<wire::CaptureRequest, { limits::CAPTURES_MAX }>),
        [201 of::<wire::CaptureView>, 200 either::<wire::CaptureView, wire::CaptureManyResponse>], captures::capture,
        errors: DECIDE;
    GET "/v1/captures", READERS, "List captures, newest first.",
        BodyRule::None, [200 of::<wire::CapturePage>], captures::list, query: &[LIMIT, CURSOR], errors: PAGED;
    GET "/v1/captures/{id}", READERS, "Read a capture as it came.",
        BodyRule::None, [200 of::<wire::CaptureView>], captures::one, errors: FOUND;
    GET "/v1/candidates", READERS, "List what triage made of captures: those that wait for a person, oldest first.",
        BodyRule::None, [200 of::<wire::CandidatePage>], candidates::list,
        query: &[("status", "`WAITING` if absent; `ALL`: also those that are decided about, newest first."),
            ("azolla_id", "Only of this azolla's inbox."), LIMIT, CURSOR],
        errors: PAGED;
    GET "/v1/candidates/{id}", READERS, "Read a candidate with the captures that it was made of.",
        BodyRule::None, [200 of::<wire::CandidateView>], candidates::read, errors: FOUND;
    PATCH "/v1/candidates/{id}", OPERATOR, "Change parts of what a candidate would become.",
        BodyRule::Json(of::<wire::EditCandidateRequest>), [200 of::<wire::CandidateView>], candidates::edit,
        errors: DECIDE;
    POST "/v1/candidates/{id}/promote", OPERATOR, "Make a NEW objective of a candidate. Nothing runs before it is approved.",
        BodyRule::Json(of::<wire::PromoteRequest>),
        [201 of::<wire::PromoteResponse>, 200 of::<wire::PromoteResponse>], candidates::promote, errors: DECIDE;
    POST "/v1/candidates/{id}/discard", OPERATOR, "Not want a candidate.",
        BodyRule::Optional(of::<wire::NoteRequest>), [200 of::<wire::CandidateView>], candidates::discard,
        errors: DECIDE;
    POST "/v1/candidates/{id}/merge", OPERATOR, "Put other candidates into this one, with their captures and words.",
        BodyRule::Json(of::<wire::MergeRequest>), [200 of::<wire::CandidateView>], candidates::merge, errors: DECIDE;
    GET "/v1/events", READERS, "List events, newest first, with what became of them.",
        BodyRule::None, [200 of::<wire::EventPage>], pipeline::events, query: &[LIMIT, CURSOR], errors: PAGED;
    GET "/v1/workorders", READERS, "List workorders, newest first.",
        BodyRule::None, [200 of::<wire::WorkorderPage>], pipeline::workorders, query: &[LIMIT, CURSOR], errors: PAGED;
    GET "/v1/workorders/{id}", READERS, "Read a workorder with its snapshot, its output and its run record.",
        BodyRule::None, [200 of::<wire::WorkorderDetail>], pipeline::workorder, errors: FOUND;
    GET "/v1/workorders/{id}/log", READERS, "Read a part of what a workorder's executor has written, as text to be shown.",
        BodyRule::None, [200 of::<wire::WorkorderLog>], workorder_log::read,
        query: &[("from", "Bytes of the log to pass over: `next` of the part before; 0 if absent.")], errors: FOUND;
    GET "/v1/runs", READERS, "List run records with their evidence, newest first.",
        BodyRule::None, [200 of::<wire::RunPage>], pipeline::runs, query: &[LIMIT, CURSOR], errors: PAGED;
    GET "/v1/runs/{id}", READERS, "Read a run record with its evidence.",
        BodyRule::None, [200 object], pipeline::run, errors: FOUND;
    GET "/v1/runs/{id}/replay", READERS, "Judge a stored run again from its artifacts.",
        BodyRule::None, [200 of::<wire::ReplayResponse>], pipeline::replay, errors: FOUND;
    GET "/v1/pauses", READERS, "List pauses with what to do next, newest first.",
        BodyRule::None, [200 of::<wire::PausePage>], pipeline::pauses, query: &[LIMIT, CURSOR], errors: PAGED;
    GET "/v1/claims", READERS, "List who holds which event or workorder.",
        BodyRule::None, [200 of::<wire::ClaimList>], pipeline::claims;
    GET "/v1/journal", READERS, "List who did what, when and why, newest first.",
        BodyRule::None, [200 of::<wire::JournalPage>], pipeline::journal_page, query: &[LIMIT, CURSOR], errors: PAGED;
    GET "/v1/journal/verify", READERS, "Walk the journal's chain and name its first fault.",
        BodyRule::None, [200 of::<wire::JournalVerdict>], pipeline::verify,
        query: &[("place", "Also say which seal stands at this place.")];
    GET "/v1/azollas", READERS, "List azollas with the digests of their blueprints.",
        BodyRule::None, [200 of::<wire::AzollaList>], pipeline::azollas;
    GET "/v1/azollas/{id}", READERS, "Read an azolla: its blueprint in force, and the last pass of each of its workers.",
        BodyRule::None, [200 of::<wire::AzollaDetail>], pipeline::azolla, errors: FOUND;
    POST "/v1/azollas/{id}/manifests", OPERATOR, "Ask for a page of what needs a person. While a request waits, that one is it.",
        BodyRule::Optional(of::<wire::ManifestRequest>), [202 of::<wire::ManifestRequestView>], manifests::request,
        errors: DECIDE;
    GET "/v1/azollas/{id}/manifests", READERS, "List an azolla's manifests, newest first.",
        BodyRule::None, [200 of::<wire::ManifestPage>], manifests::list, query: &[LIMIT, CURSOR],
        errors: &[Code::NotFound, Code::BadCursor];
    POST "/v1/azollas/{id}/query", READERS, "Ask an azolla as one of another instance; what its membrane keeps is DENIED.",
        BodyRule::Json(question), [200 object], manifests::query, errors: FOUND;
    GET "/v1/manifest_requests/{id}", READERS, "Read where a request for a manifest stands; `resource_id` is its id.",
        BodyRule::None, [200 of::<wire::ManifestRequestView>], manifests::requested,
        query: &[("wait_ms", "Wait this long for its manifest: 0 to 60000.")],
        errors: &[Code::NotFound, Code::TooManyWaiting];
    GET "/v1/manifests/{id}", READERS, "Read a manifest with what it was made of.",
        BodyRule::None, [200 of::<wire::ManifestView>], manifests::read, errors: FOUND;
    GET "/v1/blueprints/{id}", READERS, "Read a blueprint that is or was in force, by its digest.",
        BodyRule::None, [200 of::<wire::BlueprintDetail>], pipeline::blueprint, errors: FOUND;
    POST "/v1/import", OPERATOR, "Bring an exported folder into an instance without objectives: all of it or nothing.",
        BodyRule::Json(of::<wire::ImportRequest>),
        [201 of::<wire::ImportResponse>, 200 of::<wire::ImportResponse>], import::import,
        errors: &[Code::Conflict], body_max: limits::IMPORT_BYTES_MAX;
    GET "/v1/tokens", OPERATOR, "List all tokens, without their secrets.",
        BodyRule::None, [200 of::<wire::TokenList>], tokens::list;
    POST "/v1/tokens", OPERATOR, "Make a token. Its secret is shown once.",
        BodyRule::Json(of::<wire::NewTokenRequest>), [201 of::<wire::NewTokenResponse>], tokens::make;
    DELETE "/v1/tokens/{id}", OPERATOR, "Revoke a token; it stops working at the next request.",
        BodyRule::None, [200 of::<wire::TokenInfo>], tokens::revoke,
        errors: &[Code::NotFound];
    GET "/v1/processes", READERS, "List the processes that serve this database and are alive.",
        BodyRule::None, [200 of::<wire::ProcessList>], process::list;
    GET "/v1/whoami", Who::Anybody, "Say whose token this is.",
        BodyRule::None, [200 of::<wire::WhoAmI>], process::whoami;
    GET "/healthz", Who::Open, "The process runs.",
        BodyRule::None, [200 of::<wire::Health>], process::healthz, any_host: true;
    GET "/readyz", Who::Open, "The database answers and the server is not going down.",
        BodyRule::None, [200 of::<wire::Health>], process::readyz, any_host: true;
    GET "/metrics", Who::Metrics, "Figures for Prometheus.",
        BodyRule::None, [200 text], process::metrics;
    GET "/openapi.json", Who::Open, "This interface as an OpenAPI document.",
        BodyRule::None, [200 object], process::openapi;
];

impl Route {
    /// Its place in the table.
    pub fn index(&self) -> usize {
        ROUTES.iter().position(|route| std::ptr::eq(route, self)).unwrap_or(0)
    }

    /// The segments before and after the variable one.
    fn around(&self) -> Option<(&'static str, &'static str)> {
        let (before, rest) = self.path.split_once('{')?;
        Some((before, rest.split_once('}')?.1))
    }
}

/// Paths without a variable part, each with the rows of its methods.
static FIXED: LazyLock<HashMap<&'static str, Vec<&'static Route>>> = LazyLock::new(|| {
    let mut fixed: HashMap<_, Vec<_>> = HashMap::new();
    for route in ROUTES.iter().filter(|route| route.around().is_none()) {
        fixed.entry(route.path).or_default().push(route);
    }
    fixed
});

/// Finds the row for a request, and the variable part of its path.
pub fn find(method: &Method, path: &str) -> Result<(&'static Route, String), Refused> {
    let mut param = String::new();
    let mut on_path: Vec<&'static Route> = Vec::new();
    match FIXED.get(path) {
        Some(routes) => {
            if let [route] = routes.as_slice()
                && route.method == *method
            {
                return Ok((route, param));
            }
            on_path.clone_from(routes);
        }
        None => {
            for route in ROUTES {
                let Some((before, after)) = route.around() else { continue };
                let middle = path.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                let Some(middle) = middle.filter(|middle| !middle.contains('/')) else { continue };
                let broken = || Refusal::new(Code::BadRequest, "the path is not well encoded");
                param = decode(middle, false).ok_or_else(broken)?;
                on_path.push(route);
            }
        }
    }
    // A HEAD is a GET whose body stays here.
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    if let Some(route) = on_path.iter().find(|route| route.method == *wanted) {
        return Ok((route, param));
    }
    if on_path.is_empty() && !matches!(*method, Method::TRACE | Method::CONNECT) {
        return Err(Refusal::new(Code::NotFound, "there is nothing at this path"));
    }
    let mut allow: Vec<&str> = on_path.iter().map(|route| route.method.as_str()).collect();
    if allow.contains(&"GET") {
        allow.push("HEAD");
    }
    let mut refused = Refusal::new(Code::MethodNotAllowed, Code::MethodNotAllowed.title());
    refused.allow = Some(allow.join(", "));
    Err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: Method, path: &str) -> Result<(&'static str, String), (Code, Option<String>)> {
        find(&method, path)
            .map(|(route, param)| (route.path, param))
            .map_err(|refused| (refused.code, refused.allow))
    }

    #[test]
    fn every_row_is_found_under_its_own_path() {
        for route in ROUTES {
            let path = route.path.replace("{id}", "x").replace("{name}", "a%2Fb%3Ac");
            let (at, param) = found(route.method.clone(), &path).unwrap();
            assert_eq!(at, route.path);
            assert!(["", "x", "a/b:c"].contains(&param.as_str()));
        }
    }

    #[test]
    fn a_wrong_method_is_told_the_right_ones() {
        let allow = |text: &str| Err((Code::MethodNotAllowed, Some(text.to_string())));
        assert_eq!(found(Method::PUT, "/v1/jobs"), allow("POST, GET, HEAD"));
        assert_eq!(found(Method::GET, "/internal/worker/claim"), allow("POST"));
        assert_eq!(found(Method::OPTIONS, "/v1/tokens/x"), allow("DELETE"));
        assert_eq!(found(Method::TRACE, "/nowhere"), allow(""));
        assert_eq!(found(Method::GET, "/nowhere").unwrap_err().0, Code::NotFound);
        assert_eq!(found(Method::GET, "/v1/streams/a/b").unwrap_err().0, Code::NotFound);
        assert_eq!(found(Method::GET, "/v1/streams/a/pause"), allow("POST"));
    }
}
