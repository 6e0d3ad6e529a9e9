//! The schemas of path and query parameters for the OpenAPI document. Each route names its own.

use fernery_core::job::stats::StatsRange;
use fernery_core::journal::Act;
use fernery_core::pipeline::possible::SeenStatus;
use fernery_core::{JobStatus, limits};
use serde_json::{Value, json};

/// Writes the schema of one parameter.
pub type Accepts = fn() -> Value;

/// A parameter of a query: its name, what it means, and what it may be.
pub type Parameter = (&'static str, &'static str, Accepts);

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

/// The id of an artifact or an azolla.
pub(super) fn artifact_id() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" })
}

pub(super) fn job_id() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

pub(super) fn digest() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

pub(super) fn stream_name() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": limits::STREAM_NAME_CHARS_MAX,
        "pattern": "^[A-Za-z0-9_.:/-]+$"
    })
}

pub(super) fn job_status() -> Value {
    json!({ "type": "string", "enum": JobStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>() })
}

pub(super) fn objective_status() -> Value {
    json!({ "type": "string", "enum": SeenStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>() })
}

pub(super) fn objective_order() -> Value {
    json!({ "type": "string", "enum": ["age", "due", "importance"] })
}

pub(super) fn candidate_status() -> Value {
    json!({ "type": "string", "enum": ["WAITING", "ALL"] })
}

pub(super) fn stats_range() -> Value {
    json!({ "type": "string", "enum": StatsRange::ALL.iter().map(|range| range.as_str()).collect::<Vec<_>>() })
}

pub(super) fn instant() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

pub(super) fn rows() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": limits::PAGE_ROWS_MAX })
}

/// What an entry of the journal tells of.
pub(super) fn act() -> Value {
    json!({ "type": "string", "enum": Act::ALL.iter().map(|act| act.as_str()).collect::<Vec<_>>() })
}

pub(super) fn seals() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": super::calls::journal::LAST_MAX })
}

pub(super) fn place() -> Value {
    json!({ "type": "integer", "minimum": 1 })
}

pub(super) fn bytes() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

pub(super) fn switch() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn wait_ms() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": limits::JOB_WAIT_MAX.as_millis() })
}
