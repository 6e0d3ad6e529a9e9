//! Who carries workorders out, and how much a program may reach while it does.

use crate::profile::Profile;
use crate::words;
use serde::{Deserialize, Serialize};

words!(
    /// How an executor is reached.
    ExecutorKind {
        /// A program that this process starts.
        Command = "command",
        /// A worker elsewhere that claims over HTTP.
        Remote = "remote",
        /// A coding agent by its profile.
        Agent = "agent",
        /// Code of this process.
        Builtin = "builtin",
        /// A model behind an endpoint.
        Llm = "llm",
        /// A person; no program claims its workorders.
        Person = "person",
    }
);

impl ExecutorKind {
    /// Whether this process carries its workorders out.
    pub const fn runs_here(self) -> bool {
        !matches!(self, Self::Remote | Self::Person)
    }

    /// Whether a program is started for it.
    pub const fn starts_program(self) -> bool {
        matches!(self, Self::Command | Self::Agent)
    }
}

words!(
    /// The sandbox of an executor.
    Sandbox {
        /// Namespaces, by way of bubblewrap.
        Bubblewrap = "bubblewrap",
        /// Landlock rules on files and sockets; only the run's own folders can be written or changed.
        Landlock = "landlock",
        /// The same rules on a kernel that offers nothing more. This does not contain: modes, owners and times of files
        /// of the server's user can still be changed, so the blueprint has to name it.
        LandlockPartial = "landlock-partial",
        /// No sandbox: the blueprint has to name it.
        Unconfined = "none",
    }
);

impl Sandbox {
    /// Whether a program in it can change nothing outside.
    pub const fn contains(self) -> bool {
        matches!(self, Self::Bubblewrap | Self::Landlock)
    }
}

/// The executor of one diazotroph type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executor {
    pub kind: ExecutorKind,
    /// The program and its arguments; empty unless it is a command: an agent's are in its profile.
    pub argv: Vec<String>,
    /// The names of the environment that it may see; empty unless it is a command.
    pub env: Vec<String>,
    /// Its sandbox; `None`: the best that the machine has.
    pub sandbox: Option<Sandbox>,
    /// Whether a contained program may reach the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// How many run at once in this process.
    pub parallel: u32,
    /// For an agent: its profile when the blueprint was read, with the blueprint's additions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Profile>,
    /// For a model: its endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
}

/// A model behind an OpenAI-compatible endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// The URL to which `/chat/completions` is appended.
    pub base_url: String,
    /// The model's name at that endpoint.
    pub model: String,
    /// The environment variable that has the key; `None`: none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// Limit for one answer.
    pub max_tokens: u32,
}
