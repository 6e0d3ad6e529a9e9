//! How the patch of a ticket comes to its base branch: an operator asks for it, the landing worker does it.

use super::decisions::{decide, deciding};
use super::named::{missing, named};
use super::waiting;
use crate::http::problem::Refused;
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{LandRequest, LandingView};
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::blueprint::Land;
use fernery_core::pipeline::landing::{ByHand, Fit, LandingState, by_hand};
use fernery_engine::StoreError;
use fernery_engine::pipeline::landing::{self, Landing, MergeOf};
use fernery_engine::pipeline::objectives::ObjectiveRow;
use fernery_engine::pipeline::reading::{self, Run};
use fernery_engine::pipeline::{Sql, hosts};
use std::collections::HashMap;

/// `POST /v1/objectives/{id}/merge`
pub async fn merge(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let LandRequest { run_id, patch_sha256, tip, note, record_id } = json::read(&call.body)?;
    let deciding = deciding(&call, record_id, None, note);
    let of = MergeOf { run_id, patch_sha256: patch_sha256.to_string(), tip };
    decide(call, id, move |sql, who, id| landing::merge(sql, who, (id, &of), &deciding)).await
}

/// `GET /v1/objectives/{id}/landing`
pub async fn read(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let of = id.clone();
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| of_objective(sql, &of)).await?;
    Reply::json(200, &found.ok_or_else(|| nothing(&id))?)
}

fn nothing(id: &ObjectiveId) -> Refused {
    missing("patch to land for objective", id)
}

/// The landing of an objective; `None`: it has no patch that passed.
pub(in crate::http) fn of_objective(
    sql: &mut dyn Sql,
    id: &ObjectiveId,
) -> Result<Option<LandingView>, StoreError> {
    let Some(landing) = landing::of(sql, id)? else { return Ok(None) };
    let land = landing::land_of(sql, &landing)?;
    let left_out = landing::left_out(sql, std::slice::from_ref(&landing))?.pop().unwrap_or_default();
    let repo = (landing.repo_ref.as_str(), landing.base_branch.as_str());
    let waiting = match landing.is_wanted() {
        true => hosts::lacks(sql, &landing.azolla_id, repo)?,
        false => None,
    };
    let waiting = waiting.as_ref().map(waiting::view);
    Ok(Some(LandingView { waiting, ..view(&landing, land, left_out) }))
}

/// What a merge would land of a run that is kept, or of a finished objective without a landing.
pub(in crate::http) fn foreseen(
    sql: &mut dyn Sql,
    row: &ObjectiveRow,
    kept: Option<&Run>,
) -> Result<Option<LandingView>, StoreError> {
    let id = &row.objective.objective_id;
    let run = match kept {
        Some(run) => Some(run.clone()),
        None if row.objective.status == ObjectiveStatus::Done && landing::of(sql, id)?.is_none() => {
            reading::passed_run(sql, id)?
        }
        None => None,
    };
    let landing = run.map(|run| landing::foreseen(sql, &run)).transpose()?.flatten();
    landing.map(|of| Ok(view(&of, landing::land_of(sql, &of)?, false))).transpose()
}

/// The landings of the finished objectives of a page, in one round.
pub(in crate::http) fn of_page(
    sql: &mut dyn Sql,
    page: &[ObjectiveRow],
) -> Result<HashMap<ObjectiveId, LandingView>, StoreError> {
    let done = page.iter().filter(|row| row.objective.status == ObjectiveStatus::Done);
    let ids: Vec<ObjectiveId> = done.map(|row| row.objective.objective_id.clone()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let landings = landing::of_all(sql, &ids)?;
    let left_out = landing::left_out(sql, &landings)?;
    let view = |(of, left_out): (&Landing, bool)| (of.objective_id.clone(), view(of, Land::UNSAID, left_out));
    Ok(landings.iter().zip(left_out).map(view).collect())
}

fn view(landing: &Landing, land: Land, left_out: bool) -> LandingView {
    // What keeps it from landing keeps it from being merged by hand, too.
    let can_land = landing.is_open() && landing.why.is_none() && landing.fit != Some(Fit::Conflicts);
    let by_hand = landing.candidate.as_deref().filter(|_| can_land).map(|candidate| {
        by_hand(ByHand {
            candidate,
            base_commit: &landing.base_commit,
            base_branch: &landing.base_branch,
            merge: land.merge,
            straight: landing.tip.is_empty() || landing.tip == landing.base_commit,
            reworked: landing.stacked,
        })
    });
    let moves = matches!(landing.state, LandingState::Moving | LandingState::Landed);
    LandingView {
        state: landing.state,
        fit: landing.fit,
        why: landing.why.clone(),
        files: landing.files.clone(),
        run_id: landing.run_id.clone(),
        patch_sha256: landing.patch_sha256.clone(),
        repo_ref: landing.repo_ref.clone(),
        base_branch: landing.base_branch.clone(),
        base_commit: landing.base_commit.clone(),
        tip: landing.tip.clone(),
        left_out,
        waiting: None,
        branch: landing.branch.clone(),
        merge: land.merge,
        commit: landing.moved_to.clone().filter(|_| moves),
        remarks: landing.remarks.clone(),
        by_hand: by_hand.unwrap_or_default(),
    }
}
