//! Artifacts of other instances, whose ids may not have our form. Such an artifact is stored under an id derived from
//! its own, always the same; its own id appears in its title and metadata, but in no command.

use super::one_line;
use crate::Digest;
use crate::artifact::{Objective, PauseState, check_id};
use serde_json::{Map, Value, json};

/// The metadata key with the foreign id of an objective.
const OWN_ID: &str = "foreign_id";
/// The metadata key that tells that a blocker has a foreign id.
const BLOCKERS: &str = "foreign_blockers";
/// Characters of a foreign id that are shown.
const SHOWN_CHARS: usize = 80;

/// The id under which something is kept here.
fn local(own: &str) -> String {
    let digest = Digest::of_bytes(own.as_bytes()).to_string();
    format!("x-{}", &digest[..16])
}

/// Replaces a foreign id by a local one; answers the foreign id.
fn localize(fields: &mut Map<String, Value>, key: &str) -> Option<String> {
    let own = fields.get(key)?.as_str().filter(|own| check_id(own).is_err())?.to_string();
    fields.insert(key.to_string(), json!(local(&own)));
    Some(own)
}

/// Reads an objective as another azolla tells it; `None`: it has not the form of one.
pub fn objective(value: &Value) -> Option<Objective> {
    let mut value = value.clone();
    let fields = value.as_object_mut()?;
    // Only this function may set these keys; values from users or other instances are removed.
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| key != OWN_ID && key != BLOCKERS);
    }
    let own = localize(fields, "objective_id");
    let blockers = fields.get_mut("blocked_on").and_then(Value::as_array_mut).into_iter().flatten();
    let changed: Vec<_> =
        blockers.filter_map(|blocker| localize(blocker.as_object_mut()?, "blocker_id")).collect();
    let mut objective: Objective = serde_json::from_value(value).ok()?;
    if let Some(own) = own {
        objective.title = format!("{}: {}", one_line(&own, SHOWN_CHARS), objective.title);
        objective.metadata.insert(OWN_ID.to_string(), json!(own));
    }
    if !changed.is_empty() {
        objective.metadata.insert(BLOCKERS.to_string(), json!(true));
    }
    Some(objective)
}

/// Reads a pause as another azolla tells it, and its objective's own id if that is not of our form.
pub fn pause(value: &Value) -> Option<(PauseState, Option<String>)> {
    let mut value = value.clone();
    let own = localize(value.as_object_mut()?, "objective_id");
    Some((serde_json::from_value(value).ok()?, own))
}

/// The id that an objective has where it belongs.
pub fn own_id(objective: &Objective) -> &str {
    foreign_id(objective).unwrap_or(objective.objective_id.as_str())
}

/// Its own id, if that is not of our form.
pub(super) fn foreign_id(objective: &Objective) -> Option<&str> {
    objective.metadata.get(OWN_ID).and_then(Value::as_str)
}

/// Whether its blockers can be named in a command.
pub(super) fn has_foreign_blockers(objective: &Objective) -> bool {
    objective.metadata.contains_key(BLOCKERS)
}

/// The action for something that no command of ours can name.
pub(super) fn look_at(own: &str, azolla: &str, server: Option<&str>) -> String {
    let at = server.map_or(String::new(), |server| format!(" at {server}"));
    format!("look at {:?} in {azolla}{at}", one_line(own, SHOWN_CHARS))
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::objective;
    use super::*;
    use crate::artifact::ObjectiveStatus;

    #[test]
    fn metadata_that_somebody_wrote_is_not_taken_for_an_own_id() {
        let mut value = json!(objective("T-1", ObjectiveStatus::New));
        value["metadata"] = json!({ "foreign_id": "another", "foreign_blockers": true, "note": "mine" });
        let read = objective_of(&value);
        assert_eq!((own_id(&read), has_foreign_blockers(&read)), ("T-1", false));
        assert_eq!(json!(read.metadata), json!({ "note": "mine" }));
        value["objective_id"] = json!("P.1");
        assert_eq!(own_id(&objective_of(&value)), "P.1");
    }

    fn objective_of(value: &Value) -> Objective {
        super::objective(value).expect("an objective")
    }
}
