//! Makes the workorders of a standing objective: triage of captures (track A), manifests (track B).
//!
//! Reads: the event, captures that wait, or what azollas answered; whether a workorder is under way. Claims: the event (before,
//! by itself). Writes, all or nothing: snapshot, workorder and its job, the captures that are in it, the event; and gives the
//! claim back. Does nothing where the claim was taken over or the tracks are not free.
//!
//! All workorders of the azolla belong to one objective, of which the database admits one under way (invariant 12). Captures
//! that wait go first: a manifest is made once none does, or those that are left wait for another try.

use super::azollas::{self, Registered};
use super::claims;
use super::issuing::{Issue, issue};
use super::manifests::{self, Answered};
use super::scheduling::{Claimed, Ids, Room, Scheduled, close};
use super::{Question as Ask, Row, Sql, candidates, captures, deadlines};
use crate::error::{StoreError, StoreResult};
use fernery_core::artifact::{
    AzollaId, CaptureId, ContextSnapshot, Event, ObjectiveId, TerminalReason, WorkorderId,
};
use fernery_core::inbox::facts::{Facts, Own, facts};
use fernery_core::inbox::{Captured, Question};
use fernery_core::{Timestamp, limits};

/// Candidates and captures are counted up to here.
pub(super) const COUNTED_MAX: i64 = 100_000;

/// Whether the tracks of an azolla are free for a triage.
pub fn room_for_triage(sql: &mut dyn Sql, registered: &Registered) -> StoreResult<Room> {
    // Of the azolla, not of the objective alone: a blueprint may have named another one before.
    let cells = [registered.blueprint.azolla_id.as_str().into(), 1.into()];
    let active = sql.one(include_str!("sql/workorders_active.sql"), &cells)?;
    Ok(match active.map_or(Ok(0), |row| row.int(0))? {
        0 => Room::Left(1),
        _ => Room::Track,
    })
}

/// Whether they are free for a manifest: triage goes first whenever both wait.
pub fn room_for_manifest(sql: &mut dyn Sql, registered: &Registered) -> StoreResult<Room> {
    let blueprint = &registered.blueprint;
    match room_for_triage(sql, registered)? {
        Room::Left(_) if blueprint.triage.is_some() && captures_wait(sql, &blueprint.azolla_id)? => {
            Ok(Room::Triage)
        }
        room => Ok(room),
    }
}

fn duty(registered: &Registered) -> StoreResult<&ObjectiveId> {
    let standing = registered.blueprint.standing.as_ref();
    let missing = || StoreError::Corrupt("an azolla of tickets has no tracks".into());
    standing.map(|standing| &standing.objective_id).ok_or_else(missing)
}

/// The blueprint in force, under the lock of the azolla's row.
fn locked(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<Registered> {
    sql.query(include_str!("sql/azolla_lock.sql"), &[azolla_id.as_str().into()])?;
    let gone = || StoreError::Corrupt(format!("azolla {azolla_id} has no blueprint"));
    azollas::in_force(sql, azolla_id)?.ok_or_else(gone)
}

/// What is there of each claimed event, under lock, and whether its claim was still there; it is given back.
fn loaded(sql: &mut dyn Sql, claimed: &[Claimed]) -> StoreResult<Vec<(Option<Row>, bool)>> {
    let mut asked: Vec<Ask<'_>> = Vec::with_capacity(claimed.len() * 2);
    for one in claimed {
        asked.push((include_str!("sql/event_lock.sql"), vec![one.event.event_id.as_str().into()]));
        asked.push(claims::releasing(&one.held));
    }
    let mut answers = sql.query_all(&asked)?.into_iter();
    let mut next = || answers.next().unwrap_or_default();
    Ok(claimed.iter().map(|_| (next().into_iter().next(), next().len() == 1)).collect())
}

/// What to answer for an event that needs no more looking at here.
fn settled(stored: Option<&Row>, released: bool) -> StoreResult<Option<Scheduled>> {
    Ok(match stored {
        Some(stored) if stored.flag(5)? => Some(Scheduled::Before(stored.word(7)?)),
        Some(_) if released => None,
        _ => Some(Scheduled::ClaimLost),
    })
}

/// Deals with claimed CAPTURE_READY events, in this order; answers for each.
pub fn schedule_triage(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    claimed: &[Claimed],
) -> StoreResult<Vec<Scheduled>> {
    let registered = locked(sql, azolla_id)?;
    let mut room = room_for_triage(sql, &registered)?;
    let mut done = Vec::with_capacity(claimed.len());
    for (one, (stored, released)) in claimed.iter().zip(loaded(sql, claimed)?) {
        if let Some(settled) = settled(stored.as_ref(), released)? {
            done.push(settled);
            continue;
        }
        if !matches!(room, Room::Left(_)) {
            done.push(Scheduled::NoRoom(room));
            continue;
        }
        let scheduled = match make_triage(sql, &one.event, &registered, &one.ids)? {
            Some(workorder) => {
                room = Room::Track;
                close(sql, &one.event, TerminalReason::Scheduled, Some(&workorder))?;
                Scheduled::Workorder(workorder)
            }
            None => {
                close(sql, &one.event, TerminalReason::NoPendingCaptures, None)?;
                Scheduled::Closed(TerminalReason::NoPendingCaptures)
            }
        };
        let capture = one.event.resource_id.as_str();
        sql.touched(include_str!("sql/capture_unannounced.sql"), &[capture.into()])?;
        sql.wakes(super::Stage::Captures);
        sql.wakes(super::Stage::Manifest);
        done.push(scheduled);
    }
    Ok(done)
}

/// A workorder for the captures that have waited longest; `None`: none waits.
fn make_triage(
    sql: &mut dyn Sql,
    event: &Event,
    registered: &Registered,
    ids: &Ids,
) -> StoreResult<Option<WorkorderId>> {
    let blueprint = &registered.blueprint;
    let most = blueprint.triage.as_ref().map_or(1, |triage| triage.batch);
    let batch = next_batch(sql, &event.azolla_id, most)?;
    if batch.is_empty() {
        return Ok(None);
    }
    let taken: Vec<CaptureId> = batch.iter().map(|captured| captured.capture_id.clone()).collect();
    let question = Question::Triage { batch, zone: blueprint.zone.clone() };
    let workorder = ask(sql, event, registered, &question, ids)?;
    let now = sql.now();
    for capture_id in taken {
        let cells = [capture_id.as_str().into(), workorder.as_str().into(), now.into()];
        sql.write(capture_id.as_str(), include_str!("sql/capture_taken.sql"), &cells)?;
    }
    Ok(Some(workorder))
}

/// Captures that were tried equally often, from the one that has waited longest. Each try has a quarter of the one before, so
/// that what fails is found, and does not hold up what was captured with it.
fn next_batch(sql: &mut dyn Sql, azolla_id: &AzollaId, most: u32) -> StoreResult<Vec<Captured>> {
    let now: Timestamp = sql.now();
    let cells = [azolla_id.as_str().into(), now.into()];
    let Some(next) = sql.one(include_str!("sql/captures_next.sql"), &cells)? else { return Ok(Vec::new()) };
    let tries = next.int(0)?;
    let most = (i64::from(most) >> (2 * tries.clamp(0, 15))).max(1);
    let cells = [azolla_id.as_str().into(), now.into(), tries.into(), most.into()];
    let mut batch = Vec::new();
    let mut bytes = 0;
    for row in sql.query(include_str!("sql/captures_batch.sql"), &cells)? {
        let captured = Captured {
            capture_id: row.word(0)?,
            text: row.text(1)?.to_string(),
            source_label: row.text(2)?.to_string(),
            created_at: row.at(3)?,
        };
        bytes += serde_json::to_string(&captured).map_or(usize::MAX / 2, |text| text.len());
        if bytes > limits::TRIAGE_BYTES_MAX && !batch.is_empty() {
            break;
        }
        batch.push(captured);
    }
    Ok(batch)
}

/// Makes the workorder that asks this.
fn ask(
    sql: &mut dyn Sql,
    event: &Event,
    registered: &Registered,
    question: &Question,
    ids: &Ids,
) -> StoreResult<WorkorderId> {
    let mut metadata = question.metadata();
    metadata.insert("azolla_id".into(), serde_json::json!(event.azolla_id));
    let snapshot = ContextSnapshot {
        snapshot_id: ids.snapshot_id.clone(),
        objective_id: duty(registered)?.clone(),
        metadata,
        related_yield_refs: Vec::new(),
        full_prompt_text: question.prompt(),
        created_at: sql.now(),
    };
    let of = question.diazotroph_type();
    let (job_id, budget) = (ids.job_id, registered.blueprint.budget);
    issue(
        sql,
        Issue {
            event,
            registered,
            job_id,
            diazotroph_type: &of,
            snapshot,
            branch_name: None,
            budget,
            repo_ref: None,
        },
    )
}

/// Deals with a claimed MANIFEST_REQUESTED, by what the azollas answered. Where nothing has changed since the last manifest,
/// none is made.
pub fn schedule_manifest(
    sql: &mut dyn Sql,
    claimed: &Claimed,
    answered: &[Answered],
) -> StoreResult<Scheduled> {
    let azolla_id = &claimed.event.azolla_id;
    let registered = locked(sql, azolla_id)?;
    let room = room_for_manifest(sql, &registered)?;
    let (stored, released) = loaded(sql, std::slice::from_ref(claimed))?.pop().unwrap_or_default();
    if let Some(settled) = settled(stored.as_ref(), released)? {
        return Ok(settled);
    }
    if !matches!(room, Room::Left(_)) {
        return Ok(Scheduled::NoRoom(room));
    }
    manifests::record(sql, azolla_id, &claimed.event.event_id, answered)?;
    let facts = gathered(sql, &registered, answered)?;
    if manifests::last_digest(sql, azolla_id)? == Some(facts.digest()) {
        close(sql, &claimed.event, TerminalReason::Unchanged, None)?;
        sql.wakes(super::Stage::Manifest);
        return Ok(Scheduled::Closed(TerminalReason::Unchanged));
    }
    let workorder = ask(sql, &claimed.event, &registered, &Question::Manifest(facts), &claimed.ids)?;
    close(sql, &claimed.event, TerminalReason::Scheduled, Some(&workorder))?;
    Ok(Scheduled::Workorder(workorder))
}

/// What needs a person, by what the azollas answered and what waits here.
fn gathered(sql: &mut dyn Sql, registered: &Registered, answered: &[Answered]) -> StoreResult<Facts> {
    let (blueprint, now) = (&registered.blueprint, sql.calendar());
    let (candidates, oldest_candidate) = candidates::count(sql, &blueprint.azolla_id, COUNTED_MAX)?;
    let own = Own {
        azolla_id: blueprint.azolla_id.clone(),
        candidates,
        oldest_candidate,
        pending_captures: captures::pending(sql, &blueprint.azolla_id, COUNTED_MAX)?,
    };
    let mut told = manifests::told(answered);
    for told in &mut told {
        told.clocks = deadlines::clocks(sql, &blueprint.azolla_id, &told.asked.azolla_id, &told.objectives)?;
    }
    Ok(facts(&told, &own, &blueprint.urgency, now))
}

/// Whether a capture may be looked through now.
pub fn captures_wait(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<bool> {
    let cells = [azolla_id.as_str().into(), sql.now().into()];
    Ok(sql.one(include_str!("sql/captures_next.sql"), &cells)?.is_some())
}
