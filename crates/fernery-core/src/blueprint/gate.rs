//! What an output has to pass, and how often it is tried again.

use super::{Sandbox, millis};
use crate::patch::policy::PatchPolicy;
use crate::patch::protects::Relied;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One check of an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Gate {
    /// The output has the form of an output bundle.
    Schema,
    /// The executor says that it has done what was asked.
    Outcome,
    /// The output is not too large.
    Size {
        /// Bytes of content at most.
        max_content_bytes: u64,
    },
    /// The content is a patch within this policy.
    Patch(PatchPolicy),
    /// The content is a patch that applies to its base commit and has the effect that it states.
    Applies,
    /// The content answers the question in its snapshot: about these captures or items, and no others.
    Answers,
    /// A command exits with 0.
    Command {
        /// Its name for people.
        name: String,
        /// The program and its arguments.
        argv: Vec<String>,
        /// How long it may take.
        #[serde(rename = "timeout_ms", with = "millis")]
        timeout: Duration,
        /// The names of the environment that it may see.
        env: Vec<String>,
        /// Its sandbox; it may run what an executor wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<Sandbox>,
        /// The files of the repository that it relies on; `None`: those of
        /// [`by_default`](crate::patch::protects::by_default).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        protects: Option<Vec<String>>,
    },
}

impl Gate {
    /// What its command relies on; `None`: it runs none.
    pub fn relied(&self) -> Option<Relied<'_>> {
        match self {
            Self::Command { argv, protects, .. } => Some(Relied { argv, protects: protects.as_deref() }),
            _ => None,
        }
    }

    /// Its name in a verdict, unique in a blueprint.
    pub fn name(&self) -> &str {
        match self {
            Self::Schema => "schema",
            Self::Outcome => "outcome",
            Self::Size { .. } => "size",
            Self::Patch(_) => "patch",
            Self::Applies => "applies",
            Self::Answers => "answers",
            Self::Command { name, .. } => name,
        }
    }
}

/// The automatic retries after a failed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRetry {
    /// How often an objective that failed a gate goes back to TODO.
    pub gate_failures: u32,
    /// How often a workorder is tried in all if its executor is lost.
    pub infrastructure: u32,
}
