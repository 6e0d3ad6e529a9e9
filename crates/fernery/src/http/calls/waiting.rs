//! Why an objective waits, for readers.

use fernery_client::wire::WaitingView;
use fernery_core::artifact::{ObjectiveStatus, WorkorderStatus};
use fernery_core::pipeline::waiting::Waiting;
use fernery_engine::pipeline::Sql;
use fernery_engine::pipeline::azollas::{self, Hosting, Registered};
use fernery_engine::pipeline::objectives::ObjectiveRow;
use fernery_engine::pipeline::reading::{self, WorkorderView};
use fernery_engine::pipeline::room::{self, Room};
use fernery_engine::{Engine, Explanation, StoreError};

fn view(waiting: &Waiting) -> WaitingView {
    WaitingView { code: waiting.code().to_string(), why: waiting.sentence() }
}

/// In a list, the only reason that is named: no process runs the workers of its azolla.
pub(in crate::http) fn in_a_list(row: &ObjectiveRow, hosting: &Hosting) -> Option<WaitingView> {
    match row.objective.status {
        ObjectiveStatus::Todo | ObjectiveStatus::InProgress => {
            hosting.waiting(&row.objective.azolla_id).as_ref().map(view)
        }
        _ => None,
    }
}

/// What was read beside an objective, in the same snapshot.
pub(in crate::http) struct Seen {
    not_hosted: Option<Waiting>,
    room: Option<Room>,
    active: Option<WorkorderView>,
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
    })
}

/// What the objective waits for; `None`: nothing, or nobody can tell.
pub(in crate::http) async fn of(
    engine: &Engine,
    row: &ObjectiveRow,
    seen: Seen,
) -> Result<Option<WaitingView>, StoreError> {
    let Seen { not_hosted, room, active } = seen;
    if let Some(work) = active {
        if work.workorder.status == WorkorderStatus::Executed {
            return Ok(Some(view(&not_hosted.unwrap_or(Waiting::Gates))));
        }
        let Some(job_id) = work.workorder.work_order_id.job_id() else { return Ok(None) };
        let Some((job, why)) = engine.explain(job_id).await? else { return Ok(None) };
        // A remote executor may hold it nevertheless, but no process would judge its output.
        return Ok(Some(match (not_hosted, &why) {
            (Some(not_hosted), Explanation::NoWorker { .. }) => view(&not_hosted),
            _ => WaitingView { code: why.code().to_string(), why: why.sentence(&job.brief.stream) },
        }));
    }
    if row.objective.status != ObjectiveStatus::Todo {
        return Ok(None);
    }
    let limit = match room {
        Some(Room::Concurrency) => Waiting::Concurrency,
        Some(Room::Review) => Waiting::Review,
        Some(Room::Left(_) | Room::Track | Room::Triage) | None => Waiting::Turn,
    };
    Ok(Some(view(&not_hosted.unwrap_or(limit))))
}
