//! `GET /dead`: jobs that were given up, by stream and error code: redrive one first, look, then the rest, or purge them.
//!
//! A form names the newest death that it showed. A job that died after that is not meant: it died again, or nobody has seen it.

use super::frame::Frame;
use super::job::acts::{Ended, just_after, retry};
use super::reply::PageReply;
use super::show::{Id, Line, Ways, When, shell};
use super::sparkline::Sparkline;
use super::visit::{Shown, Visit, api, link};
use crate::http::problem::{Code, Refusal, Refused};
use askama::Template;
use fernery_client::wire::{
    DeadLetterFilter, DeadLetterGroup, DeadLetterGroups, DeadLetterInfo, DeadLetterPage, DeadLetterRequest,
    DeadLetterResponse,
};
use fernery_core::job::stats::StatsRange;
use fernery_core::{Timestamp, limits};

/// Jobs that one form moves at most; the page then says that there are more.
const MOVED_MAX: u64 = 10_000;

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
    /// What the last form did.
    did: Option<Line>,
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
    let found: DeadLetterGroups = visit.get("/v1/dlq/groups", &[("range", range.as_str())]).await?;
    let since = found.groups.iter().find_map(|group| group.deaths.as_ref()).map(|deaths| deaths.since);
    let choice = |word, other: StatsRange| {
        let text = if other == StatsRange::Day { "" } else { other.as_str() };
        let path = link("/dead", &[("stream", &stream), ("range", text)]);
        Choice { word, path, chosen: other == range }
    };
    let meant = |group: &DeadLetterGroup| stream.is_empty() || group.newest.stream.as_str() == stream;
    let dead = Dead {
        frame: visit.frame("Dead letters"),
        groups: found.groups.into_iter().filter(meant).map(group).collect(),
        looked_at: found.looked_at,
        more: found.more,
        charted_from: found.looked_from.filter(|from| since.is_some_and(|since| *from > since)).map(When),
        ranges: [choice("24 hours", StatsRange::Day), choice("7 days", StatsRange::Week)],
        did: did(&visit),
        stream,
    };
    visit.show(&dead)
}

/// What a form did, from the numbers in the address.
fn did(visit: &Visit) -> Option<Line> {
    let number = |name: &str| visit.query.text(name).parse::<u64>().ok();
    let rest = if visit.query.has("rest") { " There are more: press again." } else { "" };
    let said = match (number("redriven"), number("purged")) {
        (Some(0), _) => {
            "No job was moved: they were redriven or purged before, or an unfinished job has their unique key.".to_string()
        }
        (Some(1), _) => format!("1 job waits again in its stream.{rest}"),
        (Some(n), _) => format!("{n} jobs wait again in their streams.{rest}"),
        (None, Some(1)) => format!("1 job is deleted.{rest}"),
        (None, Some(n)) => format!("{n} jobs are deleted.{rest}"),
        (None, None) => return None,
    };
    Some(Line(said))
}

fn group(group: DeadLetterGroup) -> Group {
    let newest = &group.newest;
    let (stream, until) = (newest.stream.as_str(), just_after(newest.buried_at).to_string());
    let ended = Ended { job_id: newest.job_id.to_string(), at: Some(newest.buried_at) };
    let which = format!("--stream {stream} --code {} --before {until}", shell(&newest.code));
    let filter = DeadLetterRequest {
        filter: DeadLetterFilter {
            stream: Some(newest.stream.clone()),
            code: Some(newest.code.clone()),
            before: Some(just_after(newest.buried_at)),
            job_ids: Vec::new(),
        },
        ..Default::default()
    };
    let body = serde_json::to_string(&filter).unwrap_or_default();
    let ways = |act: &str, end: &str| {
        let command = format!("fernery dlq {act} {which}{end}");
        Ways::new(command, "POST", &format!("/v1/dlq/{act}"), Some(&body))
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
        rest: ways("redrive", ""),
        purge: ways("purge", " --yes"),
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

/// `POST /dead/redrive`: one job first, and then its page; or all of a group.
pub(super) async fn redrive(visit: Visit) -> Shown {
    if let Some(one) = visit.form.filled("ended") {
        let ended: Ended = one.parse()?;
        retry(&visit, &ended).await?;
        return Ok(PageReply::see_other(api("/job/", &ended.job_id, "")));
    }
    moved(visit, "redrive", "redriven").await
}

/// `POST /dead/purge`
pub(super) async fn purge(visit: Visit) -> Shown {
    if !visit.form.has("sure") {
        let detail = "nothing was deleted: tick the box that says that you are sure, and send it again";
        return Err(Refusal::new(Code::Invalid, detail));
    }
    moved(visit, "purge", "purged").await
}

async fn moved(visit: Visit, act: &str, said: &str) -> Shown {
    let body = DeadLetterRequest { filter: filter(&visit)?, limit: Some(MOVED_MAX), ..Default::default() };
    let answer: DeadLetterResponse = visit.post(&format!("/v1/dlq/{act}"), &body).await?;
    let (moved, rest) = (answer.moved.unwrap_or(0).to_string(), if answer.more { "yes" } else { "" });
    Ok(PageReply::see_other(link("/dead", &[(said, &moved), ("rest", rest)])))
}

/// What a form of a group means: never more than it showed.
fn filter(visit: &Visit) -> Result<DeadLetterFilter, Refused> {
    let broken = || Refusal::new(Code::BadRequest, "the form is not one of this page: load it again");
    let until: Timestamp = visit.form.text("until").parse().map_err(|_| broken())?;
    Ok(DeadLetterFilter {
        stream: Some(visit.form.text("stream").parse().map_err(|_| broken())?),
        code: Some(visit.form.text("code").to_string()),
        before: Some(until),
        job_ids: Vec::new(),
    })
}
