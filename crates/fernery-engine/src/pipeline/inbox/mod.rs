//! The inbox: captures, the two tracks that a standing objective runs for them (triage and manifest), what their verdicts
//! mean, and what people and other azollas are told.

pub mod answers;
pub mod candidates;
pub mod capture_readiness;
pub mod captures;
pub mod deadlines;
pub(crate) mod import;
pub mod manifests;
pub mod notices;
pub mod queries;
pub mod recurrences;
pub mod tracks;
pub(crate) mod verdict;
