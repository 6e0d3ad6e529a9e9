//! Makes the parts of an output bundle from the evidence of a run.

use super::redaction::{INSTEAD, SECRET_BYTES_MIN};
use super::run::AgentRun;
use crate::git::start::Started;
use crate::git::take_patch::{NoPatch, TakenPatch};
use crate::guard::Ran;
use fernery_core::names::showable;
use fernery_core::patch::{Body, read};
use fernery_core::pipeline::execution::notes_of_spent_budget;
use fernery_core::pipeline::membrane::Outcome;
use fernery_core::pipeline::patching::{self, Cut, Left, Seen, Unready};
use fernery_core::pipeline::prompt::title_of;
use fernery_core::profile::AgentReport;
use fernery_core::{Digest, limits};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Bytes of an agent's last message that are kept.
const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// The evidence of a run.
pub(super) struct Evidence {
    pub(super) ran: Ran,
    pub(super) cut: Option<Cut>,
    pub(super) told: AgentReport,
    pub(super) found: Result<TakenPatch, NoPatch>,
    pub(super) wall_ms: u64,
    /// The folder that is kept, if no patch could be taken from it.
    pub(super) in_trash: Option<PathBuf>,
    pub(super) version: Option<String>,
    /// How its clone was made ready.
    pub(super) started: Started,
}

impl AgentRun {
    /// The secrets that the agent was given.
    pub(super) fn secrets(&self) -> Vec<String> {
        let given = self.profile.secrets.iter().filter_map(|name| std::env::var(name).ok());
        let mut found: Vec<String> = given.filter(|value| value.len() >= SECRET_BYTES_MIN).collect();
        // As it is escaped in JSON, which most agents write.
        let escaped = |secret: &String| json!(secret).to_string().trim_matches('"').to_string();
        let others: Vec<String> = found.iter().map(escaped).filter(|other| !found.contains(other)).collect();
        found.extend(others);
        found
    }

    /// A text without the secrets that the agent was given.
    fn redacted(&self, text: &str) -> String {
        self.secrets().iter().fold(text.to_string(), |text, secret| text.replace(secret, INSTEAD))
    }

    /// The description of a patch whose agent gave none: its purpose, and the files that it touches.
    fn plain_description(&self, patch: &str) -> String {
        let wanted = title_of(&self.snapshot);
        let named = read(patch).map(|patch| patch.files).unwrap_or_default();
        let files: String = named.iter().map(|file| format!("\n- {}", showable(&file.path))).collect();
        let whole = format!("{}\n\nThe agent gave no description. Files:{files}", showable(&wanted));
        cut_at(&whole, MESSAGE_BYTES_MAX).to_string()
    }

    pub(super) fn parts(&self, seen: Evidence) -> Value {
        let (started, candidate) = (&seen.started, self.candidate());
        let is_start = |found: &TakenPatch| started.tree.as_ref() == Some(&found.tree);
        let left = match &seen.found {
            Ok(found) if found.patch.is_empty() => Left::Nothing,
            Ok(found) if candidate.as_ref().is_some_and(|of| of.passed) && is_start(found) => Left::Same,
            Ok(_) => Left::Change,
            Err(NoPatch::Unfit(why)) => Left::Unfit(why),
            Err(NoPatch::Trouble(why)) => Left::Unknown(why),
        };
        let exit = seen.ran.seen.exit.code();
        let (dialect, told) = (self.profile.dialect, &seen.told);
        let (outcome, title) = patching::outcome(&Seen { dialect, exit, cut: seen.cut, told, left });
        let patch = seen.found.as_ref().map(|found| found.patch.as_str()).unwrap_or_default();
        let (files, insertions, deletions) = counted(patch);
        let counted = if files == 1 { "1 file".to_string() } else { format!("{files} files") };
        let counted = format!("patch of {counted}, +{insertions} −{deletions}");
        let title = match outcome {
            Outcome::Patch => format!("A {counted}"),
            _ => title,
        };
        let mut notes = cut_at(told.message.as_deref().unwrap_or_default(), MESSAGE_BYTES_MAX).to_string();
        if let Some(folder) = &seen.in_trash {
            notes = format!("What it left is kept at {}\n\n{notes}", folder.display());
        }
        if outcome != Outcome::Patch {
            let complaints = showable(&seen.ran.seen.stderr.text());
            notes.push_str(&format!("\n{}", complaints.trim()));
        }
        if outcome == Outcome::Budget {
            let captured = match files {
                0 => "nothing, because no file was changed".to_string(),
                _ => format!("a {counted}, as content"),
            };
            notes = notes_of_spent_budget(Some(seen.wall_ms), &captured, &notes);
        }
        let notes = cut_at(&self.redacted(&notes), limits::CRITERIA_BYTES_MAX / 2).to_string();
        let message = told.message.as_deref().map(|text| cut_at(text, MESSAGE_BYTES_MAX));
        let message = message.map(|text| self.redacted(text)).filter(|text| !text.trim().is_empty());
        let question = told.asked.as_deref().filter(|_| outcome == Outcome::Blocked);
        let started_from = candidate.map(|candidate| {
            let conflicts: Vec<&String> =
                started.start.conflicts().iter().take(limits::REWORK_FILES_TOLD_MAX).collect();
            json!({"how": started.start.word(), "output_id": candidate.output_id, "conflicts": conflicts})
        });
        let draft = message.or_else(|| (outcome == Outcome::Patch).then(|| self.plain_description(patch)));
        json!({
            "title": showable(&title).replace(['\n', '\t'], " ").chars().take(limits::TITLE_CHARS_MAX).collect::<String>(),
            "content": patch,
            "notes": notes.trim(),
            "metadata": {
                "outcome": outcome.as_str(),
                "branch_name": self.workorder.branch_name,
                "pr_description_draft": draft,
                "question": question.map(|question| self.redacted(question)),
                "started_from": started_from,
                "commit_sha": self.commit(),
                "base_sha": self.commit(),
                "base_branch": self.snapshot.metadata.get("base_branch"),
                "repo_ref": self.snapshot.metadata.get("repo_ref"),
                "tree": seen.found.as_ref().ok().map(|found| &found.tree),
                "patch_sha256": Digest::of_bytes(patch.as_bytes()).to_string(),
                "files": files,
                "insertions": insertions,
                "deletions": deletions,
                "executor": self.profile.name,
                "executor_version": seen.version,
                "session": told.session,
                "tokens": told.usage.as_ref().map(|usage| usage.tokens),
                "usage": told.usage,
                "cost_usd_micros": told.cost_usd_micros,
                "sandbox": self.tier.as_str(),
                "exit": exit,
                "wall_ms": seen.wall_ms,
                "leftover_processes": seen.ran.leftovers,
                "quarantine": seen.in_trash.as_ref().map(|folder| folder.display().to_string()),
            },
        })
    }
}

/// The parts of a bundle for a run that could not begin: nothing was spent, and a person has to act.
pub fn unready(what: Unready, why: &str) -> Value {
    let mut parts = without_work(Outcome::Infra, "The run could not start", why);
    parts["metadata"]["preflight"] = what.as_str().into();
    parts
}

pub(super) fn without_work(outcome: Outcome, title: &str, why: &str) -> Value {
    json!({
        "title": title,
        "content": "",
        "notes": showable(why),
        "metadata": {"outcome": outcome.as_str(), "tokens": null, "cost_usd_micros": null},
    })
}

fn cut_at(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Files, inserted lines and deleted lines. If the strict reader refuses the patch, only the files are counted.
fn counted(patch: &str) -> (usize, u64, u64) {
    match read(patch) {
        Ok(patch) => patch.files.iter().fold((patch.files.len(), 0, 0), |(files, plus, minus), file| {
            match &file.body {
                Body::Text { insertions, deletions, .. } => (files, plus + insertions, minus + deletions),
                _ => (files, plus, minus),
            }
        }),
        Err(_) => (patch.lines().filter(|line| line.starts_with("diff --git ")).count(), 0, 0),
    }
}
