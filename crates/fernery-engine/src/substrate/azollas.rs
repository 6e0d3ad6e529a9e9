//! Azollas and their blueprints.

use super::{Cell, Row, Sql, journal};
use crate::error::{StoreError, StoreResult};
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::Blueprint;
use fernery_core::canonical::Digest;
use serde_json::json;

/// A blueprint with the digest of all of it.
#[derive(Clone, Debug)]
pub struct Registered {
    /// Under which it is stored.
    pub digest: Digest,
    /// What it says.
    pub blueprint: Blueprint,
}

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
    sql.one(include_str!("sql/blueprint_in_force.sql"), &[azolla_id.as_str().into()])?
        .map(|row| registered(&row))
        .transpose()
}

/// A blueprint that is or was in force.
pub fn by_digest(sql: &mut dyn Sql, digest: &Digest) -> StoreResult<Option<Registered>> {
    let name = digest.to_string();
    sql.one(include_str!("sql/blueprint_by_digest.sql"), &[(&name).into()])?
        .map(|row| registered(&row))
        .transpose()
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

fn registered(row: &Row) -> StoreResult<Registered> {
    let damaged = |e| StoreError::Corrupt(format!("a stored blueprint: {e}"));
    Ok(Registered { digest: row.word(1)?, blueprint: Blueprint::from_json(row.text(0)?).map_err(damaged)? })
}
