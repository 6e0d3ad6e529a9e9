//! The facts as one to five lines.

pub use super::facts::{Asked, Facts, Item, Own, Told, facts};
use crate::Timestamp;
use crate::artifact::{AzollaId, ManifestId, SessionManifest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Lines of one manifest.
pub const LINES_MAX: usize = 5;

/// What is said of one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Of which.
    pub item_id: String,
    /// What it is, in a line.
    pub headline: String,
    /// Why now.
    pub why_now: String,
}

/// What somebody who comes back should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orientation {
    /// The first first.
    pub lines: Vec<Line>,
}

/// The manifest without any model: the items as they are ordered.
pub fn builtin(facts: &Facts) -> Orientation {
    let line = |item: &Item| Line {
        item_id: item.item_id.clone(),
        headline: item.title.clone(),
        why_now: item.why.join("; "),
    };
    Orientation { lines: facts.items.iter().take(LINES_MAX).map(line).collect() }
}

/// The gate: a replacement may reorder and rephrase, nothing more.
pub fn read(content: &str, facts: &Facts) -> Result<Orientation, Vec<String>> {
    let _ = facts;
    serde_json::from_str(content).map_err(|error| vec![error.to_string()])
}

/// The JSON Schema of [`Orientation`], for a model that answers in a given form.
pub fn answer_schema() -> Value {
    json!({ "type": "object" })
}

/// What a command or a model is asked.
pub fn prompt(facts: &Facts) -> String {
    let _ = facts;
    String::new()
}

/// How many items no line tells of.
pub fn cut(orientation: &Orientation, facts: &Facts) -> u64 {
    let items = facts.items.len() as u64 + facts.more;
    items.saturating_sub(orientation.lines.len() as u64)
}

/// One to five texts for the artifact, each with the command to type.
pub fn orientation_texts(orientation: &Orientation, facts: &Facts) -> Vec<String> {
    let _ = (orientation, facts);
    vec!["Nothing needs you.".to_string()]
}

/// The artifact.
pub fn manifest(
    manifest_id: ManifestId,
    azolla_id: AzollaId,
    orientation: &Orientation,
    facts: &Facts,
    now: Timestamp,
) -> SessionManifest {
    SessionManifest {
        manifest_id,
        azolla_id,
        queried_azolla_ids: facts.asked.iter().map(|asked| asked.azolla_id.clone()).collect(),
        pause_state_summary: facts.pauses(),
        prioritized_orientation: orientation_texts(orientation, facts),
        created_at: now,
    }
}
