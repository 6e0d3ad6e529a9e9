//! Bringing an exported folder in.

use super::schema;
use fernery_core::artifact::{ObjectiveId, WorkorderId};
use fernery_core::canonical::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A complete exported folder.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// The folder's digest as `fernery export` printed it; the import is refused if the digest differs.
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
    /// Its content, byte by byte.
    pub content: String,
}

/// What was imported.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImportResponse {
    /// Whether this folder was imported before; then nothing was written now.
    pub before: bool,
    /// The folder's digest.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// The number of artifacts of each type.
    pub counts: BTreeMap<String, u64>,
    /// Objectives that were TODO or IN_PROGRESS and are NEW here: no approval of this instance covers them.
    #[schemars(with = "Vec<schema::ArtifactId>")]
    pub as_new: Vec<ObjectiveId>,
    /// Workorders that were in progress and are ended by the import.
    #[schemars(with = "Vec<schema::ArtifactId>")]
    pub ended: Vec<WorkorderId>,
    /// Captures that were waiting for triage. They are held until `POST /v1/azollas/{id}/captures/release`.
    #[serde(default)]
    pub held: u64,
    /// Lines that come again. They are held until `POST /v1/azollas/{id}/captures/release`.
    #[serde(default)]
    pub held_recurrences: u64,
}

/// Some files of an export.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExportPage {
    /// The files, as an exported folder has them.
    pub files: Vec<ImportFile>,
    /// For each file of an attempt of this instance: the `claim_version` that its workorder got when the attempt ended. A
    /// workorder with a lower one was read before that.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub claim_versions: BTreeMap<String, i64>,
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
}
