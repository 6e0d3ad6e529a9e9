//! The calls themselves, one file for each group of operations. Each reads its request, asks the engine, and answers.

mod acting;
pub mod batch;
mod beats;
pub mod blockers;
pub mod candidates;
pub mod captures;
pub mod contract;
pub mod decisions;
pub mod dlq;
pub mod export;
pub mod import;
pub mod jobs;
pub mod manifests;
mod named;
pub mod objectives;
pub(super) mod opened;
mod paging;
pub mod pipeline;
pub mod process;
pub mod ready;
pub mod streams;
pub mod tokens;
mod waiting;
mod workorder_jobs;
pub mod workorder_log;
