//! `/job/{id}/again`: a new job with the content of another, changed by hand. The form has the id of the job that it makes, so a
//! form that is sent twice makes one.

use super::super::fields::Fields;
use super::super::frame::Frame;
use super::super::reply::PageReply;
use super::super::show::{Id, Line, Ways, shell};
use super::super::trouble::Said;
use super::super::visit::{Shown, Visit, api};
use crate::http::problem::{Code, Refusal, Refused};
use askama::Template;
use fernery_client::wire::{EnqueuedJob, JobDetail};
use fernery_core::JobId;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A payload of so many bytes stands in the command that is shown; a longer one is read from a file.
const SHOWN_BYTES_MAX: usize = 200;

/// What the form has.
struct Typed {
    stream: String,
    payload: String,
    max_attempts: String,
    run_at: String,
    unique_key: String,
    timeout_seconds: String,
}

#[derive(Template)]
#[template(path = "job/again.html")]
struct AgainPage {
    frame: Frame,
    id: String,
    shown: Id,
    typed: Typed,
    said: Said,
    /// The unfinished job that has the unique key.
    holder: Option<String>,
    ways: Ways,
}

/// What the API is sent: the payload as it was typed, to the last digit.
#[derive(Serialize)]
struct Sent<'a> {
    job_id: &'a str,
    stream: &'a str,
    payload: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unique_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<Value>,
}

/// `GET /job/{id}/again`
pub(in crate::http::pages) async fn show(visit: Visit) -> Shown {
    let job: JobDetail = visit.get(&api("/v1/jobs/", &visit.param, ""), &[]).await?;
    let typed = Typed {
        stream: job.stream.to_string(),
        payload: job.payload.get().to_string(),
        max_attempts: job.max_attempts.to_string(),
        run_at: String::new(),
        unique_key: job.unique_key.unwrap_or_default(),
        timeout_seconds: job.timeout_seconds.map_or(String::new(), |seconds| seconds.to_string()),
    };
    page(&visit, 200, typed, Said::default(), None)
}

fn page(visit: &Visit, status: u16, typed: Typed, said: Said, holder: Option<String>) -> Shown {
    let small = typed.payload.len() <= SHOWN_BYTES_MAX && !typed.payload.contains('\n');
    let (payload, body) = match small {
        true => (
            format!("--payload {}", shell(&typed.payload)),
            format!("{{\"stream\":{},\"payload\":{}}}", json!(typed.stream), typed.payload),
        ),
        false => ("--payload-file payload.json".to_string(), "@job.json".to_string()),
    };
    let command = format!("fernery job enqueue --stream {} {payload}", shell(&typed.stream));
    let ways = Ways::new(command, "POST", "/v1/jobs", Some(&body));
    let again = AgainPage {
        frame: visit.frame("Enqueue again"),
        id: visit.param.clone(),
        shown: Id::of(&visit.param),
        typed,
        said,
        holder,
        ways,
    };
    visit.show_as(status, &again)
}

fn typed(form: &Fields) -> Typed {
    let text = |name: &str| form.text(name).to_string();
    Typed {
        stream: text("stream"),
        payload: text("payload"),
        max_attempts: text("max_attempts"),
        run_at: text("run_at"),
        unique_key: text("unique_key"),
        timeout_seconds: text("timeout_seconds"),
    }
}

/// `POST /job/{id}/again`
pub(in crate::http::pages) async fn enqueue(visit: Visit) -> Shown {
    let act_id = visit.act_id();
    let refused = match sent(&visit, &act_id).await {
        Ok(job) if job.job_id.to_string() == act_id => {
            return Ok(PageReply::see_other(api("/job/", &act_id, "")));
        }
        Ok(job) => return taken(&visit, job.job_id),
        Err(refused) => refused,
    };
    if refused.code.status() >= 500 {
        return Err(refused);
    }
    page(&visit, refused.code.status(), typed(&visit.form), Said::of(&refused), None)
}

async fn sent(visit: &Visit, act_id: &str) -> Result<EnqueuedJob, Refused> {
    let form = &visit.form;
    let payload: &RawValue = serde_json::from_str(form.text("payload"))
        .map_err(|error| Refusal::field(Code::Invalid, "/payload", format!("it is not JSON: {error}")))?;
    let body = Sent {
        job_id: act_id,
        stream: form.text("stream").trim(),
        payload,
        max_attempts: form.filled("max_attempts").map(|_| form.number("max_attempts")),
        run_at: form.filled("run_at"),
        unique_key: form.filled("unique_key"),
        timeout_seconds: form.filled("timeout_seconds").map(|_| form.number("timeout_seconds")),
    };
    visit.post("/v1/jobs", &body).await
}

/// Nothing was enqueued: an unfinished job has the unique key.
fn taken(visit: &Visit, holder: JobId) -> Shown {
    let detail = "an unfinished job has this unique key";
    let said = Said::of(&Refusal::field(Code::Conflict, "/unique_key", detail));
    page(visit, 409, typed(&visit.form), said, Some(holder.to_string()))
}

impl AgainPage {
    fn field_problem(&self, field: &str) -> Option<Line> {
        self.said.at(field).map(Line::of)
    }
}
