//! The parts of an export other than tickets, in pages of files; and the ended attempts of workorders.

use super::paging::Place;
use crate::http::problem::{Code, Refusal};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::cursor;
use fernery_client::wire::{ExportPage, ImportFile};
use fernery_core::artifact::WorkorderId;
use fernery_core::exported::{AttemptRecord, File};
use fernery_engine::pipeline::exporting::{self, Page, Part};
use fernery_engine::pipeline::reading;
use fernery_engine::{Engine, StoreError};
use serde_json::Value;
use std::collections::BTreeMap;

/// `GET /v1/export/{name}`
pub async fn part(call: Call) -> Replied {
    let unknown = |why: String| Refusal::new(Code::NotFound, why);
    let part: Part = call.param.parse().map_err(unknown)?;
    let list = format!("export {part:?}");
    let (below, rows) = (Place::read(&call, list.clone())?.below, call.page_rows()? as i64);
    let engine = call.server.engine();
    let page = engine.substrate().read(move |sql| exporting::page(sql, part, &below, rows)).await?;
    let Page { mut files, next, workorders } = page;
    let mut claim_versions = BTreeMap::new();
    for id in workorders {
        for (attempt, claim_version) in of_job(engine, &id).await? {
            let file = File::of("attempts", attempt.attempt_id, &attempt);
            claim_versions.insert(file.path.clone(), claim_version);
            files.push(file);
        }
    }
    let files = files.into_iter().map(|File { path, text }| ImportFile { path, content: text }).collect();
    let next_cursor = next.map(|next| cursor::write(&next, &list));
    Reply::json(200, &ExportPage { files, claim_versions, next_cursor })
}

/// The ended attempts of a workorder: those of its job, as long as the job is stored, and those that were imported.
pub(in crate::http) async fn attempts(
    engine: &Engine,
    id: &WorkorderId,
) -> Result<Vec<AttemptRecord>, StoreError> {
    let named = id.clone();
    let mut ended = engine.substrate().read(move |sql| reading::past_attempts(sql, &named)).await?;
    ended.extend(of_job(engine, id).await?.into_iter().map(|(attempt, _)| attempt));
    Ok(ended)
}

/// The ended attempts of the job of a workorder, each with the claim version that the workorder got when it ended.
async fn of_job(engine: &Engine, id: &WorkorderId) -> Result<Vec<(AttemptRecord, i64)>, StoreError> {
    let Some(job_id) = id.job_id() else { return Ok(Vec::new()) };
    let Some(job) = engine.store().job(job_id).await? else { return Ok(Vec::new()) };
    let ended = job.attempts.into_iter().filter_map(|attempt| {
        let error = attempt.error.map(|raw| serde_json::from_str::<Value>(raw.get()).unwrap_or_default());
        let record = AttemptRecord {
            attempt_id: attempt.attempt_id,
            work_order_id: id.clone(),
            attempt_no: attempt.attempt_no,
            worker_id: attempt.worker_id,
            started_at: attempt.started_at,
            finished_at: attempt.finished_at?,
            outcome: attempt.outcome?,
            error,
        };
        Some((record, attempt.claim_version))
    });
    Ok(ended.collect())
}
