//! `GET /tokens`: who may call this server, and which browsers are signed in. It wants a sign-in younger than 15 minutes, to look as
//! well as to act.

pub(super) mod acts;

use super::fields::Fields;
use super::frame::Frame;
use super::show::{Id, Line, Ways, When};
use super::trouble::Said;
use super::visit::{Shown, Visit, api};
use crate::http::problem::Code;
use askama::Template;
use fernery_client::wire::{Role, SessionInfo, SessionList, TokenInfo, TokenList};
use fernery_core::Timestamp;
use fernery_engine::door;
use serde_json::json;
use std::collections::HashMap;

/// Tokens and sessions of each kind that are shown.
const ROWS_MAX: usize = 200;

struct Row {
    id: String,
    name: Line,
    role: Role,
    /// What it is limited to.
    only: Line,
    made: When,
    expires: Option<When>,
    /// Why it works no more.
    ended: Option<(&'static str, When)>,
    /// The session of this browser stands for it.
    own: bool,
    /// Without it nobody could operate this server.
    last_operator: bool,
    ways: Ways,
}

struct Session {
    id: String,
    shown: Id,
    token: Line,
    since: When,
    ends: When,
    own: bool,
    ways: Ways,
}

/// A token that was made just now.
pub(super) struct MadeToken {
    pub(super) name: Line,
    pub(super) role: Role,
    pub(super) secret: String,
}

#[derive(Template)]
#[template(path = "tokens/tokens.html")]
struct Tokens {
    frame: Frame,
    working: Vec<Row>,
    working_more: usize,
    ended: Vec<Row>,
    ended_more: usize,
    sessions: Vec<Session>,
    sessions_more: usize,
    made: Option<MadeToken>,
    roles: Vec<&'static str>,
    /// The id that the next token gets: a form that is sent twice makes one.
    token_id: String,
    typed: Fields,
    said: Said,
    ways: Ways,
    /// One call ends one session.
    sessions_ways: Ways,
}

pub(super) async fn show(visit: Visit) -> Shown {
    page(&visit, 200, None, Said::default()).await
}

async fn page(visit: &Visit, status: u16, made: Option<MadeToken>, said: Said) -> Shown {
    let list: TokenList = visit.get("/v1/tokens", &[]).await?;
    let sessions: SessionList = visit.get("/v1/sessions", &[]).await?;
    let own = visit.signed_in.as_ref().map(|signed_in| &signed_in.session);
    let (own_token, own_session) =
        own.map_or(("", ""), |own| (own.token_id.as_str(), own.session_id.as_str()));
    let now = door::wall_clock();
    let working = list.tokens.iter().filter(|token| works(token, now));
    let names: HashMap<String, String> =
        working.map(|token| (token.token_id.clone(), token.name.clone())).collect();
    let last_operator = last_operator(&list.tokens, now).map(str::to_string);
    let rows = list.tokens.into_iter().map(|token| {
        let last = last_operator.as_deref() == Some(token.token_id.as_str());
        Row { last_operator: last, ..row(token, own_token, now) }
    });
    let (mut ended, mut working): (Vec<Row>, Vec<Row>) = rows.partition(|row| row.ended.is_some());
    // The newest first.
    ended.sort_by_key(|row| std::cmp::Reverse(row.made.0));
    working.sort_by_key(|row| std::cmp::Reverse(row.made.0));
    let cut = |rows: &mut Vec<Row>| {
        let more = rows.len().saturating_sub(ROWS_MAX);
        rows.truncate(ROWS_MAX);
        more
    };
    let (ended_more, working_more) = (cut(&mut ended), cut(&mut working));
    // A session ends with its token.
    let open = sessions.sessions.into_iter().filter_map(|of| {
        let name = names.get(&of.token_id)?;
        Some(session(of, own_session, name))
    });
    let signed_in: Vec<Session> = open.collect();
    // A form that was refused keeps what was typed; a token that was made starts a new one.
    let typed = if made.is_none() { visit.form.clone() } else { Fields::default() };
    let tokens = Tokens {
        frame: visit.frame("Tokens and sessions"),
        working,
        working_more,
        ended,
        ended_more,
        sessions_more: signed_in.len().saturating_sub(ROWS_MAX),
        sessions: signed_in.into_iter().take(ROWS_MAX).collect(),
        roles: Role::ALL.iter().map(|role| role.as_str()).collect(),
        // After a conflict the form is one for another token.
        token_id: typed
            .filled("token_id")
            .filter(|_| status != Code::Conflict.status())
            .map_or_else(acts::new_id, str::to_string),
        made,
        sessions_ways: Ways::call("DELETE", "/v1/sessions/…", None),
        typed,
        said,
        ways: Ways::new(
            "fernery token new --role worker --name '…'",
            "POST",
            "/v1/tokens",
            Some(&json!({ "role": "worker", "name": "…" }).to_string()),
        ),
    };
    visit.show_as(status, &tokens)
}

fn works(token: &TokenInfo, now: Timestamp) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|expires| expires > now)
}

/// The one token of an operator that works, if there is no other.
fn last_operator(tokens: &[TokenInfo], now: Timestamp) -> Option<&str> {
    let mut working = tokens.iter().filter(|token| token.role == Role::Operator && works(token, now));
    match (working.next(), working.next()) {
        (Some(only), None) => Some(&only.token_id),
        _ => None,
    }
}

fn row(token: TokenInfo, own: &str, now: Timestamp) -> Row {
    let expired = token.expires_at.filter(|at| *at <= now);
    let ended = match (token.revoked_at, expired) {
        (Some(at), _) => Some(("revoked", When(at))),
        (None, Some(at)) => Some(("expired", When(at))),
        (None, None) => None,
    };
    let only = match &token.azolla_id {
        Some(azolla) => format!("azolla {azolla}"),
        None => token.streams.join(", "),
    };
    Row {
        own: token.token_id == own,
        last_operator: false,
        ways: Ways::new(
            format!("fernery token revoke {}", token.token_id),
            "DELETE",
            &api("/v1/tokens/", &token.token_id, ""),
            None,
        ),
        id: token.token_id,
        name: Line(token.name),
        role: token.role,
        only: Line(only),
        made: When(token.created_at),
        expires: token.expires_at.map(When),
        ended,
    }
}

fn session(of: SessionInfo, own: &str, token: &str) -> Session {
    let path = api("/v1/sessions/", &of.session_id, "");
    Session {
        own: of.session_id == own,
        shown: Id::of(&of.session_id),
        token: Line::of(token),
        since: When(of.created_at),
        ends: When(of.expires_at),
        ways: Ways::call("DELETE", &path, None),
        id: of.session_id,
    }
}

impl Tokens {
    fn typed_or<'a>(&'a self, field: &str, first: &'a str) -> &'a str {
        if self.typed.has(field) { self.typed.text(field) } else { first }
    }
}
