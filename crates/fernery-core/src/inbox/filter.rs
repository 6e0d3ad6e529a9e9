//! Which artifacts a question to another azolla asks for. Each key of its filter is honoured, or refused by name.

use crate::artifact::{ObjectiveStatus, PauseReason, SubstrateQuery};
use crate::blueprint::ReadableArtifact;
use crate::pipeline::Violation;
use crate::{Timestamp, limits};
use serde_json::Value;

/// A filter. Absent keys do not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Objectives: in one of these states.
    pub status: Vec<ObjectiveStatus>,
    /// Objectives: of one of these urgencies.
    pub urgency: Vec<u8>,
    /// Pauses: for one of these reasons.
    pub reason: Vec<PauseReason>,
    /// Objectives: changed after this, in that order.
    pub updated_after: Option<Timestamp>,
    /// With equal `updated_after`, after this id.
    pub after_id: String,
    /// Objectives: changed before this.
    pub updated_before: Option<Timestamp>,
    /// Objectives and pauses: made after this.
    pub created_after: Option<Timestamp>,
    /// Objectives and pauses: made before this.
    pub created_before: Option<Timestamp>,
    open: Option<bool>,
}

const OF_OBJECTIVES: &[&str] = &[
    "status",
    "urgency",
    "updated_after",
    "after_id",
    "updated_before",
    "created_after",
    "created_before",
    "open",
];
const OF_PAUSES: &[&str] = &["reason", "created_after", "created_before"];

impl Filter {
    /// Reads the filter of a question, or says of every key what is wrong with it.
    pub fn of(query: &SubstrateQuery) -> Result<Self, Vec<Violation>> {
        let known = match query.artifact_type {
            ReadableArtifact::Objective => OF_OBJECTIVES,
            ReadableArtifact::PauseState => OF_PAUSES,
            ReadableArtifact::BlockerRef => &[],
        };
        let (mut filter, mut found) = (Self::default(), Vec::new());
        for (key, value) in &query.filter {
            let read = match known.contains(&key.as_str()) {
                true => filter.read(key, value),
                false if known.is_empty() => Err(format!("{} takes no filter", query.artifact_type)),
                false => Err(format!("{} can be filtered by {}", query.artifact_type, known.join(", "))),
            };
            found.extend(read.err().map(|why| flaw(key, why)));
        }
        if !filter.after_id.is_empty() && filter.updated_after.is_none() {
            found.push(flaw("after_id", "goes with updated_after".to_string()));
        }
        if found.is_empty() { Ok(filter) } else { Err(found) }
    }

    fn read(&mut self, key: &str, value: &Value) -> Result<(), String> {
        match key {
            "status" => self.status = words(value)?,
            "reason" => self.reason = words(value)?,
            "urgency" => {
                let grade =
                    |value: &Value| value.as_u64().filter(|n| *n <= 4).and_then(|n| u8::try_from(n).ok());
                let all: Option<_> = each(value).into_iter().map(grade).collect();
                self.urgency = all
                    .filter(|all: &Vec<u8>| is_some_of_it(all))
                    .ok_or("a number from 0 to 4, or a list of them")?;
            }
            "open" => self.open = Some(value.as_bool().ok_or("true or false")?),
            "after_id" => {
                let id = value.as_str().filter(|id| id.chars().count() <= limits::TITLE_CHARS_MAX);
                self.after_id = id.filter(|id| !id.contains('\0')).ok_or("an id")?.to_string();
            }
            _ => {
                let at = value.as_str().and_then(|text| text.parse().ok());
                let at: Timestamp = at.ok_or("an instant like 2026-11-15T09:30:00Z")?;
                match key {
                    "updated_after" => self.updated_after = Some(at),
                    "updated_before" => self.updated_before = Some(at),
                    "created_after" => self.created_after = Some(at),
                    _ => self.created_before = Some(at),
                }
            }
        }
        Ok(())
    }

    /// Whether only open or unconfirmed objectives are asked for, which is the default if neither a state nor a
    /// change is named.
    pub fn is_open(&self) -> bool {
        self.open.unwrap_or(self.updated_after.is_none() && self.status.is_empty())
    }
}

fn flaw(key: &str, message: String) -> Violation {
    let pointer = key.replace('~', "~0").replace('/', "~1");
    Violation { path: format!("/filter/{pointer}"), message }
}

fn each(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |all| all.iter().collect())
}

fn is_some_of_it<T>(all: &[T]) -> bool {
    !all.is_empty() && all.len() <= 16
}

/// A word or a list of words.
fn words<T: std::str::FromStr<Err = String>>(value: &Value) -> Result<Vec<T>, String> {
    let expected = || "a word, or a list of words".to_string();
    let all = each(value).into_iter().map(|word| word.as_str().ok_or_else(expected)?.parse::<T>());
    let all: Vec<T> = all.collect::<Result<_, _>>()?;
    if is_some_of_it(&all) { Ok(all) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{AzollaId, QueryId};
    use serde_json::json;

    fn read(of: ReadableArtifact, filter: Value) -> Result<Filter, Vec<String>> {
        let query = SubstrateQuery {
            query_id: QueryId::stored("q"),
            source_azolla_id: AzollaId::stored("a"),
            target_azolla_id: AzollaId::stored("b"),
            artifact_type: of,
            filter: serde_json::from_value(filter).unwrap(),
            created_at: Timestamp::from_millis(0),
        };
        Filter::of(&query).map_err(|found| found.into_iter().map(|flaw| flaw.path).collect())
    }

    #[test]
    fn a_filter_is_honoured_or_refused_by_name() {
        use ReadableArtifact::{BlockerRef, Objective, PauseState};
        let all = json!({ "status": ["NEW", "BLOCKED"], "urgency": 0, "updated_after": "2026-01-01T00:00:00Z",
            "after_id": "T-1", "created_before": "2026-01-02T00:00:00Z", "open": false });
        let filter = read(Objective, all).unwrap();
        assert_eq!((filter.status.len(), &filter.urgency[..], filter.is_open()), (2, &[0][..], false));
        assert!(read(PauseState, json!({ "reason": "GATE_FAILED" })).is_ok());
        for (of, bad, path) in [
            (Objective, json!({ "reason": "GATE_FAILED" }), "/filter/reason"),
            (Objective, json!({ "status": "OPEN" }), "/filter/status"),
            (Objective, json!({ "status": [] }), "/filter/status"),
            (Objective, json!({ "urgency": 5 }), "/filter/urgency"),
            (Objective, json!({ "urgency": "high" }), "/filter/urgency"),
            (Objective, json!({ "updated_after": "yesterday" }), "/filter/updated_after"),
            (Objective, json!({ "after_id": "T-1" }), "/filter/after_id"),
            (Objective, json!({ "open": 1 }), "/filter/open"),
            (Objective, json!({ "a/b": 1 }), "/filter/a~1b"),
            (PauseState, json!({ "status": "NEW" }), "/filter/status"),
            (PauseState, json!({ "updated_after": "2026-01-01T00:00:00Z" }), "/filter/updated_after"),
            (BlockerRef, json!({ "status": "NEW" }), "/filter/status"),
        ] {
            assert_eq!(read(of, bad.clone()).unwrap_err(), [path], "{bad}");
        }
    }

    #[test]
    fn what_is_open_is_asked_for_unless_a_state_or_a_change_is_named() {
        let open = |filter| read(ReadableArtifact::Objective, filter).unwrap().is_open();
        assert!(open(json!({})) && open(json!({ "urgency": [0, 1] })));
        assert!(!open(json!({ "status": "DONE" })));
        assert!(!open(json!({ "updated_after": "2026-01-01T00:00:00Z" })));
        assert!(open(json!({ "updated_after": "2026-01-01T00:00:00Z", "open": true })));
    }
}
