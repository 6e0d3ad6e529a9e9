//! A landing comes with the verdict that passed, is asked for by an operator, and goes with a reopening.

use super::{Landing, land_of, locked, update};
use crate::door;
use crate::error::StoreResult;
use crate::pipeline::acts::{Actor, Answer, Asked, Refusal, check_note, fields};
use crate::pipeline::decisions::{Deciding, decide, decided};
use crate::pipeline::objectives::{self, ObjectiveRow};
use crate::pipeline::pauses::is_judged_here;
use crate::pipeline::reading::{self, Decision, Run, WorkorderView};
use crate::pipeline::{Cell, Sql, Stage, claims, hosts, journal, ticket_state};
use fernery_core::Timestamp;
use fernery_core::artifact::{
    ContextSnapshot, GateResult, ObjectiveId, ObjectiveStatus, OutputBundle, RecordId, ResourceType, RunId,
};
use fernery_core::blueprint::LandOn;
use fernery_core::canonical::Digest;
use fernery_core::journal::Act;
use fernery_core::pipeline::evidence::{BRANCH, STACKED};
use fernery_core::pipeline::landing::{LandingState, Merging};
use fernery_core::pipeline::membrane::outcome;
use fernery_core::pipeline::waiting::Waiting;
use serde_json::{Value, json};

/// What came out of a run that passed.
pub(in crate::pipeline) struct Passed<'a> {
    pub(in crate::pipeline) work: &'a WorkorderView,
    pub(in crate::pipeline) snapshot: Option<&'a ContextSnapshot>,
    pub(in crate::pipeline) bundle: &'a OutputBundle,
    pub(in crate::pipeline) run: &'a Run,
}

/// The landing of a run that passed, if its output is a patch for a branch.
fn of_run(passed: &Passed<'_>, now: Timestamp) -> Option<Landing> {
    let Passed { work, snapshot, bundle, run } = passed;
    let said = |name: &str| snapshot.and_then(|of| of.metadata.get(name)).and_then(Value::as_str);
    let is_patch = run.record.gate_result == GateResult::Pass && outcome(&bundle.metadata).is_success();
    if !is_patch || bundle.content.is_empty() {
        return None;
    }
    let left = run.evidence.iter().find(|found| found.gate == BRANCH && found.trouble.is_none());
    let stacked = left.is_some_and(|found| found.log_tail.contains(STACKED));
    let left = left.and_then(|found| found.log_tail.lines().next()?.split_once(" at "));
    Some(Landing {
        objective_id: run.record.objective_id.clone(),
        azolla_id: work.azolla_id.clone(),
        run_id: run.record.run_id.clone(),
        work_order_id: run.record.work_order_id.clone(),
        repo_ref: said("repo_ref")?.to_string(),
        base_branch: said("base_branch")?.to_string(),
        base_commit: said("commit_sha")?.to_string(),
        branch: left.map(|(branch, _)| branch.to_string()),
        candidate: left.map(|(_, commit)| commit.to_string()),
        stacked,
        patch_sha256: Digest::of_bytes(bundle.content.as_bytes()).to_string(),
        tip: String::new(),
        fit: None,
        why: None,
        files: Vec::new(),
        state: LandingState::Open,
        record_id: None,
        wanted_at: None,
        tries: 0,
        not_before: None,
        moved_from: None,
        moved_to: None,
        remarks: Vec::new(),
        reworks: 0,
        opened_at: now,
    })
}

/// Writes the landing of a run that passed, if its output is a patch for a branch. The objective is locked.
pub(in crate::pipeline) fn opened(sql: &mut dyn Sql, passed: &Passed<'_>) -> StoreResult<()> {
    match of_run(passed, sql.now()) {
        Some(landing) => put(sql, &landing),
        None => Ok(()),
    }
}

fn put(sql: &mut dyn Sql, of: &Landing) -> StoreResult<()> {
    let cells: [Cell<'_>; 12] = [
        of.objective_id.as_str().into(),
        of.azolla_id.as_str().into(),
        of.run_id.as_str().into(),
        of.work_order_id.as_str().into(),
        (&of.repo_ref).into(),
        (&of.base_branch).into(),
        (&of.base_commit).into(),
        of.branch.as_deref().into(),
        of.candidate.as_deref().into(),
        (&of.patch_sha256).into(),
        of.opened_at.into(),
        of.stacked.into(),
    ];
    sql.write("the landing", include_str!("../sql/landing_put.sql"), &cells)?;
    sql.wakes(Stage::Landing);
    Ok(())
}

/// What a merge of this run would land, as far as nobody has written it down: its run was judged by an earlier version, is kept
/// although it was to be worked on again, or is taken up again. A run of another instance has none: its gates would run here, and
/// no approval of this instance was shown them.
pub fn foreseen(sql: &mut dyn Sql, run: &Run) -> StoreResult<Option<Landing>> {
    if !is_judged_here(sql, &run.record.work_order_id)? {
        return Ok(None);
    }
    let work = reading::workorder_by_id(sql, &run.record.work_order_id)?;
    let bundle = reading::bundle(sql, &run.record.work_order_id)?;
    let (Some(work), Some(bundle)) = (work, bundle) else { return Ok(None) };
    let snapshot = reading::snapshot(sql, &work.workorder.context_snapshot_id)?;
    let passed = Passed { work: &work, snapshot: snapshot.as_ref(), bundle: &bundle, run };
    Ok(of_run(&passed, sql.now()))
}

/// The landing of an objective; one that is only [`foreseen`] is written down.
pub(in crate::pipeline) fn found(
    sql: &mut dyn Sql,
    id: &ObjectiveId,
    run: &Run,
) -> StoreResult<Option<Landing>> {
    if let Some(landing) = locked(sql, id)?.filter(|of| of.state != LandingState::Reworked) {
        return Ok(Some(landing));
    }
    match foreseen(sql, run)? {
        Some(landing) => put(sql, &landing)?,
        None => return Ok(None),
    }
    locked(sql, id)
}

/// Forgets the landing of an objective that a person reopens or cancels. Refused while its branch is being moved, and where it may
/// have moved already: somebody can find out. Where nobody has the repository any more, nobody can, and the journal keeps which
/// commit the branch may have.
pub(in crate::pipeline) fn closed(sql: &mut dyn Sql, id: &ObjectiveId) -> Answer<()> {
    let Some(landing) = locked(sql, id)? else { return Ok(Ok(())) };
    if let Some(to) = landing.moved_to.as_ref().filter(|_| landing.is_open()) {
        let branch = &landing.base_branch;
        let nowhere = hosts::lacks(sql, &landing.azolla_id, (&landing.repo_ref, branch))?;
        let held = claims::is_held(sql, ResourceType::Workorder, landing.work_order_id.as_str())?;
        match nowhere {
            // A host that is away may come back and find out; one that has lost the repository cannot.
            Some(nowhere @ Waiting::NoRepository { .. }) if !held => {
                let why = format!("{branch} may have moved to commit {to}: {}", nowhere.sentence());
                let why = json!({"run_id": landing.run_id, "record_id": landing.record_id, "why": why});
                journal::note(sql, "landing", Act::NotLanded, id.as_str(), &why)?;
            }
            _ if landing.state == LandingState::Moving => {
                return Ok(Err(Refusal::Conflict(format!(
                    "{branch} is being moved to its patch; try again in a moment"
                ))));
            }
            _ => {
                return Ok(Err(Refusal::Conflict(format!(
                    "{branch} may have moved to its patch already (commit {to}). To find out: fernery ticket merge {id}"
                ))));
            }
        }
    }
    sql.touched(include_str!("../sql/landing_delete.sql"), &[id.as_str().into()])?;
    Ok(Ok(()))
}

/// Forgets the landing of a DONE objective that a person cancels. Refused where nothing is left to cancel: its patch has landed,
/// or is about to, or it is confirmed and has no patch.
pub(in crate::pipeline) fn given_up(sql: &mut dyn Sql, id: &ObjectiveId, unconfirmed: bool) -> Answer<()> {
    let again = format!("To have it worked on again: fernery ticket reopen {id} --note \"what is missing\"");
    match locked(sql, id)? {
        Some(landing) if landing.state == LandingState::Landed => {
            Ok(Err(Refusal::Conflict(format!("{}. {again}", has_landed(&landing)))))
        }
        None if !unconfirmed => {
            Ok(Err(Refusal::Conflict(format!("it is finished and confirmed, and stays so. {again}"))))
        }
        _ => closed(sql, id),
    }
}

/// What an operator who merges was shown.
#[derive(Clone, Debug)]
pub struct MergeOf {
    pub run_id: RunId,
    /// The digest of its patch.
    pub patch_sha256: String,
    /// The tip of the base branch.
    pub tip: String,
}

/// Records that an operator wants the patch of a confirmed run on its base branch. The landing worker does it.
pub fn merge(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, of): (&ObjectiveId, &MergeOf),
    deciding: &Deciding,
) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    let MergeOf { run_id, patch_sha256, tip } = of;
    let what = fields([
        ("note", json!(deciding.note)),
        ("run_id", json!(run_id)),
        ("patch_sha256", json!(patch_sha256)),
        ("tip", json!(tip)),
    ]);
    let asked = Asked { actor, act: Act::Merge, id: id.as_str(), record_id: &deciding.record_id, what };
    let row = accepted!(objectives::locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, &asked)?) {
        return Ok(Ok(before));
    }
    if row.objective.status != ObjectiveStatus::Done {
        return ticket_state::refused(sql, &row);
    }
    let Some(run) = reading::passed_run(sql, id)? else {
        return Ok(Err(Refusal::Conflict("there is no finished run to merge".into())));
    };
    if run.record.run_id != *run_id {
        return Ok(Err(Refusal::OtherRun(Box::new(run.record))));
    }
    if row.unconfirmed {
        let why = format!("nobody has confirmed run {run_id} yet: fernery ticket confirm {id}");
        return Ok(Err(Refusal::Conflict(why)));
    }
    let Some(mut landing) = found(sql, id, &run)? else {
        let why =
            "its output is no patch for a branch, or was judged in another instance: then reopen it here";
        return Ok(Err(Refusal::Conflict(why.into())));
    };
    if landing.state == LandingState::Landed {
        return Ok(Err(Refusal::Conflict(has_landed(&landing))));
    }
    if landing.is_wanted()
        && let Some(before) = landing.record_id.as_ref()
        && let Some(before) = reading::decision_by_id(sql, before)?
    {
        return Ok(Ok(before));
    }
    if landing.patch_sha256 != *patch_sha256 {
        let why = format!("the patch of run {run_id} is {}, not {patch_sha256}", landing.patch_sha256);
        return Ok(Err(Refusal::Conflict(why)));
    }
    let repo = (landing.repo_ref.as_str(), landing.base_branch.as_str());
    // Nobody hosts it: that may change, and the wish stays. But who hosts it without the repository was set up so.
    if let Some(nowhere @ Waiting::NoRepository { .. }) = hosts::lacks(sql, &landing.azolla_id, repo)? {
        return Ok(Err(Refusal::NoRepository(nowhere.sentence())));
    }
    want(sql, &asked, deciding, &mut landing, tip).map(Ok)
}

/// The sentence about a patch that is there.
fn has_landed(landing: &Landing) -> String {
    match &landing.moved_to {
        Some(commit) => format!("it has landed on {} as commit {commit}", landing.base_branch),
        None => format!("{} has it already", landing.base_branch),
    }
}

fn want(
    sql: &mut dyn Sql,
    asked: &Asked<'_>,
    deciding: &Deciding,
    landing: &mut Landing,
    tip: &str,
) -> StoreResult<Decision> {
    let merging = Merging {
        objective_id: &landing.objective_id,
        run_id: &landing.run_id,
        patch_sha256: &landing.patch_sha256,
        repo_ref: &landing.repo_ref,
        base_branch: &landing.base_branch,
        tip,
        merge: land_of(sql, landing)?.merge,
    };
    let decision = decide(sql, asked, deciding, &merging.shown())?;
    landing.state = LandingState::Wanted;
    landing.record_id = Some(decision.record_id.clone());
    landing.wanted_at = Some(decision.created_at);
    (landing.tries, landing.not_before, landing.why) = (0, None, None);
    update(sql, landing)?;
    sql.wakes(Stage::Landing);
    Ok(decision)
}

/// After a confirmation: where the approved blueprint says so, the patch joins the queue of its branch, by a record of its own.
/// Answers whether it did.
pub(in crate::pipeline) fn confirmed(
    sql: &mut dyn Sql,
    actor: &Actor,
    row: &ObjectiveRow,
    run: &Run,
) -> StoreResult<bool> {
    let id = &row.objective.objective_id;
    let Some(mut landing) = found(sql, id, run)? else { return Ok(false) };
    if landing.state != LandingState::Open || land_of(sql, &landing)?.on != LandOn::Confirm {
        return Ok(false);
    }
    let record_id = RecordId::stored(&door::artifact_id());
    let tip = if landing.tip.is_empty() { landing.base_commit.clone() } else { landing.tip.clone() };
    let deciding = Deciding { record_id, digest: None, note: None, premises: None, from_scratch: false };
    let what = fields([("run_id", json!(run.record.run_id)), ("tip", json!(tip))]);
    let asked = Asked { actor, act: Act::Merge, id: id.as_str(), record_id: &deciding.record_id, what };
    want(sql, &asked, &deciding, &mut landing, &tip)?;
    Ok(true)
}
