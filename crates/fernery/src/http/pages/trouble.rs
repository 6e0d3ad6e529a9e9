//! A refusal as a page: what was wrong, what was sent, and where to go on.

use super::fields::Fields;
use super::frame::Frame;
use super::is_page;
use super::kept::{KeptForm, has_secret};
use super::reply::PageReply;
use super::show::Line;
use super::sign_in::local;
use super::visit::{Visit, link};
use crate::http::problem::{Code, Refusal, Refused};
use askama::Template;

#[derive(Template)]
#[template(path = "problem.html")]
struct ProblemPage {
    frame: Frame,
    title: &'static str,
    detail: Line,
    errors: Vec<Line>,
    difference: Vec<Line>,
    /// What was sent in a form.
    kept: Option<KeptForm>,
    /// It was sent in a form that was not read.
    unread: bool,
    back: String,
    back_to: &'static str,
    code: &'static str,
}

/// The page of a refusal; of a form, with what was sent in it.
pub(super) fn page(visit: &Visit, refused: &Refusal) -> PageReply {
    shown(visit, refused, false)
}

/// The page of a refusal that came before the form was read.
pub(super) fn unread(visit: &Visit, refused: &Refusal) -> PageReply {
    shown(visit, refused, true)
}

fn shown(visit: &Visit, refused: &Refusal, unread: bool) -> PageReply {
    let code = refused.code;
    let title = match code {
        Code::NotFound => "Not found",
        Code::Forbidden | Code::CrossSite => "Not allowed",
        _ => code.title(),
    };
    let (back, back_to) = match (code, page_of(&visit.asked)) {
        (Code::NotFound | Code::Forbidden | Code::CrossSite, _) | (_, "/") => ("/", "What needs you now"),
        (_, page) => (page, "Back to the page"),
    };
    let back = match visit.form.filled("next").filter(|_| back == "/sign-in") {
        Some(next) => link(back, &[("next", &local(next))]),
        None => back.to_string(),
    };
    let differs = |part: &fernery_client::wire::Difference| {
        Line::of(format_args!("{}: {} is now {}", part.path, part.before, part.now))
    };
    let page = ProblemPage {
        frame: visit.frame(title),
        title,
        detail: Line::of(&refused.detail),
        errors: refused
            .errors
            .iter()
            .map(|error| Line::of(format_args!("{}: {}", error.pointer, error.detail)))
            .collect(),
        difference: refused.more.difference.iter().map(differs).collect(),
        kept: kept(visit, code),
        unread,
        back,
        back_to,
        code: code.as_str(),
    };
    let text = page.render().unwrap_or_default();
    PageReply::html(code.status(), text).retry_after(code.retry_after())
}

/// What was sent, and the form that sends it again where that may help: the server was busy or failed.
fn kept(visit: &Visit, code: Code) -> Option<KeptForm> {
    if visit.form.is_empty() {
        return None;
    }
    // Somebody was signing in while a form waited: that one is meant.
    let (path, fields) = match visit.form.filled("carried") {
        Some(carried) => (local(visit.form.text("next")), Fields::read(carried).unwrap_or_default()),
        None => (local(&visit.asked), visit.form.clone()),
    };
    let kept = KeptForm::of(&fields);
    if code.status() < 500 && code != Code::RateLimited {
        return Some(kept);
    }
    // Without its secret it can only be refused: it is typed anew on its page.
    if has_secret(&fields) {
        return None;
    }
    let form_key = match &visit.signed_in {
        Some(signed_in) => signed_in.form_key.clone(),
        None => fields.text("form_key").to_string(),
    };
    Some(kept.again(&path, &fields, &form_key, "Send it again"))
}

/// The nearest page that can be looked at: an act has no page of its own.
pub(super) fn page_of(asked: &str) -> &str {
    let mut path = asked.split('?').next().unwrap_or_default();
    while !is_page(path) {
        let Some((above, _)) = path.rsplit_once('/').filter(|(above, _)| !above.is_empty()) else { break };
        path = above;
    }
    // What is done to one thing of a list leads to the list.
    match path {
        "/stream" => "/streams",
        "/token" | "/session" => "/tokens",
        // It asks about the jobs that its address names; without them it can only refuse.
        "/bulk-ask" => "/jobs",
        path if is_page(path) => path,
        _ => "/",
    }
}

/// What a form that was refused says beside its fields.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    /// What was wrong, in words.
    pub(super) detail: Option<Line>,
    fields: Vec<(String, String)>,
}

impl Said {
    pub(super) fn of(refused: &Refused) -> Self {
        let fields = refused.errors.iter().map(|error| (error.pointer.clone(), error.detail.clone()));
        Self { detail: Some(Line::of(&refused.detail)), fields: fields.collect() }
    }

    /// What was wrong with each field, where there are several; one alone is the detail.
    pub(super) fn each(&self) -> Vec<Line> {
        let line = |(pointer, detail): &(String, String)| {
            Line(format!("{}: {detail}", pointer.trim_start_matches('/').replace('_', " ")))
        };
        if self.fields.len() > 1 { self.fields.iter().map(line).collect() } else { Vec::new() }
    }

    /// What was wrong with this field.
    pub(super) fn at(&self, field: &str) -> Option<&str> {
        let of_it = |pointer: &str| pointer.trim_start_matches(['/', '?']).split('/').next() == Some(field);
        self.fields.iter().find(|(pointer, _)| of_it(pointer)).map(|(_, detail)| detail.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::super::PAGES;
    use super::*;
    use http::Method;

    #[test]
    fn the_way_back_from_every_act_leads_to_a_page_that_can_be_looked_at() {
        for act in PAGES.iter().filter(|page| page.method == Method::POST) {
            let path = act.path.replace("{id}", "X-1").replace("{name}", "mail").replace("{link}", "x");
            assert!(is_page(page_of(&path)), "{} leads back to {}", act.path, page_of(&path));
        }
        for (asked, back) in [
            ("/dead/redrive", "/dead"),
            ("/bulk-ask?verb=paint", "/jobs"),
            ("/ticket/T-1/edit", "/ticket/T-1"),
            ("/review/r/comment?file=0", "/review/r"),
            ("/stream/mail/pause", "/streams"),
            ("/session/s/end", "/tokens"),
            ("/jobs?status=?", "/jobs"),
            ("/capture", "/"),
        ] {
            assert_eq!(page_of(asked), back, "{asked}");
        }
    }
}
