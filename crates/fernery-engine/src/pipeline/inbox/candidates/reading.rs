//! Candidates as they are read: one, with its captures, those that wait, and those that press.

use crate::error::StoreResult;
use crate::pipeline::acts::{Answer, Refusal};
use crate::pipeline::inbox::captures::{self, CaptureView};
use crate::pipeline::reading::Below;
use crate::pipeline::{Row, Sql, azollas};
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, CandidateId, ObjectiveId, WorkorderId};
use fernery_core::inbox::CandidateStatus;
use fernery_core::pipeline::draft::Draft;
use serde::Serialize;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CandidateView {
    pub candidate_id: CandidateId,
    /// In whose inbox.
    pub azolla_id: AzollaId,
    /// The triage that made it.
    pub work_order_id: Option<WorkorderId>,
    /// The content of the ticket that it would become.
    #[serde(flatten)]
    pub draft: Draft,
    /// Who made it: `builtin`, a model, a command.
    pub made_by: String,
    pub status: CandidateStatus,
    /// The objective that it became.
    pub objective_id: Option<ObjectiveId>,
    /// The candidate that it was merged into.
    pub merged_into: Option<CandidateId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

fn view(row: &Row) -> StoreResult<CandidateView> {
    Ok(CandidateView {
        candidate_id: row.word("candidate_id")?,
        azolla_id: row.word("azolla_id")?,
        work_order_id: row.maybe_word("work_order_id")?,
        draft: row.json("document")?,
        made_by: row.text("made_by")?.to_string(),
        status: row.word("status")?,
        objective_id: row.maybe_word("objective_id")?,
        merged_into: row.maybe_word("merged_into")?,
        created_at: row.at("created_at")?,
        updated_at: row.at("updated_at")?,
    })
}

pub fn by_id(sql: &mut dyn Sql, id: &CandidateId) -> StoreResult<Option<CandidateView>> {
    let row = sql.one(include_str!("../../sql/candidate_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| view(&row)).transpose()
}

/// The captures that it was made of.
pub fn captures_of(sql: &mut dyn Sql, id: &CandidateId) -> StoreResult<Vec<CaptureView>> {
    sql.query(include_str!("../../sql/captures_of_candidate.sql"), &[id.as_str().into()])?
        .iter()
        .map(captures::view)
        .collect()
}

/// The captures that each of them was made of, in their order.
pub fn captures_of_each(sql: &mut dyn Sql, of: &[CandidateView]) -> StoreResult<Vec<Vec<CaptureView>>> {
    let asked = of.iter().map(|one| {
        (include_str!("../../sql/captures_of_candidate.sql"), vec![one.candidate_id.as_str().into()])
    });
    let found = sql.query_all(&asked.collect::<Vec<_>>())?;
    found.iter().map(|rows| rows.iter().map(captures::view).collect()).collect()
}

/// Waiting candidates of all inboxes, oldest first, above a place. The index begins with the azolla, so the page is merged
/// from a page of each azolla.
pub fn waiting_anywhere(
    sql: &mut dyn Sql,
    after: (Timestamp, &str),
    limit: i64,
) -> StoreResult<Vec<CandidateView>> {
    let mut all = Vec::new();
    for azolla_id in azollas::ids(sql)? {
        all.extend(waiting(sql, &azolla_id, after, limit)?);
    }
    all.sort_by(|a, b| (a.created_at, &a.candidate_id).cmp(&(b.created_at, &b.candidate_id)));
    all.truncate(usize::try_from(limit).unwrap_or(0));
    Ok(all)
}

/// Waiting candidates, oldest first, above a place.
pub fn waiting(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    after: (Timestamp, &str),
    limit: i64,
) -> StoreResult<Vec<CandidateView>> {
    let now = sql.calendar();
    let cells = [azolla_id.as_str().into(), after.0.into(), after.1.into(), limit.into(), now.into()];
    sql.query(include_str!("../../sql/candidates_waiting.sql"), &cells)?.iter().map(view).collect()
}

/// All candidates, newest first, below a place.
pub fn page(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Vec<CandidateView>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into()];
    sql.query(include_str!("../../sql/candidates_page.sql"), &cells)?.iter().map(view).collect()
}

/// As [`page`], for one azolla.
pub fn page_of(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    below: &Below,
    limit: i64,
) -> StoreResult<Vec<CandidateView>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into(), azolla_id.as_str().into()];
    sql.query(include_str!("../../sql/candidates_page_of_azolla.sql"), &cells)?.iter().map(view).collect()
}

/// How many wait, counted up to `limit`, and since when the oldest does.
pub fn count(sql: &mut dyn Sql, azolla_id: &AzollaId, limit: i64) -> StoreResult<(u64, Option<Timestamp>)> {
    let cells = [azolla_id.as_str().into(), limit.into(), sql.calendar().into()];
    match sql.one(include_str!("../../sql/candidates_count.sql"), &cells)? {
        Some(row) => Ok((row.count(0)?, row.maybe_at(1)?)),
        None => Ok((0, None)),
    }
}

/// Those that press: of urgency 0 and 1, and those that are due within a day. Up to `limit` of each.
pub(crate) fn pressing(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    limit: i64,
) -> StoreResult<Vec<CandidateView>> {
    let now = sql.calendar();
    let soon = now.after(Duration::from_secs(24 * 3600));
    let urgent = [azolla_id.as_str().into(), 1.into(), now.into(), limit.into()];
    let due = [azolla_id.as_str().into(), soon.into(), now.into(), limit.into()];
    let rows = sql.query_all(&[
        (include_str!("../../sql/candidates_due.sql"), due.to_vec()),
        (include_str!("../../sql/candidates_urgent.sql"), urgent.to_vec()),
    ])?;
    let mut found: Vec<CandidateView> = Vec::new();
    for row in rows.iter().flatten() {
        let one = view(row)?;
        if found.iter().all(|known| known.candidate_id != one.candidate_id) {
            found.push(one);
        }
    }
    Ok(found)
}

/// One candidate, locked, whatever its status; `Err` where there is none.
pub(in crate::pipeline) fn locked(sql: &mut dyn Sql, id: &CandidateId) -> Answer<CandidateView> {
    let row = sql.one(include_str!("../../sql/candidate_lock.sql"), &[id.as_str().into()])?;
    Ok(row.map(|row| view(&row)).transpose()?.ok_or(Refusal::Unknown))
}
