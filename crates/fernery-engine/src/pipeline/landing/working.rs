//! What the landing worker reads and writes.
//!
//! Reads: patches that no branch has, those that an operator wants there first. Claims: the workorder of the run, which has its
//! verdict. Writes, all or nothing: the landing, the journal, a pause or the objective; and gives the claim back.

use super::{Landing, landing, locked, update};
use crate::door;
use crate::error::{StoreError, StoreResult};
use crate::pipeline::claims::{self, Claimer, HeldClaim};
use crate::pipeline::objectives::{self, ObjectiveRow};
use crate::pipeline::pauses::pause;
use crate::pipeline::{Cell, Row, Sql, Stage, after, azollas, decisions, hosts, journal, reading};
use fernery_core::artifact::{
    AzollaId, ObjectiveId, ObjectiveStatus, PauseReason, RecordId, ResourceType, WorkorderId,
};
use fernery_core::job::retry::RetryPolicy;
use fernery_core::journal::Act;
use fernery_core::limits::LANDINGS_TRIED;
use fernery_core::pipeline::happened::PauseKind;
use fernery_core::pipeline::landing::{
    Fit, LandingState, Sequel, Stopped, UNSEEN, not_looked_at, sequel, unseen,
};
use serde_json::json;
use std::time::Duration;

/// When a landing that could not be tried is tried again.
const AGAIN: RetryPolicy = RetryPolicy { base: Duration::from_secs(2), cap: Duration::from_secs(256) };

/// A branch that patches of an azolla shall land on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LandBranch {
    pub azolla_id: AzollaId,
    pub repo_ref: String,
    pub base_branch: String,
}

/// The branches that some patch of an azolla has not landed on.
pub fn branches(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<Vec<LandBranch>> {
    let (next, mut found) = (include_str!("../sql/landings_branch_after.sql"), Vec::<LandBranch>::new());
    loop {
        let (repo, branch) = found.last().map_or(("", ""), |of| (&of.repo_ref, &of.base_branch));
        let Some(row) = sql.one(next, &[azolla_id.as_str().into(), repo.into(), branch.into()])? else {
            return Ok(found);
        };
        let (repo_ref, base_branch) = (row.text(0)?.to_string(), row.text(1)?.to_string());
        found.push(LandBranch { azolla_id: azolla_id.clone(), repo_ref, base_branch });
    }
}

/// Landings on a branch that were not tried on this tip of it, of the [`LANDINGS_TRIED`] newest.
pub fn untried(sql: &mut dyn Sql, on: &LandBranch, tip: &str, limit: i64) -> StoreResult<Vec<Landing>> {
    let cells: [Cell<'_>; 6] = [
        on.azolla_id.as_str().into(),
        (&on.repo_ref).into(),
        (&on.base_branch).into(),
        tip.into(),
        LANDINGS_TRIED.into(),
        limit.into(),
    ];
    sql.query(include_str!("../sql/landings_to_try.sql"), &cells)?.iter().map(landing).collect()
}

/// Landings on a branch that the process `owner` cannot look at, for this reason, and that do not say so, of the
/// [`LANDINGS_TRIED`] newest. None if another process has the repository, too: that one looks, and two that disagree would write
/// for ever.
pub fn untold(
    sql: &mut dyn Sql,
    on: &LandBranch,
    (owner, why): (&str, &str),
    limit: i64,
) -> StoreResult<Vec<Landing>> {
    if hosts::others_have(sql, owner, &on.azolla_id, &on.repo_ref)? {
        return Ok(Vec::new());
    }
    let (why, told) = (unseen(why), format!("{UNSEEN}%"));
    let cells: [Cell<'_>; 7] = [
        on.azolla_id.as_str().into(),
        (&on.repo_ref).into(),
        (&on.base_branch).into(),
        (&why).into(),
        LANDINGS_TRIED.into(),
        limit.into(),
        (&told).into(),
    ];
    sql.query(include_str!("../sql/landings_untold.sql"), &cells)?.iter().map(landing).collect()
}

/// Writes why the branch of a landing cannot be looked at. When it can, the landing is tried, and says so no longer. `false`: the
/// landing is another one by now, is wanted, or has a reason of its own, which is worth more.
pub fn unreachable(sql: &mut dyn Sql, seen: &Landing, why: &str) -> StoreResult<bool> {
    if objectives::lock(sql, &seen.objective_id)?.is_none() {
        return Ok(false);
    }
    let Some(mut landing) = locked(sql, &seen.objective_id)? else { return Ok(false) };
    if landing.run_id != seen.run_id || landing.state != LandingState::Open || landing.moved_to.is_some() {
        return Ok(false);
    }
    if landing.why.as_ref().is_some_and(|why| !why.starts_with(UNSEEN)) {
        return Ok(false);
    }
    (landing.tip, landing.fit, landing.files) = (String::new(), None, Vec::new());
    landing.why = Some(unseen(why));
    update(sql, &landing)?;
    Ok(true)
}

/// What came of trying a candidate on a tip.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// How it fits; `None`: it could not be tried.
    pub fit: Option<Fit>,
    /// Why it does not.
    pub why: Option<String>,
    /// The files that conflict.
    pub files: Vec<String>,
    /// The branch has the commit that an earlier try was about to move it to.
    pub moved: bool,
}

/// Writes what came of trying a candidate on a tip. `false`: the landing is another one by now.
pub fn tried(sql: &mut dyn Sql, seen: &Landing, tip: &str, found: &Tried) -> StoreResult<bool> {
    if objectives::lock(sql, &seen.objective_id)?.is_none() {
        return Ok(false);
    }
    let Some(mut landing) = locked(sql, &seen.objective_id)? else { return Ok(false) };
    if landing.run_id != seen.run_id || !landing.is_open() {
        return Ok(false);
    }
    landing.tip = tip.to_string();
    landing.fit = found.fit;
    landing.files.clone_from(&found.files);
    // What an operator wants is concluded by whoever carries it out.
    if landing.state == LandingState::Open {
        match (found.moved, found.fit, &landing.moved_from, &landing.moved_to) {
            (true, _, Some(from), Some(to)) if seen.moved_to.as_ref() == Some(to) => {
                let why = landing.why.as_deref().unwrap_or("the last try was cut short");
                landing.remarks = vec![not_looked_at(&landing.base_branch, (from, to), why)];
                landed(sql, &mut landing)?;
            }
            // Somebody merged it by hand.
            (_, Some(Fit::Contained), ..) => {
                (landing.moved_from, landing.moved_to) = (None, None);
                landed(sql, &mut landing)?;
            }
            // Trouble is not about a tip: it is told until somebody asks once more.
            _ if landing.tries > 0 && found.why.is_none() => {}
            _ => landing.why.clone_from(&found.why),
        }
    }
    update(sql, &landing)?;
    Ok(true)
}

/// A landing whose turn it is.
#[derive(Clone, Debug)]
pub struct NextLanding {
    pub objective_id: ObjectiveId,
    /// The workorder of its run.
    pub work_order_id: WorkorderId,
    /// The claim of that.
    pub held: HeldClaim,
}

/// The landing whose turn it is on a branch, if nobody has it.
fn free(sql: &mut dyn Sql, on: &LandBranch) -> StoreResult<Option<Row>> {
    let now = sql.now();
    let next = include_str!("../sql/landing_next.sql");
    let cells = [on.azolla_id.as_str().into(), (&on.repo_ref).into(), (&on.base_branch).into()];
    let Some(row) = sql.one(next, &cells)? else { return Ok(None) };
    let later = |column: &'static str| Ok::<_, StoreError>(row.maybe_at(column)?.is_some_and(|at| at > now));
    Ok(if later("not_before")? || later("lease_expires_at")? { None } else { Some(row) })
}

/// Whether [`take_next`] would find one.
pub fn waits(sql: &mut dyn Sql, on: &LandBranch) -> StoreResult<bool> {
    Ok(free(sql, on)?.is_some())
}

/// Takes the landing whose turn it is on a branch; `None`: none waits, or one is on its way.
pub fn take_next(sql: &mut dyn Sql, on: &LandBranch, by: &Claimer) -> StoreResult<Option<NextLanding>> {
    let Some(row) = free(sql, on)? else { return Ok(None) };
    let (objective_id, work_order_id): (ObjectiveId, WorkorderId) =
        (row.word("objective_id")?, row.word("work_order_id")?);
    let seen = [(work_order_id.as_str(), row.int("claim_version")?)];
    let held = claims::take(sql, ResourceType::Workorder, &seen, by)?.pop().flatten();
    Ok(held.map(|held| NextLanding { objective_id, work_order_id, held }))
}

/// Records where the branch is about to move, so that whoever comes after a crash can look whether it has. Renews the claim;
/// `None`: somebody has taken over, or nobody wants it any more.
pub fn moving(
    sql: &mut dyn Sql,
    next: &NextLanding,
    ttl: Duration,
    (from, to): (&str, &str),
) -> StoreResult<Option<HeldClaim>> {
    let row = objectives::lock(sql, &next.objective_id)?;
    let landing = locked(sql, &next.objective_id)?;
    let (Some(row), Some(mut landing)) = (row, landing) else { return Ok(None) };
    if !is_same(&landing, next) || row.objective.status != ObjectiveStatus::Done {
        return Ok(None);
    }
    let Some(held) = claims::renew(sql, &next.held, ttl)? else { return Ok(None) };
    landing.state = LandingState::Moving;
    landing.moved_from = Some(from.to_string());
    landing.moved_to = Some(to.to_string());
    update(sql, &landing)?;
    Ok(Some(held))
}

fn is_same(landing: &Landing, next: &NextLanding) -> bool {
    landing.work_order_id == next.work_order_id && landing.is_wanted()
}

/// How a try to land ended.
#[derive(Clone, Debug, PartialEq)]
pub enum LandingEnd {
    Landed {
        from: String,
        to: String,
        /// What its working trees were left with.
        remarks: Vec<String>,
    },
    /// The branch had it already.
    Contained {
        /// Where the branch is.
        tip: String,
    },
    /// It does not land.
    Stopped {
        stopped: Stopped,
        /// The files that conflict.
        files: Vec<String>,
        /// The tip that it was tried on, and how it stands to that; `None`: there was none.
        tried: Option<(String, Option<Fit>)>,
    },
    /// It could not be tried, for this reason.
    Trouble(String),
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concluded {
    /// The branch has it.
    Landed,
    /// A person decides.
    Stopped,
    /// It is worked on again by itself.
    Reworked,
    /// It is tried again.
    Later,
    /// Somebody has taken over, or nobody wants it any more.
    ClaimLost,
}

/// Writes how a try to land ended, and gives the claim back.
pub fn conclude(sql: &mut dyn Sql, next: &NextLanding, ending: &LandingEnd) -> StoreResult<Concluded> {
    let row = objectives::lock(sql, &next.objective_id)?;
    let landing = locked(sql, &next.objective_id)?;
    if !claims::release(sql, &next.held)? {
        return Ok(Concluded::ClaimLost);
    }
    let (Some(row), Some(mut landing)) = (row, landing) else { return Ok(Concluded::ClaimLost) };
    if !is_same(&landing, next) {
        return Ok(Concluded::ClaimLost);
    }
    let concluded = match ending {
        LandingEnd::Landed { from, to, remarks } => {
            landing.moved_from = Some(from.clone());
            landing.moved_to = Some(to.clone());
            landing.tip = to.clone();
            landing.remarks = [remarks.clone(), trouble_before(&landing)].concat();
            landed(sql, &mut landing)?
        }
        LandingEnd::Contained { tip } => {
            (landing.moved_from, landing.moved_to) = (None, None);
            landing.tip = tip.clone();
            landing.remarks = trouble_before(&landing);
            landed(sql, &mut landing)?
        }
        LandingEnd::Stopped { stopped, files, tried } => {
            landing.files = files.clone();
            (landing.moved_from, landing.moved_to, landing.tries) = (None, None, 0);
            // Not tried on this tip again, so that the reason stays until the branch moves.
            if let Some((tip, fit)) = tried {
                (landing.tip, landing.fit) = (tip.clone(), *fit);
            }
            stop(sql, &mut landing, row, stopped)?
        }
        LandingEnd::Trouble(why) => {
            landing.tries += 1;
            let infrastructure = infrastructure(sql, &landing)?;
            // Where the branch was about to move stays written, and so does MOVING: the branch may have moved.
            if landing.tries < infrastructure {
                landing.why = Some(why.clone());
                landing.not_before = Some(sql.now().after(AGAIN.ceiling(landing.tries)));
                Concluded::Later
            } else {
                let why = match &landing.moved_to {
                    Some(to) => format!(
                        "{why}; {} may have moved to commit {to} already, and the next try looks",
                        landing.base_branch
                    ),
                    None => why.clone(),
                };
                stop(sql, &mut landing, row, &Stopped { why, rework: false })?
            }
        }
    };
    update(sql, &landing)?;
    sql.wakes(Stage::Landing);
    Ok(concluded)
}

fn infrastructure(sql: &mut dyn Sql, landing: &Landing) -> StoreResult<u32> {
    let work = reading::workorder_by_id(sql, &landing.work_order_id)?;
    let registered = work.map(|work| azollas::by_digest(sql, &work.blueprint)).transpose()?.flatten();
    Ok(registered.map_or(1, |registered| registered.blueprint.retry.infrastructure.max(1)))
}

/// What went wrong before it came to its end.
fn trouble_before(landing: &Landing) -> Vec<String> {
    let told = |why: &String| format!("it took {} tries; what went wrong before: {why}", landing.tries + 1);
    landing.why.iter().filter(|_| landing.tries > 0).map(told).collect()
}

fn landed(sql: &mut dyn Sql, landing: &mut Landing) -> StoreResult<Concluded> {
    landing.state = LandingState::Landed;
    landing.fit = Some(Fit::Contained);
    (landing.why, landing.files) = (None, Vec::new());
    let why = json!({"run_id": landing.run_id, "record_id": landing.record_id, "base_branch": landing.base_branch,
                     "from": landing.moved_from, "to": landing.moved_to, "tip": landing.tip, "remarks": landing.remarks});
    journal::note(sql, "landing", Act::Landed, landing.objective_id.as_str(), &why)?;
    after::done(sql, &landing.objective_id)?;
    Ok(Concluded::Landed)
}

/// It did not land: a person decides, or it is worked on again as the approved blueprint allows.
fn stop(
    sql: &mut dyn Sql,
    landing: &mut Landing,
    mut row: ObjectiveRow,
    stopped: &Stopped,
) -> StoreResult<Concluded> {
    let id = landing.objective_id.clone();
    landing.why = Some(stopped.why.clone());
    landing.not_before = None;
    let why = json!({"run_id": landing.run_id, "record_id": landing.record_id, "why": stopped.why});
    journal::note(sql, "landing", Act::NotLanded, id.as_str(), &why)?;
    let Some(registered) = azollas::in_force(sql, &row.objective.azolla_id)? else {
        return Err(StoreError::Corrupt(format!("azolla {} has no blueprint", row.objective.azolla_id)));
    };
    let covering = decisions::covering(sql, &row, &registered)?;
    let facts = (landing.reworks, covering.is_some());
    match (sequel(&id, stopped, &registered.blueprint, &row.spent, facts), covering) {
        (Sequel::Rework(n, of), Some(shown)) => {
            landing.state = LandingState::Reworked;
            landing.reworks = n;
            let note = format!("{} (rework {n} of {of})", stopped.why);
            decisions::rework(sql, &mut row, &RecordId::stored(&door::artifact_id()), &shown, &note)?;
            Ok(Concluded::Reworked)
        }
        (Sequel::Pause(actions), _) => {
            landing.state = LandingState::Open;
            let wanted = landing.record_id.as_ref().map_or("", RecordId::as_str);
            let key = PauseKind::Land.key(format_args!("{id}:{wanted}"));
            pause(sql, &key, &row.objective, PauseReason::GateFailed, actions)?;
            Ok(Concluded::Stopped)
        }
        (Sequel::Rework(..), None) => Err(StoreError::Corrupt(format!("{id} has no approval to work under"))),
    }
}
