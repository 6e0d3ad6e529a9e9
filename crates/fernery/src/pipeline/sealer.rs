//! Reads journal entries that are not chained yet, claims nothing (a unique place excludes), writes their seals, and keeps
//! the end of the chain in a file beside the database. Does nothing when all are sealed.

use super::Context;
use super::driver::{Pass, PollingWorker};
use async_trait::async_trait;
use fernery_core::artifact::AzollaId;
use fernery_engine::substrate::journal::{self, Head};
use fernery_engine::{StoreError, door};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const BATCH: i64 = 256;
/// Nobody waits for a seal, and many at once cost little more than one.
const REST: Duration = Duration::from_millis(200);
/// The file in the data directory in which the end of the chain is kept, beside the database.
pub(crate) const HEAD_FILE: &str = "journal.head";

pub(super) struct Sealer;

#[async_trait]
impl PollingWorker for Sealer {
    fn name(&self) -> &'static str {
        "sealer"
    }

    fn rest(&self) -> Duration {
        REST
    }

    fn is_per_azolla(&self) -> bool {
        false
    }

    async fn pass(&self, context: &Context, _: &AzollaId) -> Result<Pass, StoreError> {
        let (sealed, head) = context
            .engine
            .substrate()
            .transact(move |sql| {
                let sealed = journal::seal(sql, BATCH)?;
                if sealed.0 > 0 {
                    door::failpoint("seals-written");
                }
                Ok(sealed)
            })
            .await?;
        if sealed > 0 {
            door::failpoint("sealed");
        }
        if let Some(head) = head.filter(|head| self.kept(&context.data).as_ref() != Some(head)) {
            self.keep(context, head).await?;
        }
        let mut pass = Pass { again: sealed as i64 == BATCH, ..Pass::default() };
        pass.count("sealed", sealed as u64);
        Ok(pass)
    }
}

impl Sealer {
    /// The end that was last kept.
    fn kept(&self, data: &Path) -> Option<Head> {
        serde_json::from_slice(&std::fs::read(data.join(HEAD_FILE)).ok()?).ok()
    }

    /// Keeps a new end, unless the chain does not lead there from the one that was kept: what was cut off must stay seen.
    async fn keep(&self, context: &Context, head: Head) -> Result<(), StoreError> {
        if let Some(kept) = self.kept(&context.data) {
            let fault =
                context.engine.substrate().read(move |sql| journal::leads_through(sql, &kept)).await?;
            if let Some(fault) = fault {
                tracing::error!(%fault, "the journal is not what it was; its remembered end is left alone");
                return Ok(());
            }
        }
        if let Err(error) = write(&context.data, &head) {
            tracing::warn!(%error, "the end of the journal could not be kept in a file; the next pass tries again");
        }
        Ok(())
    }
}

fn write(data: &Path, head: &Head) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(data)?;
    serde_json::to_writer(&mut file, head)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(data.join(HEAD_FILE)).map_err(|e| e.error)?;
    Ok(())
}
