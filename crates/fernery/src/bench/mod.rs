//! `fernery bench`: how fast this machine runs Fernery, and how fast it does the same work without an engine.
//!
//! Prints one row or one JSON line per figure on stdout, and what is being measured on stderr. Both sides of a ratio are measured in the
//! same run, because machines differ and are noisy. All servers are children of this process on loopback; the loads are
//! bounded in count and end by themselves.

mod agents;
mod args;
mod echo;
mod load;
mod orient;
mod pages;
mod pipeline;
mod progress;
mod raw;
mod server;
mod table;
mod tabs;
mod transport;
mod wire;
mod workers;

pub(crate) use self::args::BenchArgs;
use self::args::{Backend, Group};
use self::progress::Progress;
pub(crate) use self::progress::ReaderLeft;
use self::raw::Raw;
use self::server::Server;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Serialize)]
struct Figure<'a> {
    figure: String,
    value: f64,
    unit: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reached: Option<bool>,
}

/// Rounds of the throughput figures.
const ROUNDS: usize = 5;

/// One round of the throughput figures.
struct Round {
    echo: f64,
    raw: Raw,
    enqueue: f64,
    array: f64,
    single: f64,
}

struct Bench {
    args: BenchArgs,
    json: bool,
    folder: PathBuf,
    progress: Progress,
    missed: usize,
}

/// Measures what was asked for; returns how many targets were missed.
pub(crate) async fn run(args: BenchArgs, json: bool) -> Result<usize> {
    if args.serve_echo {
        echo::serve().await?;
        return Ok(0);
    }
    eprintln!("{}", args.says());
    let folder = std::env::temp_dir().join(format!("fernery-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let progress = Progress::new(args.steps());
    let mut bench = Bench { args, json, folder, progress, missed: 0 };
    let done = bench.headed().await;
    std::fs::remove_dir_all(&bench.folder).with_context(|| format!("removing {}", bench.folder.display()))?;
    done.map(|()| bench.missed)
}

impl Bench {
    async fn headed(&mut self) -> Result<()> {
        if !self.json {
            self.progress.print(&table::head())?;
        }
        self.all().await
    }

    async fn all(&mut self) -> Result<()> {
        if self.args.wants(Group::Throughput) {
            self.throughput().await?;
        }
        if self.args.wants(Group::Latency) {
            self.latency().await?;
        }
        if self.args.wants(Group::Memory) {
            self.memory().await?;
        }
        if self.args.wants(Group::Worker) {
            self.workers().await?;
        }
        if self.args.wants(Group::Transport) {
            self.transport().await?;
        }
        if self.args.wants(Group::Pipeline) {
            self.pipeline().await?;
        }
        if self.args.wants(Group::Orient) {
            self.orient().await?;
        }
        if self.args.wants(Group::Pages) {
            self.pages().await?;
        }
        if self.args.wants(Group::Agents) {
            self.agents().await?;
        }
        if self.args.wants(Group::Flatness) {
            self.flatness().await?;
        }
        Ok(())
    }

    /// The next step of a figure that is measured in rounds.
    fn step(&mut self, what: &str, round: usize, rounds: usize) {
        let figure = self.name(what);
        self.progress.step(&format!("{figure}, round {} of {rounds}", round + 1));
    }

    fn name(&self, what: &str) -> String {
        let backend = match self.args.backend {
            Backend::Sqlite => "sqlite",
            Backend::Postgres => "postgres",
        };
        format!("{backend}.{what}")
    }

    async fn server(&self, data: &str) -> Result<Server> {
        let data = self.folder.join(data);
        let database = match &self.args.database {
            Some(url) => url.clone(),
            None => format!("sqlite:{}", data.join("bench.db").display()),
        };
        std::fs::create_dir_all(&data)?;
        Server::up(&data, &database, None).await
    }

    fn print(&self, figure: &Figure<'_>) -> Result<()> {
        let line = if self.json { serde_json::to_string(figure)? } else { table::line(figure) };
        Ok(self.progress.print(&line)?)
    }

    fn value(&self, figure: String, value: f64, unit: &str) -> Result<()> {
        self.print(&Figure { figure, value, unit, against: None, ratio: None, target: None, reached: None })
    }

    fn at_least(&mut self, what: &str, value: f64, against: (&str, f64), target: f64) -> Result<()> {
        let ratio = against.1;
        self.missed += usize::from(ratio < target);
        self.print(&Figure {
            figure: self.name(what),
            value,
            unit: "jobs/s",
            against: Some(against.0),
            ratio: Some(ratio),
            target: Some(format!(">= {target}")),
            reached: Some(ratio >= target),
        })
    }

    fn at_most(&mut self, what: &str, value: f64, unit: &str, target: f64) -> Result<()> {
        self.missed += usize::from(value > target);
        self.print(&Figure {
            figure: self.name(what),
            value,
            unit,
            against: None,
            ratio: None,
            target: Some(format!("<= {target}")),
            reached: Some(value <= target),
        })
    }

    /// Connections of the array form: more do not help.
    fn lanes(&self) -> usize {
        match self.args.backend {
            Backend::Sqlite => 16,
            Backend::Postgres => 8,
        }
    }

    async fn raw(&self) -> Result<Raw> {
        match (self.args.backend, &self.args.database) {
            (Backend::Postgres, Some(url)) => raw::postgres(url, self.args.jobs).await,
            _ => {
                let (folder, jobs) = (self.folder.clone(), self.args.jobs);
                tokio::task::spawn_blocking(move || raw::sqlite(&folder, jobs)).await?
            }
        }
    }

    async fn throughput(&mut self) -> Result<()> {
        let (single, array) = match self.args.backend {
            Backend::Sqlite => (0.30, 0.45),
            Backend::Postgres => (0.12, 0.5),
        };
        let lanes = self.lanes();
        let echo = Server::echo().await?;
        let server = self.server("throughput").await?;
        load::echo(&echo, 64, Duration::from_millis(500)).await?;
        let jobs = self.args.jobs;
        let mut rounds = Vec::new();
        // Both sides of a ratio are taken in turns: a noisy second hits both, and the median round counts.
        for round in 0..ROUNDS {
            self.step("raw", round, ROUNDS);
            let raw = self.raw().await?;
            self.step("enqueue_1000", round, ROUNDS);
            let enqueue = load::enqueue(&server, "array", jobs, 1_000).await?;
            self.step("array_100", round, ROUNDS);
            let array = load::drain_array(&server, "array", lanes, 100).await?;
            self.step("single", round, ROUNDS);
            load::enqueue(&server, "single", jobs / 4, 1_000).await?;
            let before = load::echo(&echo, 64, Duration::from_secs(1)).await?;
            let single = load::drain_single(&server, "single", 64, jobs / 4).await?;
            let after = load::echo(&echo, 64, Duration::from_secs(1)).await?;
            rounds.push(Round { echo: (before + after) / 2.0, raw, enqueue, array, single });
        }
        echo.stop().await?;
        server.stop().await?;
        let median =
            |of: &dyn Fn(&Round) -> f64| quantile(&mut rounds.iter().map(of).collect::<Vec<_>>(), 0.5);
        let figures = [
            (
                "enqueue_1000",
                median(&|r| r.enqueue),
                "raw.insert_1000",
                median(&|r| r.enqueue / r.raw.insert),
                0.5,
            ),
            ("array_100", median(&|r| r.array), "raw.cycle_100", median(&|r| r.array / r.raw.cycle), array),
            ("single", median(&|r| r.single), "echo / 2", median(&|r| r.single / (r.echo / 2.0)), single),
        ];
        let plain = [median(&|r| r.echo), median(&|r| r.raw.insert), median(&|r| r.raw.cycle)];
        self.value("echo".into(), plain[0], "requests/s")?;
        self.value(self.name("raw.insert_1000"), plain[1], "jobs/s")?;
        self.value(self.name("raw.cycle_100"), plain[2], "jobs/s")?;
        for (what, value, against, ratio, target) in figures {
            self.at_least(what, value, (against, ratio), target)?;
        }
        Ok(())
    }

    async fn latency(&mut self) -> Result<()> {
        self.progress.step(&self.name("latency"));
        let server = self.server("latency").await?;
        load::latency(&server, 50).await?;
        let mut taken = load::latency(&server, 500).await?;
        let p50 = match self.args.backend {
            Backend::Sqlite => 1_500.0,
            Backend::Postgres => 2_500.0,
        };
        self.at_most("latency_p50", quantile(&mut taken, 0.5), "us", p50)?;
        self.at_most("latency_p99", quantile(&mut taken, 0.99), "us", 10_000.0)?;
        server.stop().await
    }

    async fn memory(&mut self) -> Result<()> {
        const MIB: f64 = 1_048_576.0;
        self.progress.step(&self.name("memory_idle"));
        let server = self.server("memory").await?;
        self.at_most("memory_idle", server.resident_bytes()? as f64 / MIB, "MiB", 40.0)?;
        self.progress.step(&format!("{}: {} claims", self.name("memory_waiting"), self.args.polls));
        let waiting = load::park(&server, self.args.polls).await?;
        let mut probe = wire::Wire::connect(server.address, &server.operator).await?;
        let mut counted = 0.0;
        // Until all of them wait, by the server's own count.
        for _ in 0..1_000 {
            let (_, body) = probe.request("GET", "/metrics", b"").await?;
            let text = String::from_utf8_lossy(body);
            let count = text.lines().find_map(|l| l.strip_prefix("fernery_claims_waiting ")).map(str::trim);
            counted = count.and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
            if counted as usize >= self.args.polls {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        ensure!(waiting.iter().all(|task| !task.is_finished()), "a waiting claim was answered or refused");
        ensure!(counted as usize >= self.args.polls, "only {counted} claims wait");
        self.value(self.name("waiting_claims"), counted, "connections")?;
        self.at_most("memory_waiting", server.resident_bytes()? as f64 / MIB, "MiB", 300.0)?;
        waiting.iter().for_each(|task| task.abort());
        server.stop().await
    }

    async fn workers(&mut self) -> Result<()> {
        let lanes = self.lanes();
        let server = self.server("workers").await?;
        let (mut loops, mut ratios) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            self.step("worker_loop_100", round, ROUNDS);
            let jobs = self.args.jobs / 1_000 * 1_000;
            load::enqueue(&server, "bare", jobs, 1_000).await?;
            let bare = load::drain_array(&server, "bare", lanes, 100).await?;
            load::enqueue(&server, "loop", jobs, 1_000).await?;
            let looped = workers::drain_loop(&server, "loop", jobs, lanes, 100).await?;
            loops.push(looped);
            ratios.push(looped / bare);
        }
        server.stop().await?;
        let (value, ratio) = (quantile(&mut loops, 0.5), quantile(&mut ratios, 0.5));
        self.at_least("worker_loop_100", value, ("array_100", ratio), 0.8)?;
        self.progress.step("worker_true");
        let (mut plain, mut guarded) = workers::run_true(500).await?;
        self.value("plain_true".into(), quantile(&mut plain, 0.5), "ms")?;
        let added = quantile(&mut guarded, 0.5) - quantile(&mut plain, 0.5);
        self.at_most("worker_true_added", added, "ms", 3.0)
    }

    async fn flatness(&mut self) -> Result<()> {
        const CLAIMS: usize = 500;
        let server = self.server("flatness").await?;
        // The small side first, while there is nothing else in the database.
        let mut few = Vec::new();
        for run in 0..self.args.runs {
            self.step("flatness, few jobs", run, self.args.runs);
            let small = format!("small-{run}");
            load::enqueue(&server, &small, 1_000, 1_000).await?;
            load::claim_times(&server, &small, 100).await?;
            few.push(load::claim_times(&server, &small, CLAIMS).await?);
        }
        if self.args.history > 0 {
            let jobs = self.args.history;
            self.progress.step(&format!("{}: {jobs} jobs into history", self.name("flatness")));
            load::enqueue(&server, "history", self.args.history, 1_000).await?;
            load::drain_array(&server, "history", 8, 1_000).await?;
        }
        let jobs = self.args.backlog;
        self.progress.step(&format!("{}: {jobs} jobs into the backlog", self.name("flatness")));
        load::enqueue(&server, "large", self.args.backlog, 1_000).await?;
        let mut ratios = (Vec::new(), Vec::new());
        for (run, few) in few.iter_mut().enumerate() {
            self.step("flatness, many jobs", run, self.args.runs);
            load::claim_times(&server, "large", 100).await?;
            let mut many = load::claim_times(&server, "large", CLAIMS).await?;
            ratios.0.push(quantile(&mut many, 0.5) / quantile(few, 0.5));
            ratios.1.push(quantile(&mut many, 0.99) / quantile(few, 0.99));
        }
        self.value(self.name("flatness_backlog"), self.args.backlog as f64, "jobs")?;
        self.value(self.name("flatness_history"), self.args.history as f64, "jobs")?;
        self.at_most("flatness_p50", quantile(&mut ratios.0, 0.5), "ratio", 1.2)?;
        self.at_most("flatness_p99", quantile(&mut ratios.1, 0.5), "ratio", 2.0)?;
        server.stop().await
    }
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * q).round() as usize).copied().unwrap_or(f64::NAN)
}
