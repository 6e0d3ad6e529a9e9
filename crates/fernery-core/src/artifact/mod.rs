//! The artifacts of the protocol: what a run leaves behind for whoever reads it later.
//!
//! Each type has exactly the fields of its schema in `schemas/`, spelled as there; what the control plane needs beside them
//! is kept beside them. Snapshot, bundle, run record and pause state are history: once written they never change.

mod capture_buffer;
mod claim_record;
mod context_snapshot;
mod event;
mod ids;
mod objective;
mod output_bundle;
mod pause_state;
mod run_record;
mod session_manifest;
mod substrate_query;
mod workorder;

pub use capture_buffer::{CaptureBuffer, CaptureStatus};
pub use claim_record::{ClaimRecord, ResourceType};
pub use context_snapshot::ContextSnapshot;
pub use event::{Event, EventType, TerminalReason};
pub use ids::check_id;
pub use ids::{
    AzollaId, BlockerId, CandidateId, CaptureId, CommentId, DiazotrophType, EventId, ManifestId, ObjectiveId,
    OutputId, QueryId, RecordId, ResponseId, RunId, SnapshotId, WorkorderId,
};
pub use objective::{BlockerKind, BlockerRef, Objective, ObjectiveStatus, ObjectiveType};
pub use output_bundle::OutputBundle;
pub use pause_state::{PauseReason, PauseState};
pub use run_record::{GateResult, RunRecord};
pub use session_manifest::{PauseSummary, SessionManifest};
pub use substrate_query::{QueryStatus, SubstrateQuery, SubstrateQueryResponse};
pub use workorder::{Workorder, WorkorderStatus};

/// A JSON object whose keys are in order, so that one content has one spelling.
pub type Metadata = std::collections::BTreeMap<String, serde_json::Value>;
