//! A request's way from its head to its answer.
//!
//! In this order: sizes and framing, the route, whose page sent it, who calls, what the role may do and how often, the
//! body, the call itself. What is refused early is refused without reading the body. Nothing of the request but what the call needs is
//! kept while it runs: ten thousand claims wait at once.

use super::Server;
use super::auth::{Caller, WorkerAuth, token_needed};
use super::body::{Weight, read_body};
use super::guards;
use super::json;
use super::paced::Progress;
use super::problem::{Code, Refusal, Refused};
use super::query::Query;
use super::routes::{self, Route, Who};
use bytes::Bytes;
use fernery_client::wire::Role;
use fernery_core::limits;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use serde::Serialize;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tracing::{error, warn};

/// What a call gets of its request.
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

    /// The rows that a page is to have.
    pub fn page_rows(&self) -> Result<usize, Refused> {
        let asked = self.query.number("limit", 1..=u64::from(limits::PAGE_ROWS_MAX))?;
        Ok(asked.unwrap_or(u64::from(limits::PAGE_ROWS_DEFAULT)) as usize)
    }

    /// Refuses a body with fields where there are none to give.
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
    /// The HTTP status.
    pub status: u16,
    /// What the body is.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
}

/// The content type of nearly everything.
pub const JSON: &str = "application/json";

impl Reply {
    /// JSON.
    pub fn json(status: u16, value: &impl Serialize) -> Result<Self, Refused> {
        let body = serde_json::to_vec(value).map_err(|error| {
            error!(%error, "an answer could not be written");
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
    let (framing, pipelined) =
        progress.serving(|head| (guards::framing(request.headers(), head), head.is_empty()));
    if pipelined {
        // It was there before the answer to the one before it: after each of them it is somebody else's turn.
        tokio::task::yield_now().await;
    }
    let route = routes::find(request.method(), request.uri().path());
    let known = route.as_ref().ok().map(|(route, _)| *route);
    let worker = known.is_some_and(|route| route.who == Who::Workers);
    let metrics = server.clone();
    let misframed = framing.is_err();
    let replied = match unpanicked(Box::pin(handle(server, &progress, request, framing, route))).await {
        Some(replied) => replied,
        None => Err(Refusal::new(Code::Internal, Code::Internal.title())),
    };
    let status = replied.as_ref().map_or_else(|refused| refused.code.status(), |reply| reply.status);
    metrics.metrics.answered(known.map(Route::index), status);
    let mut response = respond(replied, worker, progress);
    if misframed {
        // Where this request ends is a matter of opinion, so whatever follows is not read as another.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
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
    // The headers hold on to the connection's read buffer; a claim may wait for long.
    drop(parts);
    let call = Call { server, caller, param, query, body, weight };
    (route.run)(call).await
}

async fn admit(
    server: &Server,
    parts: &Parts,
    route: Result<(&'static Route, String), Refused>,
) -> Result<(&'static Route, String, Caller, Query), Refused> {
    guards::sizes(parts)?;
    guards::no_token_in_query(parts.uri.query())?;
    let (route, param) = route?;
    if !route.any_host {
        server.hosts.check(parts)?;
    }
    guards::same_site(parts)?;
    let caller = match route.who {
        Who::Open => Caller(None),
        _ => server.tokens.caller(server.engine(), &parts.headers).await?,
    };
    permit(server, route, &caller)?;
    server.rate.admit(route, &caller)?;
    let known: Vec<&str> = route.query.iter().map(|(name, _)| *name).collect();
    let query = Query::read(parts.uri.query(), &known)?;
    Ok((route, param, caller, query))
}

/// Whether this caller may call this route.
fn permit(server: &Server, route: &Route, caller: &Caller) -> Result<(), Refused> {
    let role = caller.0.as_ref().map(|token| token.role);
    let without_token = match route.who {
        Who::Open => true,
        Who::Workers => server.settings.worker_auth == WorkerAuth::None,
        Who::Metrics => server.settings.listen.ip().is_loopback(),
        Who::Anybody | Who::Roles(_) => false,
    };
    match role {
        None if without_token => Ok(()),
        None => Err(token_needed()),
        Some(role) if route.who.allows(role) || (without_token && route.who != Who::Workers) => Ok(()),
        Some(role) => {
            let token_id = caller.0.as_ref().map_or("", |token| token.row.token_id.as_str());
            warn!(token_id, %role, route = route.path, "refused: wrong role");
            let needed: Vec<&str> =
                Role::ALL.iter().filter(|role| route.who.allows(**role)).map(|role| role.as_str()).collect();
            let detail = format!("this needs a token with the role {}; yours is {role}", needed.join(" or "));
            Err(Refusal::new(Code::Forbidden, detail))
        }
    }
}

/// Runs a call so that a bug in it costs one answer and not the connection's task. `None` if it panicked.
async fn unpanicked<T>(mut call: Pin<Box<impl Future<Output = T>>>) -> Option<T> {
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
        Ok(Poll::Ready(value)) => Poll::Ready(Some(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(_) => {
            error!("a call panicked");
            Poll::Ready(None)
        }
    })
    .await
}

fn respond(replied: Replied, worker: bool, progress: Arc<Progress>) -> Response<AnswerBody> {
    let (status, content_type, body, refused) = match replied {
        Ok(reply) => (reply.status, reply.content_type, reply.body, None),
        Err(refused) => {
            (refused.code.status(), "application/problem+json", refused.body(worker), Some(refused))
        }
    };
    let mut response = Response::new(AnswerBody { data: Some(body), progress });
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

/// A body of one piece that tells the connection when it is gone.
#[derive(Debug)]
pub struct AnswerBody {
    data: Option<Bytes>,
    progress: Arc<Progress>,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.data.take().map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.progress.answered();
    }
}
