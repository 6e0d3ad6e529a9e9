//! The way of a patch that passed to its base branch: one row for each ticket, of its last run.
//!
//! * `asking`: the row comes with a verdict that passed and goes when the ticket is reopened or cancelled; an operator wants the patch landed
//! * `needing`: those that wait for a person
//! * `working`: what the landing worker reads and writes

mod asking;
mod needing;
mod working;

pub use asking::{MergeOf, foreseen, merge};
pub(super) use asking::{Passed, closed, confirmed, found, given_up, opened};
pub use needing::{stopped, unmerged};
pub use working::{
    Concluded, LandBranch, LandingEnd, NextLanding, Tried, branches, conclude, moving, take_next, tried,
    unreachable, untold, untried, waits,
};

use super::{Cell, Row, Sql, Statement, azollas, reading};
use crate::error::StoreResult;
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, ObjectiveId, RecordId, RunId, WorkorderId};
use fernery_core::blueprint::Land;
use fernery_core::canonical;
use fernery_core::limits::LANDINGS_TRIED;
use fernery_core::pipeline::landing::{Fit, LandingState, land};

/// A row of `landings`.
#[derive(Clone, Debug, PartialEq)]
pub struct Landing {
    pub objective_id: ObjectiveId,
    pub azolla_id: AzollaId,
    /// The run that passed.
    pub run_id: RunId,
    /// Its workorder, which is claimed once more to land.
    pub work_order_id: WorkorderId,
    pub repo_ref: String,
    /// The branch that the patch shall come to.
    pub base_branch: String,
    /// The commit that the patch is for.
    pub base_commit: String,
    /// The branch that the gates left.
    pub branch: Option<String>,
    /// Its commit.
    pub candidate: Option<String>,
    /// Whether commits of earlier attempts are below that.
    pub stacked: bool,
    /// The digest of the patch.
    pub patch_sha256: String,
    /// The tip of the base branch when the candidate was last tried on it; empty: never.
    pub tip: String,
    /// What came of that.
    pub fit: Option<Fit>,
    /// Why it conflicts, or did not land.
    pub why: Option<String>,
    /// The files that conflict.
    pub files: Vec<String>,
    pub state: LandingState,
    /// The decision by which an operator wants it.
    pub record_id: Option<RecordId>,
    /// Since when: its place in the queue of the branch.
    pub wanted_at: Option<Timestamp>,
    /// Tries that failed for no fault of the patch.
    pub tries: u32,
    /// When it is tried again.
    pub not_before: Option<Timestamp>,
    /// The branch moves from this commit…
    pub moved_from: Option<String>,
    /// … to this one.
    pub moved_to: Option<String>,
    /// What its working trees were left with.
    pub remarks: Vec<String>,
    /// How often it was worked on again by itself since a person said go.
    pub reworks: u32,
    /// When its run passed.
    pub opened_at: Timestamp,
}

impl Landing {
    /// Whether the branch does not have it.
    pub fn is_open(&self) -> bool {
        !matches!(self.state, LandingState::Landed | LandingState::Reworked)
    }

    /// Whether an operator wants it, and it is on its way.
    pub fn is_wanted(&self) -> bool {
        self.state.is_wanted()
    }
}

fn landing(row: &Row) -> StoreResult<Landing> {
    let text = |column: &'static str| row.maybe_text(column).map(|text| text.map(str::to_string));
    Ok(Landing {
        objective_id: row.word("objective_id")?,
        azolla_id: row.word("azolla_id")?,
        run_id: row.word("run_id")?,
        work_order_id: row.word("work_order_id")?,
        repo_ref: row.text("repo_ref")?.to_string(),
        base_branch: row.text("base_branch")?.to_string(),
        base_commit: row.text("base_commit")?.to_string(),
        branch: text("branch")?,
        candidate: text("candidate")?,
        stacked: row.flag("stacked")?,
        patch_sha256: row.text("patch_sha256")?.to_string(),
        tip: row.text("tip")?.to_string(),
        fit: row.maybe_word("fit")?,
        why: text("why")?,
        files: row.json("files")?,
        state: row.word("state")?,
        record_id: row.maybe_word("record_id")?,
        wanted_at: row.maybe_at("wanted_at")?,
        tries: row.count("tries")?,
        not_before: row.maybe_at("not_before")?,
        moved_from: text("moved_from")?,
        moved_to: text("moved_to")?,
        remarks: row.json("remarks")?,
        reworks: row.count("reworks")?,
        opened_at: row.at("opened_at")?,
    })
}

/// The landing of an objective.
pub fn of(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Option<Landing>> {
    let row = sql.one(include_str!("../sql/landing_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| landing(&row)).transpose()
}

/// The landings of these objectives, in one round.
pub fn of_all(sql: &mut dyn Sql, ids: &[ObjectiveId]) -> StoreResult<Vec<Landing>> {
    let one = include_str!("../sql/landing_by_id.sql");
    let asked: Vec<Statement<'_>> = ids.iter().map(|id| (one, vec![id.as_str().into()])).collect();
    sql.query_all(&asked)?.iter().flatten().map(landing).collect()
}

/// Which of these are no longer tried by themselves on a new tip of their branch, in one round: so many newer ones are open.
pub fn left_out(sql: &mut dyn Sql, landings: &[Landing]) -> StoreResult<Vec<bool>> {
    let newer = include_str!("../sql/landings_newer.sql");
    let asked = landings.iter().map(|of| {
        let cells: Vec<Cell<'_>> = vec![
            of.azolla_id.as_str().into(),
            (&of.repo_ref).into(),
            (&of.base_branch).into(),
            of.opened_at.into(),
            of.objective_id.as_str().into(),
            LANDINGS_TRIED.into(),
        ];
        (newer, cells)
    });
    let asked: Vec<Statement<'_>> = asked.collect();
    let counted = sql.query_all(&asked)?;
    let counts = counted.iter().map(|rows| rows.first().map_or(Ok(0), |row| row.int(0)));
    landings.iter().zip(counts).map(|(of, newer)| Ok(of.is_open() && newer? >= LANDINGS_TRIED)).collect()
}

/// As [`of`], locked until the transaction ends. The objective is locked before.
fn locked(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Option<Landing>> {
    let row = sql.one(include_str!("../sql/landing_lock.sql"), &[id.as_str().into()])?;
    row.map(|row| landing(&row)).transpose()
}

fn update(sql: &mut dyn Sql, landing: &Landing) -> StoreResult<()> {
    let (files, remarks) = (canonical::text_of(&landing.files), canonical::text_of(&landing.remarks));
    let cells: [Cell<'_>; 17] = [
        landing.objective_id.as_str().into(),
        (&landing.tip).into(),
        landing.fit.map(Fit::as_str).into(),
        landing.why.as_deref().into(),
        (&files).into(),
        landing.state.as_str().into(),
        landing.is_open().into(),
        landing.is_wanted().into(),
        landing.record_id.as_ref().map(RecordId::as_str).into(),
        landing.wanted_at.into(),
        i64::from(landing.tries).into(),
        landing.not_before.into(),
        landing.moved_from.as_deref().into(),
        landing.moved_to.as_deref().into(),
        (&remarks).into(),
        i64::from(landing.reworks).into(),
        sql.now().into(),
    ];
    sql.write(landing.objective_id.as_str(), include_str!("../sql/landing_update.sql"), &cells)
}

/// How the blueprint of a landing's workorder lets it come home.
pub fn land_of(sql: &mut dyn Sql, landing: &Landing) -> StoreResult<Land> {
    let Some(work) = reading::workorder_by_id(sql, &landing.work_order_id)? else { return Ok(Land::UNSAID) };
    let registered = azollas::by_digest(sql, &work.blueprint)?;
    Ok(registered.map_or(Land::UNSAID, |registered| land(&registered.blueprint)))
}
