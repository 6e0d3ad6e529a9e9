//! One page over many tickets and a full inbox: how soon after it is asked for it is there, whether that depends on how much there
//! is, and how long a person waits for `fernery orient` and `fernery capture`.

use super::server::Server;
use super::wire::Wire;
use super::{Bench, quantile};
use crate::workers::Pipeline;
use anyhow::{Result, anyhow, ensure};
use fernery_core::artifact::{AzollaId, CaptureId, ObjectiveId};
use fernery_core::blueprint::Blueprint;
use fernery_core::pipeline::draft::Draft;
use fernery_engine::pipeline::acts::Actor;
use fernery_engine::pipeline::inbox::captures::{self, NewCapture};
use fernery_engine::pipeline::inbox::{candidates, manifests};
use fernery_engine::pipeline::journal;
use fernery_engine::pipeline::objectives::{self, NewObjective};
use fernery_engine::{Database, Engine, EngineSettings, StoreError, Substrate, door};
use serde_json::json;
use std::time::Duration;

/// The inbox, at rest: its deadline monitor would first take in all the tickets that the database is filled with.
const INBOX: &str = "extends = \"task_management\"\nazolla_id = \"task_management\"\n[workers.deadline_monitor]\ninterval = \"1h\"\n";
/// Pages that are measured, one after the other; before each, something changes.
const SAMPLES: usize = 20;
/// Runs of a command that are not counted.
const WARM: usize = 2;
/// What a page, and what a capture may take, in milliseconds.
const ORIENT_MS_MAX: f64 = 300.0;
const CAPTURE_MS_MAX: f64 = 50.0;
/// Objectives and captures that one transaction stores when the database is filled.
const FILL_BATCH: usize = 500;
/// How often a request is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);

fn trouble(error: StoreError) -> anyhow::Error {
    anyhow!("{error}")
}

impl Bench {
    pub(super) async fn orient(&mut self) -> Result<()> {
        let data = self.folder.join("orient");
        std::fs::create_dir_all(&data)?;
        let database = match &self.args.database {
            Some(url) => Database::Postgres(url.clone()),
            None => Database::Sqlite(data.join("bench.db")),
        };
        let engine = Engine::open(&database, EngineSettings::default()).await.map_err(trouble)?;
        let inbox = Blueprint::parse(INBOX, &|_| None).map_err(|flaws| anyhow!("{flaws:?}"))?;
        let hosted = vec![Blueprint::mec(), inbox, Blueprint::tasks()];
        let pipeline =
            Pipeline::start(engine.clone(), hosted, data, Default::default()).await.map_err(trouble)?;
        let substrate = &engine.substrate();
        self.progress.step(&self.name("orient"));
        pages(substrate, "warm").await?;
        let mut few = pages(substrate, "few").await?;
        let (objectives, waiting) = (self.args.objectives.max(1), self.args.candidates);
        self.progress
            .step(&format!("{}: {objectives} objectives, {waiting} candidates", self.name("orient")));
        fill(substrate, objectives, waiting).await?;
        let mut many = pages(substrate, "many").await?;
        self.value(self.name("objectives"), objectives as f64, "objectives")?;
        self.value(self.name("candidates"), waiting as f64, "candidates")?;
        self.value(self.name("orient_empty_p50"), quantile(&mut few, 0.5), "ms")?;
        self.at_most("orient_p50", quantile(&mut many, 0.5), "ms", ORIENT_MS_MAX)?;
        self.value(self.name("orient_p99"), quantile(&mut many, 0.99), "ms")?;
        pipeline.stop().await;
        engine.close().await;
        self.commands(&database).await
    }

    /// The same page as a person asks for it, and a thought that a person writes down: from the start of the command to its end,
    /// with a server of its own on what was filled.
    async fn commands(&mut self, database: &Database) -> Result<()> {
        self.progress.step(&self.name("orient_command"));
        let data = self.folder.join("orient-server");
        std::fs::create_dir_all(&data)?;
        let url = match database {
            Database::Postgres(url) => url.clone(),
            Database::Sqlite(path) => format!("sqlite:{}", path.display()),
        };
        let inbox = self.folder.join("inbox.toml");
        std::fs::write(&inbox, INBOX)?;
        let server = Server::hosting(&data, &url, None, &[inbox]).await?;
        let mut wire = Wire::connect(server.address, &server.operator).await?;
        let mut orient = Vec::new();
        for n in 0..SAMPLES + WARM {
            // So that the page is another one.
            let body =
                json!({"azolla_id": "tasks", "title": format!("asked {n}"), "importance": 0, "urgency": 0});
            let (status, said) = wire.post("/v1/objectives", body.to_string().as_bytes()).await?;
            ensure!(status == 201, "{status}: {}", String::from_utf8_lossy(said));
            let took = server.command_ms(&["orient"]).await?;
            orient.extend((n >= WARM).then_some(took));
        }
        self.at_most("orient_command_p50", quantile(&mut orient, 0.5), "ms", ORIENT_MS_MAX)?;
        self.value(self.name("orient_command_p99"), quantile(&mut orient, 0.99), "ms")?;
        self.progress.step(&self.name("capture_command"));
        let mut capture = Vec::new();
        for n in 0..SAMPLES + WARM {
            let took = server.command_ms(&["capture", &format!("think of {n}")]).await?;
            capture.extend((n >= WARM).then_some(took));
        }
        self.at_most("capture_command_p50", quantile(&mut capture, 0.5), "ms", CAPTURE_MS_MAX)?;
        server.stop().await
    }
}

fn draft(title: String, n: usize) -> Draft {
    let (acceptance_criteria, metadata) = (String::new(), [("n".to_string(), json!(n))].into());
    Draft { title, acceptance_criteria, importance: (n % 5) as u8, urgency: 2 + (n % 3) as u8, metadata }
}

/// Writes down tickets of both azollas, and has triage make candidates.
async fn fill(substrate: &Substrate, objectives: usize, waiting: usize) -> Result<()> {
    for from in (0..objectives).step_by(FILL_BATCH) {
        let to = (from + FILL_BATCH).min(objectives);
        let filled = substrate.transact(move |sql| {
            for n in from..to {
                let azolla = AzollaId::stored(if n % 2 == 0 { "mec" } else { "tasks" });
                let id = ObjectiveId::stored(&format!("fill-{n}"));
                let new = NewObjective::new(&id, &azolla, draft(format!("Ticket {n}"), n));
                let _ = objectives::create(sql, &Actor("bench".into()), &new)?;
            }
            Ok(())
        });
        filled.await.map_err(trouble)?;
    }
    for from in (0..waiting).step_by(FILL_BATCH) {
        let line = |n: usize| NewCapture {
            capture_id: CaptureId::stored(&format!("line-{n}")),
            raw: format!("do thing {n}{}", if n.is_multiple_of(10) { " tomorrow" } else { "" }).into_bytes(),
            source_label: "bench".into(),
            captured_at: None,
        };
        let new: Vec<NewCapture> = (from..(from + FILL_BATCH).min(waiting)).map(line).collect();
        let stored =
            substrate.transact(move |sql| captures::capture(sql, None, &new)).await.map_err(trouble)?;
        stored.map_err(|refusal| anyhow!("{refusal:?}"))?;
    }
    // Triage and the sealing of the journal are not what is measured.
    loop {
        let there =
            substrate.read(|sql| candidates::count(sql, &AzollaId::stored("task_management"), i64::MAX));
        if there.await.map_err(trouble)?.0 as usize >= waiting {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    while substrate.transact(|sql| journal::seal(sql, 1_000)).await.map_err(trouble)?.0 > 0 {}
    Ok(())
}

/// From the request for a page to the page, in milliseconds.
async fn pages(substrate: &Substrate, name: &str) -> Result<Vec<f64>> {
    let maker = AzollaId::stored("task_management");
    let mut took = Vec::new();
    for n in 0..SAMPLES {
        let (id, title) = (ObjectiveId::stored(&format!("{name}-{n}")), format!("{name} {n}"));
        // Weightier than all others, so that the page is another one.
        let mut changed = draft(title, n);
        (changed.importance, changed.urgency) = (0, 0);
        let made = substrate.transact(move |sql| {
            let new = NewObjective::new(&id, &AzollaId::stored("tasks"), changed.clone());
            objectives::create(sql, &Actor("bench".into()), &new).map(drop)
        });
        made.await.map_err(trouble)?;
        let (of, request) = (maker.clone(), format!("{name}-{n}"));
        let began = door::stop_watch();
        let asked = request.clone();
        substrate.transact(move |sql| manifests::request(sql, &of, &asked)).await.map_err(trouble)?;
        loop {
            let asked = request.clone();
            let state = substrate.read(move |sql| manifests::state_of(sql, &asked)).await.map_err(trouble)?;
            if state.is_some_and(|state| state.manifest.is_some()) {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        took.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(took)
}
