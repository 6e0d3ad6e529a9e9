//! Objectives: write down, list, read whole, edit. What operators decide about them is in [`super::decisions`].

use super::decisions::{acted, actor, refused};
use super::{pipeline, waiting};
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{
    ApprovalView, EditObjectiveRequest, NewBlockerRequest, NewObjectiveRequest, ObjectiveDetail,
    ObjectivePage, ObjectiveView,
};
use fernery_core::artifact::{AzollaId, ObjectiveId, ObjectiveStatus};
use fernery_core::pipeline::draft::{Draft, DraftEdit, NewBlocker};
use fernery_core::pipeline::scheduling::unstartable;
use fernery_core::{JobId, Progress, limits};
use fernery_engine::door;
use fernery_engine::pipeline::acts::Refusal as Refusing;
use fernery_engine::pipeline::azollas;
use fernery_engine::pipeline::objectives::{self, ObjectiveRow};
use fernery_engine::pipeline::reading::{self, Below, ObjectiveFilter};
use serde_json::json;
use std::collections::HashMap;

/// How often an id is made up before giving up: with 40 random bits the second is hardly ever needed.
pub(in crate::http) const ID_TRIES: usize = 5;

/// `POST /v1/objectives`
pub async fn create(call: Call) -> Replied {
    let request: NewObjectiveRequest = json::read(&call.body)?;
    let NewObjectiveRequest { objective_id, azolla_id, .. } = request.clone();
    let draft = request.draft();
    let blocked_on: Vec<NewBlocker> = request.blocked_on.into_iter().map(new_blocker).collect();
    let _writing = call.writing()?;
    let who = actor(&call);
    for nth in 1.. {
        let id = objective_id.clone().unwrap_or_else(|| made_up(&azolla_id));
        let (who, azolla_id, draft, named) = (who.clone(), azolla_id.clone(), draft.clone(), id.clone());
        let blocked_on = blocked_on.clone();
        let substrate = call.server.engine().substrate();
        let made = substrate.act(&id, move |sql| {
            let was_there = objectives::load(sql, &named)?.is_some();
            let made = objectives::create_blocked(sql, &who, (&named, &azolla_id), &draft, &blocked_on)?;
            Ok(made.map(|row| (row, was_there)))
        });
        match made.await? {
            Err(Refusing::Taken) if objective_id.is_none() && nth < ID_TRIES => {}
            Ok((row, was_there)) => {
                // An id that was just made up can be there only because this very call was carried out twice.
                let status = if was_there && objective_id.is_some() { 200 } else { 201 };
                return Reply::json(status, &view(&row));
            }
            Err(refusal) => return Err(refused(refusal, &id)),
        }
    }
    Err(Refusal::new(Code::Busy, Code::Busy.title()))
}

fn new_blocker(NewBlockerRequest { blocker_id, kind, description }: NewBlockerRequest) -> NewBlocker {
    NewBlocker { blocker_id, kind, description }
}

/// A short id that people can read out to each other.
pub(in crate::http) fn made_up(azolla_id: &AzollaId) -> ObjectiveId {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    const CHARS: usize = 8;
    let random: [u8; CHARS] = door::random_bytes();
    let tail: String = random.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)])).collect();
    let room = limits::ARTIFACT_ID_CHARS_MAX - CHARS - 1;
    let head = azolla_id.as_str();
    ObjectiveId::stored(&format!("{}-{tail}", &head[..head.len().min(room)]))
}

/// `GET /v1/objectives`
pub async fn list(call: Call) -> Replied {
    let filter =
        ObjectiveFilter { azolla_id: call.query.parsed("azolla_id")?, status: call.query.parsed("status")? };
    let place = pipeline::Place::read(&call, format!("objectives {filter:?}"))?;
    let (below, rows) = (place.below.clone(), place.rows_and_one());
    let substrate = call.server.engine().substrate();
    let (found, hosting) = substrate
        .read(move |sql| Ok((reading::objectives(sql, &filter, &below, rows)?, azollas::hosting(sql)?)))
        .await?;
    let (found, next_cursor) = place.page(found, |row| Below {
        at: row.objective.created_at,
        id: row.objective.objective_id.to_string(),
    });
    let mut progress = under_way(&call, &found).await?;
    let shown = |row: &ObjectiveRow| ObjectiveView {
        waiting: waiting::in_a_list(row, &hosting),
        progress: progress.remove(&row.objective.objective_id),
        ..view(row)
    };
    Reply::json(200, &ObjectivePage { objectives: found.iter().map(shown).collect(), next_cursor })
}

/// How far those of them are that somebody works on. Whatever a page holds, that is one snapshot and one look at the leases.
async fn under_way(call: &Call, found: &[ObjectiveRow]) -> Result<HashMap<ObjectiveId, Progress>, Refused> {
    let busy = found.iter().filter(|row| row.objective.status == ObjectiveStatus::InProgress);
    let ids: Vec<ObjectiveId> = busy.map(|row| row.objective.objective_id.clone()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let engine = call.server.engine();
    let active = engine.substrate().read(move |sql| reading::active_workorders(sql, &ids)).await?;
    let jobs = active.into_iter().filter_map(|(id, work)| Some((id, work.job_id()?)));
    let (ids, jobs): (Vec<ObjectiveId>, Vec<JobId>) = jobs.unzip();
    let said = engine.store().progress_of(jobs).await?;
    Ok(ids.into_iter().zip(said).filter_map(|(id, progress)| Some((id, progress?))).collect())
}

/// `GET /v1/objectives/{id}`
pub async fn read(call: Call) -> Replied {
    let id = objective_id(&call)?;
    let whole = call.query.parsed::<bool>("documents")?.unwrap_or(true);
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        let Some(row) = objectives::load(sql, &id)? else { return Ok(None) };
        let in_force = azollas::in_force(sql, &row.objective.azolla_id)?;
        let seen = waiting::look(sql, &row, in_force.as_ref())?;
        let chain = if whole { reading::chain(sql, &id) } else { reading::brief_chain(sql, &id) }?;
        Ok(Some((row, in_force, seen, chain)))
    });
    let (row, in_force, seen, chain) =
        found.await?.ok_or_else(pipeline::missing("objective", &call.param))?;
    let waiting = waiting::of(call.server.engine(), &row, seen).await?;
    let mut progress = under_way(&call, std::slice::from_ref(&row)).await?;
    let progress = progress.remove(&row.objective.objective_id);
    let premises = call.server.settings.pipeline.premises();
    let approval = in_force.as_ref().map(|of| {
        let shown = objectives::shown(&row.objective, &of.blueprint);
        let refused = unstartable(&row.objective, &of.blueprint, premises);
        ApprovalView { digest: shown.digest, shown: shown.content, refused }
    });
    let current = chain.decisions.iter().find(|decision| Some(&decision.record_id) == row.approval.as_ref());
    let detail = ObjectiveDetail {
        standing: ObjectiveView { waiting, progress, ..view(&row) },
        envelope: in_force.map(|of| json!(of.blueprint.envelope)),
        approval,
        decision: current.map(|decision| json!(decision)),
        decisions: chain.decisions.iter().map(|row| json!(row)).collect(),
        events: chain.events.iter().map(|row| json!(row)).collect(),
        workorders: chain.workorders.iter().map(|row| json!(row)).collect(),
        context_snapshots: chain.context_snapshots.iter().map(|row| json!(row)).collect(),
        output_bundles: chain.output_bundles.iter().map(|row| json!(row)).collect(),
        runs: chain.runs.iter().map(|row| json!(row)).collect(),
        pauses: chain.pauses,
    };
    Reply::json(200, &detail)
}

/// `PATCH /v1/objectives/{id}`
pub async fn edit(call: Call) -> Replied {
    let id = objective_id(&call)?;
    let changes = DraftEdit::from(json::read::<EditObjectiveRequest>(&call.body)?);
    let _writing = call.writing()?;
    let (who, named) = (actor(&call), id.clone());
    let substrate = call.server.engine().substrate();
    let edited = substrate.act(&id, move |sql| {
        // Under the lock that the edit takes, so that parts which are not named stay as they are.
        let Some(row) = objectives::lock(sql, &named)? else { return Ok(Err(Refusing::Unknown)) };
        objectives::edit(sql, &who, &named, &changes.apply(Draft::from(&row.objective)))
    });
    acted(edited.await?, &id)
}

/// An objective as readers get it.
pub(in crate::http) fn view(row: &ObjectiveRow) -> ObjectiveView {
    ObjectiveView {
        objective: row.objective.clone(),
        unconfirmed: row.unconfirmed,
        failures: row.failures,
        spent: json!(row.spent),
        waiting: None,
        progress: None,
    }
}

/// The objective that the path names. What no objective can be called is not there.
pub(in crate::http) fn objective_id(call: &Call) -> Result<ObjectiveId, Refused> {
    call.param.parse().map_err(|bad: fernery_core::BadName| Refusal::new(Code::NotFound, bad.to_string()))
}
