//! Messages tell servers on one database of jobs, where there is a transport. The database stays the truth: a lost message
//! costs time, never a job.

pub(crate) mod database_poll;
pub(crate) mod hinted_claim;
pub(crate) mod lost;
pub(crate) mod prefetched;
pub(crate) mod relay;
pub(crate) mod sweep;
