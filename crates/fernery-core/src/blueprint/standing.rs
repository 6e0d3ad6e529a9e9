//! The parts of the format for an azolla with a standing objective: its duty, its two tracks, and its notices.

use super::ExecutorKind;
use crate::artifact::{AzollaId, ObjectiveId};
use crate::calendar::{Missed, Schedule, Zone};
use crate::limits;
use crate::toml_file::{Fields, Found, Place, Reader};
use crate::words;
use serde::{Deserialize, Serialize};

const BATCH_DEFAULT: u32 = 50;

/// The standing objective of an azolla without tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    pub objective_id: ObjectiveId,
    /// The duty, in a line.
    pub title: String,
    /// How to tell that the duty is fulfilled.
    pub acceptance_criteria: String,
    /// What it covers: it stands in the metadata of the objective. Empty in what an earlier version stored, which is
    /// written back as it was: its digest is its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope_description: String,
}

/// Track A: captures become candidates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriageTrack {
    /// Captures in one workorder at most.
    pub batch: u32,
}

/// Track B: what needs a person becomes a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestTrack {
    /// The schedule of automatic manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

words!(
    /// Kinds of notices to the outside.
    NoticeOf {
        /// A new pause.
        PauseState = "pause_state",
        /// A new manifest.
        SessionManifest = "session_manifest",
    }
);

/// Where an azolla sends notices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notices {
    /// The URL that they are posted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The environment variable with the signing secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// A program that gets them; empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    pub on: Vec<NoticeOf>,
}

impl Reader {
    pub(super) fn standing(
        &mut self,
        file: &mut Fields,
        is_standing: bool,
        azolla_id: Option<&AzollaId>,
        description: &str,
    ) -> Option<Standing> {
        if !is_standing {
            self.only_standing(file, "standing");
            return None;
        }
        let Some(mut table) = self.table(file, "standing") else {
            self.missing(file, "standing", "an azolla of objective_type STANDING must say what its duty is");
            return None;
        };
        let id = self.text(&mut table, "objective_id");
        let id = match id {
            Some(found) => self.parsed::<ObjectiveId>(found).map(|found| found.value),
            None => azolla_id.and_then(|id| format!("{id}-standing").parse().ok()),
        };
        let title = self.required(&mut table, "title", "the duty in one line");
        let criteria = self.required(&mut table, "acceptance_criteria", "how to tell that the duty is done");
        let scope = self.text(&mut table, "scope_description");
        for (found, most) in [
            (&title, limits::TITLE_CHARS_MAX),
            (&criteria, limits::CRITERIA_BYTES_MAX),
            (&scope, limits::SCOPE_BYTES_MAX),
        ] {
            if let Some(found) = found
                && (found.value.trim().is_empty() || found.value.len() > most)
            {
                self.flaw(found.at, &found.path, format!("must have 1 to {most} characters"));
            }
        }
        self.end(table);
        let title = title?.value.trim().to_string();
        // If it is missing: the azolla's description, or else the title of its duty.
        let scope = scope.map(|found| found.value);
        let described =
            Some(description).filter(|text| !text.trim().is_empty() && text.len() <= limits::SCOPE_BYTES_MAX);
        let scope_description = scope.unwrap_or_else(|| described.unwrap_or(&title).to_string());
        Some(Standing { objective_id: id?, title, acceptance_criteria: criteria?.value, scope_description })
    }

    pub(super) fn triage(&mut self, file: &mut Fields, is_standing: bool) -> Option<TriageTrack> {
        if !is_standing {
            self.only_standing(file, "triage");
            return None;
        }
        let mut table = self.table(file, "triage")?;
        let batch = self.small(&mut table, "batch", 1..=limits::TRIAGE_BATCH_MAX);
        self.end(table);
        Some(TriageTrack { batch: batch.unwrap_or(BATCH_DEFAULT) })
    }

    pub(super) fn manifest(
        &mut self,
        file: &mut Fields,
        is_standing: bool,
        zone: &Zone,
    ) -> Option<ManifestTrack> {
        if !is_standing {
            self.only_standing(file, "manifest");
            return None;
        }
        let mut table = self.table(file, "manifest")?;
        let missed = self.text(&mut table, "missed");
        let missed = missed.and_then(|found| self.word(found, Missed::ALL, Missed::as_str));
        let missed = missed.map_or(Missed::Once, |found| found.value);
        let cron = self.line(&mut table, "schedule", 200);
        self.end(table);
        let schedule = cron.and_then(|Found { value, at, path }| {
            let parsed = Schedule::parse(&value, zone.clone(), missed);
            parsed.map_err(|why| self.flaw(at, &path, why)).ok()
        });
        Some(ManifestTrack { schedule })
    }

    pub(super) fn zone(&mut self, file: &mut Fields) -> Zone {
        let found = self.text(file, "time_zone").and_then(|found| self.parsed::<Zone>(found));
        found.map(|found| found.value).unwrap_or_default()
    }

    pub(super) fn notices(&mut self, file: &mut Fields) -> Option<Notices> {
        let mut table = self.table(file, "notices")?;
        let webhook = self.line(&mut table, "webhook", 2_000);
        let secret_env = self.line(&mut table, "secret_env", 200);
        if let (Some(url), None) = (&webhook, &secret_env) {
            let why = "notices are signed: name the environment variable with the secret as secret_env";
            self.flaw(url.at, &url.path, why);
        }
        let command = self.program(&mut table, "command").unwrap_or_default();
        let mut on = Vec::new();
        if let Some(list) = self.list(&mut table, "on") {
            for (at, path, value) in self.texts(list) {
                let found = self.word(Found { value, at, path }, NoticeOf::ALL, NoticeOf::as_str);
                on.extend(found.map(|found| found.value));
            }
        } else {
            on.extend(NoticeOf::ALL);
        }
        self.end(table);
        let (webhook, secret_env) = (webhook.map(|found| found.value), secret_env.map(|found| found.value));
        (webhook.is_some() || !command.is_empty()).then_some(Notices { webhook, secret_env, command, on })
    }

    fn only_standing(&mut self, file: &mut Fields, key: &'static str) {
        if let Some((at, path)) = file.drop(key) {
            self.flaw(at, &path, "is only for an azolla of objective_type STANDING");
        }
    }

    /// The built-in rules and models serve only these two types.
    pub(super) fn check_builtin(&mut self, at: Place, path: &str, kind: ExecutorKind, of: &str) {
        let kinds = [super::TRIAGE, super::MANIFEST_BUILDER];
        if matches!(kind, ExecutorKind::Builtin | ExecutorKind::Llm) && !kinds.contains(&of) {
            self.flaw(at, path, format!("`{kind}` is only for {} and {}", kinds[0], kinds[1]));
        }
        if kind == ExecutorKind::Person && kinds.contains(&of) {
            self.flaw(at, path, "`person` is only for tickets: nobody waits for a person to sort the inbox");
        }
    }
}
