//! Azollas and their blueprints.

use super::{Cell, Sql, journal};
use crate::error::{StoreError, StoreResult};
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::Blueprint;
use fernery_core::canonical::Digest;
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// A blueprint with the digest of all of it.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Under which it is stored.
    pub digest: Digest,
    /// What it says.
    pub blueprint: Arc<Blueprint>,
}

/// Blueprints that were read before: under its digest one never changes.
static READ: LazyLock<Mutex<HashMap<Digest, Arc<Blueprint>>>> = LazyLock::new(Mutex::default);
/// More than anybody hosts.
const READ_MAX: usize = 256;

/// Puts a blueprint in force. The same again changes nothing.
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
    let cells = [Cell::from(azolla_id.as_str()), (&name).into(), now.into()];
    sql.touched(include_str!("sql/azolla_register.sql"), &cells)?;
    journal::note(sql, "fernery", "blueprint_in_force", azolla_id.as_str(), &json!({"blueprint": name}))?;
    Ok(digest)
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
    let known = READ.lock().unwrap_or_else(PoisonError::into_inner).get(digest).cloned();
    if let Some(blueprint) = known {
        return Ok(Some(Registered { digest: *digest, blueprint }));
    }
    let name = digest.to_string();
    let row = sql.one(include_str!("sql/blueprint_by_digest.sql"), &[(&name).into()])?;
    let Some(row) = row else { return Ok(None) };
    let damaged = |e| StoreError::Corrupt(format!("a stored blueprint: {e}"));
    let blueprint = Arc::new(Blueprint::from_json(row.text(0)?).map_err(damaged)?);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
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
