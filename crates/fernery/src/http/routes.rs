//! The one table of what can be called. Router, role check, OpenAPI document and metrics labels are read from it.

use super::calls::{
    batch, blockers, bulk, candidates, captures, contract, decisions, dlq, export, ids, import, jobs,
    journal, landings, manifests, objectives, pauses, pipeline, process, ready, review, sign_ins, snoozes,
    streams, tokens, workorder_diff, workorder_log,
};
use super::parameters::{self, Accepts, Parameter};
use super::problem::{Code, Refusal, Refused};
use super::route::{BodyRule, Route, Shape, Who, either, nothing, object, of, one_or_many, question, text};
use super::wire::bare::Holds;
use fernery_client::wire::{self, Role};
use fernery_core::limits;
use fernery_core::percent::decode;
use http::Method;
use std::collections::HashMap;
use std::sync::LazyLock;

const OPERATOR: Who = Who::Roles(&[Role::Operator]);
const PRODUCERS: Who = Who::Roles(&[Role::Operator, Role::Producer]);
const READERS: Who = Who::Roles(&[Role::Operator, Role::Viewer]);
const VISITORS: Who = Who::Roles(&[Role::Operator, Role::Viewer, Role::Visitor]);
const JOB_READERS: Who = Who::Roles(&[Role::Operator, Role::Viewer, Role::Producer]);
const REPORT: &[Code] = &[Code::NotFound, Code::LeaseLost, Code::AttemptClosed];
const COMPLETE: &[Code] = &[Code::NotFound, Code::LeaseLost, Code::AttemptClosed, Code::UnfitOutput];
const ACT: &[Code] = &[Code::NotFound, Code::WrongStatus, Code::Conflict];
const DECIDE: &[Code] = &[Code::NotFound, Code::Conflict];
const APPROVE: &[Code] = &[Code::NotFound, Code::WrongStatus, Code::Changed];
const MERGE: &[Code] =
    &[Code::NotFound, Code::WrongStatus, Code::Changed, Code::Conflict, Code::NoRepository];
const PAGED: &[Code] = &[Code::BadCursor];
const FOUND: &[Code] = &[Code::NotFound];

const LIMIT: Parameter = ("limit", "Page size: 1 to 500; 50 if absent.", parameters::rows);
const RANGE: Parameter = (
    "range",
    "Also tell what happened within this time: `1h` by the minute, `24h` by 15 minutes, `7d` by 2 hours.",
    parameters::stats_range,
);
const CURSOR: Parameter = ("cursor", "`next_cursor` of the previous page.", parameters::text);

macro_rules! routes {
    ($($method:ident $path:literal, $who:expr, $summary:literal, $body:expr,
        [$($status:literal $shape:expr),+], $run:path $(, param: $param:expr)? $(, query: $query:expr)? $(, errors: $errors:expr)?
        $(, holds: $holds:expr)? $(, any_host: $any_host:literal)? $(, reports: $reports:literal)? $(, body_max: $body_max:expr)?;)+) => {
        &[$(Route {
            method: Method::$method,
            path: $path,
            who: $who,
            summary: $summary,
            param: { let _param: Accepts = parameters::artifact_id; $(let _param: Accepts = $param;)? _param },
            query: { let _query: &[Parameter] = &[]; $(let _query: &[Parameter] = $query;)? _query },
            body: $body,
            body_max: { let _max = limits::BODY_BYTES_MAX; $(let _max = $body_max;)? _max },
            answers: &[$(($status, $shape as Shape),)+],
            errors: { let _errors: &[Code] = &[]; $(let _errors = $errors;)? _errors },
            holds: { let _holds = Holds::Nothing; $(let _holds = $holds;)? _holds },
            any_host: { let _any = false; $(let _any = $any_host;)? _any },
            reports: { let _reports = false; $(let _reports = $reports;)? _reports },
            run: |call| Box::pin($run(call)),
        },)+]
    };
}

/// Every route.
pub static ROUTES: &[Route] = routes![
    POST "/internal/worker/claim", Who::Workers, "Claim a job under a lease; wait for one if there is none.",
        BodyRule::Json(of::<wire::ClaimRequest>), [200 of::<wire::ClaimResponse>], contract::claim,
        errors: &[Code::TooManyWaiting];
    POST "/internal/worker/heartbeat", Who::Workers, "Extend a lease; the answer says whether the job is to be cancelled.",
        BodyRule::Json(of::<wire::HeartbeatRequest>), [200 of::<wire::HeartbeatResponse>], contract::heartbeat,
        errors: &[Code::NotFound, Code::LeaseLost], reports: true;
    POST "/internal/worker/complete", Who::Workers, "Report success.",
        BodyRule::Json(of::<wire::CompleteRequest>), [200 of::<wire::CompleteResponse>], contract::complete,
        errors: COMPLETE, reports: true;
    POST "/internal/worker/fail", Who::Workers, "Report failure; the answer says whether the job is retried.",
        BodyRule::Json(of::<wire::FailRequest>), [200 of::<wire::FailResponse>], contract::fail,
        errors: REPORT, reports: true;
    POST "/v1/worker/claim", Who::Workers, "Claim up to `max` jobs; wait for the first if there is none.",
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
    POST "/v1/worker/release", Who::Workers, "Return unfinished jobs; this uses up no attempt.",
        BodyRule::Json(of::<wire::WorkerBatch<wire::ReleaseItem>>), [200 of::<wire::BatchResponse>], batch::release,
        reports: true;
    POST "/v1/jobs", PRODUCERS, "Enqueue one job, or an array of jobs.",
        BodyRule::Json(one_or_many::<wire::EnqueueRequest, { limits::ENQUEUE_BATCH_MAX }>),
        [201 either::<wire::EnqueuedJob, wire::EnqueueManyResponse>, 200 of::<wire::EnqueuedJob>,
         207 of::<wire::EnqueueManyResponse>], jobs::enqueue,
        errors: &[Code::Conflict, Code::ReservedStream, Code::TooManyStreams];
    GET "/v1/jobs", JOB_READERS, "List jobs: newest first; QUEUED jobs in the order in which they will be claimed.",
        BodyRule::None, [200 of::<wire::JobPage>], jobs::list,
        query: &[("status", "Only with this status.", parameters::job_status), ("stream", "Only from this stream.", parameters::stream_name), LIMIT, CURSOR],
        errors: &[Code::BadCursor];
    GET "/v1/jobs/{id}", JOB_READERS, "Read a job with its attempts.",
        BodyRule::None, [200 of::<wire::JobDetail>], jobs::read, param: parameters::job_id,
        query: &[("wait_ms", "Wait up to this long (0 to 60000 ms) for the job to end.", parameters::wait_ms)],
        errors: &[Code::BadId, Code::NotFound];
    GET "/v1/jobs/{id}/explain", JOB_READERS, "Explain why a job is not running.",
        BodyRule::None, [200 of::<wire::ExplainResponse>], jobs::explain, param: parameters::job_id,
        errors: &[Code::BadId, Code::NotFound];
    POST "/v1/jobs/{id}/cancel", OPERATOR, "Cancel a job: a queued job ends at once, a running job is asked to stop.",
        BodyRule::Optional(of::<wire::CancelRequest>), [200 of::<wire::CancelResponse>], jobs::cancel, param: parameters::job_id,
        errors: &[Code::BadId, Code::NotFound, Code::Conflict];
    POST "/v1/jobs/{id}/retry", OPERATOR, "Retry a DEAD or CANCELLED job from the beginning.",
        BodyRule::Optional(nothing), [200 of::<wire::RetryResponse>], jobs::retry, param: parameters::job_id,
        errors: &[Code::BadId, Code::NotFound, Code::Conflict];
    POST "/v1/bulk", OPERATOR, "Cancel, retry or purge all jobs that match. It goes on by itself; with `dry_run` they are only counted.",
        BodyRule::Json(of::<wire::BulkRequest>),
        [201 of::<wire::BulkView>, 200 either::<wire::BulkView, wire::BulkCount>], bulk::start, errors: &[Code::Conflict];
    GET "/v1/bulk", READERS, "List acts on all jobs that match, newest first.",
        BodyRule::None, [200 of::<wire::BulkPage>], bulk::list, query: &[LIMIT, CURSOR], errors: PAGED;
    GET "/v1/bulk/{id}", READERS, "Read how far an act on all jobs that match is.",
        BodyRule::None, [200 of::<wire::BulkView>], bulk::read, errors: FOUND;
    POST "/v1/bulk/{id}/stop", OPERATOR, "Stop an act on all jobs that match. What was done stays done; one that has ended stays as it ended.",
        BodyRule::Optional(nothing), [200 of::<wire::BulkView>], bulk::stop, errors: FOUND;
    GET "/v1/leases", READERS, "List the jobs that workers hold now, oldest job first.",
        BodyRule::None, [200 of::<wire::HeldJobPage>], jobs::held, query: &[LIMIT, CURSOR], errors: PAGED;
    GET "/v1/dlq", READERS, "List DEAD jobs, newest first.",
        BodyRule::None, [200 of::<wire::DeadLetterPage>], dlq::list,
        query: &[("stream", "Only from this stream.", parameters::stream_name), ("code", "Only with this error code.", parameters::text),
            ("before", "Only jobs that died before this time.", parameters::instant), LIMIT, CURSOR],
        errors: &[Code::BadCursor];
    GET "/v1/dlq/groups", READERS, "Group the newest 2000 DEAD jobs by stream and error code.",
        BodyRule::None, [200 of::<wire::DeadLetterGroups>], dlq::groups,
        query: &[("stream", "Only from this stream.", parameters::stream_name),
            ("range", "Also tell when they died within this time: `1h` by the minute, `24h` by 15 minutes, `7d` by 2 hours.",
            parameters::stats_range)];
    POST "/v1/dlq/redrive", OPERATOR, "Retry the matching DEAD jobs from the beginning.",
        BodyRule::Json(of::<wire::DeadLetterRequest>), [200 of::<wire::DeadLetterResponse>], dlq::redrive,
        errors: &[Code::Conflict];
    POST "/v1/dlq/purge", OPERATOR, "Delete the matching DEAD jobs.",
        BodyRule::Json(of::<wire::DeadLetterRequest>), [200 of::<wire::DeadLetterResponse>], dlq::purge,
        errors: &[Code::Conflict];
    GET "/v1/streams", READERS, "List streams with their counts, sorted by name.",
        BodyRule::None, [200 of::<wire::StreamList>], streams::list,
        query: &[("limit", "Page size: 1 to 500; if absent 10000, or 50 with `range`.", parameters::rows), CURSOR, RANGE], errors: PAGED;
    GET "/v1/streams/{name}", READERS, "Read a stream's counts. A `/` in its name is written %2F.",
        BodyRule::None, [200 of::<wire::StreamDetail>], streams::read, param: parameters::stream_name,
        query: &[RANGE], errors: &[Code::NotFound];
    PUT "/v1/streams/{name}", OPERATOR, "Set a stream: whether viewers see what its jobs hold. It need not have had a job yet.",
        BodyRule::Json(of::<wire::StreamSettings>), [200 of::<wire::StreamDetail>], streams::set, param: parameters::stream_name,
        errors: &[Code::Conflict, Code::TooManyStreams];
    POST "/v1/streams/{name}/pause", OPERATOR, "Pause a stream: nobody can claim from it.",
        BodyRule::Optional(nothing), [200 of::<wire::StreamDetail>], streams::pause, param: parameters::stream_name,
        errors: &[Code::NotFound];
    POST "/v1/streams/{name}/resume", OPERATOR, "Resume a paused stream.",
        BodyRule::Optional(nothing), [200 of::<wire::StreamDetail>], streams::resume, param: parameters::stream_name,
        errors: &[Code::NotFound];
    POST "/v1/objectives", OPERATOR, "Create an objective with status NEW. Nothing runs before it is approved.",
        BodyRule::Json(of::<wire::NewObjectiveRequest>),
        [201 of::<wire::ObjectiveView>, 200 of::<wire::ObjectiveView>], objectives::create,
        errors: &[Code::Conflict];
    GET "/v1/objectives", READERS, "List tickets, newest first.",
        BodyRule::None, [200 of::<wire::ObjectivePage>], objectives::list,
        query: &[("azolla_id", "Only from this azolla.", parameters::artifact_id), ("status", "Only with this status. CANCELLED: BLOCKED ones that an operator cancelled.", parameters::objective_status),
            ("label", "Only with this label: a `+` or `#` mark, without its sign.", parameters::text),
            ("search", "Only with all these words in title or acceptance criteria, in any case.", parameters::text),
            ("cancelled", "false: leave out cancelled ones.", parameters::switch),
            ("snoozed", "false: leave out those that are snoozed.", parameters::switch),
            ("unlanded", "true: only finished ones whose patch conflicts with its branch or did not land, the most important first, \
                without further pages.", parameters::switch),
            ("sort", "`age` if absent: newest first. `due`: the earliest due date first; `importance`: the most important first; \
                both of at most 2000 open objectives of each azolla, then of finished and cancelled ones among the newest 2000, \
                without further pages.", parameters::objective_order),
            LIMIT, CURSOR],
        errors: PAGED,
        holds: Holds::Rows("objective", "objectives");
    GET "/v1/objectives/{id}", READERS, "Read an objective with its history and with what an approval would cover.",
        BodyRule::None, [200 of::<wire::ObjectiveDetail>], objectives::read,
        query: &[("documents", "false: leave out snapshots and outputs.", parameters::switch)], errors: FOUND,
        holds: Holds::One("objective");
    PATCH "/v1/objectives/{id}", OPERATOR, "Edit an objective. A change to what the approval covers sets TODO back to NEW.",
        BodyRule::Json(of::<wire::EditObjectiveRequest>), [200 of::<wire::ObjectiveView>], objectives::edit,
        errors: ACT;
    POST "/v1/objectives/{id}/approve", OPERATOR, "Approve an objective exactly as it was read: NEW becomes TODO.",
        BodyRule::Json(of::<wire::ApproveRequest>), [200 of::<wire::DecisionResponse>], decisions::approve,
        errors: APPROVE;
    POST "/v1/objectives/{id}/block", OPERATOR, "Add a blocker to an objective.",
        BodyRule::Json(of::<wire::BlockRequest>), [200 of::<wire::ObjectiveView>], blockers::block, errors: ACT;
    POST "/v1/objectives/{id}/unblock", OPERATOR, "Resolve blockers; when none is open, the objective continues.",
        BodyRule::Json(of::<wire::UnblockRequest>), [200 of::<wire::ObjectiveView>], blockers::unblock, errors: ACT;
    POST "/v1/objectives/{id}/confirm", OPERATOR, "Confirm that a person has checked the result that passed the gates.",
        BodyRule::Json(of::<wire::ConfirmRequest>), [200 of::<wire::DecisionResponse>], decisions::confirm,
        errors: APPROVE;
    POST "/v1/objectives/{id}/done", OPERATOR, "Say that a person has done an objective: it becomes DONE, judged and confirmed. \
        If it is NEW, this approves it too.",
        BodyRule::Optional(of::<wire::DoneRequest>), [200 of::<wire::DecisionResponse>], decisions::done,
        errors: &[Code::NotFound, Code::WrongStatus, Code::Changed, Code::Conflict];
    POST "/v1/objectives/{id}/snooze", OPERATOR, "Keep an objective out of lists and pages until a later time.",
        BodyRule::Json(of::<wire::SnoozeRequest>), [200 of::<wire::ObjectiveView>], snoozes::of_objective, errors: ACT;
    POST "/v1/objectives/{id}/reopen", OPERATOR, "Reopen a finished objective: DONE becomes TODO. This approves its current content.",
        BodyRule::Json(of::<wire::ReopenRequest>), [200 of::<wire::DecisionResponse>], decisions::reopen,
        errors: APPROVE;
    POST "/v1/objectives/{id}/answer", OPERATOR, "Answer the question of an executor: the objective goes on. This approves it with the answer.",
        BodyRule::Json(of::<wire::AnswerRequest>), [200 of::<wire::DecisionResponse>], decisions::answer,
        errors: &[Code::NotFound, Code::Conflict, Code::Changed];
    POST "/v1/objectives/{id}/merge", OPERATOR, "Land the patch of a confirmed run on its base branch. The server does it by itself; read `landing`.",
        BodyRule::Json(of::<wire::LandRequest>), [200 of::<wire::DecisionResponse>], landings::merge,
        errors: MERGE;
    GET "/v1/objectives/{id}/landing", READERS, "Read where the patch of an objective stands on its way to the base branch.",
        BodyRule::None, [200 of::<wire::LandingView>], landings::read, errors: FOUND;
    POST "/v1/objectives/{id}/cancel", OPERATOR, "Cancel an objective: it becomes BLOCKED, and a run in progress is stopped.",
        BodyRule::Optional(of::<wire::NoteRequest>), [200 of::<wire::ObjectiveView>], blockers::cancel, errors: ACT;
    POST "/v1/captures", PRODUCERS, "Put one capture, or an array of captures, into the inbox. A capture starts no work.",
        BodyRule::Json(one_or_many::<wire::CaptureRequest, { limits::CAPTURES_MAX }>),
        [201 of::<wire::CaptureView>, 200 either::<wire::CaptureView, wire::CaptureManyResponse>], captures::capture,
        errors: DECIDE;
    GET "/v1/captures", READERS, "List captures, newest first.",
        BodyRule::None, [200 of::<wire::CapturePage>], captures::list, query: &[LIMIT, CURSOR], errors: PAGED,
        holds: Holds::Rows("capture_buffer", "captures");
    GET "/v1/captures/{id}", READERS, "Read a capture.",
        BodyRule::None, [200 of::<wire::CaptureView>], captures::one, errors: FOUND,
        holds: Holds::One("capture_buffer");
    GET "/v1/candidates", READERS, "List candidates: those that wait for a decision, oldest first.",
        BodyRule::None, [200 of::<wire::CandidatePage>], candidates::list,
        query: &[("status", "`WAITING` if absent; `ALL`: decided ones too, newest first.", parameters::candidate_status),
            ("azolla_id", "Only from this azolla's inbox.", parameters::artifact_id), LIMIT, CURSOR],
        errors: PAGED, holds: Holds::Rows("candidate", "candidates");
    GET "/v1/candidates/{id}", READERS, "Read a candidate with its captures.",
        BodyRule::None, [200 of::<wire::CandidateView>], candidates::read, errors: FOUND,
        holds: Holds::One("candidate");
    PATCH "/v1/candidates/{id}", OPERATOR, "Edit a candidate.",
        BodyRule::Json(of::<wire::EditCandidateRequest>), [200 of::<wire::CandidateView>], candidates::edit,
        errors: DECIDE;
    POST "/v1/candidates/{id}/promote", OPERATOR, "Turn a candidate into a NEW objective. Nothing runs before it is approved.",
        BodyRule::Json(of::<wire::PromoteRequest>),
        [201 of::<wire::PromoteResponse>, 200 of::<wire::PromoteResponse>], candidates::promote, errors: DECIDE;
    POST "/v1/candidates/{id}/discard", OPERATOR, "Discard a candidate.",
        BodyRule::Optional(of::<wire::NoteRequest>), [200 of::<wire::CandidateView>], candidates::discard,
        errors: DECIDE;
    POST "/v1/candidates/{id}/merge", OPERATOR, "Merge other candidates into this one, with their captures and texts.",
        BodyRule::Json(of::<wire::MergeRequest>), [200 of::<wire::CandidateView>], candidates::merge, errors: DECIDE;
    POST "/v1/candidates/{id}/restore", OPERATOR, "Take back that a candidate was discarded: it waits again.",
        BodyRule::Optional(of::<wire::NoteRequest>), [200 of::<wire::CandidateView>], candidates::restore,
        errors: DECIDE;
    POST "/v1/candidates/{id}/snooze", OPERATOR, "Keep a candidate out of lists and pages until a later time.",
        BodyRule::Json(of::<wire::SnoozeRequest>), [200 of::<wire::CandidateView>], snoozes::of_candidate, errors: DECIDE;
    GET "/v1/recurrences", READERS, "List the lines that are captured again and again, the next first.",
        BodyRule::None, [200 of::<wire::RecurrenceList>], snoozes::recurrences,
        query: &[("azolla_id", "The azolla with the inbox; if absent, the only one, or `task_management`.", parameters::artifact_id)],
        errors: DECIDE;
    POST "/v1/recurrences/{id}/stop", OPERATOR, "Stop a line that is captured again and again. What it brought so far stays.",
        BodyRule::Optional(of::<wire::NoteRequest>), [200 of::<wire::RecurrenceView>], snoozes::stop,
        errors: DECIDE;
    GET "/v1/events", READERS, "List events with their outcome, newest first.",
        BodyRule::None, [200 of::<wire::EventPage>], pipeline::events, query: &[LIMIT, CURSOR], errors: PAGED,
        holds: Holds::Rows("event", "events");
    GET "/v1/workorders", READERS, "List workorders, newest first.",
        BodyRule::None, [200 of::<wire::WorkorderPage>], pipeline::workorders, query: &[LIMIT, CURSOR], errors: PAGED,
        holds: Holds::Rows("workorder", "workorders");
    GET "/v1/workorders/{id}", READERS, "Read a workorder with its snapshot, its output and its run record.",
        BodyRule::None, [200 of::<wire::WorkorderDetail>], pipeline::workorder, errors: FOUND,
        holds: Holds::One("workorder");
    GET "/v1/workorders/{id}/context_snapshot", READERS, "Read a workorder's snapshot: what its executor was told.",
        BodyRule::None, [200 object], pipeline::context_snapshot, errors: FOUND, holds: Holds::One("context_snapshot");
    GET "/v1/workorders/{id}/output_bundle", READERS, "Read a workorder's output bundle: what its executor handed in.",
        BodyRule::None, [200 object], pipeline::output_bundle, errors: FOUND, holds: Holds::One("output_bundle");
    GET "/v1/workorders/{id}/log", READERS, "Read a part of the log of a workorder's executor, as printable text.",
        BodyRule::None, [200 of::<wire::WorkorderLog>], workorder_log::read,
        query: &[("from", "Byte offset: `next` of the previous part; 0 if absent.", parameters::bytes),
            ("gate", "The log of this gate instead.", parameters::artifact_id)], errors: FOUND;
    GET "/v1/workorders/{id}/diff", READERS, "Read what changed from the result of an earlier attempt at the same objective to that of this one.",
        BodyRule::None, [200 of::<wire::WorkorderDifference>], workorder_diff::read,
        query: &[("since", "The workorder of the earlier attempt.", parameters::artifact_id)],
        errors: &[Code::NotFound, Code::Conflict, Code::NoRepository];
    GET "/v1/runs", READERS, "List run records with their evidence, newest first.",
        BodyRule::None, [200 of::<wire::RunPage>], pipeline::runs, query: &[LIMIT, CURSOR], errors: PAGED,
        holds: Holds::Rows("run_record", "runs");
    GET "/v1/runs/{id}", READERS, "Read a run record with its evidence.",
        BodyRule::None, [200 object], pipeline::run, errors: FOUND,
        holds: Holds::One("run_record");
    GET "/v1/runs/{id}/replay", READERS, "Judge a stored run again from its artifacts, and compare the verdicts.",
        BodyRule::None, [200 of::<wire::ReplayResponse>], pipeline::replay, errors: FOUND;
    GET "/v1/runs/{id}/comments", READERS, "List the comments on the patch of a run, with the note for the next attempt that they make.",
        BodyRule::None, [200 of::<wire::CommentList>], review::list, errors: FOUND;
    POST "/v1/runs/{id}/comments", OPERATOR, "Comment on lines of the patch of a ticket's last run.",
        BodyRule::Json(of::<wire::CommentRequest>), [200 of::<wire::CommentView>], review::comment, errors: DECIDE;
    PATCH "/v1/comments/{id}", OPERATOR, "Change the text of one of your comments.",
        BodyRule::Json(of::<wire::EditCommentRequest>), [200 of::<wire::CommentView>], review::edit, errors: DECIDE;
    DELETE "/v1/comments/{id}", OPERATOR, "Delete a comment of yours.",
        BodyRule::None, [200 of::<wire::CommentView>], review::delete, errors: DECIDE;
    GET "/v1/runs/{id}/review", READERS, "Read how far you are with the review of a run: comments, the files that you have viewed, \
        and the attempt that you had looked at before.",
        BodyRule::None, [200 of::<wire::ReviewView>], review::read, errors: FOUND;
    POST "/v1/runs/{id}/viewed", OPERATOR, "Mark a file of a run's patch as viewed, or unmark it. The mark also counts \
        for later runs that change the file in the same way.",
        BodyRule::Json(of::<wire::ViewedRequest>), [200 of::<wire::ViewedRequest>], review::viewed, errors: DECIDE;
    POST "/v1/runs/{id}/looked", OPERATOR, "Record that you looked at a run, so that the next run can be compared with it.",
        BodyRule::Optional(nothing), [200 of::<wire::ReviewView>], review::looked, errors: FOUND;
    GET "/v1/review_time", READERS, "Estimate how long a person needs for what waits for them: runs to confirm, approvals, candidates.",
        BodyRule::None, [200 of::<wire::ReviewTime>], review::time;
    GET "/v1/pauses", READERS, "List pauses with their next actions, newest first.",
        BodyRule::None, [200 of::<wire::PausePage>], pauses::list,
        query: &[LIMIT, CURSOR, ("waiting", "true: only those that still wait for a person, of each ticket the last one.",
            parameters::switch)], errors: PAGED,
        holds: Holds::Rows("pause_state", "pauses");
    GET "/v1/claims", READERS, "List who holds which event or workorder.",
        BodyRule::None, [200 of::<wire::ClaimList>], pipeline::claims,
        holds: Holds::Rows("claim_record", "claims");
    GET "/v1/journal", READERS, "List who did what, when and why, newest first.",
        BodyRule::None, [200 of::<wire::JournalPage>], journal::list,
        query: &[LIMIT, CURSOR, ("act", "Only entries with this act.", parameters::act),
            ("subject", "Only about this: the id of a ticket, a candidate, an azolla.", parameters::text),
            ("actor", "Only by those whose name has this part.", parameters::text),
            ("since", "Only from this time on.", parameters::instant),
            ("until", "Only before this time.", parameters::instant)],
        errors: PAGED;
    GET "/v1/journal/verify", READERS, "Check the journal's chain; the answer names the first fault.",
        BodyRule::None, [200 of::<wire::JournalVerdict>], journal::verify,
        query: &[("place", "Also return the seal with this number.", parameters::place),
            ("last", "Check only this many seals at the end of the chain; entries outside the chain are not searched.",
                parameters::seals)];
    GET "/v1/azollas", READERS, "List azollas with the digests of their blueprints.",
        BodyRule::None, [200 of::<wire::AzollaList>], pipeline::azollas;
    GET "/v1/azollas/{id}", READERS, "Read an azolla: its current blueprint, and the last pass of each of its workers.",
        BodyRule::None, [200 of::<wire::AzollaDetail>], pipeline::azolla, errors: FOUND;
    POST "/v1/reload", OPERATOR, "Read the blueprint files of this process again: all of them are applied, or none.",
        BodyRule::Optional(of::<wire::ReloadRequest>), [200 of::<wire::ReloadResponse>], pipeline::reload,
        errors: &[Code::Conflict];
    POST "/v1/azollas/{id}/manifests", OPERATOR, "Request a manifest: a page that says what needs a person. \
        While a request is waiting, that request is returned.",
        BodyRule::Optional(of::<wire::ManifestRequest>), [202 of::<wire::ManifestRequestView>], manifests::request,
        errors: DECIDE;
    GET "/v1/azollas/{id}/manifests", READERS, "List an azolla's manifests, newest first.",
        BodyRule::None, [200 of::<wire::ManifestPage>], manifests::list, query: &[LIMIT, CURSOR],
        errors: &[Code::NotFound, Code::BadCursor],
        holds: Holds::Rows("session_manifest", "manifests");
    POST "/v1/azollas/{id}/query", VISITORS, "Query an azolla from another server. What its membrane does not let through is DENIED.",
        BodyRule::Json(question), [200 object], manifests::query, errors: FOUND;
    GET "/v1/azollas/{id}/queries", READERS, "List an azolla's queries to other azollas with their answers, newest first.",
        BodyRule::None, [200 of::<wire::QueryPage>], manifests::queries, query: &[LIMIT, CURSOR],
        errors: &[Code::NotFound, Code::BadCursor],
        holds: Holds::Rows("substrate_query", "queries");
    GET "/v1/queries/{id}", READERS, "Read a query between azollas with its answer.",
        BodyRule::None, [200 of::<wire::QueryView>], manifests::read_query, errors: FOUND,
        holds: Holds::One("substrate_query");
    GET "/v1/manifest_requests/{id}", READERS, "Read the state of a request for a manifest.",
        BodyRule::None, [200 of::<wire::ManifestRequestView>], manifests::requested,
        query: &[("wait_ms", "Wait up to this long (0 to 60000 ms) for its manifest.", parameters::wait_ms)],
        errors: &[Code::NotFound, Code::TooManyWaiting],
        holds: Holds::One("event");
    GET "/v1/manifests/{id}", READERS, "Read a manifest with the facts that it was made from.",
        BodyRule::None, [200 of::<wire::ManifestView>], manifests::read, errors: FOUND,
        holds: Holds::One("session_manifest");
    GET "/v1/blueprints/{id}", READERS, "Read a current or former blueprint by its digest.",
        BodyRule::None, [200 of::<wire::BlueprintDetail>], pipeline::blueprint, param: parameters::digest, errors: FOUND;
    POST "/v1/azollas/{id}/captures/release", OPERATOR, "Release imported captures to triage.",
        BodyRule::Optional(of::<wire::NoteRequest>), [200 of::<wire::ReleaseResponse>], captures::release,
        errors: DECIDE;
    GET "/v1/export/{name}", READERS, "Read a part of an export other than tickets, as files of its folder.",
        BodyRule::None, [200 of::<wire::ExportPage>], export::part, param: parameters::stream_name, query: &[LIMIT, CURSOR],
        errors: &[Code::NotFound, Code::BadCursor];
    POST "/v1/import", OPERATOR, "Import an exported folder into an instance without tickets: all of it or nothing.",
        BodyRule::Json(of::<wire::ImportRequest>),
        [201 of::<wire::ImportResponse>, 200 of::<wire::ImportResponse>], import::import,
        errors: &[Code::Conflict], body_max: limits::IMPORT_BYTES_MAX;
    GET "/v1/tokens", OPERATOR, "List all tokens, without their secrets.",
        BodyRule::None, [200 of::<wire::TokenList>], tokens::list;
    POST "/v1/tokens", OPERATOR, "Create a token. Its secret is returned only this once.",
        BodyRule::Json(of::<wire::NewTokenRequest>), [201 of::<wire::NewTokenResponse>], tokens::make,
        errors: &[Code::Conflict];
    DELETE "/v1/tokens/{id}", OPERATOR, "Revoke a token; it stops working at the next request.",
        BodyRule::None, [200 of::<wire::TokenInfo>], tokens::revoke, param: parameters::text,
        errors: &[Code::NotFound];
    POST "/v1/sign-in-links", OPERATOR, "Make a link that signs one browser in to the pages, once, within 5 minutes.",
        BodyRule::Optional(nothing), [201 of::<wire::SignInLink>], sign_ins::link;
    GET "/v1/sessions", OPERATOR, "List the browsers that are signed in to the pages, newest first.",
        BodyRule::None, [200 of::<wire::SessionList>], sign_ins::list;
    DELETE "/v1/sessions/{id}", OPERATOR, "Sign a browser out.",
        BodyRule::None, [200 of::<wire::SessionInfo>], sign_ins::end, param: parameters::text,
        errors: FOUND;
    GET "/v1/ids/{part}", JOB_READERS, "Find full ids from a part: `019a8c5e-07398f` matches ids that begin with `019a8c5e` and end with `07398f`.",
        BodyRule::None, [200 of::<wire::MeantIds>], ids::meant, param: parameters::text,
        errors: &[Code::NotFound, Code::Invalid];
    GET "/v1/processes", READERS, "List the live processes that serve this database.",
        BodyRule::None, [200 of::<wire::ProcessList>], process::list;
    GET "/v1/pollers", READERS, "List the workers that asked this process for jobs in the last 10 minutes, by name.",
        BodyRule::None, [200 of::<wire::PollerList>], process::pollers;
    GET "/v1/whoami", Who::Anybody, "Read the role and id of the caller's token.",
        BodyRule::None, [200 of::<wire::WhoAmI>], process::whoami;
    GET "/healthz", Who::Open, "Liveness: the process runs.",
        BodyRule::None, [200 of::<wire::Health>], process::healthz, any_host: true;
    GET "/readyz", Who::Open, "Readiness: a write becomes durable in time, and the server is not shutting down.",
        BodyRule::None, [200 of::<wire::Health>], ready::readyz, any_host: true;
    GET "/metrics", Who::Metrics, "Metrics for Prometheus.",
        BodyRule::None, [200 text], process::metrics;
    GET "/openapi.json", Who::Open, "This API as an OpenAPI document.",
        BodyRule::None, [200 object], process::openapi;
];

impl Route {
    /// Its place in the table.
    pub fn index(&self) -> usize {
        ROUTES.iter().position(|route| std::ptr::eq(route, self)).unwrap_or(0)
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
                let broken = || Refusal::new(Code::BadRequest, "the path is not correctly percent-encoded");
                param = decode(middle).ok_or_else(broken)?;
                on_path.push(route);
            }
        }
    }
    // A HEAD is a GET without the body.
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    if let Some(route) = on_path.iter().find(|route| route.method == *wanted) {
        return Ok((route, param));
    }
    if on_path.is_empty() && !matches!(*method, Method::TRACE | Method::CONNECT) {
        return Err(Refusal::new(Code::NotFound, "this path does not exist"));
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
            let path = route.path.replace("{id}", "x").replace("{part}", "x").replace("{name}", "a%2Fb%3Ac");
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
