//! The verdict over an executed workorder, and where its objective goes.
//!
//! Reads: the workorder, its bundle, the blueprint that it was made under, the objective. Claims: the workorder (before,
//! by itself). Writes, all or nothing: run record, objective, pause; and gives the claim back. Does nothing where the
//! claim was taken over or a run record is there.

use super::claims::{self, HeldClaim};
use super::gate_input::{Evaluated, gate_input};
use super::inbox::verdict;
use super::objectives::{self, ObjectiveRow};
use super::pauses::{pause, pause_key_of_run};
use super::reading::{self, WorkorderView};
use super::{Cell, Sql, Stage, Statement, journal, landing};
use crate::door;
use crate::error::{StoreError, StoreResult};
use fernery_core::artifact::{
    AzollaId, ContextSnapshot, ObjectiveStatus, ObjectiveType, OutputBundle, RunId, RunRecord, WorkorderId,
};
use fernery_core::canonical;
use fernery_core::job::retry::RetryPolicy;
use fernery_core::journal::Act;
use fernery_core::pipeline::evidence::Evidence;
use fernery_core::pipeline::exhibits::Exhibits;
use fernery_core::pipeline::judging::{Case, Judgement, Verdict, judge, verdict, verdict_again};
use fernery_core::pipeline::lifecycle::{Step, after};
use fernery_core::pipeline::membrane::outcome;
use fernery_core::pipeline::repetition::{Attempt, Repetition, repetition};
use fernery_core::review::time::Size;
use serde_json::json;
use std::time::Duration;

/// When gates that could not run are tried again.
const GATE_AGAIN: RetryPolicy = RetryPolicy { base: Duration::from_secs(2), cap: Duration::from_secs(256) };

/// The result of judging a workorder.
#[derive(Clone, Debug, PartialEq)]
pub enum Judged {
    /// The run record was written.
    Recorded(RunRecord),
    /// It was there before.
    Before,
    /// A gate could not run; it is tried again.
    Later,
    /// Somebody has taken over.
    ClaimLost,
}

/// Writes the verdict over `evidence`.
pub fn conclude(sql: &mut dyn Sql, held: &HeldClaim, evidence: &[Evidence]) -> StoreResult<Judged> {
    let id = WorkorderId::stored(&held.resource_id);
    let Some(gate_input) = gate_input(sql, &id)? else { return Ok(Judged::ClaimLost) };
    let evaluated = Evaluated { held: held.clone(), gate_input, evidence: evidence.to_vec() };
    let judged = conclude_all(sql, &[evaluated])?.pop();
    judged.ok_or_else(|| StoreError::Corrupt(format!("workorder {id} got no answer")))
}

/// Writes the verdicts over these workorders, each of another objective; answers for each, in their order.
pub fn conclude_all(sql: &mut dyn Sql, evaluated: &[Evaluated]) -> StoreResult<Vec<Judged>> {
    // Lock order everywhere: objective, workorder, claim; a cancel starts from the objective. Batches lock in the order of ids.
    let mut order: Vec<usize> = (0..evaluated.len()).collect();
    order.sort_by_key(|n| &evaluated[*n].gate_input.workorder.workorder.objective_id);
    let mut asked: Vec<Statement<'_>> = Vec::with_capacity(evaluated.len() * 5);
    let works = || order.iter().map(|n| &evaluated[*n].gate_input.workorder.workorder);
    asked.extend(works().flat_map(|work| objectives::locking(work.objective_id.as_str())));
    for (n, work) in order.iter().zip(works()) {
        asked.push((include_str!("sql/workorder_lock.sql"), vec![work.work_order_id.as_str().into()]));
        asked.push(claims::releasing(&evaluated[*n].held));
        asked.push((include_str!("sql/snapshot_by_id.sql"), vec![work.context_snapshot_id.as_str().into()]));
    }
    let mut answers = sql.query_all(&asked)?.into_iter();
    let mut objective_rows = Vec::with_capacity(evaluated.len());
    for n in &order {
        let id = &evaluated[*n].held.resource_id;
        let gone = || StoreError::Corrupt(format!("the objective of workorder {id} is gone"));
        objective_rows.push(objectives::loaded(&mut answers)?.ok_or_else(gone)?);
    }
    let mut judged = vec![Judged::ClaimLost; evaluated.len()];
    for (n, row) in order.into_iter().zip(objective_rows) {
        let mut next = || answers.next().unwrap_or_default().into_iter().next();
        let (work, released, snapshot) = (next(), next(), next());
        let (Some(work), Some(_)) = (work, released) else { continue };
        let (work, snapshot) = (reading::workorder(&work)?, snapshot.map(|row| row.json(0)).transpose()?);
        judged[n] = conclude_one(sql, &evaluated[n], &work, row, snapshot)?;
    }
    Ok(judged)
}

/// Writes the verdict over one workorder. Its claim was still held, and its rows are locked.
fn conclude_one(
    sql: &mut dyn Sql,
    evaluated: &Evaluated,
    work: &WorkorderView,
    mut row: ObjectiveRow,
    snapshot: Option<ContextSnapshot>,
) -> StoreResult<Judged> {
    let Evaluated { gate_input, evidence, .. } = evaluated;
    let id = &work.workorder.work_order_id;
    if work.judged {
        return Ok(Judged::Before);
    }
    let tries = work.gate_tries + 1;
    let verdict = verdict(&gate_input.blueprint.gates, evidence, &gate_input.bundle);
    let again = tries < gate_input.blueprint.retry.infrastructure.max(1);
    // For a cancelled workorder the verdict decides nothing, so the gates are not tried again.
    if matches!(verdict, Verdict::Trouble(_)) && again && !work.cancelled {
        let cells = [id.as_str().into(), sql.now().after(GATE_AGAIN.ceiling(tries)).into()];
        sql.touched(include_str!("sql/workorder_gate_later.sql"), &cells)?;
        return Ok(Judged::Later);
    }
    if row.objective.objective_type == ObjectiveType::Standing {
        row.spent.charge(work.spent_ms, &gate_input.bundle.metadata);
        objectives::update(sql, &row)?;
        return verdict::conclude(sql, evaluated, work, &verdict, snapshot.as_ref());
    }
    let repeats = repeats(sql, evaluated, &row, &verdict, snapshot.as_ref())?;
    row.spent.charge(work.spent_ms, &gate_input.bundle.metadata);
    let passed_before = match verdict {
        Verdict::Pass => None,
        _ => reading::passed_run(sql, &row.objective.objective_id)?.map(|run| run.record.run_id),
    };
    let case = Case {
        objective: &row.objective,
        bundle: &gate_input.bundle,
        blueprint: &gate_input.blueprint,
        spent: row.spent,
        failures: row.failures,
        repeats,
        passed_before,
    };
    let judgement = judge(&case, &verdict);
    let record = RunRecord {
        run_id: RunId::stored(&door::artifact_id()),
        work_order_id: id.clone(),
        objective_id: row.objective.objective_id.clone(),
        output_id: gate_input.bundle.output_id.clone(),
        gate_result: judgement.result,
        gate_reason: judgement.reason.clone(),
        created_at: sql.now(),
    };
    write_record(sql, &record, &work.azolla_id, (&gate_input.bundle, evidence))?;
    move_objective(sql, &mut row, &judgement)?;
    if judgement.step == Some(Step::Pass) {
        let run = reading::Run { record: record.clone(), evidence: evidence.clone() };
        let passed =
            landing::Passed { work, snapshot: snapshot.as_ref(), bundle: &gate_input.bundle, run: &run };
        landing::opened(sql, &passed)?;
    }
    let key = pause_key_of_run(id);
    pause(sql, &key, &row.objective, judgement.pause, judgement.actions.clone())?;
    let workorder = &work.workorder;
    let exhibits = Exhibits { workorder, snapshot: snapshot.as_ref(), bundle: &gate_input.bundle, evidence };
    let why = json!({"run_id": record.run_id, "work_order_id": id, "gate_result": record.gate_result,
                     "gate_reason": record.gate_reason, "status": row.objective.status,
                     "by": exhibits.digests()});
    journal::note(sql, "gate", Act::Judged, record.objective_id.as_str(), &why)?;
    sql.wakes(Stage::Scheduler);
    sql.wakes(Stage::Readiness);
    Ok(Judged::Recorded(record))
}

/// How a failed attempt repeats the one before it under the same approval. Attempts are counted from the approval, so before
/// the second one there is nothing to compare with, and before any later one the last run of the objective is of this approval.
fn repeats(
    sql: &mut dyn Sql,
    Evaluated { gate_input, evidence, .. }: &Evaluated,
    row: &ObjectiveRow,
    verdict: &Verdict,
    snapshot: Option<&ContextSnapshot>,
) -> StoreResult<Option<Repetition>> {
    let Verdict::Fail(reason) = verdict else { return Ok(None) };
    if row.spent.attempts < 2 {
        return Ok(None);
    }
    let Some(last) = reading::last_run(sql, &row.objective.objective_id)? else { return Ok(None) };
    let id = &last.record.work_order_id;
    let (Some(work), Some(bundle)) = (reading::workorder_by_id(sql, id)?, reading::bundle(sql, id)?) else {
        return Ok(None);
    };
    let asked = reading::snapshot(sql, &work.workorder.context_snapshot_id)?;
    let (reason_then, evidence_then) = (&last.record.gate_reason, &last.evidence);
    let before =
        Attempt { bundle: &bundle, base: base(asked.as_ref()), reason: reason_then, evidence: evidence_then };
    let now = Attempt { bundle: &gate_input.bundle, base: base(snapshot), reason, evidence };
    Ok(repetition(&before, &now))
}

/// The commit that work started from.
fn base(snapshot: Option<&ContextSnapshot>) -> Option<&str> {
    snapshot?.metadata.get("commit_sha")?.as_str()
}

pub(super) fn write_record(
    sql: &mut dyn Sql,
    record: &RunRecord,
    azolla_id: &AzollaId,
    (bundle, evidence): (&OutputBundle, &[Evidence]),
) -> StoreResult<()> {
    let (document, evidence) = (canonical::text_of(record), canonical::text_of(evidence));
    let [files, insertions, deletions] = sizes(&bundle.content);
    let cells: [Cell<'_>; 11] = [
        record.run_id.as_str().into(),
        record.work_order_id.as_str().into(),
        record.objective_id.as_str().into(),
        azolla_id.as_str().into(),
        record.created_at.into(),
        (&document).into(),
        (&evidence).into(),
        outcome(&bundle.metadata).as_str().into(),
        files.into(),
        insertions.into(),
        deletions.into(),
    ];
    let work = record.work_order_id.as_str();
    sql.write(work, include_str!("sql/run_insert.sql"), &cells)?;
    sql.write(work, include_str!("sql/workorder_judged.sql"), &[work.into()])
}

/// How large an output is, as it is kept beside its run: files, lines that come, lines that go.
pub(super) fn sizes(content: &str) -> [i64; 3] {
    let size = Size::of(content);
    [size.files, size.insertions, size.deletions].map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}

fn move_objective(sql: &mut dyn Sql, row: &mut ObjectiveRow, judgement: &Judgement) -> StoreResult<()> {
    let now = sql.now();
    if let Some((kind, description)) = &judgement.blocker {
        objectives::block_on(sql, row, None, *kind, description)?;
    }
    let next =
        judgement.step.and_then(|step| after(row.objective.objective_type, row.objective.status, step));
    match (judgement.step, next) {
        (Some(Step::TryAgain), Some(_)) => {
            row.failures += 1;
            row.enter_todo(now);
        }
        (Some(Step::Pass), Some(status)) => {
            row.objective.status = status;
            row.objective.updated_at = now;
            row.unconfirmed = true;
        }
        (_, Some(status)) => {
            row.objective.status = status;
            row.objective.updated_at = now;
            if status == ObjectiveStatus::Blocked {
                row.objective.blocked_reason = Some(judgement.reason.clone());
            }
        }
        (_, None) => {}
    }
    objectives::update(sql, row)
}

/// Judges a stored run again from its artifacts: the same verdict, or what differs.
pub fn replay(sql: &mut dyn Sql, run: &reading::Run) -> StoreResult<Option<(RunRecord, Verdict)>> {
    let Some(gate_input) = gate_input(sql, &run.record.work_order_id)? else { return Ok(None) };
    let gates = gate_input.blueprint.gates_of(run.evidence.iter().map(|found| found.gate.as_str()));
    let again = verdict_again(&gates, &run.evidence, &gate_input.bundle);
    Ok(Some((run.record.clone(), again)))
}
