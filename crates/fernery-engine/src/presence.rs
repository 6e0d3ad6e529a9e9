//! Registers this process in the database: it writes a row at start, renews it while it runs, and deletes it at the
//! end. The row of a killed process expires after 15 seconds.

use crate::engine::Engine;
use crate::store::Process;
use fernery_core::limits;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::debug;

/// How long the end of a process waits for its row to be deleted; a row that is left expires.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// A process that is registered for as long as this value lives.
#[derive(Debug)]
pub struct Presence {
    /// Never sent on: dropped, it ends the task.
    here: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Presence {
    /// Registers a process. When this returns it is listed; if the database is away, it is listed as soon as that is
    /// back.
    pub async fn begin(engine: &Engine, process: Process) -> Self {
        attend(engine, &process).await;
        let (here, gone) = watch::channel(());
        let of = engine.clone();
        let task = engine.loops().run("presence", move || stay(of.clone(), process.clone(), gone.clone()));
        Self { here, task }
    }

    /// Deregisters it, before the engine is closed.
    pub async fn end(self) {
        let Self { here, mut task } = self;
        drop(here);
        if timeout(LEAVE_WITHIN, &mut task).await.is_err() {
            task.abort();
        }
    }
}

async fn stay(engine: Engine, process: Process, mut gone: watch::Receiver<()>) {
    let chance = engine.settings().store.chance;
    loop {
        tokio::select! {
            _ = gone.changed() => break,
            () = sleep(chance.jittered(limits::PROCESS_SAYS_EVERY)) => {}
        }
        // Never aborted half way: an unfinished write would register the process again after it has left.
        attend(&engine, &process).await;
    }
    if let Err(error) = engine.store().leave(process.process_id).await {
        debug!(%error, "could not deregister this process; its entry will expire");
    }
}

async fn attend(engine: &Engine, process: &Process) {
    if let Err(error) = engine.store().attend(process.clone()).await {
        debug!(%error, "could not register this process; will retry");
    }
}
