//! Candidates: what triage made of captures, and what a person decides about them. Each act is one transaction of
//! [`candidates`], which decides.

use super::acting::{actor, optional, record, refused_on, taken};
use super::captures;
use super::named::{named, unknown};
use super::objectives::{ID_TRIES, made_up, view as objective_view};
use super::paging::Place;
use crate::http::problem::{Code, Refusal};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{
    CandidatePage, CandidateView, EditCandidateRequest, MergeRequest, NoteRequest, PromoteRequest,
    PromoteResponse,
};
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, CandidateId};
use fernery_core::pipeline::draft::{Draft, DraftEdit};
use fernery_engine::pipeline::acts::{Actor, Answer, Refusal as Refusing};
use fernery_engine::pipeline::inbox::candidates::{self, Promoted};
use fernery_engine::pipeline::inbox::captures::{self as stored_captures, CaptureView};
use fernery_engine::pipeline::inbox::recurrences;
use fernery_engine::pipeline::reading::Below;
use fernery_engine::pipeline::{Sql, snoozes};
use fernery_engine::{StoreResult, door};
use std::str::FromStr;

/// Which candidates a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Waiting,
    All,
}

impl FromStr for Which {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "WAITING" => Ok(Self::Waiting),
            "ALL" => Ok(Self::All),
            _ => Err("WAITING or ALL"),
        }
    }
}

/// A candidate with the captures that it was made of, and until when it is snoozed.
type Whole = (candidates::CandidateView, Vec<CaptureView>, Option<Timestamp>);

/// A candidate with what is shown beside it.
fn whole(sql: &mut dyn Sql, candidate: candidates::CandidateView) -> StoreResult<Whole> {
    let captured = candidates::captures_of(sql, &candidate.candidate_id)?;
    let until = snoozes::of_candidates(sql, &[candidate.candidate_id.as_str()])?.pop().flatten();
    Ok((candidate, captured, until))
}

/// `GET /v1/candidates`
pub async fn list(call: Call) -> Replied {
    let which = call.query.parsed("status")?.unwrap_or(Which::Waiting);
    let azolla_id: Option<AzollaId> = call.query.parsed("azolla_id")?;
    let place = Place::read(&call, format!("candidates {which:?} {azolla_id:?}"))?;
    let (rows, from) = (place.rows_and_one(), place.below.clone());
    let first = call.query.text("cursor").is_none();
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        // Waiting candidates are listed from the oldest on.
        let after = if first { (Timestamp::default(), "") } else { (from.at, from.id.as_str()) };
        let found = match (which, &azolla_id) {
            (Which::Waiting, Some(of)) => candidates::waiting(sql, of, after, rows)?,
            (Which::Waiting, None) => candidates::waiting_anywhere(sql, after, rows)?,
            (Which::All, Some(of)) => candidates::page_of(sql, of, &from, rows)?,
            (Which::All, None) => candidates::page(sql, &from, rows)?,
        };
        let captured = candidates::captures_of_each(sql, &found)?;
        let ids: Vec<&str> = found.iter().map(|one| one.candidate_id.as_str()).collect();
        let until = snoozes::of_candidates(sql, &ids)?;
        let held = stored_captures::held(sql, azolla_id.as_ref())?;
        let held = (held, recurrences::held(sql, azolla_id.as_ref())?);
        let pending = stored_captures::unsorted(sql, azolla_id.as_ref())?;
        let all = found.into_iter().zip(captured).zip(until).map(|((one, of), until)| (one, of, until));
        Ok((all.collect::<Vec<Whole>>(), held, pending))
    });
    let (found, (held_captures, held_recurrences), pending_captures) = found.await?;
    let (found, next_cursor) =
        place.page(found, |(row, ..)| Below { at: row.created_at, id: row.candidate_id.to_string() });
    let candidates = found.into_iter().map(view).collect();
    let page = CandidatePage { candidates, next_cursor, held_captures, held_recurrences, pending_captures };
    Reply::json(200, &page)
}

/// `GET /v1/candidates/{id}`
pub async fn read(call: Call) -> Replied {
    let id: CandidateId = named(&call)?;
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        let Some(candidate) = candidates::by_id(sql, &id)? else { return Ok(None) };
        whole(sql, candidate).map(Some)
    });
    Reply::json(200, &view(found.await?.ok_or_else(unknown(&call, "candidate"))?))
}

/// `POST /v1/candidates/{id}/promote`
pub async fn promote(call: Call) -> Replied {
    let id: CandidateId = named(&call)?;
    let PromoteRequest { azolla_id, objective_id, record_id } = json::read(&call.body)?;
    let _writing = call.writing()?;
    let (who, may_repeat, record) = (actor(&call), record_id.is_some(), record(record_id));
    let repos = call.server.settings.pipeline.premises().map(|here| here.repos.clone()).unwrap_or_default();
    let azolla_id = match azolla_id {
        Some(azolla_id) => azolla_id,
        None => {
            let (of, repos) = (id.clone(), repos.clone());
            let substrate = call.server.engine().substrate();
            let meant = substrate.read(move |sql| candidates::destination(sql, &of, &repos));
            meant.await?.map_err(|refusal| refused_on("candidate", &id, refusal))?
        }
    };
    for nth in 1.. {
        let becomes = objective_id.clone().unwrap_or_else(|| made_up(&azolla_id));
        let (who, id_here, record) = (who.clone(), id.clone(), record.clone());
        let (of, repos) = (azolla_id.clone(), repos.clone());
        let substrate = call.server.engine().substrate();
        let promoted = substrate.transact(move |sql| {
            let promoted = match candidates::promote(sql, &who, (&id_here, &record), (&of, &repos), &becomes)?
            {
                Ok(promoted) => promoted,
                Err(refusal) => return Ok(Err(refusal)),
            };
            door::failpoint("act-written");
            let seen = whole(sql, promoted.candidate.clone())?;
            Ok(Ok((promoted, seen)))
        });
        match promoted.await? {
            Err(Refusing::Taken) if objective_id.is_none() && nth < ID_TRIES => {}
            Err(Refusing::Taken) if objective_id.is_some() => {
                return Err(taken(&objective_id.map_or(String::new(), |id| id.to_string())));
            }
            Err(refusal) => return Err(refused_on("candidate", &id, refusal)),
            Ok((Promoted { row, was_there, for_people, .. }, seen)) => {
                door::failpoint("act-durable");
                // Under a generated record id it can be there before only if this very call was carried out twice.
                let status = if was_there && may_repeat { 200 } else { 201 };
                let (candidate, objective) = (view(seen), objective_view(&row));
                return Reply::json(status, &PromoteResponse { candidate, view: objective, for_people });
            }
        }
    }
    Err(Refusal::new(Code::Busy, Code::Busy.title()))
}

/// `PATCH /v1/candidates/{id}`
pub async fn edit(call: Call) -> Replied {
    let id = named(&call)?;
    let mut new: EditCandidateRequest = json::read(&call.body)?;
    let record = record(new.record_id.take());
    let edit = DraftEdit::from(new);
    act(call, id, move |sql, who, id| candidates::edit(sql, who, (id, &record), &edit)).await
}

/// `POST /v1/candidates/{id}/discard`
pub async fn discard(call: Call) -> Replied {
    let id = named(&call)?;
    let NoteRequest { note, record_id } = optional(&call)?;
    let record = record(record_id);
    act(call, id, move |sql, who, id| candidates::discard(sql, who, (id, &record), note.as_deref())).await
}

/// `POST /v1/candidates/{id}/restore`
pub async fn restore(call: Call) -> Replied {
    let id = named(&call)?;
    let NoteRequest { note, record_id } = optional(&call)?;
    let record = record(record_id);
    act(call, id, move |sql, who, id| candidates::restore(sql, who, (id, &record), note.as_deref())).await
}

/// `POST /v1/candidates/{id}/merge`
pub async fn merge(call: Call) -> Replied {
    let id = named(&call)?;
    let MergeRequest { candidates: others, record_id } = json::read(&call.body)?;
    if !(1..=MERGED_MAX).contains(&others.len()) {
        let detail = format!("name 1 to {MERGED_MAX} candidates to merge into this one");
        return Err(Refusal::field(Code::Invalid, "/candidates", detail));
    }
    if others.contains(&id) {
        return Err(Refusal::field(Code::Invalid, "/candidates", "a candidate cannot be merged into itself"));
    }
    let record = record(record_id);
    act(call, id, move |sql, who, id| candidates::merge(sql, who, (id, &record), &others)).await
}

/// Candidates that one call may merge.
const MERGED_MAX: usize = 100;

async fn act(
    call: Call,
    id: CandidateId,
    mut verb: impl FnMut(&mut dyn Sql, &Actor, &CandidateId) -> Answer<candidates::CandidateView> + Send + 'static,
) -> Replied {
    let _writing = call.writing()?;
    let (who, id_here) = (actor(&call), id.clone());
    let substrate = call.server.engine().substrate();
    let done = substrate.transact(move |sql| {
        let candidate = match verb(sql, &who, &id_here)? {
            Ok(candidate) => candidate,
            Err(refusal) => return Ok(Err(refusal)),
        };
        door::failpoint("act-written");
        whole(sql, candidate).map(Ok)
    });
    let done = done.await?.map_err(|refusal| refused_on("candidate", &id, refusal))?;
    door::failpoint("act-durable");
    Reply::json(200, &view(done))
}

fn view((stored, captured, snoozed_until): Whole) -> CandidateView {
    let Draft { title, acceptance_criteria, importance, urgency, metadata } = stored.draft;
    CandidateView {
        candidate_id: stored.candidate_id,
        azolla_id: stored.azolla_id,
        title,
        acceptance_criteria,
        importance,
        urgency,
        metadata,
        made_by: stored.made_by,
        status: stored.status,
        objective_id: stored.objective_id,
        merged_into: stored.merged_into,
        work_order_id: stored.work_order_id,
        created_at: stored.created_at,
        updated_at: stored.updated_at,
        snoozed_until,
        capture_ids: captured.iter().map(|captured| captured.capture.capture_id.clone()).collect(),
        captures: captured.into_iter().map(captures::view).collect(),
    }
}
