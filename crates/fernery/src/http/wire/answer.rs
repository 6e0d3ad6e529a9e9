//! A request's way from its head to its answer.
//!
//! In this order: sizes and framing, the route, the site that sent it, the caller, the role and the rate limit, the
//! body, the call itself. Early refusals do not read the body. While a call runs, it keeps only what it needs of the
//! request: ten thousand claims may wait at once.

use super::bare::BARE;
use super::body::{Weight, read_body};
use super::guards;
use super::json;
use super::paced::{HEAD_BYTES_KEPT, Progress};
use super::query::Query;
use crate::config::WorkerAuth;
use crate::http::Server;
use crate::http::access::auth::{Caller, token_needed};
use crate::http::access::repeats::LINES;
use crate::http::pages;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::route::{Route, Who};
use crate::http::routes;
use bytes::Bytes;
use fernery_client::wire::Role;
use fernery_core::limits;
use fernery_engine::supervise::caught;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use serde::Serialize;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tracing::{error, warn};

/// The parts of a request that a call gets.
#[derive(Debug)]
pub struct Call {
    /// What all requests share.
    pub server: Arc<Server>,
    /// Who calls.
    pub caller: Caller,
    /// The variable part of the path, decoded.
    pub param: String,
    /// The query, all parameters known.
    pub query: Query,
    /// The body, unread.
    pub body: Bytes,
    /// Counts a big body while the call lives.
    pub weight: Option<Weight>,
}

impl Call {
    /// Counts this call against the limit of what may be in the store at once.
    pub fn writing(&self) -> Result<Weight, Refused> {
        Weight::take(&self.server, |server| &server.writing, 1, self.server.settings.writing_max)
            .ok_or_else(|| Refusal::new(Code::Busy, Code::Busy.title()))
    }

    /// Counts this call against the limit of what may wait at once.
    pub fn waiting(&self) -> Result<Weight, Refused> {
        Weight::take(&self.server, |server| &server.waiting, 1, self.server.settings.waiting_max)
            .ok_or_else(|| Refusal::new(Code::TooManyWaiting, Code::TooManyWaiting.title()))
    }

    /// How many rows a page has.
    pub fn page_rows(&self) -> Result<usize, Refused> {
        let asked = self.query.number("limit", 1..=u64::from(limits::PAGE_ROWS_MAX))?;
        Ok(asked.unwrap_or(u64::from(limits::PAGE_ROWS_DEFAULT)) as usize)
    }

    /// Refuses a body with fields on a route that takes none.
    pub fn no_fields(&self) -> Result<(), Refused> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        if self.body.is_empty() { Ok(()) } else { json::read::<Nothing>(&self.body).map(drop) }
    }
}

/// What a call answers.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// What the body is.
    pub content_type: &'static str,
    pub body: Bytes,
}

/// The content type of nearly everything.
pub const JSON: &str = "application/json";

impl Reply {
    pub fn json(status: u16, value: &impl Serialize) -> Result<Self, Refused> {
        let body = serde_json::to_vec(value).map_err(|error| {
            error!(%error, "could not serialize a response");
            Refusal::new(Code::Internal, Code::Internal.title())
        })?;
        Ok(Self { status, content_type: JSON, body: body.into() })
    }
}

/// What every call returns.
pub type Replied = Result<Reply, Refused>;

/// A running call; boxed, so that a connection is no bigger than the call it waits for.
pub type Pending = Pin<Box<dyn Future<Output = Replied> + Send>>;

/// Answers one request, whatever happens.
pub async fn answer(
    server: Arc<Server>,
    progress: Arc<Progress>,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let seen = progress.serving();
    let framing = guards::framing(request.headers(), seen.head);
    if seen.pipelined {
        // A pipelined request: yield first, so that other connections get their turn.
        tokio::task::yield_now().await;
    }
    // The end of a misframed request is ambiguous, so the bytes after it must not be read as another request. A large
    // head would leave a large buffer with an idle connection.
    let last = framing.is_err() || seen.head.is_some_and(|head| head.bytes > HEAD_BYTES_KEPT);
    let mut response = match pages::wanted(&request) {
        Some(asked) => pages::answer(server, progress, request, framing, asked).await,
        None => from_table(server, progress, request, framing).await,
    };
    if last {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Answers a call of the API.
async fn from_table(
    server: Arc<Server>,
    progress: Arc<Progress>,
    request: Request<Incoming>,
    framing: Result<(), Refused>,
) -> Response<AnswerBody> {
    let route = routes::find(request.method(), request.uri().path());
    let known = route.as_ref().ok().map(|(route, _)| *route);
    let worker = known.is_some_and(|route| route.who == Who::Workers);
    let metrics = server.clone();
    // A bug in a call costs one answer and not the connection's task.
    let call = Box::pin(handle(server, &progress, request, framing, route));
    let replied = caught(call).await.unwrap_or_else(|_| {
        error!("a request handler panicked");
        Err(Refusal::new(Code::Internal, Code::Internal.title()))
    });
    let status = replied.as_ref().map_or_else(|refused| refused.code.status(), |reply| reply.status);
    metrics.metrics.answered(known.map(Route::index), status);
    respond(replied, worker, progress)
}

/// A call of the API from inside this process, for a page: the same route, the same check of the role, the same answer.
pub(in crate::http) async fn inside(
    server: &Arc<Server>,
    caller: &Caller,
    (method, path, query): (&Method, &str, &str),
    body: Bytes,
) -> Replied {
    let (route, param) = routes::find(method, path)?;
    permit(server, route, caller)?;
    let known: Vec<&str> = route.query.iter().map(|(name, ..)| *name).collect();
    let query = Query::read(Some(query), &known)?;
    if body.len() > route.body_max {
        return Err(Refusal::new(Code::TooLarge, format!("a body has at most {} bytes", route.body_max)));
    }
    let call = Call { server: server.clone(), caller: caller.clone(), param, query, body, weight: None };
    (route.run)(call).await
}

async fn handle(
    server: Arc<Server>,
    progress: &Progress,
    request: Request<Incoming>,
    framing: Result<(), Refused>,
    route: Result<(&'static Route, String), Refused>,
) -> Replied {
    let (parts, incoming) = request.into_parts();
    let admitted = match framing {
        Ok(()) => admit(&server, &parts, route).await,
        Err(refused) => Err(refused),
    };
    let (route, param, caller, query) = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => {
            if !incoming.is_end_stream() {
                progress.leave_unread();
            }
            return Err(refused);
        }
    };
    let (body, weight) = match read_body(&server, route, &parts.headers, incoming).await {
        Ok(read) => read,
        Err(refused) => {
            progress.leave_unread();
            return Err(refused);
        }
    };
    // The headers keep the connection's read buffer alive; a claim may wait for long.
    drop(parts);
    let bare = query.parsed::<bool>(BARE)?.unwrap_or(false);
    let call = Call { server, caller, param, query, body, weight };
    let reply = (route.run)(call).await?;
    if bare { route.holds.bare(reply) } else { Ok(reply) }
}

async fn admit(
    server: &Server,
    parts: &Parts,
    route: Result<(&'static Route, String), Refused>,
) -> Result<(&'static Route, String, Caller, Query), Refused> {
    guards::sizes(parts)?;
    guards::no_token_in_query(parts.uri.query())?;
    let (route, param) = route?;
    let nobody = Caller(None);
    if !route.any_host {
        server.hosts.check(parts).map_err(|refused| logged(refused, route, &nobody))?;
    }
    guards::same_site(parts).map_err(|refused| logged(refused, route, &nobody))?;
    let caller = match route.who {
        Who::Open => nobody,
        _ => {
            let caller = server.tokens.caller(server.engine(), &parts.headers).await;
            caller.map_err(|refused| logged(refused, route, &nobody))?
        }
    };
    let permitted = permit(server, route, &caller).and_then(|()| server.rate.admit(route, &caller));
    permitted.map_err(|refused| logged(refused, route, &caller))?;
    let bare = route.holds.artifact().map(|_| BARE);
    let known: Vec<&str> = route.query.iter().map(|(name, ..)| *name).chain(bare).collect();
    let query = Query::read(parts.uri.query(), &known)?;
    Ok((route, param, caller, query))
}

/// Logs a refusal, but not each of many that are alike.
fn logged(refused: Refused, route: &Route, caller: &Caller) -> Refused {
    let token_id = caller.0.as_ref().map_or("", |token| token.row.token_id.as_str());
    let code = refused.code.as_str();
    // These are logged where they are found.
    let own_line = refused.code == Code::Forbidden || refused.code.status() >= 500;
    // Without a token, refusals are grouped by route.
    let alike = if token_id.is_empty() { route.path } else { token_id };
    if !own_line && LINES.is_first(code, alike) {
        warn!(code, token_id, route = route.path, why = refused.detail, "refused");
    }
    refused
}

/// Whether this caller may call this route.
fn permit(server: &Server, route: &Route, caller: &Caller) -> Result<(), Refused> {
    let role = caller.0.as_ref().map(|token| token.role);
    let without_token = match route.who {
        Who::Open => true,
        Who::Workers => server.settings.worker_auth == WorkerAuth::None,
        Who::Metrics => server.settings.opened_by().is_none(),
        Who::Anybody | Who::Roles(_) => false,
    };
    match role {
        None if without_token => Ok(()),
        None => Err(token_needed()),
        Some(role) if route.who.allows(role) || (without_token && route.who != Who::Workers) => Ok(()),
        Some(role) => {
            let token_id = caller.0.as_ref().map_or("", |token| token.row.token_id.as_str());
            if LINES.is_first("wrong role", token_id) {
                warn!(token_id, %role, route = route.path, "refused: wrong role");
            }
            let needed: Vec<&str> =
                Role::ALL.iter().filter(|role| route.who.allows(**role)).map(|role| role.as_str()).collect();
            let detail = format!(
                "this call needs a token with the role {}; this token has the role {role}",
                needed.join(" or ")
            );
            Err(Refusal::new(Code::Forbidden, detail))
        }
    }
}

fn respond(replied: Replied, worker: bool, progress: Arc<Progress>) -> Response<AnswerBody> {
    let (status, content_type, body, refused) = match replied {
        Ok(reply) => (reply.status, reply.content_type, reply.body, None),
        Err(refused) => {
            (refused.code.status(), "application/problem+json", refused.body(worker), Some(refused))
        }
    };
    let mut response = Response::new(AnswerBody::whole(body, progress));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(refused) = refused {
        if refused.code == Code::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"fernery\""));
        }
        if let Some(after) = refused.code.retry_after() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static(after));
        }
        if let Some(allow) = refused.allow.as_deref().and_then(|allow| HeaderValue::from_str(allow).ok()) {
            headers.insert(ALLOW, allow);
        }
    }
    response
}

/// A body that tells the connection when it is dropped.
#[derive(Debug)]
pub struct AnswerBody {
    content: Content,
    progress: Arc<Progress>,
}

#[derive(Debug)]
enum Content {
    /// One chunk, until it is handed over.
    Whole(Option<Bytes>),
    /// Chunks as they come, until their sender is gone.
    Stream(mpsc::Receiver<Bytes>),
}

impl AnswerBody {
    pub(in crate::http) fn whole(data: Bytes, progress: Arc<Progress>) -> Self {
        Self { content: Content::Whole(Some(data)), progress }
    }

    pub(in crate::http) fn stream(chunks: mpsc::Receiver<Bytes>, progress: Arc<Progress>) -> Self {
        Self { content: Content::Stream(chunks), progress }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut self.content {
            Content::Whole(data) => Poll::Ready(data.take()),
            Content::Stream(chunks) => chunks.poll_recv(cx),
        };
        data.map(|data| data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(data) => data.as_ref().is_none_or(Bytes::is_empty),
            Content::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(data) => SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64)),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.progress.answered();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_without_a_token_are_told_apart_by_what_was_wanted() {
        for route in &routes::ROUTES[..2] {
            logged(token_needed(), route, &Caller(None));
            assert!(!LINES.is_first("unauthorized", route.path), "{} has its line", route.path);
        }
    }
}
