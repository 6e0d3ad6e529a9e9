//! The question of an inbox workorder. It is stored in the snapshot, so that the answer is judged by the same question.

use super::facts::Facts;
use super::{Captured, manifest, triage};
use crate::artifact::{ContextSnapshot, DiazotrophType, Metadata, OutputBundle};
use crate::blueprint::{MANIFEST_BUILDER, TRIAGE};
use crate::calendar::Zone;
use crate::limits;
use crate::names::showable;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Faults of one answer that are told.
const FAULTS_SHOWN: usize = 5;

#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// What these captures are about.
    Triage {
        /// In the order in which they were captured.
        batch: Vec<Captured>,
        /// The time zone for words like "tomorrow".
        zone: Zone,
        /// The type of azolla that its candidates would mostly go to.
        target: String,
    },
    /// In which order a person should look at these.
    Manifest(Facts),
}

/// The executor that the built-in rules replace, and why; stored in the snapshot of such a workorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandIn {
    /// The executor that was asked before.
    pub maker: String,
    /// Why its answer was not accepted.
    pub why: String,
}

impl StandIn {
    /// As a snapshot has it.
    pub fn of(snapshot: &ContextSnapshot) -> Option<Self> {
        serde_json::from_value(snapshot.metadata.get(STANDS_IN)?.clone()).ok()
    }

    /// Who made what comes of it, as people are told.
    pub fn made_by(&self) -> String {
        format!("builtin, standing in for {}: {}", self.maker, self.why)
    }
}

/// Where a snapshot says whom it stands in for.
pub const STANDS_IN: &str = "stands_in";
const CAPTURE_IDS: &str = "capture_ids";
const TARGET: &str = "suggested_target_azolla_type";
const QUERIED: &str = "queried_azolla_ids";
/// What candidates are for where no azolla says otherwise.
const TARGET_DEFAULT: &str = "mec";

impl Question {
    /// Whom it is for.
    pub fn diazotroph_type(&self) -> DiazotrophType {
        DiazotrophType::stored(match self {
            Self::Triage { .. } => TRIAGE,
            Self::Manifest(_) => MANIFEST_BUILDER,
        })
    }

    /// As a snapshot has it.
    pub fn metadata(&self) -> Metadata {
        match self {
            Self::Triage { batch, zone, target } => [
                ("captures".to_string(), json!(batch)),
                ("time_zone".to_string(), json!(zone)),
                (TARGET.to_string(), json!(target)),
            ]
            .into(),
            Self::Manifest(facts) => [("facts".to_string(), json!(facts))].into(),
        }
    }

    /// What a snapshot asks; `None`: nothing of this kind.
    pub fn of(snapshot: &ContextSnapshot) -> Option<Self> {
        let read = |name: &str| snapshot.metadata.get(name).cloned();
        if let Some(facts) = read("facts") {
            return serde_json::from_value(facts).ok().map(Self::Manifest);
        }
        let batch = serde_json::from_value(read("captures")?).ok()?;
        let zone = read("time_zone").and_then(|zone| serde_json::from_value(zone).ok()).unwrap_or_default();
        let target = read(TARGET).and_then(|target| target.as_str().map(str::to_string));
        Some(Self::Triage { batch, zone, target: target.unwrap_or_else(|| TARGET_DEFAULT.to_string()) })
    }

    /// Adds to a bundle what the documents want in it and the snapshot knows, whoever handed it in: of which captures it is,
    /// for what type of azolla, what is ambiguous; or which azollas were asked.
    pub fn complete(&self, bundle: &mut OutputBundle) {
        match self {
            Self::Triage { batch, target, .. } => {
                let ids: Vec<_> = batch.iter().map(|captured| &captured.capture_id).collect();
                bundle.metadata.insert(CAPTURE_IDS.to_string(), json!(ids));
                let said = bundle.metadata.get(TARGET).and_then(Value::as_str);
                if said.is_none_or(|said| said.trim().is_empty()) {
                    bundle.metadata.insert(TARGET.to_string(), json!(target));
                }
                let Some(open) = triage::notes(&bundle.content) else { return };
                let notes = match bundle.notes.trim_end() {
                    "" => open,
                    said => format!("{said}\n\n{open}"),
                };
                let notes = showable(&notes);
                let end = notes.floor_char_boundary(limits::CRITERIA_BYTES_MAX);
                bundle.notes = notes[..end].to_string();
            }
            Self::Manifest(facts) => {
                let ids: Vec<_> = facts.asked.iter().map(|asked| &asked.azolla_id).collect();
                bundle.metadata.insert(QUERIED.to_string(), json!(ids));
            }
        }
    }

    /// As a program or a model is told.
    pub fn prompt(&self) -> String {
        match self {
            Self::Triage { batch, .. } => triage::prompt(batch),
            Self::Manifest(facts) => manifest::prompt(facts),
        }
    }

    /// The form of an answer, as a JSON Schema.
    pub fn answer_schema(&self) -> Value {
        match self {
            Self::Triage { .. } => triage::answer_schema(),
            Self::Manifest(_) => manifest::answer_schema(),
        }
    }

    /// The answer that needs nobody.
    pub fn builtin_answer(&self) -> String {
        let answer = match self {
            Self::Triage { batch, zone, .. } => serde_json::to_string(&triage::builtin(batch, zone)),
            Self::Manifest(facts) => serde_json::to_string(&manifest::builtin(facts)),
        };
        answer.unwrap_or_default()
    }

    /// What is wrong with a bundle that answers it.
    pub fn fault_of(&self, bundle: &OutputBundle) -> Option<String> {
        if let Self::Manifest(_) = self {
            let queried = bundle.metadata.get(QUERIED).and_then(Value::as_array);
            if queried.is_none_or(Vec::is_empty) {
                return Some(format!(
                    "/metadata/{QUERIED}: no azolla was asked; host one that the blueprint's [reads] names, or register one"
                ));
            }
        }
        self.fault(&bundle.content)
    }

    /// What is wrong with an answer.
    pub fn fault(&self, content: &str) -> Option<String> {
        let faults = match self {
            Self::Triage { batch, .. } => triage::read(content, batch).err(),
            Self::Manifest(facts) => manifest::read(content, facts).err(),
        }?;
        let more = faults.len().saturating_sub(FAULTS_SHOWN);
        let mut said = faults.into_iter().take(FAULTS_SHOWN).collect::<Vec<_>>().join("; ");
        if more > 0 {
            said.push_str(&format!("; and {more} more"));
        }
        Some(said)
    }
}
