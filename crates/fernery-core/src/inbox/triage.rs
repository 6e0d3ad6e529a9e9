//! Captures to candidates.

use super::{Candidate, Captured, Triage, Zone, hints};
use crate::artifact::Metadata;
use serde_json::{Value, json};

/// Triage without any model: one candidate for each capture, and none is left.
pub fn builtin(batch: &[Captured], zone: &Zone) -> Triage {
    let candidates = batch
        .iter()
        .map(|captured| {
            let hints = hints(&captured.text, captured.created_at, zone);
            Candidate {
                capture_ids: vec![captured.capture_id.clone()],
                acceptance_criteria: format!("Done when: {}", hints.title),
                title: hints.title,
                importance: 2,
                urgency: 3,
                metadata: Metadata::new(),
            }
        })
        .collect();
    Triage { candidates, left: Vec::new() }
}

/// The gate: what may be stored of an answer, or everything that is wrong with it.
pub fn read(content: &str, batch: &[Captured]) -> Result<Triage, Vec<String>> {
    let _ = batch;
    serde_json::from_str(content).map_err(|error| vec![error.to_string()])
}

/// The JSON Schema of [`Triage`], for a model that answers in a given form.
pub fn answer_schema() -> Value {
    json!({ "type": "object" })
}

/// What a command or a model is asked.
pub fn prompt(batch: &[Captured]) -> String {
    let _ = batch;
    String::new()
}
