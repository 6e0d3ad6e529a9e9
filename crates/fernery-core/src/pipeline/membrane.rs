//! What an executor may hand in. Only what passes here is stored and shown to people.

use super::{Violation, is_showable};
use crate::artifact::Metadata;
use crate::limits;
use crate::names::unprintable_in;
use crate::words;
use serde_json::{Map, Value, json};

words!(
    /// The outcome of an execution, as its executor reports it.
    Outcome {
        /// It made what was asked for.
        Output = "OUTPUT",
        Patch = "PATCH",
        NoChange = "NO_CHANGE",
        /// It ran and did not succeed.
        Failed = "FAILED",
        Budget = "BUDGET",
        /// It needs something from a person.
        Blocked = "BLOCKED",
        /// Something around it failed.
        Infra = "INFRA",
        /// It did not keep to the protocol.
        Protocol = "PROTOCOL",
        /// An operator ended it.
        Cancelled = "CANCELLED",
    }
);

impl Outcome {
    /// Whether the gates may pass it.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Output | Self::Patch)
    }
}

/// The parts of an output bundle that an executor makes. Ids and times are set by the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// What it is, in a line.
    pub title: String,
    pub content: String,
    /// What the executor says about it.
    pub notes: String,
    pub metadata: Metadata,
}

impl Parts {
    /// As the result of a job.
    pub fn result(&self) -> String {
        let Self { title, content, notes, metadata } = self;
        json!({"title": title, "content": content, "notes": notes, "metadata": metadata}).to_string()
    }

    /// The outcome. If the executor names none, it is OUTPUT.
    pub fn outcome(&self) -> Outcome {
        outcome(&self.metadata)
    }
}

/// The outcome that a bundle's metadata names.
pub fn outcome(metadata: &Metadata) -> Outcome {
    match metadata.get("outcome") {
        None => Outcome::Output,
        Some(word) => word.as_str().and_then(|word| word.parse().ok()).unwrap_or(Outcome::Protocol),
    }
}

/// The parts that an executor hands in.
const PARTS: [&str; 4] = ["title", "content", "notes", "metadata"];
/// The other fields of an output bundle. The server sets ids and times, so these are ignored.
const OURS: [&str; 3] = ["output_id", "objective_id", "created_at"];

/// Reads a result, which may be a whole output bundle; every violation at once.
pub fn parts(result: &Value) -> Result<Parts, Vec<Violation>> {
    let Value::Object(fields) = result else {
        return Err(vec![Violation::new("", "a JSON object with title, content, notes and metadata")]);
    };
    let mut found = Vec::new();
    let is_known = |name: &str| PARTS.contains(&name) || OURS.contains(&name);
    for name in fields.keys().filter(|name| !is_known(name)) {
        found.push(Violation::new(&format!("/{}", pointer(name)), "not a part of an output bundle"));
    }
    let title = text(fields, "title", &mut found).unwrap_or_default();
    let content = text(fields, "content", &mut found).unwrap_or_default();
    let notes = match fields.contains_key("notes") {
        true => text(fields, "notes", &mut found).unwrap_or_default(),
        false => String::new(),
    };
    let chars = title.chars().count();
    if fields.contains_key("title")
        && (chars > limits::TITLE_CHARS_MAX
            || title.trim().is_empty()
            || unprintable_in(&title).next().is_some())
    {
        let expected =
            format!("a title is one line of 1 to {} printable characters", limits::TITLE_CHARS_MAX);
        found.push(Violation::new("/title", expected));
    }
    if notes.len() > limits::CRITERIA_BYTES_MAX || !is_showable(&notes) {
        let expected = format!(
            "notes are at most {} bytes of text without control characters",
            limits::CRITERIA_BYTES_MAX
        );
        found.push(Violation::new("/notes", expected));
    }
    if content.len() > limits::CONTENT_BYTES_MAX || content.contains('\0') {
        let expected = format!("content is at most {} bytes of text without NUL", limits::CONTENT_BYTES_MAX);
        found.push(Violation::new("/content", expected));
    }
    let metadata = metadata(fields.get("metadata"), &mut found);
    if found.is_empty() { Ok(Parts { title, content, notes, metadata }) } else { Err(found) }
}

fn text(fields: &Map<String, Value>, name: &str, found: &mut Vec<Violation>) -> Option<String> {
    match fields.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            found.push(Violation::new(&format!("/{name}"), "a string"));
            None
        }
        None => {
            found.push(Violation::new(&format!("/{name}"), "missing; a string"));
            None
        }
    }
}

fn metadata(value: Option<&Value>, found: &mut Vec<Violation>) -> Metadata {
    let metadata: Metadata = match value {
        None => return Metadata::new(),
        Some(Value::Object(fields)) => fields.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        Some(_) => {
            found.push(Violation::new("/metadata", "an object"));
            return Metadata::new();
        }
    };
    let size = serde_json::to_string(&metadata).map_or(usize::MAX, |text| text.len());
    if size > limits::METADATA_BYTES_MAX {
        let expected = format!("metadata is at most {} bytes as JSON", limits::METADATA_BYTES_MAX);
        found.push(Violation::new("/metadata", expected));
    }
    if let Some(word) = metadata.get("outcome") {
        let known = word.as_str().ok_or_else(|| "a string".to_string()).and_then(str::parse::<Outcome>);
        found.extend(known.err().map(|expected| Violation::new("/metadata/outcome", expected)));
    }
    for name in ["tokens", "cost_usd_micros"] {
        if metadata.get(name).is_some_and(|value| !value.is_null() && value.as_u64().is_none()) {
            found.push(Violation::new(
                &format!("/metadata/{name}"),
                "a whole number, or null if it is not known",
            ));
        }
    }
    metadata
}

fn pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use serde_json::json;

    #[test]
    fn a_whole_bundle_is_taken_without_its_ids_and_times() {
        let whole = json!({"output_id": "o", "objective_id": "another", "title": "t", "metadata": {}, "content": "c",
            "notes": "n", "created_at": "2020-01-01T00:00:00Z"});
        assert!(Schema::named("output_bundle").unwrap().validate(&whole).is_empty());
        let wanted =
            Parts { title: "t".into(), content: "c".into(), notes: "n".into(), metadata: Metadata::new() };
        assert_eq!(parts(&whole), Ok(wanted));
        let odd = json!({"output_id": 7, "created_at": "yesterday", "title": "t", "content": "c"});
        assert!(parts(&odd).is_ok(), "nobody reads them");
    }

    #[test]
    fn what_is_not_a_bundle_is_refused_part_by_part() {
        let good =
            json!({"title": "t", "content": "", "notes": "n", "metadata": {"outcome": "PATCH", "tokens": 3}});
        assert_eq!(parts(&good).map(|p| p.outcome()), Ok(Outcome::Patch));
        assert_eq!(parts(&json!({"title": "t", "content": "c"})).map(|p| p.outcome()), Ok(Outcome::Output));
        for (bad, path) in [
            (json!([]), ""),
            (json!({"content": "c"}), "/title"),
            (json!({"title": "t"}), "/content"),
            (json!({"title": "a\nb", "content": "c"}), "/title"),
            (json!({"title": "t", "content": "a\0"}), "/content"),
            (json!({"title": "t", "content": "x".repeat(limits::CONTENT_BYTES_MAX + 1)}), "/content"),
            (json!({"title": "t", "content": "c", "notes": "\u{1b}[31m"}), "/notes"),
            (json!({"title": "t", "content": "c", "notes": 1}), "/notes"),
            (json!({"title": "t", "content": "c", "metadata": []}), "/metadata"),
            (json!({"title": "t", "content": "c", "metadata": {"outcome": "GREAT"}}), "/metadata/outcome"),
            (json!({"title": "t", "content": "c", "metadata": {"outcome": 1}}), "/metadata/outcome"),
            (json!({"title": "t", "content": "c", "metadata": {"tokens": "many"}}), "/metadata/tokens"),
            (json!({"title": "t", "content": "c", "work_order_id": "x"}), "/work_order_id"),
        ] {
            let found = parts(&bad).expect_err("a violation");
            assert_eq!(found.iter().map(|v| v.path.as_str()).collect::<Vec<_>>(), [path], "{bad}");
        }
    }
}
