//! Notices for the outside. A notice is written in the transaction of its cause and then enqueued as a job, with the
//! usual retries and dead-letter queue.
//!
//! Reads: notices that are not dispatched yet. Claims: nothing; a row is dispatched once. Writes: jobs in the stream of the
//! azolla's notices. Does nothing where an azolla sends no notices.

use crate::door::Chance;
use crate::error::{StoreError, StoreResult};
use crate::pipeline::azollas;
use crate::pipeline::{Row, Sql, Stage};
use crate::store::NewJob;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::{NoticeOf, Notices};
use fernery_core::names::NOTICE_STREAM_PREFIX;
use fernery_core::{StreamName, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// How often a notice is tried: with the back-off of jobs, over some hours.
const TRIES: u32 = 12;

/// How a notice is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// It is posted to a URL.
    Webhook,
    /// A program reads it.
    Command,
}

/// The payload of a notice's job. Only `notice` is sent to the outside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NoticeJob {
    /// How it is delivered.
    pub channel: Channel,
    pub notice: Notice,
}

/// What the outside is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Notice {
    /// Its id, the same in every delivery.
    pub notice_id: String,
    /// The kind of artifact that is new.
    pub kind: NoticeOf,
    pub azolla_id: AzollaId,
    /// When it was written.
    pub created_at: Timestamp,
    pub artifact: serde_json::Value,
}

/// The stream of an azolla's notices.
pub fn stream(azolla_id: &AzollaId) -> StreamName {
    StreamName::stored(&format!("{NOTICE_STREAM_PREFIX}{azolla_id}"))
}

/// The kinds of notices in the form of the column of `azollas`, which the statements below read.
pub(crate) fn told_by(notices: Option<&Notices>) -> String {
    let on = notices.map(|notices| notices.on.as_slice()).unwrap_or_default();
    on.iter().map(|of| of.as_str()).collect::<Vec<_>>().join(" ")
}

/// Writes the notice of a pause, if its azolla sends notices of pauses.
pub(crate) fn of_pause(sql: &mut dyn Sql, pause_key: &str) -> StoreResult<()> {
    sql.write_new(include_str!("../sql/notice_of_pause.sql"), &[pause_key.into()])?;
    sql.wakes(Stage::Notices);
    Ok(())
}

/// Writes the notice of a manifest, if its azolla sends notices of manifests.
pub(crate) fn of_manifest(sql: &mut dyn Sql, manifest_id: &str) -> StoreResult<()> {
    sql.write_new(include_str!("../sql/notice_of_manifest.sql"), &[manifest_id.into()])?;
    sql.wakes(Stage::Notices);
    Ok(())
}

/// Makes jobs of up to `limit` notices; answers how many it read.
pub fn dispatch(sql: &mut dyn Sql, azolla_id: &AzollaId, chance: Chance, limit: i64) -> StoreResult<usize> {
    let Some(registered) = azollas::in_force(sql, azolla_id)? else { return Ok(0) };
    let cells = [azolla_id.as_str().into(), limit.into()];
    let waiting = sql.query(include_str!("../sql/notices_waiting.sql"), &cells)?;
    for row in &waiting {
        let notice = notice(row, azolla_id)?;
        // Another process may have been faster.
        let mine =
            sql.touched(include_str!("../sql/notice_dispatched.sql"), &[(&notice.notice_id).into()])?;
        if mine == 0 {
            continue;
        }
        let Some(how) = &registered.blueprint.notices else { continue };
        let webhook = how.webhook.as_ref().map(|_| Channel::Webhook);
        let command = (!how.command.is_empty()).then_some(Channel::Command);
        for channel in [webhook, command].into_iter().flatten() {
            let notice_job = NoticeJob { channel, notice: notice.clone() };
            let damaged = |e: serde_json::Error| StoreError::Corrupt(e.to_string());
            let payload = RawValue::from_string(serde_json::to_string(&notice_job).map_err(damaged)?)
                .map_err(damaged)?;
            sql.enqueue(NewJob {
                job_id: Some(chance.job_id()),
                max_attempts: TRIES,
                ..NewJob::new(stream(azolla_id), payload)
            })?;
        }
    }
    Ok(waiting.len())
}

fn notice(row: &Row, azolla_id: &AzollaId) -> StoreResult<Notice> {
    Ok(Notice {
        notice_id: row.text(0)?.to_string(),
        kind: row.word(1)?,
        azolla_id: azolla_id.clone(),
        created_at: row.at(2)?,
        artifact: match row.maybe_text(3)? {
            Some(_) => row.json(3)?,
            None => row.json(4)?,
        },
    })
}
