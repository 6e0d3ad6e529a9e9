//! Why an objective waits, for readers.

use crate::http::wire::answer::Call;
use crate::when;
use crate::workers::manning::unusable;
use fernery_client::wire::WaitingView;
use fernery_core::artifact::{AzollaId, Objective, ObjectiveStatus, WorkorderStatus};
use fernery_core::blueprint::{Blueprint, ExecutorKind};
use fernery_core::pipeline::ground::repo_ref;
use fernery_core::pipeline::waiting::Waiting;
use fernery_core::{StreamName, Timestamp};
use fernery_engine::pipeline::Sql;
use fernery_engine::pipeline::azollas::{self, Hosting, Registered};
use fernery_engine::pipeline::objectives::ObjectiveRow;
use fernery_engine::pipeline::reading::{self, WorkorderView};
use fernery_engine::pipeline::room::{self, Room};
use fernery_engine::{Explanation, StoreError, door};
use std::collections::HashMap;
use std::sync::Arc;

pub(in crate::http) fn view(waiting: &Waiting) -> WaitingView {
    WaitingView { code: waiting.code().to_string(), why: waiting.sentence() }
}

/// Why nobody could carry out the work on these objectives. Each stream and each azolla is looked at once, however many ask.
pub(in crate::http) struct Manning<'a> {
    call: &'a Call,
    blueprints: HashMap<AzollaId, Arc<Blueprint>>,
    unusable: HashMap<AzollaId, Option<Waiting>>,
    unpolled: HashMap<StreamName, bool>,
}

impl<'a> Manning<'a> {
    pub(in crate::http) fn new(call: &'a Call, in_force: impl IntoIterator<Item = Registered>) -> Self {
        let blueprints =
            in_force.into_iter().map(|of| (of.blueprint.azolla_id.clone(), of.blueprint)).collect();
        Self { call, blueprints, unusable: HashMap::new(), unpolled: HashMap::new() }
    }

    /// Why nobody could work on it now; `None`: somebody could, or nobody here can tell.
    pub(in crate::http) async fn lacks(
        &mut self,
        objective: &Objective,
    ) -> Result<Option<Waiting>, StoreError> {
        let Some(blueprint) = self.blueprints.get(&objective.azolla_id).cloned() else { return Ok(None) };
        let Some(executor) = blueprint.executor() else { return Ok(None) };
        if executor.kind != ExecutorKind::Remote {
            let premises = self.call.server.settings.pipeline.premises();
            let is_here = premises.is_some_and(|here| here.hosted.contains(&objective.azolla_id));
            let found = self.unusable.entry(objective.azolla_id.clone());
            return Ok(found.or_insert_with(|| is_here.then(|| unusable(&blueprint)).flatten()).clone());
        }
        let diazotroph_type = blueprint.diazotroph_type.clone();
        let stream = blueprint.stream_of(&diazotroph_type, repo_ref(objective));
        let engine = self.call.server.engine();
        let unpolled = match self.unpolled.get(&stream) {
            Some(known) => *known,
            None => {
                // Who works on another job of it comes back for this one.
                let running =
                    engine.store().stream(stream.clone()).await?.is_some_and(|of| of.counts.running > 0);
                let unpolled = !running && engine.is_unpolled(&stream);
                self.unpolled.insert(stream.clone(), unpolled);
                unpolled
            }
        };
        let since = engine.last_polled(&stream);
        Ok(unpolled.then_some(Waiting::NoWorker { stream, diazotroph_type, since }))
    }

    /// In a list: why an approved objective is stuck. `unclaimed`: it has a workorder that nobody works on.
    pub(in crate::http) async fn in_a_list(
        &mut self,
        row: &ObjectiveRow,
        hosting: &Hosting,
        unclaimed: bool,
    ) -> Result<Option<WaitingView>, StoreError> {
        let status = row.objective.status;
        if !matches!(status, ObjectiveStatus::Todo | ObjectiveStatus::InProgress) {
            return Ok(None);
        }
        let stuck = match hosting.waiting(&row.objective.azolla_id) {
            Some(not_hosted) => Some(not_hosted),
            None if status == ObjectiveStatus::Todo || unclaimed => self.lacks(&row.objective).await?,
            None => None,
        };
        Ok(stuck.as_ref().map(view))
    }
}

/// Who works on it.
struct Holder<'a> {
    worker_id: &'a str,
    /// How long that is believed without a heartbeat.
    until: Timestamp,
    expired: bool,
    /// It is asked to end it.
    stops: bool,
}

impl Holder<'_> {
    /// In words for people: what happens if the worker is gone is what they want to know.
    fn sentence(&self, now: Timestamp) -> String {
        let (worker, when) = (self.worker_id, when::relative(self.until, now));
        match self {
            Self { expired: true, .. } => {
                format!("worker {worker} is not heard of any more; another one takes it over soon")
            }
            Self { stops: true, .. } => format!("worker {worker} works on it, and is asked to stop"),
            _ => format!(
                "worker {worker} works on it; if it is heard of no more, another one takes it over {when}"
            ),
        }
    }
}

/// What was read beside an objective, in the same snapshot.
pub(in crate::http) struct Seen {
    pub(in crate::http) not_hosted: Option<Waiting>,
    room: Option<Room>,
    active: Option<WorkorderView>,
    for_people: bool,
}

pub(in crate::http) fn look(
    sql: &mut dyn Sql,
    row: &ObjectiveRow,
    in_force: Option<&Registered>,
) -> Result<Seen, StoreError> {
    let objective = &row.objective;
    Ok(Seen {
        not_hosted: azollas::hosting(sql)?.waiting(&objective.azolla_id),
        room: in_force.map(|registered| room::room(sql, registered)).transpose()?,
        active: reading::active_workorder(sql, &objective.objective_id)?,
        for_people: in_force.is_some_and(|registered| registered.blueprint.is_for_people()),
    })
}

/// What the objective waits for; `None`: nothing, or nobody can tell.
pub(in crate::http) async fn of(
    call: &Call,
    row: &ObjectiveRow,
    seen: Seen,
    lacks: Option<Waiting>,
) -> Result<Option<WaitingView>, StoreError> {
    let Seen { not_hosted, room, active, for_people } = seen;
    if for_people && active.as_ref().is_none_or(|work| work.workorder.status == WorkorderStatus::Created) {
        let open = matches!(row.objective.status, ObjectiveStatus::Todo | ObjectiveStatus::InProgress);
        return Ok(open.then(|| view(&Waiting::Person(row.objective.objective_id.clone()))));
    }
    if let Some(work) = active {
        let live = call.server.settings.pipeline.live();
        let gates = || Waiting::Gates(live.and_then(|live| live.gate_at_work(&work.workorder.work_order_id)));
        if work.workorder.status == WorkorderStatus::Executed {
            return Ok(Some(view(&not_hosted.unwrap_or_else(gates))));
        }
        let Some(job_id) = work.workorder.work_order_id.job_id() else { return Ok(None) };
        let Some((job, why)) = call.server.engine().explain(job_id).await? else { return Ok(None) };
        // A remote executor may hold it nevertheless, but no process would judge its output.
        return Ok(Some(match (not_hosted, lacks, &why) {
            (Some(not_hosted), _, Explanation::NoWorker { .. }) => view(&not_hosted),
            (None, Some(lacks), why) if why.is_unclaimed() => view(&lacks),
            // It was executed a moment ago.
            (_, _, Explanation::Ended(_)) => view(&gates()),
            (_, _, Explanation::Held { worker_id, until, expired, cancel_requested }) => {
                let holder = Holder { worker_id, until: *until, expired: *expired, stops: *cancel_requested };
                WaitingView { code: why.code().to_string(), why: holder.sentence(door::wall_clock()) }
            }
            _ => WaitingView { code: why.code().to_string(), why: why.sentence(&job.brief.stream) },
        }));
    }
    if row.objective.status != ObjectiveStatus::Todo {
        return Ok(None);
    }
    let limit = match room {
        Some(Room::Concurrency) => Waiting::Concurrency,
        Some(Room::Review) => Waiting::Review,
        Some(Room::Left(_) | Room::Track | Room::Triage) | None => lacks.unwrap_or(Waiting::Turn),
    };
    Ok(Some(view(&not_hosted.unwrap_or(limit))))
}
