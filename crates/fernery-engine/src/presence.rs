//! Shows in the database that this process is there: a row that it writes when it starts, refreshes while it runs, and takes
//! back when it ends. A process that is killed takes nothing back; its row is old after 15 seconds.

use crate::engine::Engine;
use crate::store::Process;
use fernery_core::limits;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::debug;

/// How long the end of a process waits for its row to go; one that is left is old soon.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// A process that is shown for as long as this lives.
#[derive(Debug)]
pub struct Presence {
    /// Never sent on: dropped, it ends the task.
    here: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Presence {
    /// Shows a process. Once this returns it is listed, unless the database is away: then it is as soon as that is back.
    pub async fn begin(engine: &Engine, process: Process) -> Self {
        attend(engine, &process).await;
        let (here, gone) = oneshot::channel();
        let task = tokio::spawn(stay(engine.clone(), process, gone));
        Self { here, task }
    }

    /// Takes it back, before the engine is closed.
    pub async fn end(self) {
        let Self { here, mut task } = self;
        drop(here);
        if timeout(LEAVE_WITHIN, &mut task).await.is_err() {
            task.abort();
        }
    }
}

async fn stay(engine: Engine, process: Process, mut gone: oneshot::Receiver<()>) {
    let chance = engine.settings().store.chance;
    loop {
        tokio::select! {
            _ = &mut gone => break,
            () = sleep(chance.jittered(limits::PROCESS_SAYS_EVERY)) => {}
        }
        // Never given up half way: what is under way then would show the process again after it has left.
        attend(&engine, &process).await;
    }
    if let Err(error) = engine.store().leave(process.process_id).await {
        debug!(%error, "this process could not be taken off the list; it is old soon");
    }
}

async fn attend(engine: &Engine, process: &Process) {
    if let Err(error) = engine.store().attend(process.clone()).await {
        debug!(%error, "this process could not be shown; the next try comes soon");
    }
}
