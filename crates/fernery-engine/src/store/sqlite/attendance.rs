//! The process that has the file open. It is in memory: the lock on the file keeps every other out, and what a dead process
//! said would be told by nobody.

use crate::store::{LivingProcess, Process};
use fernery_core::{Timestamp, limits};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Who said when that it is there.
#[derive(Debug, Default)]
pub(super) struct Attendance(BTreeMap<Uuid, LivingProcess>);

impl Attendance {
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
