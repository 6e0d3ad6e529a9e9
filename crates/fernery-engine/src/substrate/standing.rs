//! The verdict over a workorder of a standing objective: captures become candidates, facts a manifest. The objective itself never
//! moves. Where an answer fails for good, the built-in one stands in, so that nothing captured is lost and the page is never
//! missing.

use super::judging::{Heard, Judged, write_record};
use super::reading::WorkorderView;
use super::scheduling::{pause_key_of_run, write_pause};
use super::{Sql, Stage, candidates, journal, manifests};
use crate::door;
use crate::error::StoreResult;
use fernery_core::artifact::{
    CaptureId, ContextSnapshot, GateResult, ManifestId, PauseReason, PauseState, RunId, RunRecord,
    WorkorderId,
};
use fernery_core::inbox::facts::Facts;
use fernery_core::inbox::{Captured, Question, Triage, Zone, manifest, triage};
use fernery_core::pipeline::exhibits::Exhibits;
use fernery_core::pipeline::judging::Verdict;
use fernery_core::pipeline::membrane::{Outcome, outcome};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a verdict came to.
struct Upshot {
    reason: PauseReason,
    actions: Vec<String>,
    told: serde_json::Value,
}

/// Writes the verdict, and what follows from it.
pub(super) fn conclude(
    sql: &mut dyn Sql,
    heard: &Heard,
    work: &WorkorderView,
    verdict: &Verdict,
    snapshot: Option<&ContextSnapshot>,
) -> StoreResult<Judged> {
    let Heard { docket, evidence, .. } = heard;
    let id = &work.workorder.work_order_id;
    let (gate_result, gate_reason) = verdict.recorded();
    let record = RunRecord {
        run_id: RunId::stored(&door::artifact_id()),
        work_order_id: id.clone(),
        objective_id: work.workorder.objective_id.clone(),
        output_id: docket.bundle.output_id.clone(),
        gate_result,
        gate_reason,
        created_at: sql.now(),
    };
    write_record(sql, &record, &work.azolla_id, evidence)?;
    let upshot = match snapshot.and_then(Question::of) {
        Some(Question::Triage { batch, zone }) => of_triage(sql, heard, work, &record, (&batch, &zone))?,
        Some(Question::Manifest(facts)) => of_manifest(sql, heard, work, &record, &facts)?,
        None => unreadable(sql, id)?,
    };
    let spent = outcome(&docket.bundle.metadata) == Outcome::Budget;
    let pause = PauseState {
        objective_id: record.objective_id.clone(),
        azolla_id: work.azolla_id.clone(),
        reason: if spent { PauseReason::BudgetExhausted } else { upshot.reason },
        prioritized_actions: upshot.actions,
        created_at: sql.now(),
    };
    write_pause(sql, &pause_key_of_run(id), &pause)?;
    let exhibits = Exhibits { workorder: &work.workorder, snapshot, bundle: &docket.bundle, evidence };
    let why = json!({"run_id": record.run_id, "work_order_id": id, "gate_result": record.gate_result,
                     "gate_reason": record.gate_reason, "came_to": upshot.told, "by": exhibits.digests()});
    journal::note(sql, "gate", "judged", record.objective_id.as_str(), &why)?;
    Stage::TRACKS.into_iter().for_each(|stage| sql.wakes(stage));
    Ok(Judged::Recorded(record))
}

/// Nobody can tell any more what was asked, as after another version was here: what it was about comes again.
fn unreadable(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<Upshot> {
    let now = sql.now();
    let held = sql.query(include_str!("sql/captures_in_triage.sql"), &[id.as_str().into()])?;
    for row in &held {
        let cells = [row.text(0)?.into(), id.as_str().into(), now.into(), now.into()];
        sql.write(row.text(0)?, include_str!("sql/capture_put_back.sql"), &cells)?;
    }
    let action = "Nothing: what it asked cannot be read, and is asked anew".to_string();
    let told = json!({"unreadable": true, "come_again": held.len()});
    Ok(Upshot { reason: PauseReason::GateFailed, actions: vec![action], told })
}

/// Who made an answer, as people are told: its executor, or the built-in one in its place.
fn maker(heard: &Heard, work: &WorkorderView) -> String {
    let executor = heard.docket.blueprint.executor_of(&work.workorder.diazotroph_type);
    let kind = executor.map_or("unknown", |executor| executor.kind.as_str());
    let model = executor.and_then(|executor| executor.endpoint.as_ref());
    model.map_or_else(|| kind.to_string(), |endpoint| format!("{kind} {}", endpoint.model))
}

fn stood_in(heard: &Heard, work: &WorkorderView, record: &RunRecord) -> String {
    let why: String = record.gate_reason.chars().take(300).collect();
    format!("builtin, standing in for {}: {why}", maker(heard, work))
}

fn of_triage(
    sql: &mut dyn Sql,
    heard: &Heard,
    work: &WorkorderView,
    record: &RunRecord,
    (batch, zone): (&[Captured], &Zone),
) -> StoreResult<Upshot> {
    let id = &work.workorder.work_order_id;
    // Whatever its answer says, these are the captures that this workorder has.
    let held = sql.query(include_str!("sql/captures_in_triage.sql"), &[id.as_str().into()])?;
    let tries: BTreeMap<CaptureId, u32> =
        held.iter().map(|row| Ok((row.word(0)?, row.count(1)?))).collect::<StoreResult<_>>()?;
    let again = |capture: &CaptureId| {
        tries.get(capture).is_some_and(|n| *n < heard.docket.blueprint.retry.gate_failures)
    };
    let passed = record.gate_result == GateResult::Pass;
    let answer = if passed { triage::read(&heard.docket.bundle.content, batch).ok() } else { None };
    let answer = answer.unwrap_or(Triage { candidates: Vec::new(), left: Vec::new() });
    let mut settled: BTreeSet<&CaptureId> = BTreeSet::new();
    let mut made = 0_u64;
    for candidate in &answer.candidates {
        candidates::insert(sql, &work.azolla_id, id, candidate, &maker(heard, work))?;
        settled.extend(&candidate.capture_ids);
        made += 1;
    }
    let rest: Vec<Captured> = batch.iter().filter(|c| !settled.contains(&c.capture_id)).cloned().collect();
    let (back, given_up): (Vec<Captured>, Vec<Captured>) =
        rest.into_iter().partition(|c| again(&c.capture_id));
    let by = match passed {
        true => format!("builtin: {} left it", maker(heard, work)),
        false => stood_in(heard, work, record),
    };
    for candidate in &triage::builtin(&given_up, zone).candidates {
        candidates::insert(sql, &work.azolla_id, id, candidate, &by)?;
        made += 1;
    }
    let now = sql.now();
    for captured in batch {
        let capture = &captured.capture_id;
        if back.iter().any(|c| c.capture_id == *capture) {
            let wait = Duration::from_secs(1 << tries.get(capture).copied().unwrap_or(0).min(10));
            let cells = [capture.as_str().into(), id.as_str().into(), now.after(wait).into(), now.into()];
            sql.write(capture.as_str(), include_str!("sql/capture_put_back.sql"), &cells)?;
        } else {
            let cells = [capture.as_str().into(), id.as_str().into(), now.into()];
            sql.write(capture.as_str(), include_str!("sql/capture_processed.sql"), &cells)?;
        }
    }
    let mut actions = Vec::new();
    if made > 0 {
        actions.push(format!("Decide about what was captured: fernery triage ({made} new)"));
    }
    if !back.is_empty() {
        let (n, why) = (back.len(), first_line(&record.gate_reason));
        actions.push(match passed {
            true => format!("Nothing: {n} captures were left and come again"),
            false => format!("Nothing: {n} captures come again, because: {why}"),
        });
    }
    if !passed {
        actions.push(format!("Read why it failed: fernery run show {}", record.run_id));
    }
    let reason = if passed { PauseReason::RunComplete } else { PauseReason::GateFailed };
    let told = json!({"candidates": made, "come_again": back.len()});
    Ok(Upshot { reason, actions, told })
}

fn of_manifest(
    sql: &mut dyn Sql,
    heard: &Heard,
    work: &WorkorderView,
    record: &RunRecord,
    facts: &Facts,
) -> StoreResult<Upshot> {
    let id: &WorkorderId = &work.workorder.work_order_id;
    let passed = record.gate_result == GateResult::Pass;
    let answer = if passed { manifest::read(&heard.docket.bundle.content, facts).ok() } else { None };
    let (orientation, by) = match answer {
        Some(orientation) => (orientation, maker(heard, work)),
        None => (manifest::builtin(facts), stood_in(heard, work, record)),
    };
    let manifest_id = ManifestId::stored(&door::artifact_id());
    let manifest = manifest::manifest(manifest_id, work.azolla_id.clone(), &orientation, facts, sql.now());
    manifests::insert(sql, &manifest, facts, &by, id)?;
    let mut actions = vec!["Read what needs you: fernery orient --last".to_string()];
    if !passed {
        actions.push(format!("Read why the built-in one stood in: fernery run show {}", record.run_id));
    }
    // The page is there either way.
    let told = json!({"manifest_id": manifest.manifest_id, "built_by": by});
    Ok(Upshot { reason: PauseReason::RunComplete, actions, told })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("").chars().take(120).collect()
}
