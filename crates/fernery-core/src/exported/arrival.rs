//! What becomes of an exported folder in another instance. History comes in as it was; what was approved there is not
//! approved here, and what was under way there has come to its end: nothing that comes in can be executed or judged, until
//! an operator of this instance approves it. Captures that waited for triage, and lines that come again, are held until an
//! operator releases them.

use super::{BesideRun, Exported, Kept, gates_of};
use crate::Timestamp;
use crate::artifact::{
    CaptureStatus, EventType, ObjectiveId, ObjectiveStatus, ObjectiveType, OutputBundle, OutputId,
    PauseReason, PauseState, RunId, RunRecord, TerminalReason, WorkorderId, WorkorderStatus,
};
use crate::journal::Act;
use crate::pipeline::exhibits::Exhibits;
use crate::pipeline::judging::verdict;
use crate::pipeline::membrane::Outcome;
use serde_json::{Value, json};

/// What the journal of this instance tells of an arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    pub act: Act,
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
    /// Captures that wait for triage, and are held.
    pub held: u64,
    /// Lines that come again, and are held.
    pub held_recurrences: u64,
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
            let mut why = json!({"event_id": id, "reason": beside.reason, "work_order_id": null});
            if artifact.event_type != EventType::TicketReady {
                why["type"] = json!(artifact.event_type);
            }
            arrival.note(Act::EventProcessed, &artifact.resource_id, why);
        }
    }
    for Kept { artifact, beside } in all.captures.values_mut() {
        if artifact.status == CaptureStatus::Pending {
            // A triage that was under way has ended without it.
            beside.work_order_id = None;
            beside.held = true;
            arrival.held += 1;
        }
    }
    for line in all.recurrences.values_mut().filter(|line| line.stopped_at.is_none()) {
        line.held = true;
        arrival.held_recurrences += 1;
    }
    let tickets = all.objectives.values_mut();
    for Kept { artifact, beside } in tickets.filter(|o| o.artifact.objective_type == ObjectiveType::Ticket) {
        beside.approval = None;
        let was = artifact.status;
        if matches!(was, ObjectiveStatus::Todo | ObjectiveStatus::InProgress) {
            artifact.status = ObjectiveStatus::New;
            artifact.updated_at = now;
            arrival.note(
                Act::Imported,
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
    fn note(&mut self, act: Act, subject: &str, why: Value) {
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
    let snapshot = all.snapshots.get(work.artifact.context_snapshot_id.as_str());
    let blueprint = all.blueprints.get(&work.beside.blueprint.to_string())?;
    // As whoever reads them in another folder will judge them again.
    let is_standing = objective.objective_type == ObjectiveType::Standing;
    let gates = gates_of(blueprint, is_standing, snapshot, &[]);
    let (gate_result, gate_reason) = verdict(&gates, &[], bundle).recorded();
    let run = RunRecord {
        run_id: RunId::stored(&made_up()),
        work_order_id: work.artifact.work_order_id.clone(),
        objective_id: objective.objective_id.clone(),
        output_id: bundle.output_id.clone(),
        gate_result,
        gate_reason,
        created_at: now,
    };
    let by = Exhibits { workorder: &work.artifact, snapshot, bundle, evidence: &[] }.digests();
    let mut why = json!({"run_id": run.run_id, "work_order_id": run.work_order_id, "gate_result": run.gate_result,
                         "gate_reason": run.gate_reason, "by": by});
    match is_standing {
        true => why["came_to"] = json!({"interrupted": true}),
        false => why["status"] = json!(objective.status),
    }
    arrival.note(Act::Judged, objective.objective_id.as_str(), why);
    arrival.ended.push(run.work_order_id.clone());
    let of = objective.objective_id.to_string();
    let number = all.pauses.range((of.clone(), 0)..=(of.clone(), u32::MAX)).count() as u32 + 1;
    let next = match objective.status {
        _ if is_standing => "Start triage of the imported captures: fernery triage release".to_string(),
        ObjectiveStatus::Blocked => format!("To take it up again: fernery ticket unblock {of} --all"),
        _ => format!("Its run was interrupted by the export. To start it here: fernery ticket approve {of}"),
    };
    let look = match is_standing {
        true => "See what needs you now: fernery orient".to_string(),
        false => format!("See what the run left: fernery ticket show {of}"),
    };
    let (objective_id, azolla_id) = (objective.objective_id.clone(), objective.azolla_id.clone());
    let pause = PauseState::new(objective_id, azolla_id, PauseReason::GateFailed, [next, look], now);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{AzollaId, ContextSnapshot, EventId, Objective, SnapshotId, Workorder};
    use crate::blueprint::{Blueprint, Gate};
    use crate::canonical::Digest;
    use crate::exported::{BesideObjective, BesideWorkorder};
    use crate::pipeline::judging::verdict_again;

    /// A stand-in whose answer was there, and not judged: its blueprint's gate judges what others make.
    fn stand_in_under_way() -> Exported {
        let (at, azolla_id) = (Timestamp::default(), AzollaId::stored("task_management"));
        let objective_id = ObjectiveId::stored("duty");
        let mut blueprint = Blueprint::task_management();
        blueprint.gates = vec![Gate::Applies];
        let digest = Digest::of_bytes(b"blueprint");
        let objective = Objective {
            objective_id: objective_id.clone(),
            azolla_id: azolla_id.clone(),
            title: "Duty".into(),
            acceptance_criteria: String::new(),
            objective_type: ObjectiveType::Standing,
            status: ObjectiveStatus::InProgress,
            importance: 2,
            urgency: 2,
            blocked_reason: None,
            blocked_on: Vec::new(),
            metadata: Default::default(),
            created_at: at,
            updated_at: at,
        };
        let snapshot = ContextSnapshot {
            snapshot_id: SnapshotId::stored("s"),
            objective_id: objective_id.clone(),
            metadata: [("stands_in".to_string(), json!({ "maker": "command", "why": "it failed" }))].into(),
            related_yield_refs: Vec::new(),
            full_prompt_text: String::new(),
            created_at: at,
        };
        let bundle = OutputBundle {
            title: "Done".into(),
            metadata: [("outcome".to_string(), json!(Outcome::Output.as_str()))].into(),
            ..interrupted(OutputId::stored("o"), objective_id.clone(), at)
        };
        let workorder = Workorder {
            work_order_id: WorkorderId::stored("w"),
            objective_id,
            diazotroph_type: blueprint.workorders_for()[0].clone(),
            status: WorkorderStatus::Executed,
            context_snapshot_id: SnapshotId::stored("s"),
            branch_name: None,
            budget_ms: 1_000,
            created_at: at,
        };
        let beside = BesideWorkorder {
            azolla_id,
            event_id: EventId::stored("e"),
            blueprint: digest,
            spent_ms: 0,
            executed_at: Some(at),
            output_id: Some(bundle.output_id.clone()),
            judged: false,
            gate_tries: 0,
            cancelled: false,
            claim_version: 1,
        };
        let of_objective =
            BesideObjective { approval: None, unconfirmed: false, failures: 0, spent: Default::default() };
        Exported {
            digest,
            with_inbox: true,
            head: None,
            blueprints: [(digest.to_string(), blueprint)].into(),
            objectives: [("duty".to_string(), Kept { artifact: objective, beside: of_objective })].into(),
            decisions: Default::default(),
            events: Default::default(),
            snapshots: [("s".to_string(), snapshot)].into(),
            workorders: [("w".to_string(), Kept { artifact: workorder, beside })].into(),
            bundles: [("o".to_string(), bundle)].into(),
            runs: Default::default(),
            pauses: Default::default(),
            captures: Default::default(),
            candidates: Default::default(),
            manifests: Default::default(),
            queries: Default::default(),
            responses: Default::default(),
            overdue: Default::default(),
            attempts: Default::default(),
            dependencies: Default::default(),
            recurrences: Default::default(),
            snoozes: Default::default(),
            journal: Vec::new(),
        }
    }

    #[test]
    fn a_stand_in_that_was_under_way_is_ended_by_the_gates_that_judge_it_again() {
        let mut all = stand_in_under_way();
        let arrival = settle(&mut all, Timestamp::default(), || "made-up".to_string());
        assert_eq!(arrival.ended.len(), 1);
        let run = &all.runs["made-up"];
        let blueprint = all.blueprints.values().next().expect("a blueprint");
        let gates = gates_of(blueprint, true, all.snapshots.get("s"), &[]);
        let (again, _) = verdict_again(&gates, &run.beside.evidence, &all.bundles["o"]).recorded();
        assert_eq!(run.artifact.gate_result, again);
    }
}
