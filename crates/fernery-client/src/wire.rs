//! Every request and response of the HTTP interface, as both sides write and read them.
//!
//! The server is authoritative: its OpenAPI document is generated from these types. Requests to `/v1` refuse fields they
//! do not know; requests to `/internal/worker` ignore them. Responses may grow, so readers ignore what they do not know.
//!
//! Payloads, results and errors are [`RawValue`](serde_json::value::RawValue): they pass through to the byte, so that no
//! number loses a digit on its way.

mod acts;
mod azollas;
mod batch;
mod bulk;
mod contract;
mod import;
mod inbox;
mod jobs;
mod landing;
mod objectives;
mod operator;
mod processes;
mod review;
mod schema;
mod sign_ins;

pub use acts::*;
pub use azollas::*;
pub use batch::*;
pub use bulk::*;
pub use contract::*;
pub use import::*;
pub use inbox::*;
pub use jobs::*;
pub use landing::*;
pub use objectives::*;
pub use operator::*;
pub use processes::*;
pub use review::*;
pub use sign_ins::*;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error as RFC 9457 has it (`application/problem+json`).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Where the code is explained.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code in words; the same for every problem of this code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// A stable word for programs.
    pub code: String,
    /// What is wrong with this very request.
    pub detail: String,
    /// Which fields are wrong, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// Always `false`; on the worker endpoints only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// Whether the attempt named is closed, so that its message may be forgotten; on the worker endpoints only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack: Option<bool>,
    /// `changed`: the digest of what is there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// `changed`: what is there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<serde_json::Value>,
    /// `changed`: what changed since it was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub difference: Vec<Difference>,
    /// `wrong_status`: where the objective stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective_status: Option<String>,
    /// `wrong_status`: what can be done to it there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub possible: Vec<String>,
}

/// One thing that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// What: a JSON pointer into what was shown.
    pub path: String,
    /// As it was when it was read.
    pub before: serde_json::Value,
    /// As it is.
    pub now: serde_json::Value,
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldProblem {
    /// Where it is: a JSON pointer into the body, or `?name` for a query parameter.
    pub pointer: String,
    /// What is wrong with it.
    pub detail: String,
}

/// Something that a server that serves should be looked at for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HealthFinding {
    /// What was looked at: `clock`, `loop`, `transport`.
    pub check: String,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    pub remedy: String,
}

/// Whether the process is up.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`, or `degraded`: it works, and `findings` says what does not.
    pub status: String,
    /// The version of the server.
    pub version: String,
    /// `sqlite` or `postgres`.
    pub backend: String,
    /// Why it is degraded; `/readyz` alone says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<HealthFinding>,
}
