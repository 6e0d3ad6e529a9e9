//! What a person puts off, and lines that come again. Each act is one transaction of [`snoozes`] or [`mod@recurrences`], which decides.

use super::acting::{actor, optional, record, refused_on};
use super::named::named;
use super::{candidates, objectives};
use crate::http::problem::Refused;
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{NoteRequest, RecurrenceList, RecurrenceView, SnoozeRequest};
use fernery_core::artifact::{AzollaId, CandidateId, CaptureId, ObjectiveId};
use fernery_core::limits;
use fernery_engine::door;
use fernery_engine::pipeline::inbox::captures;
use fernery_engine::pipeline::inbox::recurrences::{self, Recurrence};
use fernery_engine::pipeline::snoozes::{self, Subject};
use std::fmt::Display;

/// `POST /v1/objectives/{id}/snooze`
pub async fn of_objective(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    snooze(&call, &id, "objective", Subject::Objective(id.clone())).await?;
    objectives::seen(&call, id).await
}

/// `POST /v1/candidates/{id}/snooze`
pub async fn of_candidate(call: Call) -> Replied {
    let id: CandidateId = named(&call)?;
    snooze(&call, &id, "candidate", Subject::Candidate(id.clone())).await?;
    candidates::read(call).await
}

async fn snooze(call: &Call, id: &impl Display, what: &'static str, subject: Subject) -> Result<(), Refused> {
    let SnoozeRequest { until, record_id } = json::read(&call.body)?;
    let _writing = call.writing()?;
    let (who, record) = (actor(call), record(record_id));
    let substrate = call.server.engine().substrate();
    let done = substrate.transact(move |sql| {
        let done = snoozes::snooze(sql, &who, (&subject, &record), until.as_deref())?;
        door::failpoint("act-written");
        Ok(done)
    });
    done.await?.map_err(|refusal| refused_on(what, id, refusal))?;
    door::failpoint("act-durable");
    Ok(())
}

/// `GET /v1/recurrences`
pub async fn recurrences(call: Call) -> Replied {
    let azolla_id: Option<AzollaId> = call.query.parsed("azolla_id")?;
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        let inbox = match captures::inbox_of(sql, azolla_id.as_ref())? {
            Ok(inbox) => inbox,
            Err(refusal) => return Ok(Err(refusal)),
        };
        Ok(Ok(recurrences::all(sql, &inbox, i64::from(limits::PAGE_ROWS_MAX))?))
    });
    let found = found.await?.map_err(|refusal| refused_on("inbox", &"it", refusal))?;
    Reply::json(200, &RecurrenceList { recurrences: found.into_iter().map(view).collect() })
}

/// `POST /v1/recurrences/{id}/stop`
pub async fn stop(call: Call) -> Replied {
    let id: CaptureId = named(&call)?;
    let NoteRequest { record_id, .. } = optional(&call)?;
    let _writing = call.writing()?;
    let (who, record, of) = (actor(&call), record(record_id), id.clone());
    let substrate = call.server.engine().substrate();
    let stopped = substrate.transact(move |sql| {
        let stopped = recurrences::stop(sql, &who, (&of, &record))?;
        door::failpoint("act-written");
        Ok(stopped)
    });
    let stopped = stopped.await?.map_err(|refusal| refused_on("recurrence", &id, refusal))?;
    door::failpoint("act-durable");
    Reply::json(200, &view(stopped))
}

fn view(line: Recurrence) -> RecurrenceView {
    let Recurrence { recurrence_id, azolla_id, every, text, next_at, created_at, stopped_at, held, .. } =
        line;
    RecurrenceView { recurrence_id, azolla_id, every, text, next_at, created_at, stopped_at, held }
}
