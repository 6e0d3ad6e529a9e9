//! What to measure, as the command line says it.

use super::ROUNDS;
use clap::{Args, ValueEnum};

/// Measure speed and memory against the bare machine
///
/// Prints one JSON line per figure: `value`, and where it has one the `ratio` to a figure of the same run and the
/// `target` it should reach. Takes about a minute with the defaults.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  fernery bench --backend sqlite
  fernery bench --only agents --tickets 30 --objects-mb 500
  fernery bench --backend postgres --database postgres://me@localhost/scratch")]
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
    /// Finished jobs in history in the flatness figure (the full measure is 5000000).
    #[arg(long, default_value_t = 0)]
    pub(super) history: usize,
    /// Runs of the flatness figure; the median counts.
    #[arg(long, default_value_t = 3)]
    pub(super) runs: usize,
    /// Claims that wait at once in the memory figure.
    #[arg(long, default_value_t = 10_000)]
    pub(super) polls: usize,
    /// Objectives in the database for the flatness figures of the pipeline; 0 leaves these figures out.
    #[arg(long, default_value_t = 0)]
    pub(super) objectives: usize,
    /// Tickets in the figures of agents, for each repository.
    #[arg(long, default_value_t = 30)]
    pub(super) tickets: usize,
    /// Megabytes of objects in the history of a second repository that agents work on; 0 leaves it out.
    #[arg(long, value_name = "MB", default_value_t = 500)]
    pub(super) objects_mb: usize,
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
    /// Time of an agent's run besides the agent's own time, and what is copied; needs git and a sandbox. Only measured if it
    /// is named.
    Agents,
}

impl BenchArgs {
    pub(super) fn wants(&self, group: Group) -> bool {
        let possible = group != Group::Transport || self.redis.is_some();
        let usual = self.only.is_empty() && group != Group::Agents;
        possible && (usual || self.only.contains(&group))
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
            Group::Pipeline => 2 + usize::from(self.objectives > 0),
            Group::Flatness => self.runs + usize::from(self.history > 0) + 1 + self.runs,
        };
        Group::value_variants().iter().filter(|group| self.wants(**group)).map(|group| of(*group)).sum()
    }
}
