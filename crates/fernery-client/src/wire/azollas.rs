//! Azollas, their blueprints, and the repositories that their tickets may name.

use super::{Difference, schema};
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, ObjectiveId};
use fernery_core::canonical::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// One azolla.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AzollaSummary {
    /// Its id.
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// What it is for.
    pub description: String,
    /// What kind of azolla it is.
    pub category: String,
    /// The digest of the current blueprint.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// Whether a process runs its workers.
    #[serde(default)]
    pub hosted: bool,
    /// When a process last reported that.
    #[serde(default)]
    #[schemars(with = "Option<schema::Instant>")]
    pub hosted_at: Option<Timestamp>,
    /// Whether people write tickets for it.
    #[serde(default)]
    pub takes_tickets: bool,
    /// Whether it makes manifests: pages that say what needs a person.
    #[serde(default)]
    pub makes_manifests: bool,
    /// Whether its tickets must name a repository.
    #[serde(default)]
    pub needs_repository: bool,
}

/// All azollas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AzollaList {
    /// The azollas.
    pub azollas: Vec<AzollaSummary>,
    /// The repositories of this process that tickets may name.
    #[serde(default)]
    pub repos: Vec<RepoView>,
}

/// A repository that tickets may name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepoView {
    /// The `repo_ref` of tickets.
    pub name: String,
    /// The branch that work starts from.
    pub base: String,
    /// Its folder on the server's machine; only operators are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Reads the blueprint files again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReloadRequest {
    /// Only say what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a reload changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadResponse {
    /// Whether it is applied.
    pub applied: bool,
    /// The azollas whose blueprints change; none if the files are as they were.
    pub azollas: Vec<AzollaChange>,
    /// The configuration file, if it has changed since the process started: a reload does not read it, a restart does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_config: Option<String>,
}

/// The change of one azolla.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AzollaChange {
    /// The azolla.
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// The digest of the blueprint in force; `null` if this process did not host it.
    #[schemars(with = "Option<schema::Sha256>")]
    pub before: Option<Digest>,
    /// The digest of the file's blueprint; `null` if no file has it any more.
    #[schemars(with = "Option<schema::Sha256>")]
    pub after: Option<Digest>,
    /// The parts that differ.
    pub difference: Vec<Difference>,
    /// Tickets in TODO or BLOCKED whose approval does not cover the new blueprint: each has to be approved again. Of
    /// the newest 100 of each status.
    #[serde(default)]
    #[schemars(with = "Vec<schema::ArtifactId>")]
    pub voided: Vec<ObjectiveId>,
    /// There are more tickets than were looked at, so there may be more such approvals.
    #[serde(default)]
    pub voided_more: bool,
}

/// One azolla with its blueprint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AzollaDetail {
    /// The azolla.
    #[serde(flatten)]
    pub summary: AzollaSummary,
    /// The current blueprint.
    #[schemars(with = "schema::Fields")]
    pub blueprint: Value,
    /// The last pass of each of its workers in this process.
    #[schemars(with = "Vec<schema::Fields>")]
    pub workers: Vec<Value>,
}

/// A current or former blueprint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlueprintDetail {
    /// The digest of the blueprint.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// The blueprint.
    #[schemars(with = "schema::Object")]
    pub blueprint: Box<RawValue>,
}
