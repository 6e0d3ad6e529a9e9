//! A question of one azolla to another, and its answer.

use super::{AzollaId, Metadata, QueryId, ResponseId};
use crate::Timestamp;
use crate::blueprint::ReadableArtifact;
use crate::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubstrateQuery {
    pub query_id: QueryId,
    pub source_azolla_id: AzollaId,
    pub target_azolla_id: AzollaId,
    pub artifact_type: ReadableArtifact,
    /// Which artifacts of that type.
    pub filter: Metadata,
    pub created_at: Timestamp,
}

words!(
    /// Whether a question was answered.
    QueryStatus {
        Ok = "OK",
        /// The membrane does not let it through.
        Denied = "DENIED",
        /// Nobody was there to answer.
        TargetUnavailable = "TARGET_UNAVAILABLE",
    }
);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubstrateQueryResponse {
    pub response_id: ResponseId,
    pub query_id: QueryId,
    pub target_azolla_id: AzollaId,
    pub status: QueryStatus,
    /// The artifacts that were found.
    pub results: Vec<Value>,
    pub created_at: Timestamp,
}
