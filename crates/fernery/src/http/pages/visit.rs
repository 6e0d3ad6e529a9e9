//! One request of a page: who asks, what was asked, and the calls of the API that the page makes for it.
//!
//! A page is a client of the API inside this process: the route's own function runs after the route's own check of the role, so
//! that every rule and every refusal is the API's.

use super::Page;
use super::fields::Fields;
use super::frame::Frame;
use super::reply::PageReply;
use super::sign_in::SignedIn;
use crate::http::Server;
use crate::http::access::auth::Caller;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::inside;
use crate::http::wire::guards::HostKind;
use askama::Template;
use bytes::Bytes;
use fernery_client::wire::Role;
use fernery_core::percent::encode;
use fernery_engine::door;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tracing::error;

/// What a page gets.
#[derive(Clone, Debug)]
pub(in crate::http) struct Visit {
    pub(super) server: Arc<Server>,
    pub(super) page: &'static Page,
    /// Under which kind of name it came.
    pub(super) place: HostKind,
    /// The name and the port that the browser asked.
    pub(super) authority: String,
    /// Path and query as they were asked for.
    pub(super) asked: String,
    /// The variable part of the path, decoded.
    pub(super) param: String,
    pub(super) query: Fields,
    pub(super) form: Fields,
    /// How far everything that pages follow had come before this page was made.
    pub(super) before: String,
    /// The topics that this browser knows, as its stream told them last.
    pub(super) last_event: Option<String>,
    pub(super) signed_in: Option<SignedIn>,
}

/// What every page answers.
pub(super) type Shown = Result<PageReply, Refused>;

impl Visit {
    pub(super) fn caller(&self) -> Caller {
        self.signed_in.as_ref().map_or(Caller(None), |signed_in| signed_in.caller.clone())
    }

    pub(super) fn role(&self) -> Option<Role> {
        self.caller().0.map(|token| token.role)
    }

    /// Whether this person may act, and not only look.
    pub(super) fn is_operator(&self) -> bool {
        self.role() == Some(Role::Operator)
    }

    /// Reads through the API.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, Refused> {
        let query: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
        self.call((&Method::GET, path, &query.join("&")), Bytes::new()).await
    }

    /// Writes through the API.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Refused> {
        let body = serde_json::to_vec(body).map_err(|error| broken(&error))?;
        self.call((&method, path, ""), body.into()).await
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Refused> {
        self.send(Method::POST, path, body).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        asked: (&Method, &str, &str),
        body: Bytes,
    ) -> Result<T, Refused> {
        let reply = inside(&self.server, &self.caller(), asked, body).await?;
        serde_json::from_slice(&reply.body).map_err(|error| broken(&error))
    }

    /// What stands around a page with this title.
    pub(super) fn frame(&self, title: impl Into<String>) -> Frame {
        Frame::of(self, title.into())
    }

    /// A page of its template.
    pub(super) fn show(&self, template: &impl Template) -> Shown {
        self.show_as(200, template)
    }

    pub(super) fn show_as(&self, status: u16, template: &impl Template) -> Shown {
        let text = template.render().map_err(|error| broken(&error))?;
        Ok(PageReply::html(status, text))
    }

    /// The id of the act that a form stands for: the form was given one when it was shown, so that a form that is sent twice acts
    /// once.
    pub(super) fn act_id(&self) -> String {
        match self.form.filled("act_id") {
            Some(id) => id.to_string(),
            None => door::artifact_id(),
        }
    }
}

fn broken(error: &dyn std::fmt::Display) -> Refused {
    error!(%error, "could not render a page");
    Refusal::new(Code::Internal, Code::Internal.title())
}

/// The path of an API call about one thing.
pub(super) fn api(before: &str, id: &str, after: &str) -> String {
    format!("{before}{}{after}", encode(id))
}

/// The address of a page with these fields; empty ones are left out.
pub(super) fn link(path: &str, fields: &[(&str, &str)]) -> String {
    let filled = fields.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> = filled.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    if pairs.is_empty() { path.to_string() } else { format!("{path}?{}", pairs.join("&")) }
}
