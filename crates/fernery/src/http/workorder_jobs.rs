//! Jobs that carry workorders belong to the scheduler: what operators may do to other jobs, they do here to the objective.

use super::answer::Call;
use super::problem::{Code, Refusal, Refused};
use fernery_core::JobId;
use fernery_core::artifact::WorkorderId;
use fernery_engine::substrate::reading;

/// Refuses if one of these jobs carries a workorder, and names the command for its objective.
pub(super) async fn refuse(call: &Call, jobs: &[JobId], instead: &'static str) -> Result<(), Refused> {
    let ids: Vec<WorkorderId> = jobs.iter().map(|job_id| WorkorderId::from(*job_id)).collect();
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        for id in &ids {
            if let Some(view) = reading::workorder_by_id(sql, id)? {
                return Ok(Some(view.workorder));
            }
        }
        Ok(None)
    });
    match found.await? {
        None => Ok(()),
        Some(workorder) => {
            let (id, objective) = (&workorder.work_order_id, &workorder.objective_id);
            let command = instead.replace("{}", objective.as_str());
            let detail = format!("job {id} carries a workorder of objective {objective}; use `{command}`");
            Err(Refusal::new(Code::Conflict, detail))
        }
    }
}

/// Refuses a whole stream of workorders.
pub(super) fn stream_refused(stream: &fernery_core::StreamName) -> Refused {
    let detail = format!(
        "the jobs of {stream} carry workorders; use `fernery ticket unblock ID --all` or `fernery ticket cancel ID`"
    );
    Refusal::new(Code::Conflict, detail)
}
