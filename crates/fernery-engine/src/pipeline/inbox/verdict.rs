//! The verdict on a workorder of a standing objective: captures become candidates, facts become a manifest. The
//! objective's status never changes. If an answer fails finally, the built-in rules replace it with their own workorder
//! and run: no capture is lost, and the manifest is made.

use super::{manifests, tracks};
use crate::door;
use crate::error::StoreResult;
use crate::pipeline::gate_input::Evaluated;
use crate::pipeline::judging::{Judged, write_record};
use crate::pipeline::pauses::{pause_key_of_run, write_pause};
use crate::pipeline::reading::WorkorderView;
use crate::pipeline::{Cell, Sql, Stage, journal};
use fernery_core::artifact::{
    AzollaId, CandidateId, CaptureId, ContextSnapshot, GateResult, ManifestId, PauseReason, PauseState,
    RunId, RunRecord, WorkorderId,
};
use fernery_core::canonical;
use fernery_core::inbox::facts::Facts;
use fernery_core::inbox::{Candidate, Captured, Question, StandIn, deadline, manifest, triage};
use fernery_core::job::retry::RetryPolicy;
use fernery_core::journal::Act;
use fernery_core::pipeline::exhibits::Exhibits;
use fernery_core::pipeline::judging::Verdict;
use fernery_core::pipeline::membrane::{Outcome, outcome};
use fernery_core::pipeline::scheduling::first_line;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// When captures that triage left are tried again.
const TRIAGE_AGAIN: RetryPolicy =
    RetryPolicy { base: Duration::from_secs(1), cap: Duration::from_secs(1024) };

/// The consequences of a verdict.
struct Upshot {
    reason: PauseReason,
    actions: Vec<String>,
    told: serde_json::Value,
}

/// Writes the verdict, and what follows from it.
pub(crate) fn conclude(
    sql: &mut dyn Sql,
    evaluated: &Evaluated,
    work: &WorkorderView,
    verdict: &Verdict,
    snapshot: Option<&ContextSnapshot>,
) -> StoreResult<Judged> {
    let Evaluated { gate_input, evidence, .. } = evaluated;
    let id = &work.workorder.work_order_id;
    let (gate_result, gate_reason) = verdict.recorded();
    let record = RunRecord {
        run_id: RunId::stored(&door::artifact_id()),
        work_order_id: id.clone(),
        objective_id: work.workorder.objective_id.clone(),
        output_id: gate_input.bundle.output_id.clone(),
        gate_result,
        gate_reason,
        created_at: sql.now(),
    };
    write_record(sql, &record, &work.azolla_id, (&gate_input.bundle, evidence))?;
    let verdicted = Verdicted { evaluated, work, record: &record, stand_in: snapshot.and_then(StandIn::of) };
    let upshot = match snapshot.and_then(Question::of) {
        Some(Question::Triage { batch, .. }) => of_triage(sql, &verdicted, &batch)?,
        Some(Question::Manifest(facts)) => of_manifest(sql, &verdicted, &facts)?,
        None => unreadable(sql, id)?,
    };
    let spent = outcome(&gate_input.bundle.metadata) == Outcome::Budget;
    let reason = if spent { PauseReason::BudgetExhausted } else { upshot.reason };
    let (of, azolla_id) = (record.objective_id.clone(), work.azolla_id.clone());
    let pause = PauseState::new(of, azolla_id, reason, upshot.actions, sql.now());
    write_pause(sql, &pause_key_of_run(id), &pause)?;
    let exhibits = Exhibits { workorder: &work.workorder, snapshot, bundle: &gate_input.bundle, evidence };
    let why = json!({"run_id": record.run_id, "work_order_id": id, "gate_result": record.gate_result,
                     "gate_reason": record.gate_reason, "came_to": upshot.told, "by": exhibits.digests()});
    journal::note(sql, "gate", Act::Judged, record.objective_id.as_str(), &why)?;
    Stage::TRACKS.into_iter().for_each(|stage| sql.wakes(stage));
    Ok(Judged::Recorded(record))
}

/// The question cannot be read, for example because another version wrote it: its captures come again.
fn unreadable(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<Upshot> {
    let now = sql.now();
    let held = sql.query(include_str!("../sql/captures_in_triage.sql"), &[id.as_str().into()])?;
    for row in &held {
        let cells = [row.text(0)?.into(), id.as_str().into(), now.into(), now.into()];
        sql.write(row.text(0)?, include_str!("../sql/capture_put_back.sql"), &cells)?;
    }
    let action = "Nothing: what it asked cannot be read, and is asked anew".to_string();
    let told = json!({"unreadable": true, "come_again": held.len()});
    Ok(Upshot { reason: PauseReason::GateFailed, actions: vec![action], told })
}

/// A verdict over a workorder of the tracks.
struct Verdicted<'a> {
    evaluated: &'a Evaluated,
    work: &'a WorkorderView,
    record: &'a RunRecord,
    /// The executor that the built-in rules replaced.
    stand_in: Option<StandIn>,
}

impl Verdicted<'_> {
    fn passed(&self) -> bool {
        self.record.gate_result == GateResult::Pass
    }

    /// The name for people of the executor that made the answer.
    fn made_by(&self) -> String {
        let blueprint = &self.evaluated.gate_input.blueprint;
        let maker = || tracks::maker(blueprint, &self.work.workorder.diazotroph_type);
        self.stand_in.as_ref().map_or_else(maker, StandIn::made_by)
    }

    fn read_why(&self) -> String {
        format!("Read why it failed: fernery run show {}", self.record.run_id)
    }
}

/// If the answer passed, the captures in its candidates are PROCESSED. All others come again, finally to the built-in rules,
/// whose answer is a workorder and a run like any other.
fn of_triage(sql: &mut dyn Sql, verdicted: &Verdicted<'_>, batch: &[Captured]) -> StoreResult<Upshot> {
    let Verdicted { evaluated, work, record, stand_in } = verdicted;
    let (id, blueprint) = (&work.workorder.work_order_id, &evaluated.gate_input.blueprint);
    // The captures of this workorder, whatever its answer says.
    let held = sql.query(include_str!("../sql/captures_in_triage.sql"), &[id.as_str().into()])?;
    let tries: BTreeMap<CaptureId, u32> =
        held.iter().map(|row| Ok((row.word(0)?, row.count(1)?))).collect::<StoreResult<_>>()?;
    let passed = verdicted.passed();
    let answer = if passed { triage::read(&evaluated.gate_input.bundle.content, batch).ok() } else { None };
    let answer = answer.unwrap_or_default();
    let mut settled: BTreeSet<&CaptureId> = BTreeSet::new();
    let made_by = verdicted.made_by();
    for candidate in &answer.candidates {
        insert_candidate(sql, &work.azolla_id, id, candidate, &made_by)?;
        settled.extend(&candidate.capture_ids);
    }
    let (mut again, mut given_up) = (0_u64, 0_u64);
    let now = sql.now();
    for captured in batch {
        let capture = &captured.capture_id;
        if settled.contains(capture) {
            let cells = [capture.as_str().into(), id.as_str().into(), now.into()];
            sql.write(capture.as_str(), include_str!("../sql/capture_processed.sql"), &cells)?;
            continue;
        }
        let tried = tries.get(capture).copied().unwrap_or(0);
        // The built-in rules can take it at once; only if they failed themselves, wait.
        let is_next = tracks::is_given_up(blueprint, tried + 1) && stand_in.is_none();
        let wait = if is_next { Duration::ZERO } else { TRIAGE_AGAIN.ceiling(tried + 1) };
        *(if is_next { &mut given_up } else { &mut again }) += 1;
        let cells = [capture.as_str().into(), id.as_str().into(), now.after(wait).into(), now.into()];
        sql.write(capture.as_str(), include_str!("../sql/capture_put_back.sql"), &cells)?;
    }
    let made = answer.candidates.len();
    let mut actions = Vec::new();
    if made > 0 {
        actions.push(format!("Decide about what was captured: fernery triage ({made} new)"));
    }
    if given_up > 0 {
        actions.push(format!("Nothing: the built-in rules take {}", captures(given_up)));
    } else if again > 0 {
        let why = first_line(&record.gate_reason);
        actions.push(match passed {
            true => format!("Nothing: triage left {}, and tries again", captures(again)),
            false => format!("Nothing: triage tries {} again, because: {why}", captures(again)),
        });
    }
    if !passed {
        actions.push(verdicted.read_why());
    }
    let reason = if passed { PauseReason::RunComplete } else { PauseReason::GateFailed };
    let told = json!({"candidates": made, "come_again": again + given_up});
    Ok(Upshot { reason, actions, told })
}

/// Stores a candidate. The database refuses a capture that is in another candidate.
fn insert_candidate(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    work: &WorkorderId,
    candidate: &Candidate,
    made_by: &str,
) -> StoreResult<()> {
    let id = CandidateId::stored(&door::artifact_id());
    let document = canonical::text_of(&json!(candidate.draft()));
    let cells: [Cell<'_>; 8] = [
        id.as_str().into(),
        azolla_id.as_str().into(),
        work.as_str().into(),
        (&document).into(),
        made_by.into(),
        sql.now().into(),
        i64::from(candidate.urgency).into(),
        deadline::due_of(&candidate.metadata).into(),
    ];
    sql.write(id.as_str(), include_str!("../sql/candidate_insert.sql"), &cells)?;
    for capture_id in &candidate.capture_ids {
        let cells = [capture_id.as_str().into(), id.as_str().into()];
        sql.write(capture_id.as_str(), include_str!("../sql/candidate_capture_insert.sql"), &cells)?;
    }
    Ok(())
}

/// A manifest that passed is stored; its first lines are the actions of the pause. If it failed, the built-in rules are asked
/// for one, once, unless no azolla was asked.
fn of_manifest(sql: &mut dyn Sql, verdicted: &Verdicted<'_>, facts: &Facts) -> StoreResult<Upshot> {
    let Verdicted { evaluated, work, stand_in, .. } = verdicted;
    let id: &WorkorderId = &work.workorder.work_order_id;
    let content = &evaluated.gate_input.bundle.content;
    let answer = if verdicted.passed() { manifest::read(content, facts).ok() } else { None };
    let Some(orientation) = answer else {
        let first = match (stand_in, facts.asked.is_empty()) {
            (_, true) => "Have an azolla to ask: host one that [reads] names, or register one elsewhere",
            (None, false) => "Nothing: the built-in rules make the page in its place",
            (Some(_), false) => "Ask again: fernery orient",
        };
        let stands_in = stand_in.is_none() && !facts.asked.is_empty();
        if stands_in {
            manifests::stand_in(sql, &work.azolla_id, id)?;
        }
        let actions = vec![first.to_string(), verdicted.read_why()];
        return Ok(Upshot {
            reason: PauseReason::GateFailed,
            actions,
            told: json!({"stands_in": stands_in}),
        });
    };
    let (manifest_id, built_by) = (ManifestId::stored(&door::artifact_id()), verdicted.made_by());
    let manifest = manifest::manifest(manifest_id, work.azolla_id.clone(), &orientation, facts, sql.now());
    manifests::insert(sql, &manifest, facts, &built_by, id)?;
    let actions = manifest.prioritized_orientation.clone();
    let told = json!({"manifest_id": manifest.manifest_id, "built_by": built_by});
    Ok(Upshot { reason: PauseReason::RunComplete, actions, told })
}

fn captures(n: u64) -> String {
    if n == 1 { "1 capture".to_string() } else { format!("{n} captures") }
}
