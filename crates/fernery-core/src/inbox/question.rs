//! What a workorder of the inbox asks: it stands in its snapshot, so that whoever answers, and whoever judges the answer, go by
//! the same words.

use super::facts::Facts;
use super::{Captured, Zone, manifest, triage};
use crate::artifact::{ContextSnapshot, DiazotrophType, Metadata};
use crate::blueprint::{MANIFEST_BUILDER, TRIAGE};
use serde_json::{Value, json};

/// Faults of one answer that are told.
const FAULTS_SHOWN: usize = 5;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    /// What these captures are about.
    Triage {
        /// In the order in which they were captured.
        batch: Vec<Captured>,
        /// Where "tomorrow" is.
        zone: Zone,
    },
    /// In which order a person should look at these.
    Manifest(Facts),
}

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
            Self::Triage { batch, zone } => {
                [("captures".to_string(), json!(batch)), ("time_zone".to_string(), json!(zone))].into()
            }
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
        Some(Self::Triage { batch, zone })
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
            Self::Triage { batch, zone } => serde_json::to_string(&triage::builtin(batch, zone)),
            Self::Manifest(facts) => serde_json::to_string(&manifest::builtin(facts)),
        };
        answer.unwrap_or_default()
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
