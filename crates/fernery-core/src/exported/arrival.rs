//! What becomes of an exported folder in another instance. History comes in as it was; what was approved there is not
//! approved here, and what was under way there has come to its end: nothing that comes in can be executed or judged, until
//! an operator of this instance approves it.

use super::{BesideRun, Exported, Kept};
use crate::Timestamp;
use crate::artifact::{
    ObjectiveId, ObjectiveStatus, OutputBundle, OutputId, PauseReason, PauseState, RunId, RunRecord,
    TerminalReason, WorkorderId, WorkorderStatus,
};
use crate::pipeline::exhibits::Exhibits;
use crate::pipeline::judging::verdict;
use crate::pipeline::membrane::Outcome;
use serde_json::{Value, json};

/// What the journal of this instance tells of an arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// What was done.
    pub act: &'static str,
    /// To what.
    pub subject: String,
    /// Why, and what changed.
    pub why: Value,
}

/// What an arrival changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrival {
    /// Objectives that were TODO or IN_PROGRESS and are NEW.
    pub as_new: Vec<ObjectiveId>,
    /// Workorders that were under way and have ended.
    pub ended: Vec<WorkorderId>,
    /// What the journal is to tell.
    pub notes: Vec<Note>,
}

/// Settles everything that was under way. `made_up` gives a new id each time.
pub fn settle(all: &mut Exported, now: Timestamp, mut made_up: impl FnMut() -> String) -> Arrival {
    let mut arrival = Arrival::default();
    for (id, Kept { artifact, beside }) in &mut all.events {
        if !artifact.processed {
            artifact.processed = true;
            beside.reason = Some(TerminalReason::NonExecutableStatus);
            let why = json!({"event_id": id, "reason": beside.reason, "work_order_id": null});
            arrival.note("event_processed", &artifact.resource_id, why);
        }
    }
    for Kept { artifact, beside } in all.objectives.values_mut() {
        beside.approval = None;
        let was = artifact.status;
        if matches!(was, ObjectiveStatus::Todo | ObjectiveStatus::InProgress) {
            artifact.status = ObjectiveStatus::New;
            artifact.updated_at = now;
            arrival.note(
                "imported",
                artifact.objective_id.as_str(),
                json!({"was": was, "status": artifact.status}),
            );
            arrival.as_new.push(artifact.objective_id.clone());
        }
    }
    let open: Vec<String> =
        all.workorders.iter().filter(|(_, work)| !work.beside.judged).map(|(id, _)| id.clone()).collect();
    for id in open {
        end(all, &id, now, &mut made_up, &mut arrival);
    }
    arrival
}

impl Arrival {
    fn note(&mut self, act: &'static str, subject: &str, why: Value) {
        self.notes.push(Note { act, subject: subject.to_string(), why });
    }
}

/// Ends a workorder: a bundle that says why, unless it has one, and a verdict that no gate was asked for.
fn end(
    all: &mut Exported,
    id: &str,
    now: Timestamp,
    made_up: &mut impl FnMut() -> String,
    arrival: &mut Arrival,
) -> Option<()> {
    let work = all.workorders.get_mut(id)?;
    let objective = &all.objectives.get(work.artifact.objective_id.as_str())?.artifact;
    if work.artifact.status == WorkorderStatus::Created {
        let output_id = OutputId::stored(&made_up());
        work.artifact.status = WorkorderStatus::Executed;
        work.beside.executed_at = Some(now);
        work.beside.output_id = Some(output_id.clone());
        let bundle = interrupted(output_id, objective.objective_id.clone(), now);
        all.bundles.insert(bundle.output_id.to_string(), bundle);
    }
    work.beside.judged = true;
    let bundle = all.bundles.get(work.beside.output_id.as_ref()?.as_str())?;
    let gates = &all.blueprints.get(&work.beside.blueprint.to_string())?.gates;
    let (gate_result, gate_reason) = verdict(gates, &[], bundle).recorded();
    let run = RunRecord {
        run_id: RunId::stored(&made_up()),
        work_order_id: work.artifact.work_order_id.clone(),
        objective_id: objective.objective_id.clone(),
        output_id: bundle.output_id.clone(),
        gate_result,
        gate_reason,
        created_at: now,
    };
    let snapshot = all.snapshots.get(work.artifact.context_snapshot_id.as_str());
    let by = Exhibits { workorder: &work.artifact, snapshot, bundle, evidence: &[] }.digests();
    let why = json!({"run_id": run.run_id, "work_order_id": run.work_order_id, "gate_result": run.gate_result,
                     "gate_reason": run.gate_reason, "status": objective.status, "by": by});
    arrival.note("judged", objective.objective_id.as_str(), why);
    arrival.ended.push(run.work_order_id.clone());
    let of = objective.objective_id.to_string();
    let number = all.pauses.range((of.clone(), 0)..=(of.clone(), u32::MAX)).count() as u32 + 1;
    let next = match objective.status {
        ObjectiveStatus::Blocked => format!("Want it after all? fernery ticket unblock {of} --all"),
        _ => format!("It was under way elsewhere. To start it anew here: fernery ticket approve {of}"),
    };
    let look = format!("Read what there is of the run: fernery ticket show {of}");
    let pause = PauseState {
        objective_id: objective.objective_id.clone(),
        azolla_id: objective.azolla_id.clone(),
        reason: PauseReason::GateFailed,
        prioritized_actions: vec![next, look],
        created_at: now,
    };
    all.pauses.insert((of, number), pause);
    all.runs
        .insert(run.run_id.to_string(), Kept { artifact: run, beside: BesideRun { evidence: Vec::new() } });
    Some(())
}

/// The bundle of a workorder that was under way when it was exported.
fn interrupted(output_id: OutputId, objective_id: ObjectiveId, now: Timestamp) -> OutputBundle {
    OutputBundle {
        output_id,
        objective_id,
        title: "It was under way when it was exported; it does not go on here".to_string(),
        metadata: [("outcome".to_string(), json!(Outcome::Cancelled.as_str()))].into(),
        content: String::new(),
        notes: String::new(),
        created_at: now,
    }
}
