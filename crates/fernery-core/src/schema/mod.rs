//! The JSON Schemas of the artifacts, compiled in from `schemas/`, and what a document has against its own.
//!
//! The files are the truth and plain JSON Schema (draft 2020-12), so that any validator can read them; `rule` reads the
//! keywords that they use. A test holds its verdicts against those of a whole validator.

mod rule;
#[cfg(test)]
mod tests;

use rule::Rule;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::LazyLock;

/// Violations of one document that are told at once.
const VIOLATIONS_MAX: usize = 100;

/// The schema of one artifact.
#[derive(Debug)]
pub struct Schema {
    name: &'static str,
    text: &'static str,
    about: String,
    rule: Rule,
}

/// Something that a document has against its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Where, as a JSON Pointer; empty is the document itself.
    pub pointer: String,
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        f.write_str(&self.message)
    }
}

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../../schemas/", $name, ".schema.json")))),+]
    };
}

/// In the order in which a run makes them.
static SCHEMAS: LazyLock<Vec<Schema>> = LazyLock::new(|| {
    embedded!(
        "objective",
        "blocker_ref",
        "event",
        "context_snapshot",
        "workorder",
        "output_bundle",
        "run_record",
        "pause_state",
        "claim_record",
        "capture_buffer",
        "session_manifest",
        "substrate_query",
        "substrate_query_response",
        // Records of our own, which an export has beside the artifacts of the protocol.
        "candidate",
        "attempt",
    )
    .into_iter()
    .map(|(name, text)| Schema::compiled(name, text).expect("a schema that is compiled in can be read"))
    .collect()
});

impl Schema {
    fn compiled(name: &'static str, text: &'static str) -> Result<Self, String> {
        let document: Value = serde_json::from_str(text).map_err(|e| format!("{name}: {e}"))?;
        let about = document["description"].as_str().unwrap_or_default().to_string();
        let rule = Rule::read(&document, &document["$defs"]).map_err(|why| format!("{name}: {why}"))?;
        Ok(Self { name, text, about, rule })
    }

    pub fn all() -> &'static [Self] {
        &SCHEMAS
    }

    /// The schema of this artifact, like `run_record`.
    pub fn named(name: &str) -> Option<&'static Self> {
        SCHEMAS.iter().find(|schema| schema.name == name)
    }

    /// The schema that a document was most likely written for: the one whose fields it has. None if it has less than half
    /// of any, or as much of two.
    pub fn of(document: &Value) -> Option<&'static Self> {
        let fields = document.as_object()?;
        let mut best: Option<(usize, &Self)> = None;
        let mut tied = false;
        for schema in SCHEMAS.iter() {
            let Some(apart) = schema.distance(fields) else { continue };
            match best {
                Some((least, _)) if apart > least => {}
                Some((least, _)) if apart == least => tied = true,
                _ => (best, tied) = (Some((apart, schema)), false),
            }
        }
        best.filter(|_| !tied).map(|(_, schema)| schema)
    }

    /// How many fields are in one but not in both, if at least half of the schema's are.
    fn distance(&self, fields: &Map<String, Value>) -> Option<usize> {
        let known = self.rule.properties();
        let both = known.keys().filter(|key| fields.contains_key(*key)).count();
        (both * 2 >= known.len()).then(|| known.len() + fields.len() - 2 * both)
    }

    /// The artifact it is of.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What that is, in a line.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The schema itself, as JSON.
    pub fn text(&self) -> &'static str {
        self.text
    }

    /// What a document has against it; nothing if it is valid.
    pub fn validate(&self, document: &Value) -> Vec<Violation> {
        let mut violations = Vec::new();
        self.rule.check(document, &mut String::new(), &mut violations);
        violations
    }
}
