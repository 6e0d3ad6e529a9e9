//! The acts on tokens and sessions. A new token is shown once, in the answer to its form; the form names the token's id, so that a
//! form that is sent again makes no second token.

use super::super::reply::PageReply;
use super::super::show::Line;
use super::super::trouble::Said;
use super::super::visit::{Shown, Visit, api};
use super::{MadeToken, last_operator, page};
use crate::http::access::token::TokenText;
use crate::http::problem::{Code, Refusal, Refused};
use fernery_client::wire::{NewTokenResponse, SessionInfo, TokenInfo, TokenList};
use fernery_engine::door;
use http::Method;
use serde_json::{Value, json};

const DAY_SECONDS: u64 = 86_400;

/// An id for a token that is to be made.
pub(super) fn new_id() -> String {
    TokenText::random().id().to_string()
}

/// `POST /tokens`
pub(in crate::http::pages) async fn make(visit: Visit) -> Shown {
    match made(&visit).await {
        Ok(NewTokenResponse { token, info }) => {
            let made = MadeToken { name: Line(info.name), role: info.role, secret: token };
            page(&visit, 201, Some(made), Said::default()).await
        }
        Err(refused) if refused.code.status() < 500 => {
            page(&visit, refused.code.status(), None, Said::of(&refused)).await
        }
        Err(refused) => Err(refused),
    }
}

async fn made(visit: &Visit) -> Result<NewTokenResponse, Refused> {
    let form = &visit.form;
    let streams: Vec<&str> =
        form.text("streams").split([',', '\n', ' ']).map(str::trim).filter(|name| !name.is_empty()).collect();
    let mut body = json!({
        "role": form.text("role"),
        "name": form.text("name").trim(),
        "streams": streams,
        "token_id": form.filled("token_id").map_or_else(new_id, str::to_string),
    });
    if let Some(azolla) = form.filled("azolla_id") {
        body["azolla_id"] = json!(azolla);
    }
    if let Some(days) = form.filled("days") {
        let seconds = days.parse::<u64>().ok().and_then(|days| days.checked_mul(DAY_SECONDS));
        let wrong = || Refusal::field(Code::Invalid, "/days", "a whole number of days, or nothing");
        body["expires_in_seconds"] = json!(seconds.ok_or_else(wrong)?);
    }
    visit.post("/v1/tokens", &body).await
}

/// `POST /token/{id}/revoke`
pub(in crate::http::pages) async fn revoke(visit: Visit) -> Shown {
    let list: TokenList = visit.get("/v1/tokens", &[]).await?;
    let last = last_operator(&list.tokens, door::wall_clock()) == Some(visit.param.as_str());
    if last && !visit.form.has("sure") {
        let detail = "this is the last token of an operator, and without one nobody can operate this server; nothing was revoked: \
                      go to the page Tokens, open “Revoke …” of this token, and tick the box there";
        return Err(Refusal::new(Code::Conflict, detail));
    }
    delete::<TokenInfo>(&visit, "/v1/tokens/").await
}

/// `POST /session/{id}/end`
pub(in crate::http::pages) async fn end(visit: Visit) -> Shown {
    delete::<SessionInfo>(&visit, "/v1/sessions/").await
}

/// Ends it. What had ended before stays so: sent twice, the form says the same.
async fn delete<T: serde::de::DeserializeOwned>(visit: &Visit, at: &str) -> Shown {
    match visit.send::<T>(Method::DELETE, &api(at, &visit.param, ""), &Value::Null).await {
        Ok(_) => Ok(PageReply::see_other("/tokens")),
        Err(refused) if refused.code == Code::NotFound => Ok(PageReply::see_other("/tokens")),
        Err(refused) => Err(refused),
    }
}
