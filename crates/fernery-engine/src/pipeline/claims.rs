//! The lease of polling workers: events that a scheduler holds, executed workorders that a gate holds.
//!
//! The version travels with the event or the workorder, so that an old number never becomes true again (invariant 9).
//!
//! Every row of `claims` is a claim_record. Each write of it (acquisition, take-over, renewal) is checked against the schema
//! first. The runner holds a workorder by the lease of its job, which needs no such check: `fernery_core::job::lease` shows
//! that its types admit no other record.

use super::{Cell, Sql, Statement};
use crate::error::{StoreError, StoreResult};
use fernery_core::artifact::{AzollaId, ClaimRecord, Event, EventType, ResourceType};
use fernery_core::job::lease::FENCE_STEP;
use fernery_core::{Schema, Timestamp};
use std::time::Duration;

/// A claim that somebody holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldClaim {
    /// The kind of resource.
    pub resource_type: ResourceType,
    pub resource_id: String,
    pub owner_id: String,
    /// Proves that nobody has taken over.
    pub claim_version: i64,
}

/// Who claims, and for how long.
#[derive(Clone, Debug)]
pub struct Claimer {
    /// Unique to this worker of this process.
    pub owner_id: String,
    /// How long a claim holds unless it is renewed.
    pub ttl: Duration,
}

/// Whether somebody holds a resource now.
pub(super) fn is_held(sql: &mut dyn Sql, resource_type: ResourceType, id: &str) -> StoreResult<bool> {
    let cells = [resource_type.as_str().into(), id.into(), sql.now().into()];
    Ok(sql.one(include_str!("sql/claim_held.sql"), &cells)?.is_some())
}

/// Takes up to `limit` events of one type that nobody holds, oldest first.
pub fn take_events(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    event_type: EventType,
    by: &Claimer,
    limit: i64,
) -> StoreResult<Vec<(Event, HeldClaim)>> {
    let now = sql.now();
    let cells = [azolla_id.as_str().into(), now.into(), limit.into(), event_type.as_str().into()];
    let free = sql.query(include_str!("sql/events_free.sql"), &cells)?;
    let events: Vec<Event> = free.iter().map(super::reading::event).collect::<StoreResult<_>>()?;
    let seen = events.iter().zip(&free).map(|(event, row)| Ok((event.event_id.as_str(), row.int(6)?)));
    let held = take(sql, ResourceType::Event, &seen.collect::<StoreResult<Vec<_>>>()?, by)?;
    Ok(events.into_iter().zip(held).filter_map(|(event, held)| Some((event, held?))).collect())
}

/// Takes each of these resources, which were read with these versions; `None` where somebody was faster.
pub(super) fn take(
    sql: &mut dyn Sql,
    resource_type: ResourceType,
    seen: &[(&str, i64)],
    by: &Claimer,
) -> StoreResult<Vec<Option<HeldClaim>>> {
    let now = sql.now();
    // Lock order everywhere: the resource before its claim. The resource always exists, and its version shows whether
    // somebody held it since it was read, even if that claim is already gone.
    let raising = version_statement(resource_type);
    let versions: Vec<Statement<'_>> =
        seen.iter().map(|(id, version)| (raising, vec![(*id).into(), (*version).into()])).collect();
    let raised = sql.query_all(&versions)?;
    let mut held = Vec::with_capacity(seen.len());
    for ((id, _), row) in seen.iter().zip(&raised) {
        let Some(row) = row.first() else {
            held.push(None);
            continue;
        };
        let (resource_id, owner_id) = (id.to_string(), by.owner_id.clone());
        let mine = HeldClaim { resource_type, resource_id, owner_id, claim_version: row.int(0)? };
        check_form(&mine, now, by.ttl)?;
        held.push(Some(mine));
    }
    let claims: Vec<Statement<'_>> = held.iter().flatten().map(|held| acquire(held, now, by.ttl)).collect();
    let mut taken = sql.query_all(&claims)?.into_iter();
    drop(claims);
    for mine in &mut held {
        // There is one answer for each version that was raised, in this order.
        if mine.is_some() && taken.next().is_none_or(|rows| rows.is_empty()) {
            *mine = None;
        }
    }
    Ok(held)
}

fn acquire(held: &HeldClaim, now: Timestamp, ttl: Duration) -> Statement<'_> {
    let cells = vec![
        held.resource_type.as_str().into(),
        (&held.resource_id).into(),
        (&held.owner_id).into(),
        now.after(ttl).into(),
        now.into(),
        held.claim_version.into(),
    ];
    (include_str!("sql/claim_acquire.sql"), cells)
}

/// Raises the version of the resource; `None`: it is no longer the version that was read.
fn raise(sql: &mut dyn Sql, resource_type: ResourceType, id: &str, version: i64) -> StoreResult<Option<i64>> {
    let row = sql.one(version_statement(resource_type), &[id.into(), version.into()])?;
    row.map(|row| row.int(0)).transpose()
}

fn version_statement(resource_type: ResourceType) -> &'static str {
    match resource_type {
        ResourceType::Event => include_str!("sql/event_version.sql"),
        ResourceType::Workorder => include_str!("sql/workorder_version.sql"),
    }
}

/// Renews; `None`: somebody has taken over, and the holder must stop (invariant 11).
pub fn renew(sql: &mut dyn Sql, held: &HeldClaim, ttl: Duration) -> StoreResult<Option<HeldClaim>> {
    let now = sql.now();
    let Some(claim_version) = raise(sql, held.resource_type, &held.resource_id, held.claim_version)? else {
        return Ok(None);
    };
    let renewed = HeldClaim { claim_version, ..held.clone() };
    check_form(&renewed, now, ttl)?;
    let cells: [Cell<'_>; 6] = [
        held.resource_type.as_str().into(),
        (&held.resource_id).into(),
        (&held.owner_id).into(),
        held.claim_version.into(),
        now.after(ttl).into(),
        now.into(),
    ];
    let still_ours = sql.touched(include_str!("sql/claim_renew.sql"), &cells)? == 1;
    Ok(still_ours.then_some(renewed))
}

/// Gives it back; `false`: somebody has taken over, and nothing may be written with it.
pub fn release(sql: &mut dyn Sql, held: &HeldClaim) -> StoreResult<bool> {
    let (statement, cells) = releasing(held);
    Ok(sql.touched(statement, &cells)? == 1)
}

/// Gives back everything that a process holds, and says how much that was. Its workers have stopped: a write of theirs that is
/// still on its way finds its claim gone, and changes nothing.
pub fn release_all(sql: &mut dyn Sql, owner_id: &str) -> StoreResult<usize> {
    sql.touched(include_str!("sql/claims_release_owner.sql"), &[owner_id.into()])
}

/// The statement that gives a claim back. It answers one row, or none if somebody has taken over.
pub(super) fn releasing(held: &HeldClaim) -> Statement<'_> {
    let cells = vec![
        held.resource_type.as_str().into(),
        (&held.resource_id).into(),
        (&held.owner_id).into(),
        held.claim_version.into(),
    ];
    (include_str!("sql/claim_release.sql"), cells)
}

/// After a restore: no claim that was given out since the backup can match, and everything is free.
pub(crate) fn fence(sql: &mut dyn Sql) -> StoreResult<()> {
    sql.touched(include_str!("sql/events_fence.sql"), &[FENCE_STEP.into()])?;
    sql.touched(include_str!("sql/workorders_fence.sql"), &[FENCE_STEP.into()])?;
    sql.touched(include_str!("sql/claims_free.sql"), &[])?;
    Ok(())
}

/// A stored claim has the protocol's form.
fn check_form(held: &HeldClaim, now: Timestamp, ttl: Duration) -> StoreResult<()> {
    let record = ClaimRecord {
        resource_type: held.resource_type,
        resource_id: held.resource_id.clone(),
        owner_id: held.owner_id.clone(),
        lease_expires_at: now.after(ttl),
        heartbeat_at: now,
        claim_version: held.claim_version,
    };
    let value = serde_json::to_value(record).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let Some(schema) = Schema::named("claim_record") else {
        return Err(StoreError::Corrupt("there is no schema of claim_record to check by".into()));
    };
    match schema.validate(&value).first() {
        None => Ok(()),
        Some(violation) => Err(StoreError::Corrupt(format!("a claim_record: {violation}"))),
    }
}

/// All claims of polling workers.
pub fn all(sql: &mut dyn Sql, limit: i64) -> StoreResult<Vec<ClaimRecord>> {
    sql.query(include_str!("sql/claims_all.sql"), &[limit.into()])?
        .iter()
        .map(|row| {
            Ok(ClaimRecord {
                resource_type: row.word(0)?,
                resource_id: row.text(1)?.to_string(),
                owner_id: row.text(2)?.to_string(),
                lease_expires_at: row.at(3)?,
                heartbeat_at: row.at(4)?,
                claim_version: row.int(5)?,
            })
        })
        .collect()
}
