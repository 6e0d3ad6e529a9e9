//! The one process that has the file open. It is kept in memory: the file lock excludes all others, and nobody could
//! read the entry of a dead process.

use super::{SqliteStore, lock};
use crate::error::StoreResult;
use crate::store::{LivingProcess, Process, Processes};
use async_trait::async_trait;
use fernery_core::{Timestamp, limits};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Who said when that it is there.
#[derive(Debug, Default)]
pub(super) struct LivingProcesses(BTreeMap<Uuid, LivingProcess>);

impl LivingProcesses {
    pub(super) fn attend(&mut self, process: Process, now: Timestamp) {
        self.0.retain(|_, seen| now.since(seen.seen_at) < limits::PROCESS_FORGOTTEN);
        self.0.insert(process.process_id, LivingProcess { process, seen_at: now });
    }

    pub(super) fn leave(&mut self, process_id: Uuid) {
        self.0.remove(&process_id);
    }

    pub(super) fn alive(&self, now: Timestamp) -> Vec<LivingProcess> {
        let alive = |seen: &&LivingProcess| now.since(seen.seen_at) < limits::PROCESS_ALIVE;
        let mut alive: Vec<LivingProcess> = self.0.values().filter(alive).cloned().collect();
        alive.sort_by_key(|seen| (seen.process.started_at, seen.process.process_id));
        alive
    }
}

#[async_trait]
impl Processes for SqliteStore {
    async fn attend(&self, process: Process) -> StoreResult<()> {
        lock(&self.processes).attend(process, self.clock.now());
        Ok(())
    }

    async fn leave(&self, process_id: Uuid) -> StoreResult<()> {
        lock(&self.processes).leave(process_id);
        Ok(())
    }

    async fn processes(&self) -> StoreResult<Vec<LivingProcess>> {
        Ok(lock(&self.processes).alive(self.clock.now()))
    }
}
