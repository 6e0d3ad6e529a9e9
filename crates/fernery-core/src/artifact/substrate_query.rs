//! A question of one azolla to another, and its answer.

use super::{AzollaId, Metadata, QueryId, ResponseId, words};
use crate::Timestamp;
use crate::blueprint::ReadableArtifact;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubstrateQuery {
    /// Its id.
    pub query_id: QueryId,
    /// Who asks.
    pub source_azolla_id: AzollaId,
    /// Who is asked.
    pub target_azolla_id: AzollaId,
    /// What is asked for.
    pub artifact_type: ReadableArtifact,
    /// Which of them.
    pub filter: Metadata,
    /// When it was asked.
    pub created_at: Timestamp,
}

words!(
    /// Whether a question was answered.
    QueryStatus {
        /// It was.
        Ok = "OK",
        /// The membrane does not let it through.
        Denied = "DENIED",
        /// Nobody was there to answer.
        TargetUnavailable = "TARGET_UNAVAILABLE",
    }
);

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubstrateQueryResponse {
    /// Its id.
    pub response_id: ResponseId,
    /// The question.
    pub query_id: QueryId,
    /// Who was asked.
    pub target_azolla_id: AzollaId,
    /// Whether it was answered.
    pub status: QueryStatus,
    /// The artifacts that were found.
    pub results: Vec<Value>,
    /// When it was answered.
    pub created_at: Timestamp,
}
