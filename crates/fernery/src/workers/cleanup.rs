//! Cleans up. Reads workorders whose executor no longer exists and work folders of dead processes; claims nothing (each
//! is handled under its objective's lock); writes blockers, and that this process hosts its azollas.

use super::Context;
use super::driver::{Pass, PollingWorker};
use super::leftovers::{Leftovers, remove_logs};
use async_trait::async_trait;
use fernery_core::JobStatus;
use fernery_core::artifact::{AzollaId, WorkorderId};
use fernery_engine::StoreError;
use fernery_engine::clock_step::STEP_MAX;
use fernery_engine::pipeline::stranding;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Mutex;

const BATCH: i64 = 100;

pub(super) struct Cleanup {
    began: AtomicBool,
    leftovers: Mutex<Leftovers>,
}

impl Cleanup {
    pub(super) fn new(leftovers: Leftovers) -> Self {
        Self { began: AtomicBool::new(false), leftovers: Mutex::new(leftovers) }
    }
}

#[async_trait]
impl PollingWorker for Cleanup {
    fn name(&self) -> &'static str {
        "cleanup"
    }

    fn is_per_azolla(&self) -> bool {
        false
    }

    async fn pass(&self, context: &Context, _: &AzollaId) -> Result<Pass, StoreError> {
        let mut pass = Pass::default();
        context.host().await?;
        for azolla in context.azollas() {
            strand(context, &azolla, &mut pass).await?;
        }
        // The first pass removes nothing: whoever restarts a server may want to look first. But folders of earlier
        // versions or of a dead process lose the file modes that they may not keep.
        if self.began.swap(true, Ordering::Relaxed) {
            if is_clock_plausible(context).await? {
                empty_trash(context, &mut pass).await;
            }
        } else {
            let trash = context.trash.clone();
            let _ = tokio::task::spawn_blocking(move || trash.strip()).await;
        }
        let removed = self.leftovers.lock().await.remove(&context.engine).await?;
        pass.count("folders_removed", removed);
        Ok(pass)
    }
}

/// Whether the age of a folder can be told by the clock of this machine. By one that is far ahead everything is old. On
/// PostgreSQL that may be this machine's clock or the database's.
async fn is_clock_plausible(context: &Context) -> Result<bool, StoreError> {
    let store = context.engine.store();
    let ahead = fernery_engine::door::wall_clock().since(store.now().await?);
    Ok(ahead <= STEP_MAX && store.clock_doubt().await?.is_none())
}

async fn empty_trash(context: &Context, pass: &mut Pass) {
    let (trash, work) = (context.trash.clone(), context.work.clone());
    let empty = move || Ok::<_, std::io::Error>((trash.empty()?, remove_logs(&work)?));
    match tokio::task::spawn_blocking(empty).await {
        Ok(Ok((emptied, logs))) => {
            pass.count("trash_emptied", emptied);
            pass.count("logs_removed", logs);
        }
        Ok(Err(error)) => tracing::warn!(%error, "could not empty the trash; will retry"),
        Err(error) => tracing::warn!(%error, "could not empty the trash; will retry"),
    }
}

/// Blocks objectives whose workorder waits for a kind of executor that their azolla no longer has. A claimed workorder
/// is left to finish.
async fn strand(context: &Context, azolla: &AzollaId, pass: &mut Pass) -> Result<(), StoreError> {
    let substrate = context.engine.substrate();
    let mut after = String::new();
    loop {
        let of = azolla.clone();
        let found: Vec<WorkorderId> =
            substrate.read(move |sql| stranding::of_other_types(sql, &of, &after, BATCH)).await?;
        let Some(last) = found.last() else { return Ok(()) };
        after = last.to_string();
        for id in found {
            let Some(job_id) = id.job_id() else { continue };
            let job = context.engine.store().job(job_id).await?;
            if job.is_some_and(|job| job.brief.status == JobStatus::Queued)
                && substrate.transact(move |sql| stranding::strand(sql, &id)).await?
            {
                pass.count("executor_gone", 1);
            }
        }
    }
}
