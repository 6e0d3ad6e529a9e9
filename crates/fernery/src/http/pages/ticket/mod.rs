//! `GET /ticket/{id}`: a ticket from NEW to DONE, and what a person can do to it. The acts are in [`acts`], a new ticket in
//! [`new`].

pub(super) mod acts;
mod facts;
pub(super) mod new;

use super::frame::Frame;
use super::is_page;
use super::refused::{RefusedAct, WithoutForm};
use super::show::{Line, Prose, Ways, When};
use super::suggested;
use super::visit::{Shown, Visit, api};
use crate::ticket_words as words;
use askama::Template;
use fernery_client::wire::{AzollaList, ObjectiveDetail};
use fernery_core::artifact::{BlockerKind, BlockerRef, ObjectiveStatus};
use fernery_core::inbox::deadline::is_cancelled;
use fernery_core::percent::encode;
use fernery_core::pipeline::possible::{SeenStatus, Verb};
use serde_json::{Value, json};

/// Things that happened, as many as are shown at once.
const MOMENTS: usize = 200;

/// One thing that happened.
struct Happened {
    at: When,
    who: Line,
    what: Line,
    more: Vec<Line>,
    /// How it is marked: by a person, well, badly.
    mark: &'static str,
}

/// A part of what happened.
struct History {
    happened: Vec<Happened>,
    before: usize,
    after: usize,
}

/// Something that keeps it from going on.
struct Blocker {
    id: String,
    kind: &'static str,
    description: Prose,
}

#[derive(Template)]
#[template(path = "ticket/ticket.html")]
struct Ticket {
    frame: Frame,
    id: String,
    title: Line,
    status: String,
    azolla: String,
    importance: u8,
    urgency: u8,
    labels: Vec<Line>,
    metadata: Vec<(Line, Line)>,
    criteria: Prose,
    /// Facts about how it stands, each with its name.
    stands: Vec<(&'static str, Line)>,
    progress: Option<u8>,
    blockers: Vec<Blocker>,
    question: Option<Prose>,
    /// What an answer approves.
    digest: String,
    question_run: String,
    next: Vec<Line>,
    /// The button of the next step: its words, its page, and the same from elsewhere.
    step: Option<(&'static str, String, Ways)>,
    happened: Vec<Happened>,
    /// How many came before those that are shown, and how many after.
    before: usize,
    after: usize,
    can: Can,
    kinds: Vec<&'static str>,
    edited: Edited,
    refused: RefusedAct,
}

/// What a person can do now.
struct Can {
    edit: bool,
    block: bool,
    unblock: bool,
    /// The run that passed before, to be confirmed.
    keep: Option<String>,
    reopen: bool,
    /// What a reopening would approve is not what was last approved.
    changed: bool,
    snooze: bool,
    cancel: bool,
    done: bool,
    /// It is out of sight.
    wake: bool,
}

/// The text of a ticket, in the form that edits it.
struct Edited {
    title: String,
    criteria: String,
    importance: String,
    urgency: String,
    labels: String,
    due: String,
    /// The repository that it names, and those that it may name.
    repo: String,
    repos: Vec<String>,
}

pub(super) async fn show(visit: Visit) -> Shown {
    page(&visit, RefusedAct::none()).await
}

async fn page(visit: &Visit, refused: RefusedAct) -> Shown {
    let detail: ObjectiveDetail = visit.get(&api("/v1/objectives/", &visit.param, ""), &[]).await?;
    let repos = match visit.is_operator() && can(&detail).edit {
        true => visit.get::<AzollaList>("/v1/azollas", &[]).await?.repos,
        false => Vec::new(),
    };
    let repos = repos.into_iter().map(|repo| repo.name).collect();
    let until = visit.query.text("until").parse().ok();
    let History { happened, before, after } = history(&detail, until);
    let question = words::open_question(&detail);
    let view = &detail.view;
    let o = &view.objective;
    let id = o.objective_id.to_string();
    let ticket = Ticket {
        frame: visit.frame(format!("{} {}", id, o.title)),
        title: Line::of(&o.title),
        status: SeenStatus::of(o).to_string(),
        azolla: o.azolla_id.to_string(),
        importance: o.importance,
        urgency: o.urgency,
        labels: o.labels().map(Line::of).collect(),
        metadata: o.metadata.iter().map(|(key, value)| (Line::of(key), said(value))).collect(),
        criteria: Prose::of(&o.acceptance_criteria),
        stands: stands(&detail),
        progress: view.progress.as_ref().map(|progress| progress.percent()),
        blockers: o.blocked_on.iter().filter(|blocker| !blocker.resolved).map(blocker).collect(),
        digest: detail.approval.as_ref().map_or(String::new(), |approval| approval.digest.to_string()),
        question_run: question.as_ref().map_or(String::new(), |asked| asked.run_id.to_string()),
        question: question.map(|asked| Prose(asked.question)),
        next: detail.next.iter().map(Line::of).collect(),
        step: step(&detail),
        happened,
        before,
        after,
        can: can(&detail),
        kinds: BlockerKind::ALL.iter().map(|kind| kind.as_str()).collect(),
        edited: Edited {
            title: o.title.clone(),
            criteria: o.acceptance_criteria.clone(),
            importance: o.importance.to_string(),
            urgency: o.urgency.to_string(),
            labels: facts::labels(o),
            due: facts::text(o, "due_at").to_string(),
            repo: facts::text(o, "repo_ref").to_string(),
            repos,
        },
        refused,
        id,
    };
    visit.show_as(ticket.refused.status(), &ticket)
}

fn said(value: &Value) -> Line {
    Line(value.as_str().map_or_else(|| value.to_string(), str::to_string))
}

fn blocker(of: &BlockerRef) -> Blocker {
    Blocker { id: of.blocker_id.to_string(), kind: of.kind.as_str(), description: Prose::of(&of.description) }
}

/// How it stands, beyond its status.
fn stands(detail: &ObjectiveDetail) -> Vec<(&'static str, Line)> {
    let view = &detail.view;
    let mut facts = Vec::new();
    let mut push = |name, text: Option<String>| facts.extend(text.map(|text| (name, Line(text))));
    push("doing", view.progress.as_ref().and_then(|progress| progress.note()).map(str::to_string));
    push("waits", view.waiting.as_ref().map(|waiting| waiting.why.clone()));
    push("blocked", view.objective.blocked_reason.clone().filter(|_| !is_cancelled(&view.objective)));
    push("snoozed", view.snoozed_until.map(|until| format!("until {until}")));
    push("spent", words::envelope(detail));
    push("patch", view.landing.as_ref().map(words::landing_line));
    push("confirmed", view.unconfirmed.then(|| "not yet by a person".to_string()));
    facts
}

/// What happened, the newest last, up to a place that is counted from the beginning: what happens later does not move it.
fn history(detail: &ObjectiveDetail, until: Option<usize>) -> History {
    let mut all = words::timeline(detail);
    all.extend(words::claims(detail));
    all.sort_by_key(|moment| moment.at);
    let until = until.unwrap_or(all.len()).clamp(all.len().min(1), all.len());
    let (before, after) = (until.saturating_sub(MOMENTS), all.len() - until);
    let happened = all.into_iter().take(until).skip(before).map(|moment| Happened {
        at: When(moment.at),
        mark: mark(&moment.who, &moment.what),
        who: Line(moment.who),
        what: Line(moment.what),
        more: moment.more.into_iter().map(Line).collect(),
    });
    History { happened: happened.collect(), before, after }
}

/// How something that happened is marked, by who did it and what it says.
fn mark(who: &str, what: &str) -> &'static str {
    let by_person =
        !matches!(who, "readiness" | "scheduler" | "worker" | "executor" | "gate" | "landing" | "fernery");
    match what {
        _ if what.starts_with("FAIL")
            || what.contains("GATE_FAILED")
            || what.contains("EXHAUSTED")
            || what.starts_with("did not land")
            || who == "worker" && what.starts_with("attempt ") =>
        {
            "bad"
        }
        _ if what.starts_with("PASS") || what.contains("RUN_COMPLETE") => "good",
        _ if by_person => "person-act",
        _ => "",
    }
}

/// The next step that has a page.
fn step(detail: &ObjectiveDetail) -> Option<(&'static str, String, Ways)> {
    let o = &detail.view.objective;
    let id = o.objective_id.as_str();
    let step = if detail.allows(Verb::Approve) {
        (
            "Read and approve",
            api("/approve/", id, ""),
            suggested::ways(&format!("fernery ticket approve {id}")),
        )
    } else if detail.allows(Verb::Confirm) {
        let run = detail.runs.last()?["run_id"].as_str()?.to_string();
        ("Review", api("/review/", &run, ""), suggested::ways(&format!("fernery ticket confirm {id}")))
    } else {
        return None;
    };
    is_page(&step.1).then_some(step)
}

fn can(detail: &ObjectiveDetail) -> Can {
    let finished = detail.view.objective.status == ObjectiveStatus::Done && !detail.view.unconfirmed;
    Can {
        edit: detail.allows(Verb::Edit),
        block: detail.allows(Verb::Block),
        unblock: detail.allows(Verb::Unblock),
        keep: detail.kept_run.as_ref().map(ToString::to_string),
        reopen: detail.allows(Verb::Reopen),
        changed: !words::is_as_approved(detail),
        snooze: !finished && !is_cancelled(&detail.view.objective) && detail.view.snoozed_until.is_none(),
        cancel: detail.allows(Verb::Cancel),
        done: detail.allows(Verb::Done),
        wake: detail.view.snoozed_until.is_some(),
    }
}

impl Ticket {
    /// The page that ends where this one begins, and the one that begins where this one ends.
    fn older(&self) -> String {
        format!("/ticket/{}?until={}#history", encode(&self.id), self.before)
    }

    fn newer(&self) -> String {
        let (until, all) =
            (self.before + self.happened.len() + MOMENTS, self.before + self.happened.len() + self.after);
        match until < all {
            true => format!("/ticket/{}?until={until}#history", encode(&self.id)),
            false => format!("/ticket/{}#history", encode(&self.id)),
        }
    }

    /// The repositories to choose from: those of this server, and the one that the ticket names.
    fn repos(&self) -> Vec<&str> {
        let named = Some(self.edited.repo.as_str()).filter(|repo| !repo.is_empty());
        let others = self.edited.repos.iter().map(String::as_str).filter(|repo| Some(*repo) != named);
        named.into_iter().chain(others).collect()
    }

    /// A repository that was chosen and is not there any more.
    fn gone_repo(&self) -> Option<&str> {
        self.refused.gone("edit", "repo_ref", |chosen| self.repos().contains(&chosen))
    }

    /// Whether the page has the form of this act: it is possible now, and this person may.
    fn offers(&self, act: &str) -> bool {
        let can = &self.can;
        let possible = match act {
            "answer" => self.question.is_some(),
            "done" => can.done,
            "unblock" => can.unblock,
            "keep" => can.keep.is_some(),
            "reopen" => can.reopen,
            "edit" => can.edit,
            "block" => can.block,
            "snooze" => can.snooze,
            "wake" => can.wake,
            "cancel" => can.cancel,
            _ => false,
        };
        self.frame.operator && possible
    }

    /// An act that was refused and is not possible any more.
    fn lost(&self) -> Option<WithoutForm<'_>> {
        self.refused.without_form(self.offers(self.refused.act()))
    }

    /// An act from a terminal and by HTTP.
    fn ways(&self, act: &str) -> Ways {
        let (id, path) = (&self.id, api("/v1/objectives/", &self.id, ""));
        let (command, body) = match act {
            "edit" => {
                return Ways::new(
                    format!("fernery ticket edit {id} --title '…'"),
                    "PATCH",
                    &path,
                    Some(&json!({ "title": "…" }).to_string()),
                );
            }
            "block" => (
                format!("fernery ticket block {id} --kind USER_INPUT --description '…'"),
                json!({ "kind": "USER_INPUT", "description": "…" }),
            ),
            "unblock" => (format!("fernery ticket unblock {id} --all"), json!({ "all": true })),
            "answer" => (
                format!("fernery ticket answer {id} '…'"),
                json!({ "digest": self.digest, "run_id": self.question_run, "answer": "…" }),
            ),
            "keep" => {
                let run = self.can.keep.as_deref().unwrap_or_default();
                let path = format!("{path}/confirm");
                let body = json!({ "run_id": run }).to_string();
                return Ways::new(
                    format!("fernery ticket confirm {id} --run {run}"),
                    "POST",
                    &path,
                    Some(&body),
                );
            }
            "reopen" => (
                format!("fernery ticket reopen {id} --note '…'"),
                json!({ "digest": self.digest, "note": "…" }),
            ),
            "snooze" => (format!("fernery snooze {id} tomorrow"), json!({ "until": "tomorrow" })),
            "wake" => {
                let (path, body) = (format!("{path}/snooze"), json!({ "until": null }).to_string());
                return Ways::new(format!("fernery snooze {id} --off"), "POST", &path, Some(&body));
            }
            "done" => (format!("fernery done {id}"), json!({ "note": "…" })),
            act => (format!("fernery ticket {act} {id}"), json!({})),
        };
        Ways::new(command, "POST", &format!("{path}/{act}"), Some(&body.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_marked_by_who_did_it_and_how_it_went() {
        assert_eq!(mark("landing", "did not land: gate tests (exit 2)"), "bad");
        assert_eq!(mark("landing", "landed on main"), "", "no person did it");
        assert_eq!(mark("worker", "attempt 1 was lost"), "bad");
        assert_eq!(mark("gate", "PASS"), "good");
        assert_eq!(mark("operator", "approved"), "person-act");
    }
}
