//! Why a job does not run: a word for programs, a sentence for people.

use fernery_core::pipeline::waiting::{self, Waiting};
use fernery_core::{JobStatus, StreamName, Timestamp};

/// Why a job does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// It has ended.
    Ended(JobStatus),
    /// A worker holds it.
    Held {
        /// Who.
        worker_id: String,
        /// Until when without a heartbeat.
        until: Timestamp,
        /// Whether that has passed: the next claim of its stream or the reaper takes it back.
        expired: bool,
        /// Whether the holder is asked to end it.
        cancel_requested: bool,
    },
    /// Its time has not come.
    Scheduled {
        /// When it comes.
        until: Timestamp,
    },
    /// Nobody may claim from its stream.
    StreamPaused,
    /// Nobody asks for jobs of its stream any more, or nobody ever did.
    NoWorker {
        /// When somebody last did, as far as this process knows.
        last_polled_at: Option<Timestamp>,
    },
    /// Workers ask; it waits for its turn.
    Waiting {
        /// How many jobs of its stream can be claimed.
        ready: i64,
    },
}

impl Explanation {
    /// A stable word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Ended(_) => "ended",
            Self::Held { .. } => "held",
            Self::Scheduled { .. } => "scheduled",
            Self::StreamPaused => "stream_paused",
            Self::NoWorker { .. } => Waiting::NO_WORKER,
            Self::Waiting { .. } => "waiting",
        }
    }

    /// Whether it is for somebody to claim, now or at its time.
    pub const fn is_unclaimed(&self) -> bool {
        matches!(self, Self::Scheduled { .. } | Self::NoWorker { .. } | Self::Waiting { .. })
    }

    /// A sentence for people.
    pub fn sentence(&self, stream: &StreamName) -> String {
        match self {
            Self::Ended(JobStatus::Succeeded) => "it has succeeded".to_string(),
            Self::Ended(JobStatus::Cancelled) => "it was cancelled".to_string(),
            Self::Ended(JobStatus::Dead) => "it was given up, and is among the dead letters".to_string(),
            Self::Ended(status) => format!("it is {status}, and nobody holds it"),
            Self::Held { worker_id, until, expired: true, .. } => {
                format!(
                    "worker {worker_id} held it until {until}; the next claim or the reaper takes it back"
                )
            }
            Self::Held { worker_id, until, cancel_requested: true, .. } => {
                format!("worker {worker_id} holds it until {until} and is asked to cancel it")
            }
            Self::Held { worker_id, until, .. } => format!("worker {worker_id} holds it until {until}"),
            Self::Scheduled { until } => format!("it is scheduled for {until}"),
            Self::StreamPaused => format!("stream {stream} is paused"),
            Self::NoWorker { last_polled_at } => waiting::no_worker(stream, *last_polled_at),
            Self::Waiting { ready } => {
                let jobs = if *ready == 1 { "1 job".to_string() } else { format!("{ready} jobs") };
                format!("it waits for its turn: {jobs} of stream {stream} can be claimed")
            }
        }
    }
}
