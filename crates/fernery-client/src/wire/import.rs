//! Bringing an exported folder in.

use super::schema;
use fernery_core::artifact::{ObjectiveId, WorkorderId};
use fernery_core::canonical::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An exported folder, whole.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// The folder's digest, as the export told it; refused if it is another one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Sha256>")]
    pub digest: Option<Digest>,
    /// Every file of the folder.
    pub files: Vec<ImportFile>,
}

/// One file of an exported folder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportFile {
    /// Its path in the folder, like `objectives/T-1.json`.
    pub path: String,
    /// What it says, to the byte.
    pub content: String,
}

/// What came in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImportResponse {
    /// Whether this very folder came in before; then nothing was written now.
    pub before: bool,
    /// Of the folder.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// How many of what.
    pub counts: BTreeMap<String, u64>,
    /// Objectives that were TODO or IN_PROGRESS and are NEW here: no approval of this instance covers them.
    #[schemars(with = "Vec<schema::ArtifactId>")]
    pub as_new: Vec<ObjectiveId>,
    /// Workorders that were under way and have ended here.
    #[schemars(with = "Vec<schema::ArtifactId>")]
    pub ended: Vec<WorkorderId>,
}
