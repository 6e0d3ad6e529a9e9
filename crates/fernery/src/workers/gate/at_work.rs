//! Which gate is at work on which workorder in this process: shown to those who wait, and written down nowhere.

use fernery_core::artifact::WorkorderId;
use fernery_core::blueprint::Gate;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct AtWork(Mutex<HashMap<WorkorderId, String>>);

impl AtWork {
    fn all(&self) -> MutexGuard<'_, HashMap<WorkorderId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is shown until this is dropped, however the gate ends.
    pub(super) fn enter(&self, id: &WorkorderId, gate: &Gate) -> GateAtWork<'_> {
        self.all().insert(id.clone(), gate.name().to_string());
        GateAtWork { at_work: self, id: id.clone() }
    }

    /// The gate that is at work on it.
    pub(crate) fn gate_of(&self, id: &WorkorderId) -> Option<String> {
        self.all().get(id).cloned()
    }
}

pub(super) struct GateAtWork<'a> {
    at_work: &'a AtWork,
    id: WorkorderId,
}

impl Drop for GateAtWork<'_> {
    fn drop(&mut self) {
        self.at_work.all().remove(&self.id);
    }
}
