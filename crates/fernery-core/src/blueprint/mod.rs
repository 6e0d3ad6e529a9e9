//! What an azolla is made from: one TOML file for people, read here into a value or into a list of everything that is
//! wrong with it.
//!
//! The default is `azollas/mec.toml`, compiled in; its comments are the documentation of the form. A blueprint is stored
//! with each workorder ([`Blueprint::to_json`]), so that a run is judged by what was in force when it began. Of it,
//! [`Blueprint::decisive`] is what an approval covers.

mod agents;
mod form;
pub(crate) mod millis;
mod programs;
mod standing;
#[cfg(test)]
mod tests;

use crate::artifact::{AzollaId, DiazotrophType, ObjectiveId, ObjectiveType, words};
use crate::canonical::{self, Digest};
use crate::inbox::{Schedule, Zone};
use crate::names::{RESERVED_STREAM_PREFIX, StreamName};
use crate::patch::policy::PatchPolicy;
use crate::profile::Profile;
pub use crate::toml_file::Flaw;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The commented file that `mec` is made from.
pub const MEC_TOML: &str = include_str!("../../../../azollas/mec.toml");
/// The commented file that `task_management` is made from.
pub const TASK_MANAGEMENT_TOML: &str = include_str!("../../../../azollas/task_management.toml");
/// What is compiled in, by name.
pub const BUILTIN: &[(&str, &str)] = &[("mec", MEC_TOML), ("task_management", TASK_MANAGEMENT_TOML)];

/// Who makes candidates of captures.
pub const TRIAGE: &str = "TRIAGE_DIAZOTROPH";
/// Who makes an order of what needs a person.
pub const MANIFEST_BUILDER: &str = "MANIFEST_BUILDER_DIAZOTROPH";

words!(
    /// The loops of the control plane that an azolla may have.
    WorkerKind {
        /// Emits an event for what is ready.
        Readiness = "readiness",
        /// Makes workorders of events.
        Scheduler = "scheduler",
        /// Carries workorders out.
        Runner = "runner",
        /// Judges what came out.
        Gate = "gate",
        /// Emits an event for captures that wait.
        CaptureReadiness = "capture_readiness",
        /// Makes workorders of requests for a session manifest.
        ManifestScheduler = "manifest_scheduler",
        /// Looks for what is overdue.
        DeadlineMonitor = "deadline_monitor",
    }
);

/// One loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// How often it looks when nothing wakes it.
    #[serde(rename = "interval_ms", with = "millis")]
    pub interval: Duration,
}

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
    }
);

impl ExecutorKind {
    /// Whether this process carries its workorders out.
    pub const fn runs_here(self) -> bool {
        !matches!(self, Self::Remote)
    }

    /// Whether a program is started for it.
    pub const fn starts_program(self) -> bool {
        matches!(self, Self::Command | Self::Agent)
    }
}

words!(
    /// What an executor is contained by.
    Sandbox {
        /// Namespaces, by way of bubblewrap.
        Bubblewrap = "bubblewrap",
        /// Rules of the kernel on files and sockets.
        Landlock = "landlock",
        /// Nothing: the blueprint says so aloud.
        Unconfined = "none",
    }
);

/// Who carries out the workorders of one diazotroph type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executor {
    /// How it is reached.
    pub kind: ExecutorKind,
    /// The program and its arguments; empty unless it is a command: an agent's are in its profile.
    pub argv: Vec<String>,
    /// The names of the environment that it may see; empty unless it is a command.
    pub env: Vec<String>,
    /// What contains it; if it does not say, the best that the machine has.
    pub sandbox: Option<Sandbox>,
    /// Whether it may reach the network where it is contained.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// How many at once in this process.
    pub parallel: u32,
    /// Of an agent: its profile as it was when the blueprint was read, with what the blueprint adds to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Profile>,
    /// Of a model: where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
}

/// A model behind an OpenAI-compatible endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Endpoint {
    /// What `/chat/completions` is appended to.
    pub base_url: String,
    /// Its name there.
    pub model: String,
    /// The environment variable that has the key; `None`: none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// Of one answer at most.
    pub max_tokens: u32,
}

/// What one objective may use up over all its workorders. `None` is no bound.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Workorders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// Wall time.
    #[serde(
        default,
        rename = "wall_time_ms",
        with = "millis::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub wall_time: Option<Duration>,
    /// Tokens, where they are reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Millionths of a dollar, where the cost is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd_micros: Option<u64>,
}

/// One judge of what came out.
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
    /// The content is a patch that touches nothing that it may not.
    Patch(PatchPolicy),
    /// The content is a patch that applies to the commit that its work started from, and makes of it what it says.
    Applies,
    /// The content answers what its snapshot asks: about these captures, or these items, and nothing else.
    Answers,
    /// A command says so.
    Command {
        /// What people call it.
        name: String,
        /// The program and its arguments.
        argv: Vec<String>,
        /// How long it may take.
        #[serde(rename = "timeout_ms", with = "millis")]
        timeout: Duration,
        /// The names of the environment that it may see.
        env: Vec<String>,
        /// What it is contained by; it may run what an executor wrote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<Sandbox>,
    },
}

impl Gate {
    /// What it is called in a verdict. No two gates of a blueprint have the same.
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

/// What happens by itself after a run that did not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRetry {
    /// How often an objective that failed a gate goes back to TODO.
    pub gate_failures: u32,
    /// How often one workorder is tried in all when its executor is lost.
    pub infrastructure: u32,
}

/// What bounds an azolla as a whole. 0 is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Workorders under way at once.
    pub concurrency: u32,
    /// Objectives that wait for confirmation before no new work is started.
    pub review_limit: u32,
}

words!(
    /// What one azolla may read of another.
    ReadableArtifact {
        /// Where its objectives stopped.
        PauseState = "pause_state",
        /// Its objectives.
        Objective = "objective",
        /// What is in their way.
        BlockerRef = "blocker_ref",
    }
);

/// What an azolla may read of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// Of every azolla there is.
    pub every_azolla: bool,
    /// Of these.
    pub azollas: Vec<AzollaId>,
    /// Which artifacts.
    pub artifact_types: Vec<ReadableArtifact>,
}

impl Reads {
    /// Whether it declares this read.
    pub fn allows(&self, target: &AzollaId, artifact_type: ReadableArtifact) -> bool {
        (self.every_azolla || self.azollas.contains(target)) && self.artifact_types.contains(&artifact_type)
    }
}

/// The objective of an azolla that has one duty and no tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Its id.
    pub objective_id: ObjectiveId,
    /// The duty, in a line.
    pub title: String,
    /// How to tell that it is kept.
    pub acceptance_criteria: String,
}

/// Track A: captures become candidates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriageTrack {
    /// Captures in one workorder at most.
    pub batch: u32,
}

/// Track B: what needs a person becomes a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestTrack {
    /// When one is made by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
}

words!(
    /// What the outside may be told of.
    NoticeOf {
        /// Something stopped.
        PauseState = "pause_state",
        /// There is a new manifest.
        SessionManifest = "session_manifest",
    }
);

/// Whom an azolla tells of what is new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notices {
    /// Where it is posted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The environment variable that has the secret which signs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// A program that reads it; empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Of what.
    pub on: Vec<NoticeOf>,
}

/// What an azolla is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    /// Whose.
    pub azolla_id: AzollaId,
    /// What it is for, in words.
    pub description: String,
    /// What sort of azolla it is, like `delivery`.
    pub category: String,
    /// What its objectives are.
    pub objective_type: ObjectiveType,
    /// Which kind of executor its workorders are for; `executors` has it.
    pub diazotroph_type: DiazotrophType,
    /// What the name of a branch starts with; `None` if it makes no branches.
    pub branch_prefix: Option<String>,
    /// The loops that run for it.
    pub workers: BTreeMap<WorkerKind, Worker>,
    /// Who carries its workorders out.
    pub executors: BTreeMap<DiazotrophType, Executor>,
    /// Wall time of one workorder over all its tries.
    #[serde(rename = "budget_ms", with = "millis")]
    pub budget: Duration,
    /// What one objective may use up.
    pub envelope: Envelope,
    /// The judges, in order; at least one.
    pub gates: Vec<Gate>,
    /// What happens by itself after a run that did not end well.
    pub retry: GateRetry,
    /// What bounds it as a whole.
    pub limits: Limits,
    /// How long an objective of urgency 0 to 4 has; `None` is for ever.
    #[serde(rename = "urgency_ms", with = "millis::options")]
    pub urgency: [Option<Duration>; 5],
    /// What it may read of other azollas.
    pub reads: Reads,
    /// Where its days begin.
    #[serde(default, rename = "time_zone", skip_serializing_if = "is_utc")]
    pub zone: Zone,
    /// Its one objective, if it has no tickets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// Track A, if it has an inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triage: Option<TriageTrack>,
    /// Track B, if it orients its operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestTrack>,
    /// Whom it tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notices: Option<Notices>,
}

/// Said of most, and so not written.
fn is_utc(zone: &Zone) -> bool {
    *zone == Zone::UTC
}

/// The files beside a blueprint's own, asked for by name. What they do not answer may still be built in.
#[derive(Clone, Copy)]
pub struct Neighbours<'a> {
    /// The text of a blueprint that another extends; `mec` is built in.
    pub blueprint: &'a dyn Fn(&str) -> Option<String>,
    /// The text of an agent's profile, or why the file that is there has none; those of [`Profile::names`] are built in.
    pub profile: &'a dyn Fn(&str) -> Result<Option<String>, String>,
}

impl Blueprint {
    /// Reads a file. `others` answers the text of a blueprint that this one or its parents extend; `mec` is known even if
    /// it does not answer. Profiles of agents are the built-in ones.
    pub fn parse(text: &str, others: &dyn Fn(&str) -> Option<String>) -> Result<Self, Vec<Flaw>> {
        Self::parse_beside(text, &Neighbours { blueprint: others, profile: &|_| Ok(None) })
    }

    /// Reads a file among its neighbours.
    pub fn parse_beside(text: &str, beside: &Neighbours<'_>) -> Result<Self, Vec<Flaw>> {
        form::read(text, beside)
    }

    /// The default.
    pub fn mec() -> Self {
        Self::parse(MEC_TOML, &|_| None).expect("the blueprint that is compiled in has no flaw")
    }

    /// The inbox and the morning page.
    pub fn task_management() -> Self {
        Self::parse(TASK_MANAGEMENT_TOML, &|_| None).expect("the blueprint that is compiled in has no flaw")
    }

    /// The part that decides what runs and how it is judged: what an approval covers.
    ///
    /// What is not said in a blueprint is not said here either, so that a key that a later version adds changes no digest.
    pub fn decisive(&self) -> Value {
        let executors: BTreeMap<_, _> =
            self.executors.iter().map(|(of, executor)| (of, executor.decisive())).collect();
        json!({
            "diazotroph_type": self.diazotroph_type,
            "branch_prefix": self.branch_prefix,
            "executors": executors,
            "budget_ms": millis::of(self.budget),
            "envelope": self.envelope,
            "gates": self.gates,
            "retry": self.retry,
        })
    }

    /// The digest of [`Self::decisive`].
    pub fn digest(&self) -> Digest {
        canonical::digest_of(&self.decisive())
    }

    /// To be stored; [`Self::from_json`] reads it back as it was.
    pub fn to_json(&self) -> String {
        canonical::text_of(self)
    }

    /// Reads what [`Self::to_json`] wrote. The rules of the file were checked before it was written.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Where a patch of this objective goes.
    pub fn branch_name(&self, objective_id: &ObjectiveId) -> Option<String> {
        self.branch_prefix.as_ref().map(|prefix| format!("{prefix}{objective_id}"))
    }

    /// Which kinds of workorders it makes.
    pub fn workorders_for(&self) -> Vec<DiazotrophType> {
        if self.standing.is_none() {
            return vec![self.diazotroph_type.clone()];
        }
        let triage = self.triage.as_ref().map(|_| TRIAGE);
        let manifest = self.manifest.as_ref().map(|_| MANIFEST_BUILDER);
        [triage, manifest].into_iter().flatten().map(DiazotrophType::stored).collect()
    }

    /// Who carries out its workorders of this kind.
    pub fn executor_of(&self, kind: &DiazotrophType) -> Option<&Executor> {
        self.executors.get(kind)
    }

    /// Who carries out its workorders, by their kinds.
    pub fn used_executors(&self) -> Vec<(DiazotrophType, &Executor)> {
        let kinds = self.workorders_for().into_iter();
        kinds.filter_map(|kind| self.executors.get(&kind).map(|executor| (kind, executor))).collect()
    }

    /// The executor of its tickets' workorders.
    pub fn executor(&self) -> Option<&Executor> {
        self.executors.get(&self.diazotroph_type)
    }

    /// Whether its workorders start from a commit of a repository that their objective names.
    pub fn needs_repository(&self) -> bool {
        self.gates.contains(&Gate::Applies) || self.executor().is_some_and(|e| e.kind == ExecutorKind::Agent)
    }

    /// What is missing in its gates, if an agent carries its workorders out: what an agent leaves is judged as the patch that
    /// it is, before any command runs what it wrote.
    pub fn unguarded(&self) -> Option<&'static str> {
        self.executor().filter(|executor| executor.kind == ExecutorKind::Agent)?;
        let place = |is_it: fn(&Gate) -> bool| self.gates.iter().position(is_it);
        let (Some(patch), Some(applies)) =
            (place(|gate| matches!(gate, Gate::Patch(_))), place(|gate| *gate == Gate::Applies))
        else {
            return Some("what an agent leaves is a patch: add the gates `patch` and `applies`");
        };
        let command = place(|gate| matches!(gate, Gate::Command { .. })).unwrap_or(usize::MAX);
        (patch > applies || applies > command)
            .then_some("commands judge what a patch makes: first the gate `patch`, then `applies`, then they")
    }

    /// Where executors of its kind claim its workorders: of those that work on a repository, only who has that one does.
    pub fn stream(&self, repo_ref: Option<&str>) -> StreamName {
        self.stream_of(&self.diazotroph_type, repo_ref)
    }

    /// Where those of this kind are claimed.
    pub fn stream_of(&self, of: &DiazotrophType, repo_ref: Option<&str>) -> StreamName {
        match repo_ref.filter(|_| self.needs_repository()) {
            Some(repo) => StreamName::stored(&format!("{RESERVED_STREAM_PREFIX}{of}:{repo}")),
            None => StreamName::stored(&format!("{RESERVED_STREAM_PREFIX}{of}")),
        }
    }

    /// How often a loop looks by itself; `None` if it does not run for this azolla.
    pub fn interval(&self, worker: WorkerKind) -> Option<Duration> {
        self.workers.get(&worker).map(|worker| worker.interval)
    }
}
