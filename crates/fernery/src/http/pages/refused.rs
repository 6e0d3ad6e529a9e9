//! An act that was refused: its page comes back with the reason and with what was typed, whether or not the page still has the form.

use super::fields::Fields;
use super::kept::KeptForm;
use super::show::Line;
use super::trouble::Said;
use super::visit::Visit;
use crate::http::problem::Refused;
use askama::Template;
use askama::filters::HtmlSafe;

/// What a page shows of an act that was refused; of none, when the page is only looked at.
#[derive(Debug)]
pub(super) struct RefusedAct {
    act: &'static str,
    typed: Fields,
    said: Said,
    status: u16,
}

impl RefusedAct {
    /// Nothing was refused: the page is looked at.
    pub(super) fn none() -> Self {
        Self { act: "", typed: Fields::default(), said: Said::default(), status: 200 }
    }

    /// The page is shown again with this. Where the server itself failed, its page is that of the failure.
    pub(super) fn of(act: &'static str, visit: &Visit, refused: Refused) -> Result<Self, Refused> {
        match refused.code.status() {
            500.. => Err(refused),
            status => Ok(Self { act, typed: visit.form.clone(), said: Said::of(&refused), status }),
        }
    }

    /// The status of the page that shows it.
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    pub(super) fn act(&self) -> &'static str {
        self.act
    }

    /// Whether the form of this act stands open.
    pub(super) fn open(&self, act: &str) -> bool {
        self.act == act
    }

    /// What was typed into a field of an act that was refused; else what stands there at first.
    pub(super) fn typed<'a>(&'a self, act: &str, field: &str, first: &'a str) -> &'a str {
        if self.open(act) { self.typed.text(field) } else { first }
    }

    /// Whether a box was ticked; at first it is as `first` says.
    pub(super) fn ticked(&self, act: &str, field: &str, value: &str, first: bool) -> bool {
        if self.open(act) { self.typed.all(field).any(|ticked| ticked == value) } else { first }
    }

    /// What was chosen and is not there any more: nothing else takes its place unseen.
    pub(super) fn gone(&self, act: &str, field: &str, there: impl FnOnce(&str) -> bool) -> Option<&str> {
        Some(self.typed(act, field, "")).filter(|chosen| !chosen.is_empty() && !there(chosen))
    }

    /// What was wrong, at the act that was refused.
    pub(super) fn problem(&self, act: &str) -> Option<&Line> {
        self.said.detail.as_ref().filter(|_| self.open(act))
    }

    pub(super) fn field_problem(&self, act: &str, field: &str) -> Option<&str> {
        self.said.at(field).filter(|_| self.open(act))
    }

    /// For a page that does not offer the act any more: the reason and what was typed, which no form shows.
    pub(super) fn without_form(&self, offered: bool) -> Option<WithoutForm<'_>> {
        let problem = self.said.detail.as_ref().filter(|_| !offered)?;
        Some(WithoutForm { problem, fields: self.said.each(), kept: KeptForm::of(&self.typed) })
    }
}

#[derive(Template)]
#[template(path = "refused.html")]
pub(super) struct WithoutForm<'a> {
    problem: &'a Line,
    fields: Vec<Line>,
    kept: KeptForm,
}

impl HtmlSafe for WithoutForm<'_> {}
