//! Reads the pipeline: events, workorders, runs, pauses, claims, azollas. Nothing here changes anything.

use super::export;
use super::named::{named, unknown};
use super::paging::Place;
use crate::config::RepoSettings;
use crate::http::problem::{Code, Refusal};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use crate::workers::reload::{Live, Unloaded};
use fernery_client::wire::{
    AzollaDetail, AzollaList, AzollaSummary, BlueprintDetail, ClaimList, EventPage, FieldProblem,
    ReloadRequest, ReplayResponse, RepoView, Role, RunPage, VerdictView, WorkorderDetail, WorkorderPage,
};
use fernery_core::artifact::{AzollaId, ObjectiveType, WorkorderId};
use fernery_core::pipeline::ground::Premises;
use fernery_engine::pipeline::azollas::{self, Hosting, Registered};
use fernery_engine::pipeline::reading::{self, Below};
use fernery_engine::pipeline::{claims, judging};
use fernery_exec::git::difference::PatchedBase;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// Claims in one answer. There are never more than workers times the claims that each may hold at once.
const CLAIMS_MAX: usize = 10_000;

/// What the workers of this process show to readers.
#[derive(Clone, Default)]
pub struct PipelineView {
    passes: Option<Arc<Passes>>,
    logs: Option<Arc<Logs>>,
    live: Option<Arc<Live>>,
    differences: Option<Arc<Differences>>,
}

type Differences = dyn Fn(&WorkorderId, String, [PatchedBase; 2]) -> Differing + Send + Sync;
/// A difference that is being made: a patch, or why there is none.
pub type Differing = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

type Passes = dyn Fn(&AzollaId) -> Vec<Value> + Send + Sync;
type Logs = dyn Fn(&WorkorderId, Option<&str>) -> PathBuf + Send + Sync;

impl PipelineView {
    /// `passes` gives the last pass of each worker of an azolla, `logs` the file with the output of a workorder's executor or
    /// gate. `live` knows what this process can start work on.
    pub(crate) fn new(
        live: Arc<Live>,
        passes: impl Fn(&AzollaId) -> Vec<Value> + Send + Sync + 'static,
        logs: impl Fn(&WorkorderId, Option<&str>) -> PathBuf + Send + Sync + 'static,
    ) -> Self {
        let (passes, logs) = (Some(Arc::new(passes) as _), Some(Arc::new(logs) as _));
        Self { passes, logs, live: Some(live), differences: None }
    }

    /// With what makes the difference of two attempts, in the repository of this name.
    #[must_use]
    pub fn with_differences(
        mut self,
        made: impl Fn(&WorkorderId, String, [PatchedBase; 2]) -> Differing + Send + Sync + 'static,
    ) -> Self {
        self.differences = Some(Arc::new(made));
        self
    }

    /// What changed between two attempts; `None` where no worker runs.
    pub fn difference(
        &self,
        id: &WorkorderId,
        repo_ref: String,
        sides: [PatchedBase; 2],
    ) -> Option<Differing> {
        self.differences.as_ref().map(|made| made(id, repo_ref, sides))
    }

    /// The repositories that tickets may name here.
    pub fn repos(&self) -> impl Iterator<Item = &RepoSettings> {
        self.live.iter().flat_map(|live| live.repos().values())
    }

    /// What reads the blueprints again; `None` where no worker runs.
    pub(crate) fn live(&self) -> Option<Arc<Live>> {
        self.live.clone()
    }

    /// What this process can start work on; `None` where no worker runs.
    pub fn premises(&self) -> Option<Premises> {
        self.live.as_ref().map(|live| live.premises())
    }

    /// The last pass of each worker of an azolla; none where no worker runs.
    pub fn passes(&self, azolla: &AzollaId) -> Vec<Value> {
        self.passes.as_ref().map_or_else(Vec::new, |passes| passes(azolla))
    }

    /// Where the log of a workorder's executor or of one of its gates is, if there is one; `None` where no worker runs.
    pub fn log_file(&self, id: &WorkorderId, gate: Option<&str>) -> Option<PathBuf> {
        self.logs.as_ref().map(|logs| logs(id, gate))
    }
}

impl fmt::Debug for PipelineView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.passes.is_some() { "PipelineView(workers)" } else { "PipelineView(none)" })
    }
}

macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident: $read:path, $list:literal, |$row:ident| $at:expr, $id:expr,
        $page:ident.$rows:ident = $shown:expr;)+) => {$(
        $(#[$doc])*
        pub async fn $name(call: Call) -> Replied {
            let place = Place::read(&call, $list.to_string())?;
            let (below, rows) = (place.below.clone(), place.rows_and_one());
            let found = call.server.engine().substrate().read(move |sql| $read(sql, &below, rows)).await?;
            let (found, next_cursor) = place.page(found, |$row| Below { at: $at, id: $id.to_string() });
            Reply::json(200, &$page { $rows: found.into_iter().map($shown).collect(), next_cursor })
        }
    )+};
}

lists!(
    /// `GET /v1/events`
    events: reading::events, "events", |row| row.event.created_at, row.event.event_id,
        EventPage.events = |row| json!(row);
    /// `GET /v1/workorders`
    workorders: reading::workorders, "workorders", |row| row.workorder.created_at, row.workorder.work_order_id,
        WorkorderPage.workorders = |row| json!(row);
    /// `GET /v1/runs`
    runs: reading::runs, "runs", |row| row.record.created_at, row.record.run_id,
        RunPage.runs = |row| json!(row);
);

/// `GET /v1/workorders/{id}`
pub async fn workorder(call: Call) -> Replied {
    let id: WorkorderId = named(&call)?;
    let engine = call.server.engine();
    let ended = export::attempts(engine, &id).await?.iter().map(|attempt| json!(attempt)).collect();
    let substrate = engine.substrate();
    let found = substrate.read(move |sql| {
        let Some(workorder) = reading::workorder_by_id(sql, &id)? else { return Ok(None) };
        let snapshot = reading::snapshot(sql, &workorder.workorder.context_snapshot_id)?;
        Ok(Some(WorkorderDetail {
            workorder: json!(workorder),
            context_snapshot: snapshot.map(|snapshot| json!(snapshot)),
            output_bundle: reading::bundle(sql, &id)?.map(|bundle| json!(bundle)),
            run: reading::run_of(sql, &id)?.map(|run| json!(run)),
            gates: azollas::by_digest(sql, &workorder.blueprint)?
                .map(|of| of.blueprint.gates.iter().map(|gate| json!(gate)).collect())
                .unwrap_or_default(),
            attempts: Vec::new(),
        }))
    });
    let detail = found.await?.ok_or_else(unknown(&call, "workorder"))?;
    Reply::json(200, &WorkorderDetail { attempts: ended, ..detail })
}

/// `GET /v1/workorders/{id}/context_snapshot`
pub async fn context_snapshot(call: Call) -> Replied {
    let id = named(&call)?;
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        let Some(workorder) = reading::workorder_by_id(sql, &id)? else { return Ok(None) };
        reading::snapshot(sql, &workorder.workorder.context_snapshot_id)
    });
    Reply::json(200, &found.await?.ok_or_else(unknown(&call, "workorder"))?)
}

/// `GET /v1/workorders/{id}/output_bundle`
pub async fn output_bundle(call: Call) -> Replied {
    let id = named(&call)?;
    let found = call.server.engine().substrate().read(move |sql| reading::bundle(sql, &id)).await?;
    Reply::json(200, &found.ok_or_else(unknown(&call, "output of a workorder"))?)
}

/// `GET /v1/runs/{id}`
pub async fn run(call: Call) -> Replied {
    let id = named(&call)?;
    let found = call.server.engine().substrate().read(move |sql| reading::run_by_id(sql, &id)).await?;
    Reply::json(200, &found.ok_or_else(unknown(&call, "run record"))?)
}

/// `GET /v1/runs/{id}/replay`
pub async fn replay(call: Call) -> Replied {
    let id = named(&call)?;
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        let Some(run) = reading::run_by_id(sql, &id)? else { return Ok(None) };
        judging::replay(sql, &run)
    });
    let (record, verdict) = found.await?.ok_or_else(unknown(&call, "run record"))?;
    let (again, reason) = verdict.recorded();
    let stored = VerdictView { gate_result: record.gate_result.to_string(), gate_reason: record.gate_reason };
    let again = VerdictView { gate_result: again.to_string(), gate_reason: reason };
    Reply::json(200, &ReplayResponse { same: stored == again, stored, again })
}

/// `GET /v1/claims`
pub async fn claims(call: Call) -> Replied {
    let engine = call.server.engine();
    let mut all = engine.substrate().read(|sql| claims::all(sql, CLAIMS_MAX as i64)).await?;
    all.extend(engine.store().workorder_leases(CLAIMS_MAX).await?);
    Reply::json(200, &ClaimList { claims: all })
}

fn summary(registered: &Registered, hosting: &Hosting) -> AzollaSummary {
    let azolla_id = &registered.blueprint.azolla_id;
    AzollaSummary {
        hosted: hosting.is_hosted(azolla_id),
        hosted_at: hosting.last(azolla_id),
        azolla_id: registered.blueprint.azolla_id.clone(),
        description: registered.blueprint.description.clone(),
        category: registered.blueprint.category.clone(),
        digest: registered.digest,
        takes_tickets: registered.blueprint.objective_type == ObjectiveType::Ticket,
        makes_manifests: registered.blueprint.manifest.is_some(),
        needs_repository: registered.blueprint.needs_repository(),
    }
}

/// `GET /v1/blueprints/{id}`
pub async fn blueprint(call: Call) -> Replied {
    let unknown = unknown(&call, "blueprint");
    let Ok(digest) = call.param.parse() else { return Err(unknown()) };
    let found = call.server.engine().substrate().read(move |sql| azollas::by_digest(sql, &digest)).await?;
    let Registered { digest, blueprint } = found.ok_or_else(unknown)?;
    let damaged = |_| Refusal::new(Code::StoreCorrupt, Code::StoreCorrupt.title());
    let blueprint = RawValue::from_string(blueprint.to_json()).map_err(damaged)?;
    Reply::json(200, &BlueprintDetail { digest, blueprint })
}

/// `GET /v1/azollas`
pub async fn azollas(call: Call) -> Replied {
    let substrate = call.server.engine().substrate();
    let (all, hosting) = substrate.read(|sql| Ok((azollas::all(sql)?, azollas::hosting(sql)?))).await?;
    let is_operator = call.caller.0.as_ref().is_some_and(|token| token.role == Role::Operator);
    let repos = call.server.settings.pipeline.repos().map(|repo| RepoView {
        name: repo.name.clone(),
        base: repo.base.clone(),
        path: is_operator.then(|| {
            std::path::absolute(&repo.path).unwrap_or_else(|_| repo.path.clone()).display().to_string()
        }),
    });
    let azollas = all.iter().map(|of| summary(of, &hosting)).collect();
    Reply::json(200, &AzollaList { azollas, repos: repos.collect() })
}

/// `GET /v1/azollas/{id}`
pub async fn azolla(call: Call) -> Replied {
    let id: AzollaId = named(&call)?;
    let asked = id.clone();
    let substrate = call.server.engine().substrate();
    let (found, hosting) =
        substrate.read(move |sql| Ok((azollas::in_force(sql, &asked)?, azollas::hosting(sql)?))).await?;
    let registered = found.ok_or_else(unknown(&call, "azolla"))?;
    let blueprint = serde_json::from_str(&registered.blueprint.to_json()).unwrap_or(Value::Null);
    let workers = call.server.settings.pipeline.passes(&id);
    Reply::json(200, &AzollaDetail { summary: summary(&registered, &hosting), blueprint, workers })
}

/// `POST /v1/reload`
pub async fn reload(call: Call) -> Replied {
    let ReloadRequest { dry_run } =
        if call.body.is_empty() { ReloadRequest::default() } else { json::read(&call.body)? };
    let Some(live) = call.server.settings.pipeline.live() else {
        return Err(Refusal::new(Code::Conflict, "this server hosts no azollas"));
    };
    let _writing = call.writing()?;
    let done = if dry_run { live.changes().await } else { live.reload().await };
    match done {
        Ok(answer) => Reply::json(200, &answer),
        Err(Unloaded::Store(error)) => Err(error.into()),
        Err(Unloaded::Mistakes(mistakes)) => {
            let why = "the blueprints cannot be applied, and nothing was changed";
            let errors = mistakes.into_iter().map(|detail| FieldProblem { pointer: String::new(), detail });
            Err(Box::new(Refusal { errors: errors.collect(), ..*Refusal::new(Code::Invalid, why) }))
        }
    }
}
