//! The acts on a job: cancel and retry. A form that is sent twice acts once.

use super::super::reply::PageReply;
use super::super::trouble::Said;
use super::super::visit::{Shown, Visit, api};
use super::page;
use crate::http::problem::{Code, Refusal, Refused};
use fernery_client::wire::{
    CancelRequest, CancelResponse, DeadLetterFilter, DeadLetterRequest, DeadLetterResponse, JobDetail,
    RetryResponse,
};
use fernery_core::{JobId, Timestamp};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

/// A job and the end of it that a form showed. A job that was retried and ended again has another end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::http::pages) struct Ended {
    pub(in crate::http::pages) job_id: String,
    pub(in crate::http::pages) at: Option<Timestamp>,
}

impl Display for Ended {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.job_id)?;
        self.at.map_or(Ok(()), |at| write!(f, " {at}"))
    }
}

impl FromStr for Ended {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Self, Refused> {
        let (job_id, at) = text.split_once(' ').map_or((text, None), |(job_id, at)| (job_id, Some(at)));
        let at = at.map(str::parse).transpose();
        let at = at
            .map_err(|_| Refusal::new(Code::BadRequest, "the form is not one of this page: load it again"))?;
        Ok(Self { job_id: job_id.to_string(), at })
    }
}

pub(in crate::http::pages) async fn cancel(visit: &Visit, job_id: &str, force: bool) -> Result<(), Refused> {
    let path = api("/v1/jobs/", job_id, "/cancel");
    visit.post::<CancelResponse>(&path, &CancelRequest { force }).await.map(drop)
}

/// Retries a job that ended as the form showed. One that has gone on since then is left alone: the form was sent twice.
pub(in crate::http::pages) async fn retry(visit: &Visit, ended: &Ended) -> Result<(), Refused> {
    if let (Ok(job_id), Some(at)) = (ended.job_id.parse::<JobId>(), ended.at) {
        // A dead one by the time of its death: the database compares it in the transaction that moves the job.
        let filter =
            DeadLetterFilter { job_ids: vec![job_id], before: Some(just_after(at)), ..Default::default() };
        let body = DeadLetterRequest { filter, ..Default::default() };
        let moved: DeadLetterResponse = visit.post("/v1/dlq/redrive", &body).await?;
        if moved.moved.is_some_and(|moved| moved > 0) {
            return Ok(());
        }
        let job: JobDetail = visit.get(&api("/v1/jobs/", &ended.job_id, ""), &[]).await?;
        if job.finished_at != ended.at {
            return Ok(());
        }
    }
    // It is cancelled, or the API says why it cannot be retried.
    let path = api("/v1/jobs/", &ended.job_id, "/retry");
    visit.post::<RetryResponse>(&path, &serde_json::json!({})).await.map(drop)
}

/// The first instant after this one: instants are whole milliseconds.
pub(in crate::http::pages) fn just_after(at: Timestamp) -> Timestamp {
    at.after(Duration::from_millis(1))
}

/// `POST /job/{id}/cancel`
pub(in crate::http::pages) async fn cancel_one(visit: Visit) -> Shown {
    let done = cancel(&visit, &visit.param, visit.form.has("force")).await;
    answered(visit, done).await
}

/// `POST /job/{id}/retry`
pub(in crate::http::pages) async fn retry_one(visit: Visit) -> Shown {
    let at = visit.form.filled("ended").map(str::to_string).unwrap_or_default();
    let ended: Ended = format!("{} {at}", visit.param).trim_end().parse()?;
    let done = retry(&visit, &ended).await;
    answered(visit, done).await
}

/// Back to the job, or the job with what was refused.
async fn answered(visit: Visit, done: Result<(), Refused>) -> Shown {
    match done {
        Ok(()) => Ok(PageReply::see_other(api("/job/", &visit.param, ""))),
        Err(refused) if refused.code.status() < 500 && refused.code.status() != 404 => {
            page(&visit, refused.code.status(), Said::of(&refused)).await
        }
        Err(refused) => Err(refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_form_sends_is_read_again() {
        let at = Timestamp::from_millis(1_800_000_000_123);
        for ended in [Ended { job_id: "x".into(), at: Some(at) }, Ended { job_id: "x".into(), at: None }] {
            assert_eq!(ended.to_string().parse::<Ended>().unwrap(), ended);
        }
        assert_eq!("x soon".parse::<Ended>().unwrap_err().code, Code::BadRequest);
    }
}
