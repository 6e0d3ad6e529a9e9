//! `GET /dead`: jobs that were given up, by stream and error code: redrive one first, look, then the rest, or purge them.
//!
//! A form names the newest death that it showed. A job that died after that is not meant: it died again, or nobody has seen it.

use super::bulk;
use super::frame::Frame;
use super::job::acts::{Ended, just_after, retry};
use super::reply::PageReply;
use super::show::{Id, Line, Ways, When};
use super::sparkline::Sparkline;
use super::visit::{Shown, Visit, api, link};
use askama::Template;
use fernery_client::wire::{BulkRequest, DeadLetterGroup, DeadLetterGroups, DeadLetterInfo, DeadLetterPage};
use fernery_core::job::bulk::BulkVerb;
use fernery_core::job::stats::StatsRange;
use fernery_core::{JobStatus, limits};

struct Row {
    shown: Id,
    id: String,
    stream: Line,
    code: Line,
    reason: &'static str,
    message: Line,
    died: When,
}

struct Group {
    newest: Row,
    count: u64,
    oldest: When,
    /// When they died within the range, and how many.
    deaths: Option<(Sparkline, u64)>,
    /// The page with all of them.
    path: String,
    /// What the forms of this group send: they prove nothing, the API checks all of it.
    sent: Sent,
    /// A workorder's jobs belong to its ticket.
    of_workorders: bool,
    one: Ways,
    rest: Ways,
    purge: Ways,
}

struct Sent {
    ended: String,
    stream: String,
    code: String,
    until: String,
}

#[derive(Template)]
#[template(path = "dead.html")]
struct Dead {
    frame: Frame,
    groups: Vec<Group>,
    looked_at: u64,
    more: bool,
    /// The charts begin later than their range: what died before this was not looked at.
    charted_from: Option<When>,
    ranges: [Choice; 2],
    stream: String,
}

/// A range of time that the charts can show.
struct Choice {
    word: &'static str,
    path: String,
    chosen: bool,
}

#[derive(Template)]
#[template(path = "dead_group.html")]
struct DeadOfGroup {
    frame: Frame,
    stream: Line,
    code: Line,
    rows: Vec<Row>,
    first: Option<String>,
    next: Option<String>,
}

pub(super) async fn show(visit: Visit) -> Shown {
    if visit.query.has("code") {
        return of_group(visit).await;
    }
    let stream = visit.query.filled("stream").unwrap_or_default().to_string();
    let range = if visit.query.text("range") == "7d" { StatsRange::Week } else { StatsRange::Day };
    let mut asked = vec![("range", range.as_str())];
    asked.extend((!stream.is_empty()).then_some(("stream", stream.as_str())));
    let found: DeadLetterGroups = visit.get("/v1/dlq/groups", &asked).await?;
    let since = found.groups.iter().find_map(|group| group.deaths.as_ref()).map(|deaths| deaths.since);
    let choice = |word, other: StatsRange| {
        let text = if other == StatsRange::Day { "" } else { other.as_str() };
        let path = link("/dead", &[("stream", &stream), ("range", text)]);
        Choice { word, path, chosen: other == range }
    };
    let dead = Dead {
        frame: visit.frame("Dead letters"),
        groups: found.groups.into_iter().map(group).collect(),
        looked_at: found.looked_at,
        more: found.more,
        charted_from: found.looked_from.filter(|from| since.is_some_and(|since| *from > since)).map(When),
        ranges: [choice("24 hours", StatsRange::Day), choice("7 days", StatsRange::Week)],
        stream,
    };
    visit.show(&dead)
}

fn group(group: DeadLetterGroup) -> Group {
    let newest = &group.newest;
    let (stream, until) = (newest.stream.as_str(), just_after(newest.buried_at).to_string());
    let ended = Ended { job_id: newest.job_id.to_string(), at: Some(newest.buried_at) };
    let ways = |verb: BulkVerb| {
        bulk::ways(&BulkRequest {
            verb,
            status: JobStatus::Dead,
            stream: Some(newest.stream.clone()),
            code: Some(newest.code.clone()),
            before: Some(just_after(newest.buried_at)),
            act_id: None,
            dry_run: false,
        })
    };
    let one = Ways::new(
        format!("fernery job retry {}", newest.job_id),
        "POST",
        &api("/v1/jobs/", &ended.job_id, "/retry"),
        None,
    );
    Group {
        count: group.count,
        oldest: When(group.oldest_at),
        deaths: group.deaths.as_ref().map(|deaths| (Sparkline::deaths(deaths), deaths.total)),
        path: format!(
            "{}&code={}",
            link("/dead", &[("stream", stream)]),
            fernery_core::percent::encode(&newest.code)
        ),
        of_workorders: newest.stream.is_workorders(),
        one,
        rest: ways(BulkVerb::Retry),
        purge: ways(BulkVerb::Purge),
        sent: Sent { ended: ended.to_string(), stream: stream.to_string(), code: newest.code.clone(), until },
        newest: row(group.newest),
    }
}

fn row(letter: DeadLetterInfo) -> Row {
    Row {
        shown: Id::of(letter.job_id),
        id: letter.job_id.to_string(),
        stream: Line::of(&letter.stream),
        code: Line(letter.code),
        reason: match letter.reason.as_str() {
            "not_retryable" => "its worker said that it must not be tried again",
            "attempts_exhausted" => "it failed as often as it may",
            "lost_too_often" => "its workers were lost too often",
            "released_too_often" => "its workers gave it back too often",
            "budget_spent" => "the budget of its ticket is spent",
            _ => "it was given up",
        },
        message: Line(letter.message.unwrap_or_default()),
        died: When(letter.buried_at),
    }
}

/// `GET /dead?stream=…&code=…`: the jobs of one group, newest death first.
async fn of_group(visit: Visit) -> Shown {
    let (stream, code) = (visit.query.text("stream"), visit.query.text("code"));
    let (cursor, limit) = (visit.query.text("cursor"), limits::PAGE_ROWS_DEFAULT.to_string());
    let mut asked = vec![("code", code), ("limit", limit.as_str())];
    asked.extend([("stream", stream), ("cursor", cursor)].into_iter().filter(|(_, value)| !value.is_empty()));
    let found: DeadLetterPage = visit.get("/v1/dlq", &asked).await?;
    let here = |cursor: &str| {
        let path = link("/dead", &[("stream", stream), ("cursor", cursor)]);
        let sign = if path.contains('?') { '&' } else { '?' };
        format!("{path}{sign}code={}", fernery_core::percent::encode(code))
    };
    let page = DeadOfGroup {
        frame: visit.frame("Dead letters"),
        stream: Line::of(stream),
        code: Line::of(code),
        rows: found.dead_letters.into_iter().map(row).collect(),
        first: (!cursor.is_empty()).then(|| here("")),
        next: found.next_cursor.map(|cursor| here(&cursor)),
    };
    visit.show(&page)
}

/// `POST /dead/redrive`: one job first, and then its page. All of a group is a bulk act.
pub(super) async fn redrive(visit: Visit) -> Shown {
    let ended: Ended = visit.form.text("ended").parse()?;
    retry(&visit, &ended).await?;
    Ok(PageReply::see_other(api("/job/", &ended.job_id, "")))
}
