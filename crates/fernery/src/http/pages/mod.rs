//! What a browser shows, at `/`: rendered here, one file for each page with its template beside it.
//!
//! [`PAGES`] is the one table: who may see a page and who may act on it, and whether it wants somebody who has signed in a short
//! while ago. A page has no SQL and no rule of its own: it is a client of the API in the same process (`visit.rs`).
//!
//! A new page is a file with `show(visit)`, a template that extends `frame.html`, a row of [`PAGES`] and, if every page leads to it, a
//! line of `NAV` in `frame.rs`. Text by others is shown by the types of `show.rs`. What changes by itself stands in an element with an
//! id and `data-live="topic …"` ([`live`] has the topics). A form sends `form_key` and, where the API takes an id of the act, `act_id`;
//! below its button stand its `Ways`. What was refused comes back by `refused.rs` with what was typed; what failed, by `trouble.rs`.
//!
//! In this order: the checks of every request, the name that the browser asked (a name that other servers share gets nobody a
//! session), who is signed in, the proof that a form is ours, the age of the sign-in, the page.

mod approve;
mod assets;
mod azollas;
mod board;
mod bulk;
mod dead;
mod doorway;
mod fields;
mod find;
mod frame;
pub mod host;
mod job;
mod jobs;
mod journal;
mod kept;
mod keys;
pub mod live;
mod manifests;
mod now;
mod refused;
mod reply;
mod review;
mod runs;
mod show;
mod sign_in;
mod sparkline;
mod streams;
mod suggested;
mod ticket;
mod tokens;
mod triage;
mod trouble;
mod visit;
mod workers;

use super::Server;
use super::problem::{Code, Refusal, Refused};
use super::wire::answer::AnswerBody;
use super::wire::body::read_form;
use super::wire::guards::{self, HostKind};
use super::wire::paced::Progress;
use fernery_client::wire::Role;
use fernery_core::percent::decode;
use fernery_engine::supervise::caught;
use fields::Fields;
use http::header::ACCEPT;
use http::request::Parts;
use http::{Method, Request, Response};
use hyper::body::{Body, Incoming};
use reply::{PageReply, takes_gzip};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq;
use tracing::error;
use visit::{Shown, Visit};

/// A sign-in younger than this is fresh.
const FRESH: Duration = Duration::from_secs(15 * 60);

/// Who gets a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// Everybody, also under a name that other servers share.
    Anybody,
    /// Everybody, under a name of its own.
    Visitors,
    /// Whoever is signed in: viewers and operators.
    Readers,
    /// Operators.
    Operators,
}

/// One row of the table.
#[derive(Debug)]
pub struct Page {
    pub method: Method,
    /// The path; `{…}` stands for one segment.
    pub path: &'static str,
    pub sees: Sees,
    /// Whether it wants a sign-in younger than 15 minutes.
    pub fresh: bool,
    run: fn(Visit) -> Pin<Box<dyn Future<Output = Shown> + Send>>,
}

macro_rules! pages {
    ($($method:ident $path:literal $sees:ident $($fresh:literal)? $run:path;)+) => {
        &[$(Page {
            method: Method::$method,
            path: $path,
            sees: Sees::$sees,
            fresh: { let _fresh = false; $(let _fresh = !$fresh.is_empty();)? _fresh },
            run: |visit| Box::pin($run(visit)),
        },)+]
    };
}

/// Every page. Writes are POST; `"fresh"` wants a sign-in younger than 15 minutes.
pub static PAGES: &[Page] = pages![
    GET "/assets/{name}" Anybody assets::read;
    GET "/sign-in" Visitors sign_in::show;
    POST "/sign-in" Anybody sign_in::with_token;
    GET "/open/{link}" Visitors sign_in::link;
    POST "/open/{link}" Visitors sign_in::spend;
    POST "/again" Visitors sign_in::again;
    POST "/sign-out" Readers sign_in::out;
    GET "/events" Readers live::events;
    GET "/" Readers now::show;
    POST "/orient" Operators now::orient;
    POST "/capture" Operators now::capture;
    GET "/board" Readers board::show;
    GET "/new-ticket" Operators ticket::new::show;
    POST "/new-ticket" Operators ticket::new::create;
    GET "/ticket/{id}" Readers ticket::show;
    POST "/ticket/{id}/edit" Operators ticket::acts::edit;
    POST "/ticket/{id}/block" Operators ticket::acts::block;
    POST "/ticket/{id}/unblock" Operators ticket::acts::unblock;
    POST "/ticket/{id}/snooze" Operators ticket::acts::snooze;
    POST "/ticket/{id}/cancel" Operators ticket::acts::cancel;
    POST "/ticket/{id}/done" Operators "fresh" ticket::acts::done;
    POST "/ticket/{id}/answer" Operators "fresh" ticket::acts::answer;
    POST "/ticket/{id}/keep" Operators "fresh" ticket::acts::keep;
    POST "/ticket/{id}/reopen" Operators "fresh" ticket::acts::reopen;
    GET "/approve/{id}" Readers approve::show;
    POST "/approve/{id}" Operators "fresh" approve::approve;
    GET "/runs" Readers runs::show;
    GET "/review/{id}" Readers review::show;
    GET "/review/{id}/log" Readers review::log::show;
    POST "/review/{id}/comment" Operators review::comments::add;
    POST "/review/{id}/comment-edit" Operators review::comments::edit;
    POST "/review/{id}/comment-delete" Operators review::comments::delete;
    POST "/review/{id}/viewed" Operators review::comments::viewed;
    POST "/review/{id}/confirm" Operators "fresh" review::acts::confirm;
    POST "/review/{id}/merge" Operators "fresh" review::acts::merge;
    POST "/review/{id}/reopen" Operators "fresh" review::acts::reopen;
    GET "/streams" Readers streams::show;
    POST "/stream/{name}/pause" Operators streams::pause;
    POST "/stream/{name}/resume" Operators streams::resume;
    GET "/jobs" Readers jobs::show;
    POST "/jobs" Operators jobs::act;
    GET "/bulk-ask" Operators bulk::ask;
    GET "/bulk" Readers bulk::list;
    POST "/bulk" Operators bulk::start;
    GET "/bulk/{id}" Readers bulk::one;
    POST "/bulk/{id}/stop" Operators bulk::stop;
    GET "/job/{id}" Readers job::show;
    POST "/job/{id}/cancel" Operators job::acts::cancel_one;
    POST "/job/{id}/retry" Operators job::acts::retry_one;
    GET "/job/{id}/download" Readers job::download::show;
    GET "/job/{id}/again" Operators job::again::show;
    POST "/job/{id}/again" Operators job::again::enqueue;
    GET "/dead" Readers dead::show;
    POST "/dead/redrive" Operators dead::redrive;
    GET "/workers" Readers workers::show;
    GET "/triage" Readers triage::show;
    GET "/candidate/{id}" Readers triage::one;
    POST "/candidate/{id}/promote" Operators triage::acts::promote;
    POST "/candidate/{id}/edit" Operators triage::acts::edit;
    GET "/candidate/{id}/merge" Readers triage::merge::show;
    POST "/candidate/{id}/merge" Operators triage::merge::merge;
    POST "/candidate/{id}/discard" Operators triage::acts::discard;
    POST "/candidate/{id}/restore" Operators triage::acts::restore;
    POST "/candidate/{id}/snooze" Operators triage::acts::snooze;
    POST "/candidate/{id}/wake" Operators triage::acts::wake;
    GET "/manifests" Readers manifests::show;
    GET "/manifest/{id}" Readers manifests::one::show;
    GET "/azollas" Readers azollas::show;
    GET "/azolla/{id}" Readers azollas::one::show;
    POST "/azollas/reload" Operators azollas::reload;
    GET "/journal" Readers journal::show;
    GET "/tokens" Operators "fresh" tokens::show;
    POST "/tokens" Operators "fresh" tokens::acts::make;
    POST "/token/{id}/revoke" Operators "fresh" tokens::acts::revoke;
    POST "/session/{id}/end" Operators "fresh" tokens::acts::end;
    GET "/keys" Readers keys::show;
    GET "/find" Readers find::show;
];

impl Page {
    fn index(&self) -> Option<usize> {
        PAGES.iter().position(|page| std::ptr::eq(page, self))
    }

    /// The variable part of a path of this page, decoded; `None` if the path is another page's.
    fn matched(&self, path: &str) -> Option<String> {
        let Some((before, rest)) = self.path.split_once('{') else {
            return (self.path == path).then(String::new);
        };
        let after = rest.split_once('}').map_or("", |(_, after)| after);
        let middle = path.strip_prefix(before)?.strip_suffix(after)?;
        if middle.is_empty() || middle.contains('/') { None } else { decode(middle) }
    }
}

/// Whether a path is that of a page that can be looked at.
fn is_page(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    PAGES.iter().any(|page| page.method == Method::GET && page.matched(path).is_some())
}

/// What a request for no route of the API is about.
#[derive(Debug)]
pub(super) enum Wanted {
    Page(&'static Page, String),
    /// The path is a page's, and the method is not.
    OtherMethod(&'static Page, String),
    /// A browser asks for a page that is not there.
    Nothing,
}

impl Wanted {
    fn page(&self) -> Option<&'static Page> {
        match self {
            Self::Page(page, _) => Some(page),
            Self::OtherMethod(..) | Self::Nothing => None,
        }
    }
}

/// Paths of the API, which are never pages'.
fn is_api(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    matches!(first, "v1" | "internal" | "healthz" | "readyz" | "metrics" | "openapi.json")
}

/// Whether a request is one for a page. A program that asks for what is not there gets the API's answer.
pub(super) fn wanted(request: &Request<Incoming>) -> Option<Wanted> {
    let (method, path) = (request.method(), request.uri().path());
    if is_api(path) || matches!(*method, Method::TRACE | Method::CONNECT) {
        return None;
    }
    // A HEAD is a GET without the body.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let on_path: Vec<_> = PAGES.iter().filter_map(|page| Some((page, page.matched(path)?))).collect();
    if let Some((page, param)) = on_path.iter().find(|(page, _)| page.method == *method) {
        return Some(Wanted::Page(page, param.clone()));
    }
    if let Some((page, param)) = on_path.into_iter().next() {
        return Some(Wanted::OtherMethod(page, param));
    }
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepts.contains("text/html").then_some(Wanted::Nothing)
}

/// Answers one request for a page, whatever happens.
pub(super) async fn answer(
    server: Arc<Server>,
    progress: Arc<Progress>,
    request: Request<Incoming>,
    framing: Result<(), Refused>,
    asked: Wanted,
) -> Response<AnswerBody> {
    let gzip = takes_gzip(request.headers());
    let (page, metrics) = (asked.page().and_then(Page::index), server.clone());
    // A bug in a page costs one answer and not the connection's task.
    let reply = caught(Box::pin(handle(server, &progress, request, framing, asked))).await;
    let reply = reply.unwrap_or_else(|_| {
        error!("a page panicked");
        PageReply::html(
            500,
            "<!doctype html><title>Fernery</title><p>This page failed. The server's log says why.".into(),
        )
    });
    metrics.metrics.showed(page, reply.status());
    reply.respond(gzip, progress)
}

async fn handle(
    server: Arc<Server>,
    progress: &Progress,
    request: Request<Incoming>,
    framing: Result<(), Refused>,
    asked: Wanted,
) -> PageReply {
    let (parts, incoming) = request.into_parts();
    let found = match &asked {
        Wanted::Page(page, _) => Ok(*page),
        Wanted::OtherMethod(page, _) => {
            Err((*page, Refusal::new(Code::MethodNotAllowed, Code::MethodNotAllowed.title())))
        }
        Wanted::Nothing => {
            Err((&PAGES[0], Refusal::new(Code::NotFound, "there is no page under this address")))
        }
    };
    let mut visit = Visit {
        page: found.as_ref().map_or_else(|(page, _)| *page, |page| *page),
        place: HostKind::Loopback,
        authority: String::new(),
        asked: parts.uri.path_and_query().map_or("/", |asked| asked.as_str()).to_string(),
        param: match asked {
            Wanted::Page(_, param) | Wanted::OtherMethod(_, param) => param,
            Wanted::Nothing => String::new(),
        },
        query: Fields::default(),
        form: Fields::default(),
        before: String::new(),
        last_event: parts.headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_string),
        signed_in: None,
        server,
    };
    let checked = framing.and_then(|()| check(&mut visit, &parts));
    if let Err(refused) = checked.and(found.map(|_| ()).map_err(|(_, refused)| refused)) {
        if incoming.is_end_stream() {
            return trouble::page(&visit, &refused);
        }
        progress.leave_unread();
        return trouble::unread(&visit, &refused);
    }
    if visit.page.method == Method::POST {
        let read = read_form(&visit.server, &parts.headers, incoming).await;
        let form = read.and_then(|(body, _)| match std::str::from_utf8(&body) {
            Ok(text) => Fields::read(text),
            Err(_) => Err(Refusal::new(Code::BadRequest, "the form is not UTF-8")),
        });
        match form {
            Ok(form) => visit.form = form,
            Err(refused) => {
                progress.leave_unread();
                return trouble::unread(&visit, &refused);
            }
        }
    }
    match admit(&mut visit, &parts).await {
        Ok(None) => {}
        Ok(Some(instead)) => return instead,
        Err(refused) => return trouble::page(&visit, &refused),
    }
    // The headers keep the connection's read buffer alive; a stream may last for long.
    drop(parts);
    // Before anything is read for the page. A part of a page that is brought up to date says no such thing, and a stream is no page.
    if visit.signed_in.is_some() && visit.page.path != "/events" && !frame::is_alone(&visit) {
        visit.before = live::LiveStreams::before(&visit.server).await;
    }
    show(visit).await
}

/// What every request is checked for before it is known who sent it.
fn check(visit: &mut Visit, parts: &Parts) -> Result<(), Refused> {
    guards::sizes(parts)?;
    guards::no_token_in_query(parts.uri.query())?;
    visit.server.hosts.check(parts)?;
    (visit.place, visit.authority) = visit.server.hosts.place(parts)?;
    guards::same_site(parts)?;
    visit.query = Fields::read(parts.uri.query().unwrap_or_default())?;
    Ok(())
}

/// Who asks, and whether they get this page; else the page that they get instead.
async fn admit(visit: &mut Visit, parts: &Parts) -> Result<Option<PageReply>, Refused> {
    let page = visit.page;
    match (page.sees, visit.place) {
        (Sees::Anybody, HostKind::Loopback) => return Ok(None),
        (_, HostKind::Loopback) => return doorway::show(visit, None).map(Some),
        (Sees::Anybody, _) if page.method == Method::GET => return Ok(None),
        _ => visit.signed_in = sign_in::of(visit, &parts.headers).await?,
    }
    if matches!(page.sees, Sees::Anybody | Sees::Visitors) {
        return Ok(None);
    }
    let Some(signed_in) = &visit.signed_in else {
        return sign_in::first(visit, "Sign in to see this page.").map(Some);
    };
    if page.method == Method::POST {
        let sent = visit.form.text("form_key").as_bytes();
        if !bool::from(sent.ct_eq(signed_in.form_key.as_bytes())) {
            // A form of an earlier session is the common case: nothing that was typed is lost.
            return sign_in::resend(visit, signed_in).map(Some);
        }
    }
    if page.sees == Sees::Operators && visit.role() != Some(Role::Operator) {
        let detail = "you are signed in as a viewer: you can look at everything and change nothing; sign in with an operator's \
                      token to act";
        return Err(Refusal::new(Code::Forbidden, detail));
    }
    visit.server.rate.admit_page(&visit.caller())?;
    if page.fresh && signed_in.session.age >= FRESH {
        let why = "This needs a sign-in younger than 15 minutes, so that nobody approves in your name at a browser that you left.";
        return sign_in::first(visit, why).map(Some);
    }
    Ok(None)
}

async fn show(visit: Visit) -> PageReply {
    // A refusal is shown in the frame of the page that was asked for, with what was sent.
    let again = Visit { query: Fields::default(), ..visit.clone() };
    match (visit.page.run)(visit).await {
        Ok(reply) => reply,
        Err(refused) => trouble::page(&again, &refused),
    }
}
