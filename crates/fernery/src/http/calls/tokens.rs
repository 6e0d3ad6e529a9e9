//! Tokens: make, list, revoke.

use super::named::missing;
use crate::http::access::token::TokenText;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{FieldProblem, NewTokenRequest, NewTokenResponse, Role, TokenInfo, TokenList};
use fernery_core::artifact::AzollaId;
use fernery_core::{StreamName, Timestamp, WorkerId, limits};
use fernery_engine::door;
use fernery_engine::store::TokenRow;
use std::time::Duration;
use tracing::info;

/// The longest life of a token in seconds: ten years.
const LIFE_MAX: u64 = 10 * 366 * 86_400;

/// `GET /v1/tokens`
pub async fn list(call: Call) -> Replied {
    let rows = call.server.engine().store().tokens().await?;
    Reply::json(200, &TokenList { tokens: rows.into_iter().filter_map(info_of).collect() })
}

/// `POST /v1/tokens`
pub async fn make(call: Call) -> Replied {
    let request: NewTokenRequest = json::read(&call.body)?;
    let now = door::wall_clock();
    let expires_at = checked(&request, now)?;
    let _writing = call.writing()?;
    let token = match &request.token_id {
        None => TokenText::random(),
        Some(id) => TokenText::random_under(id).ok_or_else(|| {
            Refusal::field(Code::Invalid, "/token_id", "12 hexadecimal digits in lower case")
        })?,
    };
    let row = TokenRow {
        token_id: token.id().to_string(),
        name: request.name,
        role: request.role.as_str().to_string(),
        streams: request.streams,
        azolla_id: request.azolla_id.map(|id| id.to_string()),
        secret_hash: token.secret_hash(),
        created_at: now,
        expires_at,
        revoked_at: None,
    };
    let store = call.server.engine().store();
    if !store.add_token(row.clone()).await? {
        if request.token_id.is_some() {
            let detail = format!(
                "a token with the id {} was made before, and its secret is shown only once; if it is lost, revoke that token and \
                 make another one",
                row.token_id
            );
            return Err(Refusal::new(Code::Conflict, detail));
        }
        // 48 random bits gave the id of an existing token; the next try will give another.
        return Err(Refusal::new(Code::Busy, "try again"));
    }
    call.server.tokens.refresh(call.server.engine(), Duration::ZERO).await?;
    info!(token_id = row.token_id, role = row.role, "created a token");
    let info = info_of(row).ok_or_else(|| Refusal::new(Code::Internal, Code::Internal.title()))?;
    Reply::json(201, &NewTokenResponse { token: token.reveal().to_string(), info })
}

/// `DELETE /v1/tokens/{id}`
pub async fn revoke(call: Call) -> Replied {
    let _writing = call.writing()?;
    let store = call.server.engine().store();
    let unknown = || missing("token", &call.param);
    if call.param.contains('\0') || !store.revoke_token(call.param.clone()).await? {
        return Err(unknown());
    }
    call.server.tokens.refresh(call.server.engine(), Duration::ZERO).await?;
    call.server.live.ended();
    info!(token_id = call.param, "revoked a token");
    let rows = store.tokens().await?;
    let row = rows.into_iter().find(|row| row.token_id == call.param);
    Reply::json(200, &row.and_then(info_of).ok_or_else(unknown)?)
}

fn checked(request: &NewTokenRequest, now: Timestamp) -> Result<Option<Timestamp>, Refused> {
    let mut errors = Vec::new();
    let mut wrong = |pointer: String, detail: String| errors.push(FieldProblem { pointer, detail });
    // A token's name follows the same rule as a worker's.
    if WorkerId::new(&request.name).is_err() {
        let detail = format!("1 to {} printable characters", limits::WORKER_ID_CHARS_MAX);
        wrong("/name".to_string(), detail);
    }
    if request.role != Role::Worker && !request.streams.is_empty() {
        wrong("/streams".to_string(), "only worker tokens can be limited to streams".to_string());
    }
    match (request.role, &request.azolla_id) {
        (Role::Visitor, None) => {
            let detail = "a visitor token must name the azolla of the other server that uses it";
            wrong("/azolla_id".to_string(), detail.to_string());
        }
        (Role::Visitor, Some(_)) | (_, None) => {}
        (_, Some(_)) => wrong("/azolla_id".to_string(), "only visitor tokens name an azolla".to_string()),
    }
    if request.streams.len() > limits::CLAIM_STREAMS_MAX {
        wrong("/streams".to_string(), format!("at most {} patterns", limits::CLAIM_STREAMS_MAX));
    }
    for (n, pattern) in request.streams.iter().enumerate() {
        let name = pattern.strip_suffix('*').unwrap_or(pattern);
        let everything = name.is_empty() && !pattern.is_empty();
        if !everything && StreamName::new(name).is_err() {
            wrong(format!("/streams/{n}"), "a stream's name, or a prefix that ends in *".to_string());
        }
    }
    let expires_at = match (request.expires_at, request.expires_in_seconds) {
        (None, None) => None,
        (Some(at), None) => {
            if at <= now {
                wrong("/expires_at".to_string(), "this time is in the past".to_string());
            }
            Some(at)
        }
        (None, Some(seconds)) => {
            if !(1..=LIFE_MAX).contains(&seconds) {
                wrong("/expires_in_seconds".to_string(), format!("1 to {LIFE_MAX}"));
            }
            Some(now.after(Duration::from_secs(seconds.min(LIFE_MAX))))
        }
        (Some(_), Some(_)) => {
            wrong("/expires_at".to_string(), "give expires_at or expires_in_seconds, not both".to_string());
            None
        }
    };
    if errors.is_empty() { Ok(expires_at) } else { Err(Refusal::fields(errors)) }
}

fn info_of(row: TokenRow) -> Option<TokenInfo> {
    Some(TokenInfo {
        role: row.role.parse().ok()?,
        token_id: row.token_id,
        name: row.name,
        streams: row.streams,
        azolla_id: row.azolla_id.as_deref().map(AzollaId::stored),
        created_at: row.created_at,
        expires_at: row.expires_at,
        revoked_at: row.revoked_at,
    })
}
