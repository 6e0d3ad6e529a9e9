//! The inbox and other records of an export, which the server sends as files, in pages.

use super::folder::{Folder, unexpected};
use crate::cli::failure::Outcome;
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{ExportPage, ImportFile};
use fernery_core::exported::{AttemptRecord, BesideWorkorder};
use fernery_core::limits;
use fernery_engine::pipeline::exporting::Part;
use std::time::Duration;

/// Parts whose rows may go away again; they are few.
const PASSING: [Part; 3] = [Part::Dependencies, Part::Recurrences, Part::Snoozes];

/// Reads the parts whose rows may go away, and takes back what is not there any more.
pub(super) async fn read_passing(client: &Client, folder: &mut Folder) -> Outcome {
    for part in PASSING {
        folder.clear(part.as_str())?;
        each(client, part, |file, _| folder.file(&file.path, &file.content)).await?;
    }
    Ok(())
}

/// Reads all parts but attempts, and writes what has changed since they were last read.
pub(super) async fn read(client: &Client, folder: &mut Folder) -> Outcome {
    read_passing(client, folder).await?;
    for part in Part::ALL.iter().filter(|part| **part != Part::Attempts && !PASSING.contains(part)) {
        each(client, *part, |file, _| folder.file(&file.path, &file.content)).await?;
    }
    Ok(())
}

/// Reads the attempts of the workorders in the folder. They are not in the journal, so they come last: a workorder with a bundle
/// has all its attempts. An attempt that ended after its workorder was read is left out, because that workorder knows
/// neither its time nor its bundle.
pub(super) async fn attempts(client: &Client, folder: &mut Folder) -> Outcome {
    each(client, Part::Attempts, |file, ended_at| {
        let attempt: AttemptRecord = serde_json::from_str(&file.content).map_err(unexpected)?;
        match folder.read("beside/workorders", attempt.work_order_id.as_str())? {
            Some(text) if is_known(&serde_json::from_str(&text).map_err(unexpected)?, ended_at) => {
                folder.file(&file.path, &file.content)
            }
            _ => Ok(()),
        }
    })
    .await
}

/// Whether a workorder was read when the attempt with this claim version had ended; an imported attempt has none.
fn is_known(workorder: &BesideWorkorder, ended_at: Option<i64>) -> bool {
    workorder.executed_at.is_some() || ended_at.is_none_or(|version| version <= workorder.claim_version)
}

/// Writes each file of a part; beside it the claim version of an attempt.
async fn each(
    client: &Client,
    part: Part,
    mut write: impl FnMut(&ImportFile, Option<i64>) -> Outcome,
) -> Outcome {
    let mut cursor = None;
    loop {
        let query = Query::new().with("limit", Some(limits::PAGE_ROWS_MAX)).with("cursor", cursor);
        let reply: Reply<ExportPage> =
            client.get(&format!("/v1/export/{part}"), &query, Duration::ZERO).await?;
        let page = reply.read()?;
        for file in &page.files {
            write(file, page.claim_versions.get(&file.path).copied())?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}
