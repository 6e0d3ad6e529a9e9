//! What a ticket names beside its texts, in the form that edits it: its labels, when it is due, its repository.

use super::super::visit::{Visit, api};
use crate::candidate_words::due_date;
use crate::http::problem::{Refusal, Refused};
use fernery_client::wire::{FieldProblem, ObjectiveView};
use fernery_core::artifact::{Metadata, Objective};
use fernery_core::inbox::label::{Label, is_same};
use serde_json::{Value, json};

/// The labels as words in one line; what is no label is not shown, and stays.
pub(super) fn labels(of: &Objective) -> String {
    of.labels().filter(|label| is_label(label)).collect::<Vec<_>>().join(" ")
}

pub(super) fn text<'a>(of: &'a Objective, key: &str) -> &'a str {
    of.metadata.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is_label(text: &str) -> bool {
    text.parse::<Label>().is_ok()
}

/// All facts with what was changed. The API takes them as a whole, so they are sent only where somebody changed one; `None` if not.
pub(super) async fn edited(visit: &Visit) -> Result<Option<Metadata>, Refused> {
    let form = &visit.form;
    let changed = |field: &str, was: &str| form.has(field) && form.text(field).trim() != form.text(was);
    let (labels, due) = (changed("labels", "labels_was"), changed("due", "due_was"));
    let repo = changed("repo_ref", "repo_was");
    if !(labels || due || repo) {
        return Ok(None);
    }
    let path = api("/v1/objectives/", &visit.param, "");
    let now: ObjectiveView = visit.get(&path, &[("documents", "false")]).await?;
    let mut facts = now.objective.metadata;
    let mut wrong = Vec::new();
    let mut mistake = |field: &str, why: String| {
        wrong.push(FieldProblem { pointer: format!("/{field}"), detail: why });
    };
    if labels && let Err(why) = label(&mut facts, form.text("labels")) {
        mistake("labels", why);
    }
    if due {
        match form.filled("due").map(due_date).transpose() {
            Ok(due) => set(&mut facts, "due_at", due.map(Value::from)),
            Err(why) => mistake("due", why),
        }
    }
    if repo {
        set(&mut facts, "repo_ref", form.filled("repo_ref").map(Value::from));
    }
    if wrong.is_empty() { Ok(Some(facts)) } else { Err(Refusal::fields(wrong)) }
}

/// Makes these words the labels. One that came as a project stays one.
fn label(facts: &mut Metadata, typed: &str) -> Result<(), String> {
    let words = typed.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let mut new: Vec<String> = Vec::new();
    for word in words {
        let label = word.parse::<Label>().map_err(|why| format!("{word}: {why}"))?.into_string();
        if !new.iter().any(|known| is_same(known, &label)) {
            new.push(label);
        }
    }
    for key in ["projects", "labels"] {
        let before = facts.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let stays = |known: &Value| match known.as_str() {
            Some(known) if is_label(known) => new.iter().any(|label| is_same(label, known)),
            _ => true,
        };
        let mut after: Vec<Value> = before.into_iter().filter(stays).collect();
        let kept = |label: &String| after.iter().filter_map(Value::as_str).any(|known| is_same(known, label));
        let rest: Vec<String> = new.iter().filter(|label| !kept(label)).cloned().collect();
        if key == "projects" {
            new = rest;
        } else {
            after.extend(rest.into_iter().map(Value::from));
        }
        set(facts, key, (!after.is_empty()).then(|| json!(after)));
    }
    Ok(())
}

fn set(facts: &mut Metadata, key: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(facts.insert(key.to_string(), value)),
        None => drop(facts.remove(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(before: Value, typed: &str) -> Result<Value, String> {
        let mut facts: Metadata = serde_json::from_value(before).unwrap();
        label(&mut facts, typed).map(|()| json!(facts))
    }

    #[test]
    fn the_words_that_are_typed_become_the_labels() {
        let before = json!({ "projects": ["home"], "labels": ["web", "two words", 7], "other": 1 });
        let after = labelled(before.clone(), "Web, +garden home web").unwrap();
        let wanted = json!({ "projects": ["home"], "labels": ["web", "two words", 7, "garden"], "other": 1 });
        assert_eq!(after, wanted, "each once, what is no label stays, and a project is one");
        assert_eq!(labelled(before, "").unwrap(), json!({ "labels": ["two words", 7], "other": 1 }));
        assert_eq!(labelled(json!({ "labels": ["web"] }), " ").unwrap(), json!({}));
        let wrong = labelled(json!({}), "web 1st").unwrap_err();
        assert!(wrong.starts_with("1st: a label is one word"), "{wrong}");
    }
}
