//! How many workorders an azolla may get now, and which limit leaves no room.

use super::Sql;
use super::azollas::Registered;
use crate::error::StoreResult;
use fernery_core::artifact::AzollaId;

/// Room for more workorders, or the limit that leaves none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Room {
    /// Room for so many.
    Left(i64),
    /// As many workorders are unfinished as the blueprint allows.
    Concurrency,
    /// As many objectives wait for confirmation as the blueprint allows.
    Review,
    /// The standing objective has an unfinished workorder.
    Track,
    /// Captures wait: triage goes first.
    Triage,
}

impl Room {
    /// The name under which a worker's pass counts it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Left(_) => "room",
            Self::Concurrency => "no_room_concurrency",
            Self::Review => "no_room_review",
            Self::Track => "no_room_track",
            Self::Triage => "triage_first",
        }
    }
}

/// How many workorders may be made now.
pub fn room(sql: &mut dyn Sql, blueprint: &Registered) -> StoreResult<Room> {
    let limits = &blueprint.blueprint.limits;
    // What waits for a person takes nobody's place.
    if blueprint.blueprint.is_for_people() {
        return Ok(Room::Left(i64::MAX));
    }
    let azolla = blueprint.blueprint.azolla_id.clone();
    let mut count = |statement, limit: u32| {
        let row = sql.one(statement, &[azolla.as_str().into(), i64::from(limit).into()])?;
        row.map_or(Ok(0), |row| row.int(0))
    };
    if limits.review_limit > 0 {
        let waiting = count(include_str!("sql/objectives_unconfirmed.sql"), limits.review_limit)?;
        if waiting >= limits.review_limit.into() {
            return Ok(Room::Review);
        }
    }
    if limits.concurrency == 0 {
        return Ok(Room::Left(i64::MAX));
    }
    match i64::from(limits.concurrency)
        - count(include_str!("sql/workorders_active.sql"), limits.concurrency)?
    {
        left @ 1.. => Ok(Room::Left(left)),
        _ => Ok(Room::Concurrency),
    }
}

/// Whether the tracks of an azolla are free for a triage.
pub fn room_for_triage(sql: &mut dyn Sql, registered: &Registered) -> StoreResult<Room> {
    // Counted over the azolla, not over the objective: an earlier blueprint may have named another objective.
    let cells = [registered.blueprint.azolla_id.as_str().into(), 1.into()];
    let active = sql.one(include_str!("sql/workorders_active.sql"), &cells)?;
    Ok(match active.map_or(Ok(0), |row| row.int(0))? {
        0 => Room::Left(1),
        _ => Room::Track,
    })
}

/// Whether the tracks are free for a manifest. If captures wait too, triage goes first.
pub fn room_for_manifest(sql: &mut dyn Sql, registered: &Registered) -> StoreResult<Room> {
    let blueprint = &registered.blueprint;
    match room_for_triage(sql, registered)? {
        Room::Left(_) if blueprint.triage.is_some() && captures_wait(sql, &blueprint.azolla_id)? => {
            Ok(Room::Triage)
        }
        room => Ok(room),
    }
}

/// Whether a capture waits for triage now.
pub fn captures_wait(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<bool> {
    let cells = [azolla_id.as_str().into(), sql.now().into()];
    Ok(sql.one(include_str!("sql/captures_next.sql"), &cells)?.is_some())
}
