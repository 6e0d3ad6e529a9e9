//! Why an approved objective waits, or would wait: a code for programs, a sentence for people. These words are said everywhere:
//! by `explain`, before an approval, in lists and in the orientation.

use crate::artifact::{AzollaId, DiazotrophType, ObjectiveId};
use crate::{StreamName, Timestamp};
use std::time::Duration;

/// How often a process records that it hosts an azolla…
pub const HOSTED_EVERY: Duration = Duration::from_secs(20);
/// … and how long such a record counts.
pub const HOSTED_FOR: Duration = Duration::from_secs(60);

/// Whether the azolla is hosted, if the last record is of `said_at`.
pub fn is_hosted(said_at: Option<Timestamp>, now: Timestamp) -> bool {
    said_at.is_some_and(|at| now.since(at) < HOSTED_FOR)
}

/// What it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// No process hosts its azolla.
    NotHosted {
        azolla_id: AzollaId,
        /// When a process last hosted it.
        since: Option<Timestamp>,
    },
    /// No worker elsewhere asks for its workorders.
    NoWorker {
        stream: StreamName,
        diazotroph_type: DiazotrophType,
        /// When one last did.
        since: Option<Timestamp>,
    },
    /// The program that works on it cannot be used here.
    Unusable {
        /// The agent, or the command.
        program: String,
        missing: String,
        /// What to do about it.
        remedy: String,
    },
    /// No process that hosts its azolla has the repository that its patch shall land in.
    NoRepository { azolla_id: AzollaId, repo_ref: String, base_branch: String },
    /// The limit of unfinished workorders is reached.
    Concurrency,
    /// The limit of unconfirmed objectives is reached.
    Review,
    /// The scheduler.
    Turn,
    /// The gates; the one that is at work, if this process knows it.
    Gates(Option<String>),
    /// A person, who carries it out.
    Person(ObjectiveId),
}

impl Waiting {
    /// The word of [`NotHosted`](Self::NotHosted), by which programs recognise it.
    pub const NOT_HOSTED: &str = "azolla_not_hosted";
    /// The word of [`NoWorker`](Self::NoWorker).
    pub const NO_WORKER: &str = "no_worker";
    /// The word of [`Unusable`](Self::Unusable).
    pub const UNUSABLE: &str = "executor_unusable";

    /// The word of [`NoRepository`](Self::NoRepository).
    pub const NO_REPOSITORY: &str = "no_repository";

    /// Whether a person has to do something before it can go on, by its word.
    pub fn needs_a_person(code: &str) -> bool {
        [Self::NOT_HOSTED, Self::NO_WORKER, Self::UNUSABLE, Self::NO_REPOSITORY, "stream_paused"]
            .contains(&code)
    }

    /// A stable word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotHosted { .. } => Self::NOT_HOSTED,
            Self::NoWorker { .. } => Self::NO_WORKER,
            Self::Unusable { .. } => Self::UNUSABLE,
            Self::NoRepository { .. } => Self::NO_REPOSITORY,
            Self::Concurrency => "concurrency_limit",
            Self::Review => "review_limit",
            Self::Turn => "turn",
            Self::Gates(_) => "gates",
            Self::Person(_) => "person",
        }
    }

    /// A sentence for people.
    pub fn sentence(&self) -> String {
        match self {
            Self::NotHosted { azolla_id, since } => {
                let since = since.map_or(String::new(), |at| format!(" since {at}"));
                format!(
                    "no process hosts azolla {azolla_id}{since}: start one with its blueprint (fernery up --azolla FILE), \
                     or cancel, block or edit the ticket"
                )
            }
            Self::NoWorker { stream, diazotroph_type, since } => format!(
                "{}: start one (fernery worker --diazotroph {diazotroph_type} --profile AGENT), or let this server work with an \
                 agent (fernery init)",
                no_worker(stream, *since)
            ),
            Self::Unusable { program, missing, remedy } => {
                format!("{program} cannot be used on the server's machine: {missing}; to mend it: {remedy}")
            }
            Self::NoRepository { azolla_id, repo_ref, base_branch } => format!(
                "no process that hosts azolla {azolla_id} has repository {repo_ref}: start one with its blueprint and the \
                 repository (fernery up --azolla FILE --repos {repo_ref}=PATH#{base_branch})"
            ),
            Self::Concurrency => {
                "its azolla already runs as many workorders as its blueprint allows (limits.concurrency)".into()
            }
            Self::Review => {
                "confirm finished tickets first: as many wait in its azolla as its blueprint allows (limits.review_limit)".into()
            }
            Self::Turn => "the scheduler has not come to it yet".into(),
            Self::Gates(Some(gate)) => format!("gate {gate} is checking the output"),
            Self::Gates(None) => "its gates are checking the output".into(),
            Self::Person(id) => format!("a person does it: when it is done, `fernery done {id}`"),
        }
    }
}

/// Why a job waits for which there is no worker.
pub fn no_worker(stream: &StreamName, since: Option<Timestamp>) -> String {
    match since {
        None => format!("no worker polls stream {stream}"),
        Some(at) => format!("no worker polls stream {stream} since {at}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_azolla_is_hosted_for_a_minute_after_somebody_said_so() {
        let at = |ms| Timestamp::from_millis(ms);
        assert!(!is_hosted(None, at(0)));
        assert!(is_hosted(Some(at(1_000)), at(60_999)));
        assert!(!is_hosted(Some(at(1_000)), at(61_000)));
        // A clock that was set back leaves it hosted.
        assert!(is_hosted(Some(at(99_000)), at(1_000)));
    }

    #[test]
    fn what_nobody_can_carry_out_is_said_with_what_helps() {
        let stream = StreamName::stored("diazotroph:PATCH_DIAZOTROPH:web");
        let nobody = Waiting::NoWorker {
            stream,
            diazotroph_type: DiazotrophType::stored("PATCH_DIAZOTROPH"),
            since: None,
        };
        let said = nobody.sentence();
        assert!(
            said.starts_with("no worker polls stream diazotroph:PATCH_DIAZOTROPH:web: start one"),
            "{said}"
        );
        assert!(
            said.contains("fernery worker --diazotroph PATCH_DIAZOTROPH") && said.contains("fernery init"),
            "{said}"
        );
        let (missing, remedy) = ("claude was not found".into(), "npm install it".into());
        let unusable = Waiting::Unusable { program: "agent claude".into(), missing, remedy };
        assert!(unusable.sentence().ends_with(": claude was not found; to mend it: npm install it"));
        for waiting in [nobody, unusable] {
            assert!(Waiting::needs_a_person(waiting.code()));
        }
        assert!(!Waiting::needs_a_person(Waiting::Turn.code()));
    }
}
