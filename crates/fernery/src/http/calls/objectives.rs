//! Objectives: create, list, read, edit. What operators do with them is in [`super::decisions`] and
//! [`super::blockers`].

use super::acting::{actor, refused, taken};
use super::attempts;
use super::journal::entry;
use super::landings;
use super::named::{named, unknown};
use super::paging::Place;
use super::pauses::pause_view;
use super::under_way::{Stand, under_way};
use super::waiting::{self, Manning};
use crate::http::problem::{Code, Refusal};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{
    ApprovalView, EditObjectiveRequest, JournalEntry, NewBlockerRequest, NewObjectiveRequest,
    ObjectiveDetail, ObjectivePage, ObjectiveView, WaitingView,
};
use fernery_core::artifact::{AzollaId, ObjectiveId, ObjectiveStatus};
use fernery_core::limits;
use fernery_core::pipeline::draft::{Draft, DraftEdit, NewBlocker};
use fernery_core::pipeline::ground::unstartable;
use fernery_core::pipeline::possible::{SeenStatus, Verb};
use fernery_engine::door;
use fernery_engine::pipeline::acts::Refusal as Refusing;
use fernery_engine::pipeline::objectives::{self, Created, NewObjective, ObjectiveRow};
use fernery_engine::pipeline::reading::{self, ObjectiveFilter};
use fernery_engine::pipeline::sifting::{self, Order, Sieve};
use fernery_engine::pipeline::{after, azollas, journal, snoozes, ticket_state};
use serde_json::json;
use std::collections::BTreeSet;

/// How many generated ids are tried: with 40 random bits a second one is hardly ever needed.
pub(in crate::http) const ID_TRIES: usize = 5;

/// `POST /v1/objectives`
pub async fn create(call: Call) -> Replied {
    let request: NewObjectiveRequest = json::read(&call.body)?;
    let NewObjectiveRequest { objective_id, azolla_id, .. } = request.clone();
    let draft = request.draft();
    let after = request.after.clone();
    let blocked_on: Vec<NewBlocker> = request.blocked_on.into_iter().map(new_blocker).collect();
    let _writing = call.writing()?;
    let who = actor(&call);
    for nth in 1.. {
        let id = objective_id.clone().unwrap_or_else(|| made_up(&azolla_id));
        let blocked_on = blocked_on.clone();
        let after = after.clone();
        let new = NewObjective { blocked_on, after, ..NewObjective::new(&id, &azolla_id, draft.clone()) };
        let (who, substrate) = (who.clone(), call.server.engine().substrate());
        match substrate.act(&id, move |sql| objectives::create(sql, &who, &new)).await? {
            Err(Refusing::Taken) if objective_id.is_none() && nth < ID_TRIES => {}
            Ok(Created { row, was_there }) => {
                // A generated id can be there before only if this very call was carried out twice.
                let status = if was_there && objective_id.is_some() { 200 } else { 201 };
                return Reply::json(status, &view(&row));
            }
            Err(Refusing::Taken) => return Err(taken(&id)),
            Err(refusal) => return Err(refused(refusal, &id)),
        }
    }
    Err(Refusal::new(Code::Busy, Code::Busy.title()))
}

fn new_blocker(NewBlockerRequest { blocker_id, kind, description }: NewBlockerRequest) -> NewBlocker {
    NewBlocker { blocker_id, kind, description }
}

/// A short id that people can read out to each other.
pub(crate) fn made_up(azolla_id: &AzollaId) -> ObjectiveId {
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
    let status: Option<SeenStatus> = call.query.parsed("status")?;
    let filter = ObjectiveFilter {
        azolla_id: call.query.parsed("azolla_id")?,
        status: status.map(SeenStatus::stored),
    };
    let only_cancelled = status == Some(SeenStatus::Cancelled);
    let sieve = Sieve {
        label: call.query.parsed("label")?,
        words: call
            .query
            .text("search")
            .unwrap_or_default()
            .to_lowercase()
            .split_whitespace()
            .map(str::to_string)
            .collect(),
        cancelled: call.query.parsed("cancelled")?.unwrap_or(true) || only_cancelled,
        only_cancelled,
        snoozed: call.query.parsed("snoozed")?.unwrap_or(true),
    };
    let unlanded = call.query.parsed("unlanded")?.unwrap_or(false);
    let order: Order = call.query.parsed("sort")?.unwrap_or(Order::Age);
    let place = Place::read(&call, format!("objectives {filter:?} {sieve:?}"))?;
    let (below, rows) = (place.below.clone(), place.rows());
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        let (found, next) = match order {
            _ if unlanded => (sifting::unlanded(sql, &filter, &sieve, rows)?, None),
            Order::Age => sifting::by_age(sql, &filter, &sieve, below.clone(), rows)?,
            other => (sifting::sorted(sql, &filter, &sieve, other, rows)?, None),
        };
        let ids: Vec<&str> = found.iter().map(|row| row.objective.objective_id.as_str()).collect();
        let until = snoozes::of_objectives(sql, &ids)?;
        let landed = landings::of_page(sql, &found)?;
        let ids: BTreeSet<AzollaId> = found.iter().map(|row| row.objective.azolla_id.clone()).collect();
        let in_force = ids.iter().map(|id| azollas::in_force(sql, id)).collect::<Result<Vec<_>, _>>()?;
        let waits_for = after::waits_for(sql, &found.iter().map(|row| &row.objective).collect::<Vec<_>>())?;
        Ok((found, next, until, (azollas::hosting(sql)?, in_force), (landed, waits_for)))
    });
    let (found, next, until, (hosting, in_force), (mut landed, mut waits_for)) = found.await?;
    let mut under_way = under_way(&call, &found, in_force.iter().flatten()).await?;
    let mut manning = Manning::new(&call, in_force.into_iter().flatten());
    let mut objectives = Vec::with_capacity(found.len());
    for (row, snoozed_until) in found.iter().zip(until) {
        let at = under_way.remove(&row.objective.objective_id).unwrap_or_default();
        let waiting = manning.in_a_list(row, &hosting, at.unclaimed).await?;
        let landing = landed.remove(&row.objective.objective_id);
        let waits_for = waits_for.remove(&row.objective.objective_id).unwrap_or_default();
        objectives.push(ObjectiveView {
            waits_for,
            waiting,
            progress: at.progress,
            work: at.work,
            landing,
            snoozed_until,
            ..view(row)
        });
    }
    Reply::json(200, &ObjectivePage { objectives, next_cursor: next.map(|next| place.cursor(&next)) })
}

/// An objective as it is now, with until when it is snoozed.
pub(in crate::http) async fn seen(call: &Call, id: ObjectiveId) -> Replied {
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        let until = snoozes::of_objectives(sql, &[id.as_str()])?.pop().flatten();
        Ok(objectives::load(sql, &id)?.map(|row| (row, until)))
    });
    let (row, snoozed_until) = found.await?.ok_or_else(unknown(call, "ticket"))?;
    Reply::json(200, &ObjectiveView { snoozed_until, ..view(&row) })
}

/// An entry of the journal without the texts of an edit, which the journal itself has.
fn handled(act: journal::Entry) -> JournalEntry {
    let mut said = entry((act, None));
    if let Some(why) = said.why.as_object_mut() {
        why.remove("changed");
    }
    said
}

/// `GET /v1/objectives/{id}`
pub async fn read(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let whole = call.query.parsed::<bool>("documents")?.unwrap_or(true);
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        let Some(row) = objectives::load(sql, &id)? else { return Ok(None) };
        let in_force = azollas::in_force(sql, &row.objective.azolla_id)?;
        let seen = waiting::look(sql, &row, in_force.as_ref())?;
        let until = snoozes::of_objectives(sql, &[id.as_str()])?.pop().flatten();
        let chain = if whole { reading::chain(sql, &id) } else { reading::brief_chain(sql, &id) }?;
        let landing = landings::of_objective(sql, &id)?;
        let acts = journal::handled(sql, id.as_str())?;
        let state = ticket_state::of(sql, &row)?.kept();
        let kept = if state.allows(Verb::Keep) { reading::passed_run(sql, &id)? } else { None };
        let confirms = match row.objective.status {
            ObjectiveStatus::Done => reading::passed_run(sql, &id)?.map(|run| run.record.run_id),
            _ => None,
        };
        let merges = if whole { landings::foreseen(sql, &row, kept.as_ref())? } else { None };
        Ok(Some((row, in_force, (seen, until), (chain, acts), (landing, state, (kept, confirms), merges))))
    });
    let (row, in_force, (seen, snoozed_until), (chain, acts), (landing, mut state, (kept, confirms), merges)) =
        found.await?.ok_or_else(unknown(&call, "ticket"))?;
    let lacks = Manning::new(&call, in_force.clone()).lacks(&row.objective).await?;
    let unmanned = seen.not_hosted.as_ref().or(lacks.as_ref()).map(waiting::view);
    let waiting = waiting::of(&call, &row, seen, lacks).await?;
    let mut under_way = under_way(&call, std::slice::from_ref(&row), &in_force).await?;
    let Stand { progress, work, .. } = under_way.remove(&row.objective.objective_id).unwrap_or_default();
    let premises = call.server.settings.pipeline.premises();
    let approval = in_force.as_ref().map(|of| {
        let shown = objectives::shown(&row.objective, &of.blueprint);
        let refused = unstartable(&row.objective, &of.blueprint, premises.as_ref());
        ApprovalView { digest: shown.digest, shown: shown.content, refused, unmanned }
    });
    state.waiting = waiting.as_ref().map(|of: &WaitingView| (of.code.clone(), of.why.clone()));
    state.pause = chain.pauses.iter().map(|of| &of.pause).max_by_key(|pause| pause.created_at).cloned();
    if let (Some(patch), Some(landing)) = (&mut state.patch, &landing) {
        patch.waiting = landing.waiting.as_ref().map(|waiting| waiting.why.clone());
    }
    let (possible, next) = (state.possible(), state.next());
    let waits_for = state.waits_for;
    let current = chain.decisions.iter().find(|decision| Some(&decision.record_id) == row.approval.as_ref());
    let ids: Vec<_> = chain.workorders.iter().map(|work| work.workorder.work_order_id.clone()).collect();
    let attempts = if whole { attempts::of_ticket(call.server.engine(), &ids).await? } else { Vec::new() };
    let detail = ObjectiveDetail {
        view: ObjectiveView { waiting, progress, work, landing, waits_for, snoozed_until, ..view(&row) },
        envelope: in_force.map(|of| json!(of.blueprint.envelope)),
        approval,
        decision: current.map(|decision| json!(decision)),
        decisions: chain.decisions.iter().map(|row| json!(row)).collect(),
        events: chain.events.iter().map(|row| json!(row)).collect(),
        workorders: chain.workorders.iter().map(|row| json!(row)).collect(),
        context_snapshots: chain.context_snapshots.iter().map(|row| json!(row)).collect(),
        output_bundles: chain.output_bundles.iter().map(|row| json!(row)).collect(),
        runs: chain.runs.iter().map(|row| json!(row)).collect(),
        attempts,
        pauses: chain.pauses.into_iter().map(pause_view).collect(),
        kept_run: kept.map(|run| run.record.run_id),
        confirms,
        merges,
        acts: acts.into_iter().map(handled).collect(),
        possible: possible.iter().map(ToString::to_string).collect(),
        next,
    };
    Reply::json(200, &detail)
}

/// `PATCH /v1/objectives/{id}`
pub async fn edit(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let changes = DraftEdit::from(json::read::<EditObjectiveRequest>(&call.body)?);
    let _writing = call.writing()?;
    let (who, of) = (actor(&call), id.clone());
    let substrate = call.server.engine().substrate();
    let edited = substrate.act(&id, move |sql| {
        // Read under the same lock as the edit, so that fields which the request does not name keep their values.
        let Some(row) = objectives::lock(sql, &of)? else { return Ok(Err(Refusing::Unknown)) };
        objectives::edit(sql, &who, &of, &changes.apply(Draft::from(&row.objective)))
    });
    Reply::json(200, &view(&edited.await?.map_err(|refusal| refused(refusal, &id))?))
}

pub(in crate::http) fn view(row: &ObjectiveRow) -> ObjectiveView {
    ObjectiveView {
        objective: row.objective.clone(),
        unconfirmed: row.unconfirmed,
        failures: row.failures,
        spent: json!(row.spent),
        waiting: None,
        progress: None,
        work: None,
        landing: None,
        waits_for: Vec::new(),
        snoozed_until: None,
    }
}
