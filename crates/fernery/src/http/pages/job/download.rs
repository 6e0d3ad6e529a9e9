//! `GET /job/{id}/download?part=…`: the whole of a document of which the page shows the beginning, as a file: its payload or its
//! result. (An error is never so long.) It comes from the same call as the page, so what is hidden there is hidden here; and a browser
//! keeps it and never shows it, whatever somebody wrote into it.

use super::super::reply::PageReply;
use super::super::visit::{Shown, Visit, api};
use crate::http::problem::{Code, Refusal};
use fernery_client::wire::JobDetail;

pub(in crate::http::pages) async fn show(visit: Visit) -> Shown {
    let job: JobDetail = visit.get(&api("/v1/jobs/", &visit.param, ""), &[]).await?;
    let part = visit.query.text("part");
    let found = match part {
        "payload" => Some(&*job.payload),
        "result" => job.result.as_deref(),
        _ => None,
    };
    let Some(found) = found else {
        let detail =
            "there is no such document: ask for part=payload, or for part=result of a job that succeeded";
        return Err(Refusal::new(Code::NotFound, detail));
    };
    // An id and a word of ours: nothing in the name needs quoting.
    Ok(PageReply::json_file(format!("job-{}-{part}.json", job.job_id), found.get().to_string()))
}
