//! Sign-ins of people at the pages: make a link, list the sessions, end one.

use super::named::missing;
use crate::http::Server;
use crate::http::access::auth::token_needed;
use crate::http::access::token::{Secret, TokenText};
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use fernery_client::wire::{SessionInfo, SessionList, SignInLink};
use fernery_core::limits;
use fernery_engine::door;
use fernery_engine::store::{BrowserSession, NewSignIn};
use std::time::Duration;
use tracing::info;

/// How long a link works.
const LINK_LIFE: Duration = Duration::from_secs(5 * 60);

/// `POST /v1/sign-in-links`
pub async fn link(call: Call) -> Replied {
    call.no_fields()?;
    let token = call.caller.0.as_ref().ok_or_else(token_needed)?;
    let _writing = call.writing()?;
    Reply::json(201, &make_link(&call.server, &token.row.token_id).await?)
}

/// Makes a link for a token.
pub(in crate::http) async fn make_link(server: &Server, token_id: &str) -> Result<SignInLink, Refused> {
    let secret = TokenText::random_as(Secret::Link);
    let link = NewSignIn { id: secret.id().to_string(), secret_hash: secret.secret_hash(), life: LINK_LIFE };
    if !server.engine().store().add_link(link, token_id.to_string()).await? {
        // 48 random bits gave the id of another one; the next try will give another.
        return Err(Refusal::new(Code::Busy, "try again"));
    }
    info!(token_id, link_id = secret.id(), "made a sign-in link");
    Ok(SignInLink {
        path: format!("/open/{}", secret.reveal()),
        host: server.hosts.own().to_string(),
        expires_at: door::wall_clock().after(LINK_LIFE),
    })
}

/// `GET /v1/sessions`
pub async fn list(call: Call) -> Replied {
    let sessions = call.server.engine().store().sessions(limits::PAGE_ROWS_MAX as usize).await?;
    Reply::json(200, &SessionList { sessions: sessions.into_iter().map(info_of).collect() })
}

/// `DELETE /v1/sessions/{id}`
pub async fn end(call: Call) -> Replied {
    let _writing = call.writing()?;
    let store = call.server.engine().store();
    let unknown = || missing("session", &call.param);
    let known = match call.param.contains('\0') {
        true => None,
        false => store.session(call.param.clone()).await?,
    };
    let session = known.ok_or_else(unknown)?;
    if !store.end_session(call.param.clone()).await? {
        return Err(unknown());
    }
    call.server.live.ended();
    info!(session_id = call.param, "ended a session");
    Reply::json(200, &info_of(session))
}

fn info_of(session: BrowserSession) -> SessionInfo {
    let BrowserSession { session_id, token_id, created_at, expires_at, .. } = session;
    SessionInfo { session_id, token_id, created_at, expires_at }
}
