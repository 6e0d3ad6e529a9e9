//! Acts on all jobs that match.

use super::schema;
use fernery_core::artifact::RecordId;
use fernery_core::job::bulk::{BulkState, BulkVerb, Counted};
use fernery_core::{JobStatus, StreamName, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Does something to all jobs that match. Jobs that come, begin to run, or end after it was asked for are never meant; neither are
/// jobs that carry workorders, which belong to their tickets.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRequest {
    /// `cancel`: QUEUED or RUNNING jobs; `retry`: DEAD or CANCELLED ones; `purge`: DEAD ones are deleted.
    #[schemars(with = "schema::BulkVerb")]
    pub verb: BulkVerb,
    /// Jobs that stand so.
    #[schemars(with = "schema::Status")]
    pub status: JobStatus,
    /// Of this stream only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Stream>")]
    pub stream: Option<StreamName>,
    /// DEAD only: with this error code only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// QUEUED: only those that were enqueued before this time; RUNNING: that began to run before it; DEAD and CANCELLED: that ended
    /// before it. Now if absent, and at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub before: Option<Timestamp>,
    /// The id of the act, chosen by the caller: asked for again, it is the same act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub act_id: Option<RecordId>,
    /// Only count.
    #[serde(default)]
    pub dry_run: bool,
}

/// How many jobs an act would reach.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BulkCount {
    /// So many.
    #[schemars(with = "schema::Number")]
    pub matching: u64,
    /// What that number says: `EXACT`; `AT_LEAST` where the count stopped there; `AT_MOST` where jobs that came after `before`,
    /// or running ones that were asked to end already, may be among them.
    #[schemars(with = "schema::Counted")]
    pub counted: Counted,
    /// Send this with the act, and it means no job that came, began to run, or ended later. An act on QUEUED jobs also takes jobs
    /// that came before this time, were running when they were counted, and come back to the queue while it goes on.
    #[schemars(with = "schema::Instant")]
    pub before: Timestamp,
}

/// An act on all jobs that match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkView {
    /// Its id.
    #[schemars(with = "schema::ArtifactId")]
    pub act_id: RecordId,
    /// What it does.
    #[schemars(with = "schema::BulkVerb")]
    pub verb: BulkVerb,
    /// To jobs that stand so.
    #[schemars(with = "schema::Status")]
    pub status: JobStatus,
    /// Of this stream only.
    #[schemars(with = "Option<schema::Stream>")]
    pub stream: Option<StreamName>,
    /// With this error code only.
    pub code: Option<String>,
    /// QUEUED: that came before this time; RUNNING: that began to run before it; DEAD and CANCELLED: that ended before it.
    #[schemars(with = "schema::Instant")]
    pub before: Timestamp,
    /// Who asked for it.
    pub actor: String,
    /// `RUNNING`, `DONE` or `STOPPED`.
    #[schemars(with = "schema::BulkState")]
    pub state: BulkState,
    /// How many jobs were counted when it was asked for.
    #[schemars(with = "schema::Number")]
    pub expected: u64,
    /// What that number says.
    #[schemars(with = "schema::Counted")]
    pub counted: Counted,
    /// To how many jobs it was done.
    #[schemars(with = "schema::Number")]
    pub done: u64,
    /// `retry`: how many stay as they are, because another unfinished job has their unique key.
    #[schemars(with = "schema::Number")]
    pub refused: u64,
    /// When it was asked for.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// When its last step was.
    #[schemars(with = "schema::Instant")]
    pub updated_at: Timestamp,
    /// When it ended.
    #[schemars(with = "Option<schema::Instant>")]
    pub ended_at: Option<Timestamp>,
    /// Why its last step failed, until one succeeds: it is tried again by itself.
    pub trouble: Option<String>,
}

/// One page of bulk acts, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BulkPage {
    /// The acts.
    pub acts: Vec<BulkView>,
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
}
