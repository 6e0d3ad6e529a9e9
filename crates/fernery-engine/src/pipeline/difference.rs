//! What changed after somebody read an objective; they send only the digest of what they were shown.
//!
//! The shown version is searched among earlier versions of the objective and of its azolla's blueprint: edits are
//! undone one by one, under each blueprint, until the digest matches.

use super::objectives::Shown;
use super::{Sql, azollas, journal};
use crate::error::StoreResult;
use fernery_core::artifact::Objective;
use fernery_core::canonical::{self, Digest};
use serde_json::Value;

/// The maximum number of edits to undo and of blueprints to try; for older versions no difference is reported.
const EDITS_MAX: i64 = 50;
const BLUEPRINTS_MAX: i64 = 8;

/// Path, before, now.
pub(super) type Change = (String, Value, Value);

/// What changed since the version with this digest; nothing if that is not found.
pub(super) fn since(
    sql: &mut dyn Sql,
    objective: &Objective,
    digest: &Digest,
    now: &Shown,
) -> StoreResult<Vec<Change>> {
    let known = azollas::earlier(sql, &objective.azolla_id, BLUEPRINTS_MAX)?;
    let mut blueprints = vec![now.content["blueprint"].clone()];
    for earlier in known.iter().map(|known| known.blueprint.decisive()) {
        if !blueprints.contains(&earlier) {
            blueprints.push(earlier);
        }
    }
    let mut then = now.content.clone();
    let mut edits = journal::edits(sql, objective.objective_id.as_str(), EDITS_MAX)?.into_iter();
    loop {
        for blueprint in &blueprints {
            then["blueprint"] = blueprint.clone();
            if canonical::digest_of(&then) == *digest {
                return Ok(changes(&then, &now.content));
            }
        }
        let Some(edit) = edits.next() else { return Ok(Vec::new()) };
        for change in edit.why["changed"].as_array().into_iter().flatten() {
            let field = change[0].as_str().and_then(|path| path.strip_prefix('/')).unwrap_or_default();
            if let Some(held) = then.get_mut(field) {
                *held = change[1].clone();
            }
        }
    }
}

/// As [`between`], with the parts of the blueprint apart.
fn changes(then: &Value, now: &Value) -> Vec<Change> {
    let (mut found, mut parts) = (Vec::new(), Vec::new());
    for change in between(then, now) {
        if change.0 == "/blueprint" {
            let of = between(&change.1, &change.2);
            parts.extend(of.into_iter().map(|(path, a, b)| (format!("/blueprint{path}"), a, b)));
        } else {
            found.push(change);
        }
    }
    found.extend(parts);
    found
}

/// The fields in which two objects differ.
pub(super) fn between(from: &Value, to: &Value) -> Vec<Change> {
    let keys = |v: &Value| v.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    let mut names = keys(from);
    names.extend(keys(to));
    names.sort();
    names.dedup();
    names
        .into_iter()
        .filter(|name| from[name] != to[name])
        .map(|name| (format!("/{name}"), from[&name].clone(), to[&name].clone()))
        .collect()
}
