//! Captures: what somebody put into the inbox, stored unchanged. A capture starts no work by itself (invariant 15).

use super::acting::{actor, optional, record, refused_on};
use super::named::{named, unknown};
use super::paging::Place;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::aside::{SMALL_BYTES, aside};
use crate::http::wire::json;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fernery_client::wire::{
    CaptureManyResponse, CaptureOutcome, CapturePage, CaptureRequest, CaptureResult, CaptureView,
    NoteRequest, ReleaseResponse,
};
use fernery_core::artifact::{AzollaId, CaptureId};
use fernery_core::limits;
use fernery_engine::door;
use fernery_engine::pipeline::acts::Refusal as Refusing;
use fernery_engine::pipeline::inbox::captures::{self, NewCapture, Stored};
use fernery_engine::pipeline::reading::Below;
use serde_json::value::RawValue;

/// The source of a capture that names none.
const SOURCE_DEFAULT: &str = "api";

/// What one call brings.
struct Brought {
    azolla_id: Option<AzollaId>,
    captures: Vec<NewCapture>,
    /// Whether the body is an array.
    many: bool,
}

/// `POST /v1/captures`
pub async fn capture(mut call: Call) -> Replied {
    let body = std::mem::take(&mut call.body);
    let brought = if body.len() <= SMALL_BYTES { read(&body) } else { aside(move || read(&body)).await };
    let Brought { azolla_id, captures, many } = brought?;
    let _writing = call.writing()?;
    let substrate = call.server.engine().substrate();
    let stored = substrate.transact(move |sql| {
        let stored = captures::capture(sql, azolla_id.as_ref(), &captures)?;
        door::failpoint("capture-written");
        Ok(stored)
    });
    let stored = stored.await?.map_err(unstored)?;
    door::failpoint("capture-durable");
    if many {
        let captures = stored.into_iter().map(result).collect();
        return Reply::json(200, &CaptureManyResponse { captures });
    }
    match stored.into_iter().next() {
        Some(Stored::New(stored)) => Reply::json(201, &view(stored)),
        Some(Stored::Before(stored)) => Reply::json(200, &view(stored)),
        Some(Stored::Taken(id)) => {
            Err(Refusal::new(Code::Conflict, format!("the capture_id {id} belongs to another capture")))
        }
        None => Err(Refusal::new(Code::Internal, "the store gave no answer")),
    }
}

fn unstored(refusal: Refusing) -> Refused {
    refused_on("capture", &"it", refusal)
}

fn result(stored: Stored) -> CaptureResult {
    let (capture_id, result) = match stored {
        Stored::New(stored) => (stored.capture.capture_id, CaptureOutcome::New),
        Stored::Before(stored) => (stored.capture.capture_id, CaptureOutcome::Duplicate),
        Stored::Taken(capture_id) => (capture_id, CaptureOutcome::Conflict),
    };
    CaptureResult { capture_id, result }
}

/// Reads one capture or an array. If one of many is wrong, the refusal names its place, and none is stored.
fn read(body: &[u8]) -> Result<Brought, Refused> {
    let text = json::text(body)?;
    let many = text.trim_start().starts_with('[');
    if many {
        each_is_an_object(text)?;
    }
    let requests: Vec<CaptureRequest> = if many { json::typed(text)? } else { vec![json::read(body)?] };
    if !(1..=limits::CAPTURES_MAX).contains(&requests.len()) {
        let detail = format!("send 1 to {} captures", limits::CAPTURES_MAX);
        return Err(Refusal::field(Code::Invalid, "", detail));
    }
    let azolla_id = requests.first().and_then(|first| first.azolla_id.clone());
    let mut captures = Vec::with_capacity(requests.len());
    for (n, request) in requests.into_iter().enumerate() {
        let at = if many { format!("/{n}") } else { String::new() };
        if request.azolla_id != azolla_id {
            let detail = "all captures of one call must go to the same inbox";
            return Err(Refusal::field(Code::Invalid, format!("{at}/azolla_id"), detail));
        }
        captures.push(checked(request, &at)?);
    }
    Ok(Brought { azolla_id, captures, many })
}

/// serde would also take an array of the fields' values in order.
fn each_is_an_object(text: &str) -> Result<(), Refused> {
    let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    match items.iter().position(|item| !item.get().starts_with('{')) {
        Some(n) => Err(Refusal::field(Code::Invalid, format!("/{n}"), "a capture must be a JSON object")),
        None => Ok(()),
    }
}

fn checked(request: CaptureRequest, at: &str) -> Result<NewCapture, Refused> {
    let CaptureRequest { raw_content, raw_base64, capture_id, source_label, captured_at, azolla_id: _ } =
        request;
    let wrong = |field: &str, detail: &str| Refusal::field(Code::Invalid, format!("{at}/{field}"), detail);
    let (raw, field) = match (raw_content, raw_base64) {
        (Some(text), None) => (text.into_bytes(), "raw_content"),
        (None, Some(text)) => {
            let is_none =
                |error| wrong("raw_base64", &format!("is not base64 with padding (RFC 4648): {error}"));
            (STANDARD.decode(text).map_err(is_none)?, "raw_base64")
        }
        (None, None) => return Err(wrong("raw_content", "give raw_content or raw_base64")),
        (Some(_), Some(_)) => return Err(wrong("raw_base64", "give raw_content or raw_base64, not both")),
    };
    let new = NewCapture {
        capture_id: capture_id.unwrap_or_else(|| CaptureId::stored(&door::artifact_id())),
        raw,
        source_label: source_label.unwrap_or_else(|| SOURCE_DEFAULT.to_string()),
        captured_at,
    };
    match new.violations().into_iter().next() {
        None => Ok(new),
        Some(large) if large.path == "/raw_content" => {
            Err(Refusal::field(Code::TooLarge, format!("{at}/{field}"), large.message))
        }
        Some(flaw) => Err(Refusal::field(Code::Invalid, format!("{at}{}", flaw.path), flaw.message)),
    }
}

/// `GET /v1/captures`
pub async fn list(call: Call) -> Replied {
    let place = Place::read(&call, "captures".to_string())?;
    let (below, rows) = (place.below.clone(), place.rows_and_one());
    let found = call.server.engine().substrate().read(move |sql| captures::page(sql, &below, rows)).await?;
    let (found, next_cursor) =
        place.page(found, |row| Below { at: row.capture.created_at, id: row.capture.capture_id.to_string() });
    Reply::json(200, &CapturePage { captures: found.into_iter().map(view).collect(), next_cursor })
}

/// `GET /v1/captures/{id}`
pub async fn one(call: Call) -> Replied {
    let id: CaptureId = named(&call)?;
    let found = call.server.engine().substrate().read(move |sql| captures::by_id(sql, &id)).await?;
    Reply::json(200, &view(found.ok_or_else(unknown(&call, "capture"))?))
}

/// `POST /v1/azollas/{id}/captures/release`
pub async fn release(call: Call) -> Replied {
    let id: AzollaId = named(&call)?;
    let NoteRequest { note, record_id } = optional(&call)?;
    let _writing = call.writing()?;
    let (who, record, of) = (actor(&call), record(record_id), id.clone());
    let substrate = call.server.engine().substrate();
    let released = substrate.transact(move |sql| {
        let released = captures::release(sql, &who, (&of, &record), note.as_deref())?;
        door::failpoint("act-written");
        Ok(released)
    });
    let released = match released.await? {
        Ok(released) => released,
        // The path names it, so this is 404 and not a wrong field.
        Err(Refusing::UnknownAzolla { .. }) => return Err(unknown(&call, "azolla")()),
        Err(refusal) => return Err(refused_on("inbox", &id, refusal)),
    };
    door::failpoint("act-durable");
    let captures::Released { captures: released, recurrences } = released;
    Reply::json(200, &ReleaseResponse { released, recurrences })
}

pub(in crate::http) fn view(stored: captures::CaptureView) -> CaptureView {
    let captures::CaptureView { capture, raw_hex, ready_at, tries, work_order_id, held } = stored;
    CaptureView { capture, raw_hex, ready_at, tries, work_order_id, held }
}
