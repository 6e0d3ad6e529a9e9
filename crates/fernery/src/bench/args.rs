//! What to measure, as the command line says it.

use super::ROUNDS;
use clap::{Args, ValueEnum};

/// Measure speed and memory against the bare machine
///
/// Prints a row per figure: its value, and where it has one the ratio to a figure of the same run, the target it should
/// reach, and whether it did. It says first how long it takes: about a minute with the defaults.
#[derive(Args, Debug)]
#[command(after_help = "\
With --json: one object per line: figure, value, unit, against, ratio, target, reached. A missed target is no error \
unless --check is given; then the exit code is 1.

Examples:
  fernery bench
  fernery bench --only latency,memory --check
  fernery bench --only agents --tickets 30 --objects-mb 500
  fernery bench --only orient --objectives 100000
  fernery bench --only pages --history 1000000 --objectives 100000
  fernery bench --backend postgres \\
    --database postgres://me@localhost/scratch --json")]
pub(crate) struct BenchArgs {
    /// Which database to measure.
    #[arg(long, value_enum, default_value = "sqlite")]
    pub(super) backend: Backend,
    /// An empty PostgreSQL database to measure in. Tables are made in it and stay.
    #[arg(long, required_if_eq("backend", "postgres"))]
    pub(super) database: Option<String>,
    /// A Redis server to measure with as transport; PostgreSQL only. Streams are made in it and emptied.
    #[arg(long, requires = "database")]
    pub(super) redis: Option<String>,
    /// Only these groups of figures.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(super) only: Vec<Group>,
    /// Jobs in each throughput figure.
    #[arg(long, default_value_t = 100_000)]
    pub(super) jobs: usize,
    /// Jobs that wait in the flatness figure.
    #[arg(long, default_value_t = 1_000_000)]
    pub(super) backlog: usize,
    /// Finished jobs in history in the flatness figure (the full measure is 5000000) and in those of pages (10000000).
    #[arg(long, default_value_t = 0)]
    pub(super) history: usize,
    /// Runs of the flatness figure and of those about open tabs; the median counts.
    #[arg(long, default_value_t = 3)]
    pub(super) runs: usize,
    /// Claims that wait at once in the memory figure.
    #[arg(long, default_value_t = 10_000)]
    pub(super) polls: usize,
    /// Objectives in the database for the flatness figures of the pipeline (0 leaves these figures out), for orient and for pages.
    #[arg(long, default_value_t = 0)]
    pub(super) objectives: usize,
    /// Candidates in the inbox for the figure of orient.
    #[arg(long, default_value_t = 10_000)]
    pub(super) candidates: usize,
    /// Event streams that are open at once in the figures of pages.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=1900))]
    pub(super) event_streams: u16,
    /// Tickets in the figures of agents, for each repository.
    #[arg(long, default_value_t = 30)]
    pub(super) tickets: usize,
    /// Megabytes of objects in the history of a second repository that agents work on; 0 leaves it out.
    #[arg(long, value_name = "MB", default_value_t = 500)]
    pub(super) objects_mb: usize,
    /// End with exit code 1 if a target is missed.
    #[arg(long)]
    pub(crate) check: bool,
    /// Serve as the echo server; the bench starts itself with this flag.
    #[arg(long, hide = true)]
    pub(super) serve_echo: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Backend {
    Sqlite,
    Postgres,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Group {
    /// Jobs per second, one per call and a hundred per call; enqueue.
    Throughput,
    /// From enqueue to a waiting claim's reply.
    Latency,
    /// Claim cost with a large backlog and a long history.
    Flatness,
    /// Resident memory, idle and with many claims waiting.
    Memory,
    /// The Rust worker loop beside bare calls; a command under `fernery worker` beside one started by hand.
    Worker,
    /// The same with Redis Streams as transport, and with three servers; needs `--redis`.
    Transport,
    /// Tickets from their approval through an executor that does nothing to their verdict.
    Pipeline,
    /// From the request for the page of `fernery orient` to the page, with few and with many tickets and candidates; and
    /// `fernery orient` and `fernery capture` as a person runs them. Only measured if it is named.
    Orient,
    /// The pages for people: the time of each, what open event streams cost, throughput with 50 tabs open. Only measured if it is
    /// named.
    Pages,
    /// Time of an agent's run besides the agent's own time, and what is copied; needs git and a sandbox. Only measured if it
    /// is named.
    Agents,
}

impl BenchArgs {
    pub(super) fn wants(&self, group: Group) -> bool {
        let possible = group != Group::Transport || self.redis.is_some();
        let usual = self.only.is_empty() && !matches!(group, Group::Agents | Group::Orient | Group::Pages);
        possible && (usual || self.only.contains(&group))
    }

    /// What it will measure, and about how long that takes.
    pub(super) fn says(&self) -> String {
        let seconds: u64 = Group::value_variants()
            .iter()
            .filter(|group| self.wants(**group))
            .map(|group| self.seconds(*group))
            .sum();
        let time = match seconds {
            0..90 => format!("{} seconds", seconds.div_ceil(10) * 10),
            _ => format!("{} minutes", seconds.div_ceil(60)),
        };
        let backend = match self.backend {
            Backend::Sqlite => "SQLite",
            Backend::Postgres => "PostgreSQL",
        };
        format!("measuring with {backend}: about {time} on a machine with two cores")
    }

    /// About how long a group takes: measured on a quiet machine with two cores, where the defaults took 45 seconds.
    fn seconds(&self, group: Group) -> u64 {
        let (jobs, backlog) = (self.jobs as u64, (self.backlog + self.history) as u64);
        let on_sqlite = match group {
            Group::Throughput => 11 + jobs / 10_000,
            Group::Latency => 4,
            Group::Memory => 1 + self.polls as u64 / 10_000,
            Group::Worker => 2 + jobs / 15_000,
            Group::Transport => 3 + jobs / 8_000,
            Group::Pipeline => 4 + self.objectives as u64 / 5_000,
            Group::Orient => 10 + self.objectives as u64 / 1_000,
            Group::Pages => 40 + jobs / 5_000 + self.history as u64 / 30_000 + self.objectives as u64 / 5_000,
            Group::Agents => 1 + self.tickets as u64 / 8 + self.objects_mb as u64 / 50,
            Group::Flatness => 2 + backlog / 150_000,
        };
        match self.backend {
            Backend::Sqlite => on_sqlite,
            Backend::Postgres => on_sqlite * 8 / 5,
        }
    }

    /// How often [`Progress::step`] is called in all.
    pub(super) fn steps(&self) -> usize {
        let of = |group: Group| match group {
            Group::Throughput => ROUNDS * 4,
            Group::Latency => 1,
            Group::Memory => 2,
            Group::Worker => ROUNDS + 1,
            Group::Transport => ROUNDS,
            Group::Agents => 2,
            Group::Orient => 4,
            Group::Pages => 4 + self.runs,
            Group::Pipeline => 2 + usize::from(self.objectives > 0),
            Group::Flatness => self.runs + usize::from(self.history > 0) + 1 + self.runs,
        };
        Group::value_variants().iter().filter(|group| self.wants(**group)).map(|group| of(*group)).sum()
    }
}
