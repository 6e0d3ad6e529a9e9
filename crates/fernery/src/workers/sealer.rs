//! Reads journal entries without a seal, claims nothing (a unique place prevents duplicates), writes their seals, and
//! keeps the head of the chain in a file outside the database. Does nothing when all are sealed.

use super::Context;
use super::driver::{Pass, PollingWorker};
use async_trait::async_trait;
use fernery_core::artifact::AzollaId;
use fernery_engine::pipeline::journal::{self, Head};
use fernery_engine::{StoreError, door};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const BATCH: i64 = 256;
/// Nobody waits for a seal, and a large batch costs little more than one.
const REST: Duration = Duration::from_millis(200);
/// The file in the data directory that keeps the head of the chain, outside the database.
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
    /// The head that was last saved.
    fn kept(&self, data: &Path) -> Option<Head> {
        serde_json::from_slice(&std::fs::read(data.join(HEAD_FILE)).ok()?).ok()
    }

    /// Saves a new head, unless the chain does not continue from the saved one: a truncation must stay visible.
    async fn keep(&self, context: &Context, head: Head) -> Result<(), StoreError> {
        if let Some(kept) = self.kept(&context.data) {
            let fault =
                context.engine.substrate().read(move |sql| journal::leads_through(sql, &kept)).await?;
            if let Some(fault) = fault {
                tracing::error!(
                    %fault,
                    "the journal does not continue from the saved head (truncated or altered?); \
                     keeping the old head file"
                );
                return Ok(());
            }
        }
        if let Err(error) = write(&context.data, &head) {
            tracing::warn!(%error, "could not write the journal's head file; will retry in the next pass");
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
