//! Schemas of the names and instants that the core types check by themselves.

use fernery_core::artifact::BlockerKind;
use fernery_core::blueprint::MergeAs;
use fernery_core::job::bulk;
use fernery_core::job::stats::StatsRange;
use fernery_core::pipeline::landing::{Fit, LandingState};
use fernery_core::{AttemptOutcome, JobStatus, inbox, limits};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

macro_rules! text_schema {
    ($($name:ident = $schema:tt),+ $(,)?) => {
        $(
            pub(crate) struct $name;

            impl JsonSchema for $name {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!($schema)
                }
            }
        )+
    };
}

text_schema!(
    Id = { "type": "string", "format": "uuid" },
    Instant = { "type": "string", "format": "date-time" },
    Stream = {
        "type": "string",
        "minLength": 1,
        "maxLength": limits::STREAM_NAME_CHARS_MAX,
        "pattern": "^[A-Za-z0-9_.:/-]+$"
    },
    Streams = {
        "type": "array",
        "minItems": 1,
        "maxItems": limits::CLAIM_STREAMS_MAX,
        "items": {
            "type": "string",
            "minLength": 1,
            "maxLength": limits::STREAM_NAME_CHARS_MAX,
            "pattern": "^[A-Za-z0-9_.:/-]+$"
        }
    },
    Worker = { "type": "string", "minLength": 1, "maxLength": limits::WORKER_ID_CHARS_MAX },
    BulkVerb = { "type": "string", "enum": bulk::BulkVerb::ALL },
    BulkState = { "type": "string", "enum": bulk::BulkState::ALL },
    Counted = { "type": "string", "enum": bulk::Counted::ALL },
    Status = { "type": "string", "enum": JobStatus::ALL },
    DiffSide = { "type": "string", "enum": fernery_core::review::Side::ALL },
    Outcome = { "type": "string", "enum": AttemptOutcome::ALL },
    Anything = { "description": "Any JSON, kept to the byte." },
    Object = { "type": "object", "description": "Any JSON object, kept to the byte." },
    Progress = {
        "type": "object",
        "description": "How far an attempt is. Within one attempt it never goes back.",
        "required": ["percent"],
        "additionalProperties": false,
        "properties": {
            "percent": { "type": "integer", "minimum": 0, "maximum": 100 },
            "note": { "type": ["string", "null"], "maxLength": limits::PROGRESS_NOTE_CHARS_MAX }
        }
    },
    Fields = { "type": "object", "description": "A JSON object." },
    ArtifactId = { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" },
    Sha256 = { "type": "string", "pattern": "^[0-9a-f]{64}$" },
    Commit = { "type": "string", "pattern": "^[0-9a-f]{40}$" },
    Landing = { "type": "string", "enum": LandingState::ALL },
    Fitting = { "type": "string", "enum": Fit::ALL },
    Merge = { "type": "string", "enum": MergeAs::ALL },
    Blocker = { "type": "string", "enum": BlockerKind::ALL },
    CandidateStatus = { "type": "string", "enum": inbox::CandidateStatus::ALL },
    Range = { "type": "string", "enum": StatsRange::ALL },
    Number = { "type": "integer", "minimum": 0 },
);
