//! A refusal as a page: what was wrong, and where to go on.

use super::frame::Frame;
use super::reply::PageReply;
use super::show::Line;
use super::visit::Visit;
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
    back: String,
    back_to: &'static str,
    code: &'static str,
}

/// The page of a refusal.
pub(super) fn page(visit: &Visit, refused: &Refusal) -> PageReply {
    let code = refused.code;
    let (title, back, back_to) = match code {
        Code::NotFound => ("Not found", "/", "What needs you now"),
        Code::Forbidden | Code::CrossSite => ("Not allowed", "/", "What needs you now"),
        _ => (code.title(), path_of(visit), "Back to the page"),
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
        back: back.to_string(),
        back_to,
        code: code.as_str(),
    };
    let text = page.render().unwrap_or_default();
    PageReply::html(code.status(), text).retry_after(code.retry_after())
}

fn path_of(visit: &Visit) -> &str {
    visit.asked.split('?').next().unwrap_or("/")
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

    /// What was wrong with this field.
    pub(super) fn at(&self, field: &str) -> Option<&str> {
        let of_it = |pointer: &str| pointer.trim_start_matches(['/', '?']).split('/').next() == Some(field);
        self.fields.iter().find(|(pointer, _)| of_it(pointer)).map(|(_, detail)| detail.as_str())
    }
}
