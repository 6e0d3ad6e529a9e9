//! Clock, ids and chance of a program outside the server. What the engine's own door is to the engine, this is to the
//! client: everything else here takes them from this page.
#![allow(clippy::disallowed_methods, reason = "this is the door")]

use fernery_core::JobId;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Time since boot, suspend included. It never steps: a machine that slept knows that its leases are old.
pub(crate) fn since_boot() -> Duration {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(t.tv_sec.try_into().unwrap_or(0), t.tv_nsec.try_into().unwrap_or(0))
}

/// This long from now; a time that no clock can name is as good as never.
pub(crate) fn later(by: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(by).unwrap_or_else(|| now + Duration::from_secs(30 * 365 * 86_400))
}

/// A new job's id: time-ordered.
pub(crate) fn job_id() -> JobId {
    JobId::from_uuid(Uuid::now_v7())
}

/// A random fraction in 0..1.
pub(crate) fn fraction() -> f64 {
    let (high, _) = Uuid::new_v4().as_u64_pair();
    // The upper 48 bits of a v4 are random.
    (high >> 16) as f64 / (1_u64 << 48) as f64
}
