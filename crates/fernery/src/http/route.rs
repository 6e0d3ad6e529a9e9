//! What a row of the table says of a call: who may make it, what it takes and what it answers.

use super::parameters::{Accepts, Parameter};
use super::problem::Code;
use super::wire::answer::{Call, Pending};
use super::wire::bare::Holds;
use fernery_client::wire::Role;
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Writes a type's schema.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Everybody, without a token.
    Open,
    /// Every token but a visitor's, which may only send queries.
    Anybody,
    /// Workers and operators; everybody on loopback with `--worker-auth none`.
    Workers,
    /// Everybody where only this machine can call; otherwise viewers and operators.
    Metrics,
    /// These roles.
    Roles(&'static [Role]),
}

impl Who {
    /// Whether a token of this role may.
    pub fn allows(self, role: Role) -> bool {
        match self {
            Self::Open => true,
            Self::Anybody => role != Role::Visitor,
            Self::Workers => matches!(role, Role::Operator | Role::Worker),
            Self::Metrics => matches!(role, Role::Operator | Role::Viewer),
            Self::Roles(roles) => roles.contains(&role),
        }
    }
}

/// Whether a route has a body.
#[derive(Clone, Copy, Debug)]
pub enum BodyRule {
    /// It has none; a body that is sent is not read.
    None,
    /// JSON, or nothing at all.
    Optional(Shape),
    /// JSON.
    Json(Shape),
}

/// One row of the table.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path; `{…}` stands for one segment.
    pub path: &'static str,
    /// Who may call it.
    pub who: Who,
    /// One line for people.
    pub summary: &'static str,
    /// The schema of the variable segment of its path.
    pub param: Accepts,
    /// The query parameters it knows.
    pub query: &'static [Parameter],
    /// The body.
    pub body: BodyRule,
    /// The largest body in bytes.
    pub body_max: usize,
    /// Its answers, refusals aside.
    pub answers: &'static [(u16, Shape)],
    /// Which part of its answer is an artifact.
    pub holds: Holds,
    /// Its refusals, beyond those of every route.
    pub errors: &'static [Code],
    /// Whether it answers under every Host name.
    pub any_host: bool,
    /// Whether the holder of a lease reports here: such calls have no rate limit.
    pub reports: bool,
    /// The call itself.
    pub run: fn(Call) -> Pending,
}

impl Route {
    /// The segments before and after the variable one.
    pub(super) fn around(&self) -> Option<(&'static str, &'static str)> {
        let (before, rest) = self.path.split_once('{')?;
        Some((before, rest.split_once('}')?.1))
    }
}

pub(super) fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

pub(super) fn text(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "string" })
}

pub(super) fn object(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object" })
}

/// The artifact `substrate_query`.
pub(super) fn question(_: &mut SchemaGenerator) -> Schema {
    const ID: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": false,
        "required": ["query_id", "source_azolla_id", "target_azolla_id", "artifact_type", "filter", "created_at"],
        "properties": {
            "query_id": { "type": "string", "pattern": ID },
            "source_azolla_id": { "type": "string", "pattern": ID },
            "target_azolla_id": { "type": "string", "pattern": ID, "description": "The same azolla as in the path." },
            "artifact_type": { "type": "string", "enum": ["pause_state", "objective", "blocker_ref"] },
            "filter": { "type": "object" },
            "created_at": { "type": "string", "format": "date-time" }
        }
    })
}

/// A body that has no fields.
pub(super) fn nothing(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object", "additionalProperties": false })
}

pub(super) fn one_or_many<T: JsonSchema, const MOST: usize>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    schemars::json_schema!({
        "oneOf": [one, {
            "type": "array", "minItems": 1, "maxItems": MOST, "items": one
        }]
    })
}

pub(super) fn either<A: JsonSchema, B: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let (a, b) = (generator.subschema_for::<A>(), generator.subschema_for::<B>());
    schemars::json_schema!({ "anyOf": [a, b] })
}
