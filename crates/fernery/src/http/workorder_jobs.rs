//! Jobs that carry workorders belong to the scheduler: what operators may do to other jobs, they do here to the objective.

use super::Server;
use super::answer::Call;
use super::problem::{Code, Refusal, Refused};
use fernery_core::artifact::WorkorderId;
use fernery_core::blueprint::ExecutorKind;
use fernery_core::names::RESERVED_STREAM_PREFIX;
use fernery_core::{JobId, StreamName};
use fernery_engine::substrate::{azollas, reading};

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

/// Workorders whose blueprint names a program are executed by the control plane itself: what somebody else would hand in
/// for them is not what was approved.
pub(super) async fn may_be_claimed_elsewhere(server: &Server, streams: &[StreamName]) -> Result<(), Refused> {
    if !streams.iter().any(StreamName::is_workorders) {
        return Ok(());
    }
    let known = server.engine().substrate().read(azollas::all).await?;
    for registered in &known {
        let blueprint = &registered.blueprint;
        let own = blueprint.executor().is_some_and(|executor| executor.kind != ExecutorKind::Remote);
        let stream = format!("{RESERVED_STREAM_PREFIX}{}", blueprint.diazotroph_type);
        if own && streams.iter().any(|asked| asked.as_str() == stream) {
            let detail = format!("workorders of {stream} are executed by the control plane itself");
            return Err(Refusal::new(Code::Forbidden, detail));
        }
    }
    Ok(())
}
