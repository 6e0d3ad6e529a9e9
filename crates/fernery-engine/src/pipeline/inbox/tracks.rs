//! Makes the workorders of a standing objective: triage of captures (track A), manifests (track B).
//!
//! Reads: the event; waiting captures, or the answers of azollas; whether a workorder is unfinished. Claims: the event (before,
//! in a transaction of its own). Writes, all or nothing: snapshot, workorder and its job, the captures in it, the event; and
//! gives the claim back. Does nothing where the claim was taken over or the tracks are not free.
//!
//! All workorders of the azolla belong to one objective, and the database admits one unfinished workorder of it (invariant
//! 12). Triage goes first: a manifest is made when no capture waits, or all that are left wait for a later try.

use super::answers::{self, Answered};
use super::manifests;
use super::{candidates, captures, deadlines, queries, recurrences};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::azollas::{self, Registered};
use crate::pipeline::claims;
use crate::pipeline::issuing::{Issue, issue};
use crate::pipeline::room::{Room, room_for_manifest, room_for_triage};
use crate::pipeline::scheduling::{ClaimedEvent, Ids, Scheduled, close, processed};
use crate::pipeline::{Row, Sql, Statement, after, landing, reading};
use fernery_core::artifact::{
    AzollaId, CaptureId, ContextSnapshot, DiazotrophType, Event, ObjectiveId, QueryStatus, TerminalReason,
    WorkorderId,
};
use fernery_core::blueprint::{Blueprint, MANIFEST_BUILDER, TRIAGE};
use fernery_core::inbox::facts::{AzollaAnswer, Facts, Own, Pressing, facts};
use fernery_core::inbox::question::STANDS_IN;
use fernery_core::inbox::{Captured, Question, StandIn, deadline};
use fernery_core::limits;

/// Candidates and captures are counted up to here.
pub(crate) const COUNTED_MAX: i64 = 100_000;
/// Urgent candidates, and candidates that are due, that have lines of their own.
const PRESSING_MAX: i64 = 20;

fn duty(registered: &Registered) -> StoreResult<&ObjectiveId> {
    let standing = registered.blueprint.standing.as_ref();
    let missing = || StoreError::Corrupt("an azolla of tickets has no tracks".into());
    standing.map(|standing| &standing.objective_id).ok_or_else(missing)
}

/// The blueprint in force, under the lock of the azolla's row.
fn locked(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<Registered> {
    sql.query(include_str!("../sql/azolla_lock.sql"), &[azolla_id.as_str().into()])?;
    let gone = || StoreError::Corrupt(format!("azolla {azolla_id} has no blueprint"));
    azollas::in_force(sql, azolla_id)?.ok_or_else(gone)
}

/// The row of each claimed event, under lock, and whether its claim was still held; the claim is given back.
fn loaded(sql: &mut dyn Sql, claimed: &[ClaimedEvent]) -> StoreResult<Vec<(Option<Row>, bool)>> {
    let mut asked: Vec<Statement<'_>> = Vec::with_capacity(claimed.len() * 2);
    for one in claimed {
        asked.push((include_str!("../sql/event_lock.sql"), vec![one.event.event_id.as_str().into()]));
        asked.push(claims::releasing(&one.held));
    }
    let mut answers = sql.query_all(&asked)?.into_iter();
    let mut next = || answers.next().unwrap_or_default();
    Ok(claimed.iter().map(|_| (next().into_iter().next(), next().len() == 1)).collect())
}

/// The answer for an event that was processed before, or whose claim was lost; `None`: it must be scheduled.
fn settled(stored: Option<&Row>, released: bool) -> StoreResult<Option<Scheduled>> {
    let Some(stored) = stored else { return Ok(Some(Scheduled::ClaimLost)) };
    let before = processed(stored)?.map(Scheduled::Before);
    Ok(before.or((!released).then_some(Scheduled::ClaimLost)))
}

/// Deals with claimed CAPTURE_READY events, in this order; answers for each.
pub fn schedule_triage(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    claimed: &[ClaimedEvent],
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
        sql.touched(include_str!("../sql/capture_unannounced.sql"), &[capture.into()])?;
        sql.wakes(crate::pipeline::Stage::Captures);
        sql.wakes(crate::pipeline::Stage::Manifest);
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
    let (batch, tries) = next_batch(sql, blueprint)?;
    if batch.is_empty() {
        return Ok(None);
    }
    let taken: Vec<CaptureId> = batch.iter().map(|captured| captured.capture_id.clone()).collect();
    let stand_in = is_given_up(blueprint, tries).then(|| StandIn {
        maker: maker(blueprint, &DiazotrophType::stored(TRIAGE)),
        why: format!("{tries} of its answers did not pass or left something"),
    });
    let question = Question::Triage { batch, zone: blueprint.zone.clone(), target: target(sql)? };
    let workorder = ask(sql, (event, registered), &question, stand_in.as_ref(), ids)?;
    let now = sql.now();
    for capture_id in taken {
        let cells = [capture_id.as_str().into(), workorder.as_str().into(), now.into()];
        sql.write(capture_id.as_str(), include_str!("../sql/capture_taken.sql"), &cells)?;
    }
    Ok(Some(workorder))
}

/// Whether captures that were tried so often go to the built-in rules.
pub(crate) fn is_given_up(blueprint: &Blueprint, tries: u32) -> bool {
    tries > blueprint.retry.gate_failures
}

/// The name for people of the executor that makes answers of this kind.
pub(crate) fn maker(blueprint: &Blueprint, of: &DiazotrophType) -> String {
    let executor = blueprint.executor_of(of);
    let kind = executor.map_or("unknown", |executor| executor.kind.as_str());
    let model = executor.and_then(|executor| executor.endpoint.as_ref());
    model.map_or_else(|| kind.to_string(), |endpoint| format!("{kind} {}", endpoint.model))
}

/// The azolla of programs that most candidates would go to: `mec`, or else the first that has tickets.
fn target(sql: &mut dyn Sql) -> StoreResult<String> {
    let all = azollas::all(sql)?;
    let is_it = |of: &Blueprint| of.standing.is_none() && !of.is_for_people();
    let of_tickets = all.iter().filter(|known| is_it(&known.blueprint));
    let mut names: Vec<&str> = of_tickets.map(|known| known.blueprint.azolla_id.as_str()).collect();
    names.sort_unstable_by_key(|name| (*name != TARGET, *name));
    Ok(names.first().copied().unwrap_or(TARGET).to_string())
}

/// The type of azolla that has tickets.
const TARGET: &str = "mec";

/// A batch of captures that were tried equally often, beginning with the one that has waited longest; and how often they
/// were tried. Each try has a quarter of the batch before, so that the capture that makes it fail is found and does not hold
/// up the others. The built-in rules take the whole batch.
fn next_batch(sql: &mut dyn Sql, blueprint: &Blueprint) -> StoreResult<(Vec<Captured>, u32)> {
    let (azolla_id, now) = (&blueprint.azolla_id, sql.now());
    let cells = [azolla_id.as_str().into(), now.into()];
    let Some(next) = sql.one(include_str!("../sql/captures_next.sql"), &cells)? else {
        return Ok((Vec::new(), 0));
    };
    let tries: u32 = next.count(0)?;
    let most = i64::from(blueprint.triage.as_ref().map_or(1, |triage| triage.batch));
    let most = match is_given_up(blueprint, tries) {
        true => most,
        false => (most >> (2 * tries.min(15))).max(1),
    };
    let cells = [azolla_id.as_str().into(), now.into(), i64::from(tries).into(), most.into()];
    let mut batch = Vec::new();
    let mut bytes = 0;
    for row in sql.query(include_str!("../sql/captures_batch.sql"), &cells)? {
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
    Ok((batch, tries))
}

/// Makes the workorder of a question.
fn ask(
    sql: &mut dyn Sql,
    (event, registered): (&Event, &Registered),
    question: &Question,
    stand_in: Option<&StandIn>,
    ids: &Ids,
) -> StoreResult<WorkorderId> {
    let mut metadata = question.metadata();
    metadata.extend(stand_in.map(|stand_in| (STANDS_IN.to_string(), serde_json::json!(stand_in))));
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
            stands_in: stand_in.is_some(),
        },
    )
}

/// Deals with a claimed MANIFEST_REQUESTED, by the answers of the azollas. If nobody was asked, or nothing has changed since
/// the last manifest, no workorder is made.
pub fn schedule_manifest(
    sql: &mut dyn Sql,
    claimed: &ClaimedEvent,
    answered: &[Answered],
    repos: &[String],
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
    // Nobody was there to ask, so there is nothing to make a manifest from.
    if answered.is_empty() {
        close(sql, &claimed.event, TerminalReason::NobodyToAsk, None)?;
        sql.wakes(crate::pipeline::Stage::Manifest);
        return Ok(Scheduled::Closed(TerminalReason::NobodyToAsk));
    }
    answers::record(sql, azolla_id, &claimed.event.event_id, answered)?;
    let facts = gathered(sql, &registered, answered, repos)?;
    if manifests::last_digest(sql, azolla_id)? == Some(facts.digest()) {
        close(sql, &claimed.event, TerminalReason::Unchanged, None)?;
        sql.wakes(crate::pipeline::Stage::Manifest);
        return Ok(Scheduled::Closed(TerminalReason::Unchanged));
    }
    let stand_in = match stored
        .as_ref()
        .map(|row| row.maybe_word::<WorkorderId>("stands_in_for"))
        .transpose()?
        .flatten()
    {
        Some(failed) => Some(stand_in_for(sql, &registered, &failed)?),
        None => None,
    };
    let question = Question::Manifest(facts);
    let of = (&claimed.event, &registered);
    let workorder = ask(sql, of, &question, stand_in.as_ref(), &claimed.ids)?;
    close(sql, &claimed.event, TerminalReason::Scheduled, Some(&workorder))?;
    Ok(Scheduled::Workorder(workorder))
}

/// Why the built-in rules stand in for a workorder.
fn stand_in_for(sql: &mut dyn Sql, registered: &Registered, failed: &WorkorderId) -> StoreResult<StandIn> {
    let why = reading::run_of(sql, failed)?.map(|run| run.record.gate_reason).unwrap_or_default();
    let maker = maker(&registered.blueprint, &DiazotrophType::stored(MANIFEST_BUILDER));
    Ok(StandIn { maker, why: why.chars().take(300).collect() })
}

/// Tickets that the item about confirmed patches names.
const UNMERGED_NAMED: usize = 3;

/// Whether an azolla of this instance told of its objectives.
fn tells_here(told: &AzollaAnswer) -> bool {
    told.asked.server.is_none() && told.asked.status == QueryStatus::Ok
}

/// Adds what an azolla of this instance does not tell of finished tickets: the patches that conflict or did not land, also where
/// their run is confirmed.
fn not_landed(sql: &mut dyn Sql, told: &mut AzollaAnswer) -> StoreResult<()> {
    if !tells_here(told) {
        return Ok(());
    }
    let stopped = landing::stopped(sql, &told.asked.azolla_id, queries::RESULTS_MAX)?;
    told.asked.full |= stopped.len() as i64 >= queries::RESULTS_MAX;
    for (row, unlanded) in stopped {
        told.patches.insert(row.objective.objective_id.clone(), unlanded);
        if !row.unconfirmed {
            told.objectives.push(row.objective);
        }
    }
    Ok(())
}

/// The facts of a manifest: from the answers of the azollas, and from what waits in this inbox.
fn gathered(
    sql: &mut dyn Sql,
    registered: &Registered,
    answered: &[Answered],
    repos: &[String],
) -> StoreResult<Facts> {
    let (blueprint, now) = (&registered.blueprint, sql.calendar());
    let (candidates, oldest_candidate) = candidates::count(sql, &blueprint.azolla_id, COUNTED_MAX)?;
    let (pending_captures, held_captures) = captures::pending(sql, &blueprint.azolla_id, COUNTED_MAX)?;
    let mut told = answers::told(answered);
    for told in &mut told {
        let by = (&blueprint.azolla_id, &blueprint.urgency);
        told.clocks = deadlines::clocks(sql, by, &told.asked.azolla_id, &told.objectives)?;
        if told.asked.server.is_none() {
            told.blueprint = azollas::in_force(sql, &told.asked.azolla_id)?.map(|known| known.blueprint);
            told.waits_for = after::waits_for(sql, &told.objectives.iter().collect::<Vec<_>>())?;
            not_landed(sql, told)?;
        }
    }
    let here = told.iter().filter(|told| tells_here(told)).map(|told| &told.asked.azolla_id);
    let own = Own {
        unmerged: landing::unmerged(sql, here, UNMERGED_NAMED)?,
        azolla_id: blueprint.azolla_id.clone(),
        candidates,
        oldest_candidate,
        pending_captures,
        held_captures,
        held_recurrences: recurrences::held(sql, Some(&blueprint.azolla_id))?,
        pressing: candidates::pressing(sql, &blueprint.azolla_id, PRESSING_MAX)?
            .into_iter()
            .map(|one| Pressing {
                due_at: deadline::due_of(&one.draft.metadata),
                candidate_id: one.candidate_id,
                title: one.draft.title,
                importance: one.draft.importance,
                urgency: one.draft.urgency,
                created_at: one.created_at,
            })
            .collect(),
        repos: Some(repos.to_vec()),
    };
    Ok(facts(&told, &own, &blueprint.urgency, now))
}
