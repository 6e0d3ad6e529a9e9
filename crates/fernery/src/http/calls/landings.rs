//! How the patch of a ticket comes to its base branch: an operator asks for it, the landing worker does it.

use super::decisions::{decide, deciding};
use super::named::{missing, named};
use crate::http::problem::Refused;
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{LandRequest, LandingView};
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::blueprint::Land;
use fernery_core::pipeline::landing::by_hand;
use fernery_engine::StoreError;
use fernery_engine::pipeline::Sql;
use fernery_engine::pipeline::landing::{self, Landing, MergeOf};
use fernery_engine::pipeline::objectives::ObjectiveRow;
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
    Ok(Some(view(&landing, land)))
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
    Ok(landings.iter().map(|landing| (landing.objective_id.clone(), view(landing, Land::UNSAID))).collect())
}

fn view(landing: &Landing, land: Land) -> LandingView {
    let straight = landing.tip.is_empty() || landing.tip == landing.base_commit;
    let branch = landing.branch.as_deref().filter(|_| landing.is_open());
    let by_hand = branch.map(|branch| by_hand(branch, &landing.base_branch, land.merge, straight));
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
        branch: landing.branch.clone(),
        merge: land.merge,
        commit: landing.moved_to.clone(),
        remarks: landing.remarks.clone(),
        by_hand: by_hand.unwrap_or_default(),
    }
}
