//! Tickets through the whole pipeline, with an executor that does nothing: how many per second, how soon after its approval
//! a ticket starts, and whether either depends on the number of tickets.

use super::args::Backend;
use super::{Bench, quantile};
use crate::workers::Pipeline;
use anyhow::{Context, Result, anyhow, ensure};
use fernery_core::artifact::{AzollaId, ObjectiveId, RecordId};
use fernery_core::blueprint::{Blueprint, MEC_TOML};
use fernery_core::pipeline::draft::Draft;
use fernery_core::{JobId, StreamName, Timestamp, WorkerId};
use fernery_engine::pipeline::acts::Actor;
use fernery_engine::pipeline::decisions::{self, Deciding};
use fernery_engine::pipeline::journal;
use fernery_engine::pipeline::objectives::{self, NewObjective};
use fernery_engine::store::{Ask, Completion, Proof};
use fernery_engine::{Database, Engine, EngineSettings, Substrate, door};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::os::unix::fs::DirBuilderExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};

/// The azolla that is measured: no limits, gates without programs, a remote executor.
const BLUEPRINT: &str = "extends = \"mec\"\nazolla_id = \"bench\"\ndiazotroph_type = \"BENCH_DIAZOTROPH\"\n[limits]\nconcurrency = 0\nreview_limit = 0\n\
     [executors.BENCH_DIAZOTROPH]\nkind = \"remote\"\n";
const OPERATORS: usize = 32;
/// Executors at once, and how many workorders each takes.
const EXECUTORS: usize = 4;
const TAKEN_AT_ONCE: usize = 64;
/// Tickets whose latency is measured, one after the other.
const SAMPLES: usize = 200;
/// Objectives stored by one transaction when the database is filled.
const FILL_BATCH: usize = 500;
/// Journal entries sealed by one transaction when the database is filled.
const SEAL_BATCH: i64 = 1_000;

pub(super) struct MeasuredAzolla {
    engine: Engine,
    pipeline: Pipeline,
    executors: Vec<JoinHandle<()>>,
    started: Arc<Mutex<HashMap<JobId, Instant>>>,
    executed: Arc<AtomicUsize>,
}

impl Bench {
    pub(super) async fn pipeline(&mut self) -> Result<()> {
        let azolla = self.azolla("pipeline").await?;
        let tickets = (self.args.jobs / 20).max(100);
        self.progress.step(&self.name("tickets"));
        azolla.tickets("warm", 100).await?;
        let rate = azolla.tickets("rate", tickets).await?;
        let target = match self.args.backend {
            Backend::Sqlite => 500.0,
            Backend::Postgres => 200.0,
        };
        self.at_least_rate("tickets", rate, "tickets/s", target)?;
        self.progress.step(&self.name("approve_to_start"));
        let mut few = azolla.latencies("few").await?;
        self.at_most("approve_to_start_p50", quantile(&mut few, 0.5), "ms", 100.0)?;
        self.value(self.name("approve_to_start_p99"), quantile(&mut few, 0.99), "ms")?;
        if self.args.objectives > 0 {
            self.progress.step(&format!("{}: {} objectives", self.name("tickets"), self.args.objectives));
            azolla.fill(self.args.objectives).await?;
            let full = azolla.tickets("full", tickets).await?;
            self.value(self.name("objectives"), self.args.objectives as f64, "objectives")?;
            self.at_most("tickets_flatness", rate / full, "ratio", 1.25)?;
            let mut many = azolla.latencies("many").await?;
            let ratio = quantile(&mut many, 0.5) / quantile(&mut few, 0.5);
            self.at_most("approve_to_start_flatness", ratio, "ratio", 1.25)?;
        }
        azolla.end().await;
        Ok(())
    }

    pub(super) async fn azolla(&self, data: &str) -> Result<MeasuredAzolla> {
        let data = self.folder.join(data);
        // A server that comes after this takes no directory that others can read.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&data)?;
        let database = match &self.args.database {
            Some(url) => Database::Postgres(url.clone()),
            None => Database::Sqlite(data.join("bench.db")),
        };
        let engine = Engine::open(&database, EngineSettings::default()).await.map_err(|e| anyhow!("{e}"))?;
        let parsed = Blueprint::parse(BLUEPRINT, &|name| (name == "mec").then(|| MEC_TOML.to_string()));
        let blueprint = parsed.map_err(|flaws| anyhow!("{flaws:?}"))?;
        let stream = blueprint.stream(None);
        let pipeline = Pipeline::start(engine.clone(), vec![blueprint], data, Default::default())
            .await
            .map_err(|e| anyhow!("{e}"))?;
        let (started, executed) = (Arc::default(), Arc::new(AtomicUsize::new(0)));
        let executors = (0..EXECUTORS)
            .map(|n| {
                tokio::spawn(execute(
                    engine.clone(),
                    n,
                    stream.clone(),
                    Arc::clone(&started),
                    executed.clone(),
                ))
            })
            .collect();
        Ok(MeasuredAzolla { engine, pipeline, executors, started, executed })
    }

    fn at_least_rate(&mut self, what: &str, value: f64, unit: &str, target: f64) -> Result<()> {
        self.missed += usize::from(value < target);
        self.print(&super::Figure {
            figure: self.name(what),
            value,
            unit,
            against: None,
            ratio: None,
            target: Some(format!(">= {target}")),
            reached: Some(value >= target),
        })
    }
}

async fn execute(
    engine: Engine,
    n: usize,
    stream: StreamName,
    started: Arc<Mutex<HashMap<JobId, Instant>>>,
    executed: Arc<AtomicUsize>,
) {
    let ask = Ask {
        worker_id: WorkerId::stored(&format!("bench-{n}")),
        streams: [stream].into(),
        max: TAKEN_AT_ONCE,
    };
    loop {
        let Ok(jobs) = engine.claim(ask.clone(), Duration::from_secs(30)).await else { return };
        let now = door::stop_watch();
        let items: Vec<Completion> = jobs
            .iter()
            .map(|job| {
                started.lock().expect("not poisoned").insert(job.job_id, now);
                let token_hash = job.lease_token.hash();
                let proof = Proof { job_id: job.job_id, attempt_id: job.attempt_id, token_hash };
                Completion { proof, result: output() }
            })
            .collect();
        let count = items.len();
        if engine.store().complete(items).await.is_ok() {
            executed.fetch_add(count, Ordering::Relaxed);
        }
    }
}

fn output() -> Box<RawValue> {
    let parts =
        json!({"title": "done", "content": "nothing", "notes": "", "metadata": {"outcome": "OUTPUT"}});
    to_raw_value(&parts).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn draft() -> Draft {
    Draft {
        title: "Do nothing".into(),
        acceptance_criteria: "It is done".into(),
        importance: 2,
        urgency: 2,
        metadata: Default::default(),
    }
}

async fn approved(substrate: &Substrate, id: ObjectiveId) -> Result<()> {
    approved_with(substrate, id, AzollaId::stored("bench"), draft()).await.map(drop)
}

/// Creates a ticket and approves it; returns when the approval was sent.
pub(super) async fn approved_with(
    substrate: &Substrate,
    id: ObjectiveId,
    azolla: AzollaId,
    draft: Draft,
) -> Result<Timestamp> {
    let who = Actor("bench".into());
    let (by, new) = (who.clone(), NewObjective::new(&id, &azolla, draft));
    let made = substrate.act(&id, move |sql| objectives::create(sql, &by, &new)).await;
    made.map_err(|e| anyhow!("{e}"))?.map_err(|refusal| anyhow!("{refusal:?}"))?;
    let record_id = RecordId::stored(&door::artifact_id());
    let deciding = Deciding { record_id, digest: None, note: None, premises: None, from_scratch: false };
    let (of, asked_at) = (id.clone(), door::wall_clock());
    let approved = substrate.act(&id, move |sql| decisions::approve(sql, &who, &of, &deciding)).await;
    approved.map_err(|e| anyhow!("{e}"))?.map_err(|refusal| anyhow!("{refusal:?}"))?;
    Ok(asked_at)
}

impl MeasuredAzolla {
    /// Tickets per second, from the first creation to the last verdict.
    pub(super) async fn tickets(&self, name: &str, count: usize) -> Result<f64> {
        let substrate = self.engine.substrate();
        let (before, since) = (self.executed.load(Ordering::Relaxed), door::stop_watch());
        let next = Arc::new(AtomicUsize::new(0));
        let mut operators = JoinSet::new();
        for _ in 0..OPERATORS {
            let (substrate, next, name) = (substrate.clone(), next.clone(), name.to_string());
            operators.spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return Ok::<_, anyhow::Error>(());
                    }
                    approved(&substrate, ObjectiveId::stored(&format!("{name}-{n}"))).await?;
                }
            });
        }
        while let Some(done) = operators.join_next().await {
            done??;
        }
        let until = since + Duration::from_secs(300);
        loop {
            ensure!(door::stop_watch() < until, "the tickets do not finish");
            if self.executed.load(Ordering::Relaxed) - before >= count && self.idle().await? {
                return Ok(count as f64 / since.elapsed().as_secs_f64());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn idle(&self) -> Result<bool> {
        let substrate = self.engine.substrate();
        let active = substrate.read(|sql| {
            let rows = sql.query(
                "SELECT work_order_id FROM workorders WHERE azolla_id = $1 AND NOT judged LIMIT 1;",
                &["bench".into()],
            )?;
            Ok(!rows.is_empty())
        });
        Ok(!active.await.map_err(|e| anyhow!("{e}"))?)
    }

    /// From an approval to the start of its execution, in milliseconds, one ticket at a time.
    async fn latencies(&self, name: &str) -> Result<Vec<f64>> {
        let substrate = self.engine.substrate();
        let mut taken = Vec::new();
        for n in 0..SAMPLES {
            self.started.lock().expect("not poisoned").clear();
            let since = door::stop_watch();
            approved(&substrate, ObjectiveId::stored(&format!("{name}-{n}"))).await?;
            let until = since + Duration::from_secs(30);
            let started = loop {
                if let Some(at) = self.started.lock().expect("not poisoned").values().next() {
                    break *at;
                }
                ensure!(door::stop_watch() < until, "a ticket does not start");
                tokio::time::sleep(Duration::from_micros(200)).await;
            };
            taken.push(started.saturating_duration_since(since).as_secs_f64() * 1e3);
            while !self.idle().await? {
                tokio::time::sleep(Duration::from_micros(500)).await;
            }
        }
        Ok(taken)
    }

    /// Fills the database with objectives that nothing works on.
    pub(super) async fn fill(&self, count: usize) -> Result<()> {
        let substrate = self.engine.substrate();
        for from in (0..count).step_by(FILL_BATCH) {
            let to = (from + FILL_BATCH).min(count);
            let filled = substrate.transact(move |sql| {
                let (who, azolla) = (Actor("bench".into()), AzollaId::stored("bench"));
                for n in from..to {
                    let id = ObjectiveId::stored(&format!("fill-{n}"));
                    let _ = objectives::create(sql, &who, &NewObjective::new(&id, &azolla, draft()))?;
                }
                Ok(())
            });
            filled.await.map_err(|e| anyhow!("{e}")).context("filling the database")?;
        }
        // Seal everything first: the figure is about a long history, not about sealing it at the same time.
        loop {
            let sealed = substrate.transact(|sql| journal::seal(sql, SEAL_BATCH)).await;
            if sealed.map_err(|e| anyhow!("{e}")).context("sealing the journal")?.0 == 0 {
                return Ok(());
            }
        }
    }

    pub(super) async fn end(self) {
        self.executors.iter().for_each(JoinHandle::abort);
        self.pipeline.stop().await;
        self.engine.close().await;
    }
}
