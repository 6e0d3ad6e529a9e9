//! The dead-letter queue: list, redrive, purge.

use super::{redacted, workorder_jobs};
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::{cursor, json};
use fernery_client::wire::{
    DeadLetterGroup, DeadLetterGroups, DeadLetterInfo, DeadLetterPage, DeadLetterRequest, DeadLetterResponse,
    DeathPoint, DeathStats,
};
use fernery_core::job::stats::StatsRange;
use fernery_core::{Timestamp, limits};
use fernery_engine::store::{DeadFilter, DeadLetter, Pass};
use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of an error in a list.
const MESSAGE_CHARS_MAX: usize = 200;
/// The newest dead letters that are grouped, and the groups of one answer.
const GROUPED_MAX: usize = 2_000;
const GROUPS_MAX: usize = 200;
/// Dead letters that one call may move.
const MOVED_MAX: u64 = 1_000_000;

/// `GET /v1/dlq`
pub async fn list(call: Call) -> Replied {
    let filter = DeadFilter {
        job_ids: Vec::new(),
        stream: call.query.parsed("stream")?,
        code: call.query.text("code").map(str::to_string),
        before: call.query.parsed("before")?,
    };
    storable(&filter, "?code")?;
    let bound_to = format!("dlq by death {filter:?}");
    let after = call.query.text("cursor").map(|text| cursor::read(text, &bound_to)).transpose()?;
    let page = call.server.engine().store().dead_letters(filter, after, call.page_rows()?).await?;
    let next_cursor = page.next.map(|next| cursor::write(&next, &bound_to));
    let mut dead_letters: Vec<DeadLetterInfo> = page.rows.into_iter().map(info).collect();
    redacted::letters(&call, dead_letters.iter_mut()).await?;
    Reply::json(200, &DeadLetterPage { dead_letters, next_cursor })
}

/// `GET /v1/dlq/groups`
pub async fn groups(call: Call) -> Replied {
    let stream = call.query.parsed("stream")?;
    let range: Option<StatsRange> = call.query.parsed("range")?;
    let store = call.server.engine().store();
    let found = store.dead_groups(stream, GROUPED_MAX, GROUPS_MAX).await?;
    let since = match range {
        Some(range) => Some((range, range.since(store.now().await?))),
        None => None,
    };
    let full = found.looked_at == GROUPED_MAX as u64;
    let more = full || found.groups.len() == GROUPS_MAX;
    let groups = found.groups.into_iter().map(|group| DeadLetterGroup {
        count: group.jobs,
        oldest_at: group.oldest_at,
        deaths: since.map(|(range, since)| deaths(&group.died_at, range, since)),
        newest: info(group.newest),
    });
    let (mut groups, looked_from) = (groups.collect::<Vec<_>>(), found.looked_from.filter(|_| full));
    redacted::letters(&call, groups.iter_mut().map(|group| &mut group.newest)).await?;
    Reply::json(200, &DeadLetterGroups { groups, looked_at: found.looked_at, looked_from, more })
}

/// How many died in each point of a range.
fn deaths(died_at: &[Timestamp], range: StatsRange, since: Timestamp) -> DeathStats {
    let mut of: BTreeMap<Timestamp, u64> = BTreeMap::new();
    for at in died_at.iter().filter(|at| **at >= since) {
        *of.entry(range.point_of(*at)).or_default() += 1;
    }
    DeathStats {
        range,
        point_ms: u64::try_from(range.minutes()).unwrap_or_default() * 60_000,
        since,
        total: of.values().sum(),
        points: of.into_iter().map(|(at, dead)| DeathPoint { at, dead }).collect(),
    }
}

fn info(letter: DeadLetter) -> DeadLetterInfo {
    DeadLetterInfo {
        job_id: letter.job_id,
        stream: letter.stream,
        buried_at: letter.buried_at,
        reason: letter.reason,
        code: letter.code,
        message: letter.error.as_deref().and_then(said),
    }
}

/// The beginning of what an error says.
fn said(error: &str) -> Option<String> {
    let error: Value = serde_json::from_str(error).ok()?;
    let message = error["message"].as_str().filter(|message| !message.is_empty())?;
    Some(message.chars().take(MESSAGE_CHARS_MAX).collect())
}

/// `POST /v1/dlq/redrive`
pub async fn redrive(call: Call) -> Replied {
    batches(call, true).await
}

/// `POST /v1/dlq/purge`
pub async fn purge(call: Call) -> Replied {
    batches(call, false).await
}

/// Moves in many short transactions instead of a long one: workers continue meanwhile, and each moved job stays moved.
async fn batches(call: Call, redrive: bool) -> Replied {
    let request: DeadLetterRequest = json::read(&call.body)?;
    let filter = checked(&request)?;
    if let Some(stream) = filter.stream.as_ref().filter(|stream| stream.is_workorders()) {
        return Err(workorder_jobs::stream_refused(stream));
    }
    workorder_jobs::refuse(&call, &filter.job_ids, "fernery ticket unblock {} --all").await?;
    let _writing = call.writing()?;
    let store = call.server.engine().store();
    let limit = request.limit.unwrap_or(MOVED_MAX);
    if request.dry_run {
        let matched = store.count_dead(filter).await?;
        let more = matched > limit;
        return Reply::json(200, &DeadLetterResponse { matched: Some(matched), moved: None, more });
    }
    let mut moved = 0;
    let more = loop {
        let room = usize::try_from(limit - moved).unwrap_or(usize::MAX);
        if room == 0 {
            break true;
        }
        let size = room.min(limits::DLQ_BATCH);
        let Pass { moved: now, full } = match redrive {
            true => store.redrive(filter.clone(), size).await?,
            false => store.purge(filter.clone(), size).await?,
        };
        moved += now as u64;
        // A full pass that moved nothing would repeat for ever.
        if !full || now == 0 {
            break full;
        }
    };
    Reply::json(200, &DeadLetterResponse { matched: None, moved: Some(moved), more })
}

fn checked(request: &DeadLetterRequest) -> Result<DeadFilter, Refused> {
    let asked = &request.filter;
    let filter = DeadFilter {
        job_ids: asked.job_ids.clone(),
        stream: asked.stream.clone(),
        code: asked.code.clone(),
        before: asked.before,
    };
    if filter == DeadFilter::default() && !request.all {
        let detail = "an empty filter means every dead job; send \"all\": true if you mean that";
        return Err(Refusal::field(Code::Invalid, "/filter", detail));
    }
    if filter != DeadFilter::default() && request.all {
        return Err(Refusal::field(Code::Invalid, "/all", "give a filter or \"all\": true, not both"));
    }
    if filter.job_ids.len() > limits::DLQ_BATCH {
        let detail = format!("name at most {} jobs", limits::DLQ_BATCH);
        return Err(Refusal::field(Code::Invalid, "/filter/job_ids", detail));
    }
    if request.limit.is_some_and(|limit| !(1..=MOVED_MAX).contains(&limit)) {
        return Err(Refusal::field(Code::Invalid, "/limit", format!("1 to {MOVED_MAX}")));
    }
    storable(&filter, "/filter/code")?;
    Ok(filter)
}

fn storable(filter: &DeadFilter, pointer: &str) -> Result<(), Refused> {
    match &filter.code {
        Some(code) if code.contains('\0') => {
            Err(Refusal::field(Code::Invalid, pointer, "a code cannot contain a NUL character"))
        }
        _ => Ok(()),
    }
}
