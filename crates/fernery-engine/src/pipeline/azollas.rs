//! Azollas and their blueprints.

use super::inbox::notices;
use super::{Cell, Sql, journal, objectives};
use crate::error::{StoreError, StoreResult};
use crate::supervise::lock;
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, Metadata, Objective, ObjectiveStatus, ObjectiveType};
use fernery_core::blueprint::Blueprint;
use fernery_core::canonical::Digest;
use fernery_core::journal::Act;
use fernery_core::pipeline::waiting::{self, Waiting};
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex};

/// A blueprint with its digest.
#[derive(Clone, Debug)]
pub struct Registered {
    /// The digest of the whole document; the key under which it is stored.
    pub digest: Digest,
    pub blueprint: Arc<Blueprint>,
}

/// Blueprints that were read before. The cache needs no invalidation: the digest determines the blueprint.
static READ: LazyLock<Mutex<HashMap<Digest, Arc<Blueprint>>>> = LazyLock::new(Mutex::default);
/// Cached blueprints; more than anybody hosts.
const READ_MAX: usize = 256;

/// Puts a blueprint in force. Doing it again changes nothing.
pub fn register(sql: &mut dyn Sql, blueprint: &Blueprint) -> StoreResult<Digest> {
    let document = blueprint.to_json();
    let digest = Digest::of_bytes(document.as_bytes());
    let (azolla_id, now) = (blueprint.azolla_id.clone(), sql.now());
    if in_force(sql, &azolla_id)?.is_some_and(|known| known.digest == digest) {
        return Ok(digest);
    }
    let name = digest.to_string();
    let cells = [Cell::from(&name), azolla_id.as_str().into(), (&document).into(), now.into()];
    sql.touched(include_str!("sql/blueprint_insert.sql"), &cells)?;
    let tells = notices::told_by(blueprint.notices.as_ref());
    let cells = [Cell::from(azolla_id.as_str()), (&name).into(), now.into(), (&tells).into()];
    sql.touched(include_str!("sql/azolla_register.sql"), &cells)?;
    journal::note(sql, "fernery", Act::BlueprintInForce, azolla_id.as_str(), &json!({"blueprint": name}))?;
    create_standing_objective(sql, blueprint)?;
    Ok(digest)
}

/// Puts several blueprints in force, all in this transaction.
pub fn register_all(sql: &mut dyn Sql, blueprints: &[Blueprint]) -> StoreResult<()> {
    blueprints.iter().try_for_each(|blueprint| register(sql, blueprint).map(drop))
}

/// Creates the standing objective of an azolla without tickets.
fn create_standing_objective(sql: &mut dyn Sql, blueprint: &Blueprint) -> StoreResult<()> {
    let Some(duty) = &blueprint.standing else { return Ok(()) };
    let now = sql.now();
    let objective = Objective {
        objective_id: duty.objective_id.clone(),
        azolla_id: blueprint.azolla_id.clone(),
        title: duty.title.clone(),
        acceptance_criteria: duty.acceptance_criteria.clone(),
        objective_type: ObjectiveType::Standing,
        status: ObjectiveStatus::InProgress,
        importance: 0,
        urgency: 0,
        blocked_reason: None,
        blocked_on: Vec::new(),
        metadata: scope(&duty.scope_description),
        created_at: now,
        updated_at: now,
    };
    if objectives::insert(sql, &objective)? {
        return Ok(());
    }
    match objectives::lock(sql, &duty.objective_id)? {
        Some(mut known)
            if known.objective.azolla_id == blueprint.azolla_id
                && known.objective.objective_type == objective.objective_type =>
        {
            // An earlier version wrote it differently, or the blueprint has another scope now.
            let mut new = known.objective.clone();
            (new.importance, new.urgency) = (objective.importance, objective.urgency);
            new.metadata.extend(objective.metadata);
            if new != known.objective {
                known.objective = Objective { updated_at: now, ..new };
                objectives::update(sql, &known)?;
            }
            Ok(())
        }
        _ => Err(StoreError::Refused(format!(
            "azolla {} names its standing objective {}, but another objective has this id: choose another \
            standing.objective_id",
            blueprint.azolla_id, duty.objective_id
        ))),
    }
}

fn scope(description: &str) -> Metadata {
    [("scope_description".to_string(), json!(description))].into()
}

/// Which azollas are hosted, by what processes say.
#[derive(Clone, Debug)]
pub struct Hosting {
    /// When a process last said so: ever, and of those that have not taken it back.
    said_at: BTreeMap<AzollaId, (Option<Timestamp>, Option<Timestamp>)>,
    now: Timestamp,
}

impl Hosting {
    /// Whether some process runs the workers of this azolla.
    pub fn is_hosted(&self, azolla_id: &AzollaId) -> bool {
        let still = self.said_at.get(azolla_id).and_then(|(_, still)| *still);
        waiting::is_hosted(still, self.now)
    }

    /// When a process last said that it hosts this azolla.
    pub fn last(&self, azolla_id: &AzollaId) -> Option<Timestamp> {
        self.said_at.get(azolla_id).and_then(|(ever, _)| *ever)
    }

    /// Azollas whose workers nobody runs.
    pub fn abandoned(&self) -> impl Iterator<Item = &AzollaId> {
        self.said_at.keys().filter(|azolla_id| !self.is_hosted(azolla_id))
    }

    /// What an objective waits for if nobody runs the workers of its azolla.
    pub fn waiting(&self, azolla_id: &AzollaId) -> Option<Waiting> {
        let since = self.last(azolla_id);
        (!self.is_hosted(azolla_id)).then(|| Waiting::NotHosted { azolla_id: azolla_id.clone(), since })
    }
}

/// Reads which azollas are hosted.
pub fn hosting(sql: &mut dyn Sql) -> StoreResult<Hosting> {
    let rows = sql.query(include_str!("sql/azollas_hosted.sql"), &[])?;
    let said_at = rows.iter().map(|row| Ok((row.word(0)?, (row.maybe_at(1)?, row.maybe_at(2)?))));
    let said_at = said_at.collect::<StoreResult<_>>()?;
    Ok(Hosting { said_at, now: sql.now() })
}

/// The blueprints of an azolla, newest first, up to `limit`.
pub(super) fn earlier(sql: &mut dyn Sql, azolla_id: &AzollaId, limit: i64) -> StoreResult<Vec<Registered>> {
    let cells = [azolla_id.as_str().into(), limit.into()];
    let mut found = Vec::new();
    for row in sql.query(include_str!("sql/blueprints_of_azolla.sql"), &cells)? {
        found.extend(by_digest(sql, &row.word(0)?)?);
    }
    Ok(found)
}

/// The blueprint in force; `None`: there is no such azolla.
pub fn in_force(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<Option<Registered>> {
    let row = sql.one(include_str!("sql/azolla_by_id.sql"), &[azolla_id.as_str().into()])?;
    match row {
        Some(row) => by_digest(sql, &row.word(0)?),
        None => Ok(None),
    }
}

/// A blueprint that is or was in force.
pub fn by_digest(sql: &mut dyn Sql, digest: &Digest) -> StoreResult<Option<Registered>> {
    let known = lock(&READ).get(digest).cloned();
    if let Some(blueprint) = known {
        return Ok(Some(Registered { digest: *digest, blueprint }));
    }
    let name = digest.to_string();
    let row = sql.one(include_str!("sql/blueprint_by_digest.sql"), &[(&name).into()])?;
    let Some(row) = row else { return Ok(None) };
    let damaged = |e| StoreError::Corrupt(format!("a stored blueprint: {e}"));
    let blueprint = Arc::new(Blueprint::from_json(row.text(0)?).map_err(damaged)?);
    let mut read = lock(&READ);
    if read.len() >= READ_MAX {
        read.clear();
    }
    read.insert(*digest, blueprint.clone());
    Ok(Some(Registered { digest: *digest, blueprint }))
}

/// The ids of all azollas.
pub fn ids(sql: &mut dyn Sql) -> StoreResult<Vec<AzollaId>> {
    sql.query(include_str!("sql/azollas_all.sql"), &[])?.iter().map(|row| row.word(0)).collect()
}

/// All azollas, with the blueprints in force.
pub fn all(sql: &mut dyn Sql) -> StoreResult<Vec<Registered>> {
    let mut found = Vec::new();
    for id in ids(sql)? {
        found.extend(in_force(sql, &id)?);
    }
    Ok(found)
}
