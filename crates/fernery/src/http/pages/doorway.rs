//! What is shown under a name that every server on this machine shares, such as `localhost`: how to come in, and nothing else. No
//! session begins here, and the name of the pages is told only to somebody who has shown a token.

use super::frame::Frame;
use super::show::Line;
use super::visit::{Shown, Visit};
use crate::http::access::auth::KnownToken;
use crate::http::calls::sign_ins::make_link;
use askama::Template;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "doorway.html")]
struct Doorway {
    frame: Frame,
    problem: Option<Line>,
    /// Where to go on, for somebody who has shown a token.
    link: Option<String>,
}

pub(super) fn show(visit: &Visit, problem: Option<&str>) -> Shown {
    let status = if problem.is_some() { 401 } else { 200 };
    let page = Doorway { frame: visit.frame("Sign in"), problem: problem.map(Line::of), link: None };
    visit.show_as(status, &page)
}

/// Leads on to the name of the pages by a one-time link. A link and not a redirect: the policy of every page lets forms go
/// nowhere else.
pub(super) async fn lead_on(visit: &Visit, token: &Arc<KnownToken>) -> Shown {
    let made = make_link(&visit.server, &token.row.token_id).await?;
    let scheme = if visit.server.settings.tls.is_some() { "https" } else { "http" };
    let port = visit.authority.rsplit_once(':').map(|(_, port)| port);
    let port = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    let link = format!("{scheme}://{}{port}{}", made.host, made.path);
    visit.show(&Doorway { frame: visit.frame("Sign in"), problem: None, link: Some(link) })
}
