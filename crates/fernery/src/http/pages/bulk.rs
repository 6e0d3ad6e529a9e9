//! Acts on all jobs that match: `GET /bulk-ask` counts them and asks, `POST /bulk` begins, `GET /bulk/{id}` shows how far it is and
//! stops it, `GET /bulk` lists them.

use super::frame::Frame;
use super::reply::PageReply;
use super::show::{Line, Ways, When, shell};
use super::trouble::Said;
use super::visit::{Shown, Visit, api, link};
use crate::bulk_words;
use crate::http::problem::{Code, Refusal, Refused};
use askama::Template;
use fernery_client::wire::{BulkCount, BulkPage, BulkRequest, BulkView};
use fernery_core::Timestamp;
use fernery_core::job::bulk::{BulkState, BulkVerb, Counted};
use serde_json::json;

#[derive(Template)]
#[template(path = "bulk_ask.html")]
struct Ask {
    frame: Frame,
    sentence: Line,
    /// What the form sends: it proves nothing, the API checks all of it.
    asked: Asked,
    jobs: String,
    none: bool,
    bound: &'static str,
    purges: bool,
    back: String,
    ways: Ways,
}

/// Which jobs are meant, as an address or a form has it.
#[derive(Clone, Debug)]
struct Asked {
    verb: String,
    status: String,
    stream: String,
    code: Option<String>,
    before: String,
}

impl Asked {
    fn of(fields: &super::fields::Fields) -> Self {
        let text = |name: &str| fields.filled(name).unwrap_or_default().to_string();
        Self {
            verb: text("verb"),
            status: text("status"),
            stream: text("stream"),
            // A job may have died without a code: an empty one is meant as it stands.
            code: fields.has("code").then(|| fields.text("code").to_string()),
            before: text("before"),
        }
    }

    fn body(&self) -> Result<BulkRequest, Refused> {
        let wrong = |field: &str, why: String| Refusal::field(Code::Invalid, format!("/{field}"), why);
        let before = Some(&self.before).filter(|text| !text.is_empty()).map(|text| text.parse::<Timestamp>());
        let stream = Some(&self.stream).filter(|text| !text.is_empty()).map(|text| text.parse());
        Ok(BulkRequest {
            verb: self.verb.parse().map_err(|why| wrong("verb", why))?,
            status: self.status.parse().map_err(|why| wrong("status", why))?,
            stream: stream
                .transpose()
                .map_err(|bad: fernery_core::BadName| wrong("stream", bad.to_string()))?,
            code: self.code.clone(),
            before: before
                .transpose()
                .map_err(|_| wrong("before", "a time like 2026-11-15T09:30:00Z".into()))?,
            act_id: None,
            dry_run: false,
        })
    }
}

/// The command and the call that ask for this act.
pub(super) fn ways(asked: &BulkRequest) -> Ways {
    let body = serde_json::to_string(asked).unwrap_or_default();
    Ways::new(bulk_words::command(asked, shell), "POST", "/v1/bulk", Some(&body))
}

/// How many jobs match now, in words.
pub(super) async fn counted(visit: &Visit, asked: &BulkRequest) -> Result<BulkCount, Refused> {
    visit.post("/v1/bulk", &BulkRequest { dry_run: true, ..asked.clone() }).await
}

/// `GET /bulk-ask?verb=…&status=…`
pub(super) async fn ask(visit: Visit) -> Shown {
    let asked = Asked::of(&visit.query);
    let body = asked.body()?;
    let count = counted(&visit, &body).await?;
    // What is shown is what is meant, however long it is looked at.
    let meant = BulkRequest { before: Some(count.before), ..body };
    let page = Ask {
        frame: visit.frame("Act on all that match"),
        sentence: Line(capital(&bulk_words::sentence(&meant))),
        jobs: bulk_words::jobs(count.matching, count.counted),
        none: count.matching == 0 && count.counted != Counted::AtLeast,
        bound: bulk_words::bound(meant.status),
        purges: meant.verb == BulkVerb::Purge,
        back: link("/jobs", &[("status", &asked.status), ("stream", &asked.stream)]),
        ways: ways(&meant),
        asked: Asked { before: count.before.to_string(), ..asked },
    };
    visit.show(&page)
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

/// `POST /bulk`
pub(super) async fn start(visit: Visit) -> Shown {
    let body = Asked::of(&visit.form).body()?;
    if body.verb == BulkVerb::Purge && !visit.form.has("sure") {
        let detail = "nothing was deleted: go back in your browser to the page that asked, tick the box that says that you are sure, and \
                      press “Do it”";
        return Err(Refusal::new(Code::Invalid, detail));
    }
    if body.before.is_none() {
        // A form that says until when it counted means no job that came later.
        return Err(Refusal::new(Code::BadRequest, "the form is not one of this page: load it again"));
    }
    let act_id = visit
        .act_id()
        .parse()
        .map_err(|bad: fernery_core::BadName| Refusal::field(Code::Invalid, "/act_id", bad.to_string()))?;
    let act: BulkView = visit.post("/v1/bulk", &BulkRequest { act_id: Some(act_id), ..body }).await?;
    Ok(PageReply::see_other(api("/bulk/", act.act_id.as_str(), "")))
}

#[derive(Template)]
#[template(path = "bulk.html")]
struct One {
    frame: Frame,
    row: Row,
    said: Said,
    before: When,
    bound: &'static str,
    refused: u64,
    trouble: Option<Line>,
    /// What the bar is long; none where nobody knows.
    most: Option<u64>,
    jobs: String,
    ways: Ways,
}

struct Row {
    id: String,
    sentence: Line,
    state: BulkState,
    done: u64,
    progress: String,
    actor: Line,
    created: When,
    ended: Option<When>,
}

fn row(act: &BulkView) -> Row {
    Row {
        id: act.act_id.to_string(),
        sentence: Line(capital(&bulk_words::sentence(&bulk_words::request(act)))),
        state: act.state,
        done: act.done,
        progress: bulk_words::progress(act),
        actor: Line::of(&act.actor),
        created: When(act.created_at),
        ended: act.ended_at.map(When),
    }
}

/// `GET /bulk/{id}`
pub(super) async fn one(visit: Visit) -> Shown {
    page(&visit, 200, Said::default()).await
}

async fn page(visit: &Visit, status: u16, said: Said) -> Shown {
    let act: BulkView = visit.get(&api("/v1/bulk/", &visit.param, ""), &[]).await?;
    let stop = api("/v1/bulk/", &visit.param, "/stop");
    let page = One {
        frame: visit.frame("An act on all that match"),
        before: When(act.before),
        bound: bulk_words::bound(act.status),
        refused: act.refused,
        trouble: act.trouble.as_deref().map(Line::of),
        most: (act.counted != Counted::AtLeast).then_some(act.expected.max(act.done + act.refused)),
        jobs: link(
            "/jobs",
            &[("status", act.status.as_str()), ("stream", act.stream.as_ref().map_or("", |of| of.as_str()))],
        ),
        ways: Ways::new(format!("fernery job bulk stop {}", act.act_id), "POST", &stop, None),
        row: row(&act),
        said,
    };
    visit.show_as(status, &page)
}

/// `POST /bulk/{id}/stop`
pub(super) async fn stop(visit: Visit) -> Shown {
    let stopped = visit.post::<BulkView>(&api("/v1/bulk/", &visit.param, "/stop"), &json!({})).await;
    match stopped {
        Ok(_) => Ok(PageReply::see_other(api("/bulk/", &visit.param, ""))),
        Err(refused) if refused.code.status() < 500 && refused.code.status() != 404 => {
            page(&visit, refused.code.status(), Said::of(&refused)).await
        }
        Err(refused) => Err(refused),
    }
}

#[derive(Template)]
#[template(path = "bulk_acts.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    first: Option<&'static str>,
    next: Option<String>,
}

/// `GET /bulk`
pub(super) async fn list(visit: Visit) -> Shown {
    let cursor = visit.query.filled("cursor");
    let asked: Vec<(&str, &str)> = cursor.iter().map(|cursor| ("cursor", *cursor)).collect();
    let found: BulkPage = visit.get("/v1/bulk", &asked).await?;
    let page = List {
        frame: visit.frame("Acts on all that match"),
        rows: found.acts.iter().map(row).collect(),
        first: cursor.map(|_| "/bulk"),
        next: found.next_cursor.map(|cursor| link("/bulk", &[("cursor", &cursor)])),
    };
    visit.show(&page)
}
