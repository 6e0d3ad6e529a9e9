//! Signing in and out. A session is a secret in a cookie, kept as a hash; it stands for a token and may what the token may.
//!
//! A person comes in by a one-time link, which a POST from the page that it opens spends, or by a token in a form. Whoever is asked
//! to sign in while sending a form gets the form back afterwards, with all that was typed, and sends it again.

use super::doorway;
use super::fields::Fields;
use super::frame::Frame;
use super::kept::KeptForm;
use super::reply::PageReply;
use super::show::Line;
use super::visit::{Shown, Visit};
use crate::http::access::auth::{Caller, KnownToken};
use crate::http::access::token::{Secret, TokenText};
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::guards::HostKind;
use askama::Template;
use fernery_client::wire::Role;
use fernery_engine::store::{BrowserSession, NewSignIn};
use http::header::COOKIE;
use http::{HeaderMap, Method};
use std::sync::Arc;
use std::time::Duration;
use tracing::info;

/// How long a session lasts.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 3_600);

/// Somebody who is signed in.
#[derive(Clone, Debug)]
pub(in crate::http) struct SignedIn {
    pub(super) session: BrowserSession,
    /// The token that the session stands for.
    pub(super) caller: Caller,
    /// What every form of this session sends.
    pub(super) form_key: String,
}

/// The name of the cookie. Under TLS the browser itself refuses it from any other name or an unencrypted page.
fn cookie_name(visit: &Visit) -> &'static str {
    if is_secure(visit) { "__Host-fernery" } else { "fernery" }
}

/// Whether the browser sees TLS: this server's, or that of the proxy in front of it.
fn is_secure(visit: &Visit) -> bool {
    visit.server.settings.tls.is_some() || visit.place == HostKind::Named
}

fn cookie(visit: &Visit, value: &str, life: Duration) -> String {
    let secure = if is_secure(visit) { "; Secure" } else { "" };
    let name = cookie_name(visit);
    format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}", life.as_secs())
}

/// Who is signed in, by the cookie of a request.
pub(super) async fn of(visit: &Visit, headers: &HeaderMap) -> Result<Option<SignedIn>, Refused> {
    let name = cookie_name(visit);
    let pairs =
        headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(';'));
    let value = pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(other, _)| *other == name);
    let Some(secret) = value.and_then(|(_, value)| TokenText::parse_as(Secret::Session, value)) else {
        return Ok(None);
    };
    let engine = visit.server.engine();
    let Some(session) = engine.store().session(secret.id().to_string()).await? else { return Ok(None) };
    if !secret.matches(&session.secret_hash) {
        return Ok(None);
    }
    let token = visit.server.tokens.working(engine, &session.token_id).await?;
    let Some(token) = token.filter(|token| may_look(token.role)) else { return Ok(None) };
    Ok(Some(SignedIn { session, caller: Caller(Some(token)), form_key: secret.form_key() }))
}

/// Whether the session of a visit goes on.
pub(super) async fn still(visit: &Visit) -> bool {
    let Some(signed_in) = &visit.signed_in else { return false };
    let engine = visit.server.engine();
    let session = engine.store().session(signed_in.session.session_id.clone()).await;
    let token = visit.server.tokens.working(engine, &signed_in.session.token_id).await;
    // While the database does not answer, nothing is known, and nothing is told either.
    !matches!(session, Ok(None)) && !matches!(token, Ok(None))
}

/// Who gets pages at all.
pub(super) fn may_look(role: Role) -> bool {
    matches!(role, Role::Operator | Role::Viewer)
}

#[derive(Template)]
#[template(path = "sign_in/sign_in.html")]
struct SignInPage {
    frame: Frame,
    why: Line,
    problem: Option<Line>,
    next: String,
    /// A form that waits, as it was sent.
    carried: String,
}

fn page(
    visit: &Visit,
    status: u16,
    why: &str,
    problem: Option<&str>,
    (next, carried): (String, String),
) -> Shown {
    let page = SignInPage {
        frame: visit.frame("Sign in"),
        why: Line::of(why),
        problem: problem.map(Line::of),
        next,
        carried,
    };
    visit.show_as(status, &page)
}

/// A path of this server to go on to; anything else leads to the first page.
pub(super) fn local(path: &str) -> String {
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let fine = path.starts_with('/') && !path.starts_with("//") && plain;
    if fine { path.to_string() } else { "/".to_string() }
}

/// `GET /sign-in`
pub(super) async fn show(visit: Visit) -> Shown {
    let next = local(visit.query.text("next"));
    page(&visit, 200, "Sign in to see what needs you now.", None, (next, String::new()))
}

/// The page of somebody who must sign in first. A form that was sent comes back after it.
pub(super) fn first(visit: &Visit, why: &str) -> Shown {
    page(visit, 401, why, None, waiting(visit))
}

/// Where to go on after signing in, and the form that waits there.
fn waiting(visit: &Visit) -> (String, String) {
    // A form that says nothing but where it goes waits, too: what is carried is empty only where nothing was sent.
    let carried = match visit.page.method == Method::POST {
        true => visit.form.with("form_key", "").encoded(),
        false => String::new(),
    };
    (local(&visit.asked), carried)
}

/// `POST /sign-in`
pub(super) async fn with_token(visit: Visit) -> Shown {
    let after = (local(visit.form.text("next")), visit.form.text("carried").to_string());
    let refused = |status, problem: &str| match visit.place {
        HostKind::Loopback => doorway::show(&visit, Some(problem)),
        _ => page(&visit, status, "Sign in to go on.", Some(problem), after.clone()),
    };
    let token = match proven(&visit).await {
        Ok(token) => token,
        Err(problem) if matches!(problem.code, Code::Unauthorized | Code::Forbidden | Code::RateLimited) => {
            return refused(problem.code.status(), &problem.detail);
        }
        Err(other) => return Err(other),
    };
    if visit.place == HostKind::Loopback {
        return doorway::lead_on(&visit, &token).await;
    }
    let secret = TokenText::random_as(Secret::Session);
    let store = visit.server.engine().store();
    if !store.add_session(new_session(&secret), token.row.token_id.clone()).await? {
        return Err(Refusal::new(Code::Busy, "try again"));
    }
    enter(&visit, &secret, token, after).await
}

/// The token in the form, if it may look at pages.
async fn proven(visit: &Visit) -> Result<Arc<KnownToken>, Refused> {
    let text = TokenText::parse(visit.form.text("token").trim());
    let known = match &text {
        Some(text) => visit.server.tokens.working(visit.server.engine(), text.id()).await?,
        None => None,
    };
    visit.server.sign_in_rate.admit(known.as_ref().map(|token| token.row.token_id.as_str()))?;
    let matches = |known: &Arc<KnownToken>| text.is_some_and(|text| text.matches(&known.row.secret_hash));
    let token = known.filter(matches).ok_or_else(|| {
        Refusal::new(
            Code::Unauthorized,
            "this token does not work here: it is wrong, has expired or was revoked",
        )
    })?;
    if !may_look(token.role) {
        let detail = format!("a {} token gets no pages; use an operator's or a viewer's", token.role);
        return Err(Refusal::new(Code::Forbidden, detail));
    }
    Ok(token)
}

fn new_session(secret: &TokenText) -> NewSignIn {
    NewSignIn { id: secret.id().to_string(), secret_hash: secret.secret_hash(), life: SESSION_LIFE }
}

/// Goes on in a new session: to the next page, or to the form that waits. An earlier session of this browser ends.
async fn enter(
    visit: &Visit,
    secret: &TokenText,
    token: Arc<KnownToken>,
    (next, carried): (String, String),
) -> Shown {
    let store = visit.server.engine().store();
    if let Some(before) = &visit.signed_in {
        store.end_session(before.session.session_id.clone()).await?;
        visit.server.live.ended();
    }
    info!(token_id = token.row.token_id, session_id = secret.id(), role = token.row.role, "signed in");
    let cookie = cookie(visit, secret.reveal(), SESSION_LIFE);
    if carried.is_empty() {
        return Ok(PageReply::see_other(next).with_cookie(cookie));
    }
    let resent = Resent {
        why: Line::of("You are signed in. Nothing was sent yet."),
        form_key: secret.form_key(),
        next,
        fields: Fields::read(&carried)?,
    };
    Ok(resent.page(visit)?.with_cookie(cookie))
}

#[derive(Template)]
#[template(path = "sign_in/link.html")]
struct LinkPage {
    frame: Frame,
}

/// `GET /open/{link}`: only a page with a button, since a program that looks at links must not spend it.
pub(super) async fn link(visit: Visit) -> Shown {
    visit.show(&LinkPage { frame: visit.frame("Sign in") })
}

/// `POST /open/{link}`
pub(super) async fn spend(visit: Visit) -> Shown {
    let secret = TokenText::random_as(Secret::Session);
    let link = TokenText::parse_as(Secret::Link, &visit.param);
    let spent = match &link {
        Some(link) => {
            let proof = (link.id().to_string(), link.secret_hash());
            visit.server.engine().store().spend_link(proof, new_session(&secret)).await?
        }
        None => None,
    };
    let token = match &spent {
        Some(token_id) => visit.server.tokens.working(visit.server.engine(), token_id).await?,
        None => None,
    };
    let Some(token) = token else {
        visit.server.sign_in_rate.admit(None)?;
        let problem =
            "This link does not work any more: it works once, and for five minutes. Ask for another one.";
        return page(&visit, 401, "Sign in to go on.", Some(problem), ("/".into(), String::new()));
    };
    enter(&visit, &secret, token, ("/".into(), String::new())).await
}

/// A form that comes back to be sent again.
struct Resent {
    why: Line,
    form_key: String,
    next: String,
    fields: Fields,
}

#[derive(Template)]
#[template(path = "sign_in/resend.html")]
struct ResendPage {
    frame: Frame,
    why: Line,
    kept: KeptForm,
}

impl Resent {
    fn page(self, visit: &Visit) -> Shown {
        let kept = KeptForm::of(&self.fields).again(&self.next, &self.fields, &self.form_key, "Send it");
        visit.show(&ResendPage { frame: visit.frame("Send it again"), why: self.why, kept })
    }
}

/// The form of this visit, to be sent again under the session of now.
pub(super) fn resend(visit: &Visit, signed_in: &SignedIn) -> Shown {
    let resent = Resent {
        why: Line::of("This form was shown before you signed in. Nothing was sent yet."),
        form_key: signed_in.form_key.clone(),
        next: local(&visit.asked),
        fields: visit.form.clone(),
    };
    resent.page(visit)
}

/// `POST /again`: somebody has signed in elsewhere and goes on with a form. It does nothing, so it needs no key.
pub(super) async fn again(visit: Visit) -> Shown {
    let Some(signed_in) = &visit.signed_in else {
        let after = (local(visit.form.text("next")), visit.form.text("carried").to_string());
        return page(&visit, 401, "You are not signed in yet.", None, after);
    };
    let resent = Resent {
        why: Line::of("You are signed in. Nothing was sent yet."),
        form_key: signed_in.form_key.clone(),
        next: local(visit.form.text("next")),
        fields: Fields::read(visit.form.text("carried"))?,
    };
    resent.page(&visit)
}

/// `POST /sign-out`
pub(super) async fn out(visit: Visit) -> Shown {
    let Some(signed_in) = &visit.signed_in else { return Ok(PageReply::see_other("/sign-in")) };
    let store = visit.server.engine().store();
    let BrowserSession { session_id, token_id, .. } = &signed_in.session;
    if visit.form.text("everywhere") == "yes" {
        let ended = store.end_sign_ins_of(token_id.clone()).await?;
        info!(token_id, ended, "signed out everywhere");
    } else {
        store.end_session(session_id.clone()).await?;
        info!(token_id, session_id, "signed out");
    }
    visit.server.live.ended();
    Ok(PageReply::see_other("/sign-in").with_cookie(cookie(&visit, "", Duration::ZERO)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_gone_on_to() {
        for good in ["/", "/ticket/T-1?x=1"] {
            assert_eq!(local(good), good);
        }
        for bad in ["", "//evil.com", "https://evil.com", "/\\evil.com", "/a b", "/a\nb", "evil"] {
            assert_eq!(local(bad), "/", "{bad}");
        }
    }
}
