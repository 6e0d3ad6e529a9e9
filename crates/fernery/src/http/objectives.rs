//! Objectives: write down, list, read whole, edit. What operators decide about them is in [`super::decisions`].

use super::answer::{Call, Replied, Reply};
use super::decisions::{acted, actor, refused};
use super::problem::{Code, Refusal, Refused};
use super::{json, pipeline, waiting};
use fernery_client::wire::{
    ApprovalView, EditObjectiveRequest, NewObjectiveRequest, ObjectiveDetail, ObjectivePage, ObjectiveView,
};
use fernery_core::artifact::{AzollaId, ObjectiveId, ObjectiveStatus};
use fernery_core::pipeline::draft::Draft;
use fernery_core::{JobId, Progress, limits};
use fernery_engine::door;
use fernery_engine::substrate::azollas;
use fernery_engine::substrate::objectives::{self, Standing};
use fernery_engine::substrate::operating::{self, Refusal as Refusing};
use fernery_engine::substrate::reading::{self, Below, ObjectiveFilter};
use serde_json::json;
use std::collections::HashMap;

/// How often an id is made up before giving up: with 40 random bits the second is hardly ever needed.
pub(super) const ID_TRIES: usize = 5;

/// `POST /v1/objectives`
pub async fn create(call: Call) -> Replied {
    let request: NewObjectiveRequest = json::read(&call.body)?;
    let NewObjectiveRequest { objective_id, azolla_id, .. } = request.clone();
    let draft = Draft {
        title: request.title,
        acceptance_criteria: request.acceptance_criteria,
        importance: request.importance,
        urgency: request.urgency,
        metadata: request.metadata,
    };
    let _writing = call.writing()?;
    let who = actor(&call);
    for nth in 1.. {
        let id = objective_id.clone().unwrap_or_else(|| made_up(&azolla_id));
        let (who, azolla_id, draft, named) = (who.clone(), azolla_id.clone(), draft.clone(), id.clone());
        let substrate = call.server.engine().substrate();
        let made = substrate.act(&id, move |sql| {
            let was_there = objectives::load(sql, &named, false)?.is_some();
            let made = operating::create(sql, &who, &named, &azolla_id, &draft)?;
            Ok(made.map(|standing| (standing, was_there)))
        });
        match made.await? {
            Err(Refusing::Taken) if objective_id.is_none() && nth < ID_TRIES => {}
            Ok((standing, was_there)) => {
                // An id that was just made up can be there only because this very call was carried out twice.
                let status = if was_there && objective_id.is_some() { 200 } else { 201 };
                return Reply::json(status, &view(&standing));
            }
            Err(refusal) => return Err(refused(refusal, &id)),
        }
    }
    Err(Refusal::new(Code::Busy, Code::Busy.title()))
}

/// A short id that people can read out to each other.
pub(super) fn made_up(azolla_id: &AzollaId) -> ObjectiveId {
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
    let (found, next_cursor) = place.page(found, |standing| Below {
        at: standing.objective.created_at,
        id: standing.objective.objective_id.to_string(),
    });
    let mut progress = under_way(&call, &found).await?;
    let shown = |standing: &Standing| ObjectiveView {
        waiting: waiting::in_a_list(standing, &hosting),
        progress: progress.remove(&standing.objective.objective_id),
        ..view(standing)
    };
    Reply::json(200, &ObjectivePage { objectives: found.iter().map(shown).collect(), next_cursor })
}

/// How far those of them are that somebody works on. Whatever a page holds, that is one snapshot and one look at the leases.
async fn under_way(call: &Call, found: &[Standing]) -> Result<HashMap<ObjectiveId, Progress>, Refused> {
    let busy = found.iter().filter(|standing| standing.objective.status == ObjectiveStatus::InProgress);
    let ids: Vec<ObjectiveId> = busy.map(|standing| standing.objective.objective_id.clone()).collect();
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
        let Some(standing) = objectives::load(sql, &id, false)? else { return Ok(None) };
        let in_force = azollas::in_force(sql, &standing.objective.azolla_id)?;
        let seen = waiting::look(sql, &standing, in_force.as_ref())?;
        let chain = if whole { reading::chain(sql, &id) } else { reading::brief_chain(sql, &id) }?;
        Ok(Some((standing, in_force, seen, chain)))
    });
    let (standing, in_force, seen, chain) = found.await?.ok_or_else(pipeline::missing("objective"))?;
    let waiting = waiting::of(call.server.engine(), &standing, seen).await?;
    let mut progress = under_way(&call, std::slice::from_ref(&standing)).await?;
    let progress = progress.remove(&standing.objective.objective_id);
    let shown = in_force.as_ref().map(|of| objectives::shown(&standing.objective, &of.blueprint));
    let current =
        chain.decisions.iter().find(|decision| Some(&decision.record_id) == standing.approval.as_ref());
    let detail = ObjectiveDetail {
        standing: ObjectiveView { waiting, progress, ..view(&standing) },
        envelope: in_force.map(|of| json!(of.blueprint.envelope)),
        approval: shown.map(|shown| ApprovalView { digest: shown.digest, shown: shown.content }),
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
    let request: EditObjectiveRequest = json::read(&call.body)?;
    let _writing = call.writing()?;
    let (who, named) = (actor(&call), id.clone());
    let substrate = call.server.engine().substrate();
    let edited = substrate.act(&id, move |sql| {
        // Under the lock that the edit takes, so that parts which are not named stay as they are.
        let Some(standing) = objectives::load(sql, &named, true)? else { return Ok(Err(Refusing::Unknown)) };
        let (o, new) = (standing.objective, request.clone());
        let draft = Draft {
            title: new.title.unwrap_or(o.title),
            acceptance_criteria: new.acceptance_criteria.unwrap_or(o.acceptance_criteria),
            importance: new.importance.unwrap_or(o.importance),
            urgency: new.urgency.unwrap_or(o.urgency),
            metadata: new.metadata.unwrap_or(o.metadata),
        };
        operating::edit(sql, &who, &named, &draft)
    });
    acted(edited.await?, &id)
}

/// An objective as readers get it.
pub(super) fn view(standing: &Standing) -> ObjectiveView {
    ObjectiveView {
        objective: standing.objective.clone(),
        unconfirmed: standing.unconfirmed,
        failures: standing.failures,
        spent: json!(standing.spent),
        waiting: None,
        progress: None,
    }
}

/// The objective that the path names. What no objective can be called is not there.
pub(super) fn objective_id(call: &Call) -> Result<ObjectiveId, Refused> {
    call.param.parse().map_err(|bad: fernery_core::BadName| Refusal::new(Code::NotFound, bad.to_string()))
}
