//! Blueprints: an azolla is made from one TOML file, which is read here into a value or into a list of all its
//! mistakes.
//!
//! The default is `azollas/mec.toml`, compiled in; its comments document the format. Each workorder stores its
//! blueprint ([`Blueprint::to_json`]), so that a run is judged by the rules that held when it began. An approval covers
//! the part in [`Blueprint::decisive`].

mod agents;
mod executor;
mod form;
mod gate;
mod land;
pub(crate) mod millis;
mod patches;
mod programs;
mod prompts;
mod standing;
#[cfg(test)]
mod tests;

use crate::artifact::{AzollaId, DiazotrophType, ObjectiveId, ObjectiveType};
use crate::calendar::Zone;
use crate::canonical::{self, Digest};
use crate::limits;
use crate::names::{RESERVED_STREAM_PREFIX, StreamName};
pub use crate::toml_file::Flaw;
use crate::words;
pub use executor::{Endpoint, Executor, ExecutorKind, Sandbox};
pub use gate::{Gate, GateRetry};
pub use land::{Land, LandOn, MergeAs};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
pub use standing::{ManifestTrack, NoticeOf, Notices, Standing, TriageTrack};
use std::collections::BTreeMap;
use std::time::Duration;

/// The commented file that `mec` is made from.
pub const MEC_TOML: &str = include_str!("../../../../azollas/mec.toml");
/// The commented file that `task_management` is made from.
pub const TASK_MANAGEMENT_TOML: &str = include_str!("../../../../azollas/task_management.toml");
/// The commented file that `tasks` is made from.
pub const TASKS_TOML: &str = include_str!("../../../../azollas/tasks.toml");
/// The built-in blueprints, by name.
pub const BUILTIN: &[(&str, &str)] =
    &[("mec", MEC_TOML), ("task_management", TASK_MANAGEMENT_TOML), ("tasks", TASKS_TOML)];

/// Makes patches for tickets.
pub const PATCH: &str = "PATCH_DIAZOTROPH";
/// Makes candidates from captures.
pub const TRIAGE: &str = "TRIAGE_DIAZOTROPH";
/// Orders what needs a person.
pub const MANIFEST_BUILDER: &str = "MANIFEST_BUILDER_DIAZOTROPH";

words!(
    /// What an azolla is for.
    Category {
        /// It carries work out.
        Execution = "EXECUTION",
        /// It keeps what people would otherwise have to remember.
        MemorySupport = "MEMORY_SUPPORT",
    }
);

impl Category {
    /// The words of earlier versions of the built-in files.
    fn of_earlier_file(word: &str) -> Option<Self> {
        match word {
            "delivery" => Some(Self::Execution),
            "continuity" => Some(Self::MemorySupport),
            _ => None,
        }
    }
}

words!(
    /// The loops of the control plane that an azolla may have.
    WorkerKind {
        /// Emits an event for each objective that is ready.
        Readiness = "readiness",
        /// Makes workorders from events.
        Scheduler = "scheduler",
        /// Carries workorders out.
        Runner = "runner",
        /// Judges outputs.
        Gate = "gate",
        /// Emits an event for waiting captures.
        CaptureReadiness = "capture_readiness",
        /// Makes workorders from requests for a session manifest.
        ManifestScheduler = "manifest_scheduler",
        /// Finds overdue objectives.
        DeadlineMonitor = "deadline_monitor",
    }
);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// The time between passes if nothing wakes it.
    #[serde(rename = "interval_ms", with = "millis")]
    pub interval: Duration,
}

/// The limits of one objective over all its workorders. `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    /// Workorders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
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

/// The limits of an azolla as a whole. 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Unfinished workorders at once.
    pub concurrency: u32,
    /// From so many unconfirmed objectives on, no new work is started.
    pub review_limit: u32,
}

words!(
    /// What one azolla may read of another.
    ReadableArtifact {
        /// Its pauses.
        PauseState = "pause_state",
        Objective = "objective",
        /// The blockers of its objectives.
        BlockerRef = "blocker_ref",
    }
);

/// What an azolla may read of others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    pub every_azolla: bool,
    pub azollas: Vec<AzollaId>,
    pub artifact_types: Vec<ReadableArtifact>,
}

impl Reads {
    /// Whether it allows this read.
    pub fn allows(&self, target: &AzollaId, artifact_type: ReadableArtifact) -> bool {
        (self.every_azolla || self.azollas.contains(target)) && self.artifact_types.contains(&artifact_type)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blueprint {
    pub azolla_id: AzollaId,
    /// What it is for, in words.
    pub description: String,
    /// Its category, like `EXECUTION`.
    pub category: String,
    pub objective_type: ObjectiveType,
    /// Which kind of executor its workorders are for; `executors` has it.
    pub diazotroph_type: DiazotrophType,
    /// What the name of a branch starts with; `None` if it makes no branches.
    pub branch_prefix: Option<String>,
    /// The loops that run for it.
    pub workers: BTreeMap<WorkerKind, Worker>,
    /// Who carries its workorders out.
    pub executors: BTreeMap<DiazotrophType, Executor>,
    /// The blueprint's own prompts by executor type: see [`template`](crate::pipeline::template).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<DiazotrophType, String>,
    /// Wall time of one workorder over all its tries.
    #[serde(rename = "budget_ms", with = "millis")]
    pub budget: Duration,
    /// What one objective may use up.
    pub envelope: Envelope,
    /// The gates, in order; at least one.
    pub gates: Vec<Gate>,
    /// The automatic retries after a failed run.
    pub retry: GateRetry,
    /// How patches that passed come home, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub land: Option<Land>,
    /// Its limits as a whole.
    pub limits: Limits,
    /// The time limit of an objective of urgency 0 to 4; `None`: no limit.
    #[serde(rename = "urgency_ms", with = "millis::options")]
    pub urgency: [Option<Duration>; 5],
    /// What it may read of other azollas.
    pub reads: Reads,
    #[serde(default, rename = "time_zone", skip_serializing_if = "is_utc")]
    pub zone: Zone,
    /// Its one objective, if it has no tickets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Standing>,
    /// Track A, if it has an inbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triage: Option<TriageTrack>,
    /// Track B, if it makes manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<ManifestTrack>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notices: Option<Notices>,
}

/// The default, which is not stored.
fn is_utc(zone: &Zone) -> bool {
    *zone == Zone::UTC
}

/// Reads the files beside a blueprint by name. If there is no such file, a built-in one may exist.
#[derive(Clone, Copy)]
pub struct Neighbours<'a> {
    /// The text of a blueprint that another extends; `mec` is built in.
    pub blueprint: &'a dyn Fn(&str) -> Option<String>,
    /// The text of an agent's profile, or why its file cannot be read; those of [`names`](crate::Profile::names) are built
    /// in.
    pub profile: &'a dyn Fn(&str) -> Result<Option<String>, String>,
}

impl Blueprint {
    /// Reads a file. `others` gives the text of a blueprint that this one or its parents extend; the built-in ones are
    /// known even if it gives none. Agents' profiles are the built-in ones.
    pub fn parse(text: &str, others: &dyn Fn(&str) -> Option<String>) -> Result<Self, Vec<Flaw>> {
        Self::parse_beside(text, &Neighbours { blueprint: others, profile: &|_| Ok(None) })
    }

    /// Reads a file with the files beside it.
    pub fn parse_beside(text: &str, beside: &Neighbours<'_>) -> Result<Self, Vec<Flaw>> {
        form::read(text, beside)
    }

    pub fn mec() -> Self {
        Self::parse(MEC_TOML, &|_| None).expect("the blueprint that is compiled in has no flaw")
    }

    /// The built-in azolla with the inbox and the session manifests.
    pub fn task_management() -> Self {
        Self::parse(TASK_MANAGEMENT_TOML, &|_| None).expect("the blueprint that is compiled in has no flaw")
    }

    /// The built-in azolla of what people do themselves.
    pub fn tasks() -> Self {
        Self::parse(TASKS_TOML, &|_| None).expect("the blueprint that is compiled in has no flaw")
    }

    /// Whether people carry its tickets out. Such a workorder takes no room and has no budget that runs.
    pub fn is_for_people(&self) -> bool {
        self.standing.is_none() && self.executor().is_some_and(|of| of.kind == ExecutorKind::Person)
    }

    /// The part that decides what runs and how it is judged: what an approval covers.
    ///
    /// Keys that a blueprint does not set are left out, so that new keys of later versions change no digest.
    pub fn decisive(&self) -> Value {
        let executors: BTreeMap<_, _> =
            self.executors.iter().map(|(of, executor)| (of, executor.decisive())).collect();
        let mut decisive = json!({
            "diazotroph_type": self.diazotroph_type,
            "branch_prefix": self.branch_prefix,
            "executors": executors,
            "budget_ms": millis::of(self.budget),
            "envelope": self.envelope,
            "gates": self.gates,
            "retry": self.retry,
        });
        if !self.prompts.is_empty() {
            decisive["prompts"] = json!(self.prompts);
        }
        if let Some(land) = self.land {
            decisive["land"] = json!(land);
        }
        decisive
    }

    pub fn digest(&self) -> Digest {
        canonical::digest_of(&self.decisive())
    }

    /// The stored form; [`Self::from_json`] reads it back unchanged.
    pub fn to_json(&self) -> String {
        canonical::text_of(self)
    }

    /// Reads what [`Self::to_json`] wrote. The rules of the file were checked before it was written.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The branch for a patch of this objective.
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

    /// The executor of its workorders of this kind.
    pub fn executor_of(&self, kind: &DiazotrophType) -> Option<&Executor> {
        self.executors.get(kind)
    }

    /// The executors of its workorders, by kind.
    pub fn used_executors(&self) -> Vec<(DiazotrophType, &Executor)> {
        let kinds = self.workorders_for().into_iter();
        kinds.filter_map(|kind| self.executors.get(&kind).map(|executor| (kind, executor))).collect()
    }

    /// The blueprint's own prompt for its tickets, if it has one.
    pub fn prompt(&self) -> Option<&str> {
        self.prompts.get(&self.diazotroph_type).map(String::as_str)
    }

    /// The executor of its tickets' workorders.
    pub fn executor(&self) -> Option<&Executor> {
        self.executors.get(&self.diazotroph_type)
    }

    /// Settings that are allowed but not advised, each with its key.
    pub fn warnings(&self) -> Vec<(&'static str, String)> {
        let (most, is) = (limits::CONCURRENCY_ADVISED, self.limits.concurrency);
        let so_many = match is {
            0 => "0 means no limit: as many workorders at once as there are approved objectives".to_string(),
            n => format!("{n} workorders at once"),
        };
        let too_many = self.standing.is_none() && !self.is_for_people() && (is == 0 || is > most);
        let why = format!("{so_many}; with more than {most}, people lose track of what needs them");
        too_many.then_some(("limits.concurrency", why)).into_iter().collect()
    }

    /// The stream of its workorders; for work on a repository, one stream per repository.
    pub fn stream(&self, repo_ref: Option<&str>) -> StreamName {
        self.stream_of(&self.diazotroph_type, repo_ref)
    }

    /// The blueprint for workorders that the built-in rules answer instead: without the operator's commands as gates.
    /// If a command could refuse the last possible answer, captures would wait for ever.
    pub fn of_stand_ins(&self) -> Self {
        let mut own = self.clone();
        own.gates.retain(|gate| !matches!(gate, Gate::Command { .. } | Gate::Applies));
        own
    }

    /// The stream of workorders that the built-in rules answer instead of an executor.
    pub fn stand_in_stream(of: &DiazotrophType) -> StreamName {
        StreamName::stored(&format!("{RESERVED_STREAM_PREFIX}{of}:builtin"))
    }

    /// Whether the built-in rules answer jobs of this stream. A repository of tickets may have the same name.
    pub fn is_stand_in(&self, stream: &StreamName, of: &DiazotrophType) -> bool {
        self.standing.is_some() && *stream == Self::stand_in_stream(of)
    }

    /// The stream of workorders of this kind.
    pub fn stream_of(&self, of: &DiazotrophType, repo_ref: Option<&str>) -> StreamName {
        match repo_ref.filter(|_| self.needs_repository()) {
            Some(repo) => StreamName::stored(&format!("{RESERVED_STREAM_PREFIX}{of}:{repo}")),
            None => StreamName::stored(&format!("{RESERVED_STREAM_PREFIX}{of}")),
        }
    }

    /// The interval of a worker; `None` if it does not run for this azolla.
    pub fn interval(&self, worker: WorkerKind) -> Option<Duration> {
        self.workers.get(&worker).map(|worker| worker.interval)
    }
}
