//! Jobs that carry workorders belong to the scheduler. What an operator may do to any other job is refused here; the operator
//! acts on the objective instead.

use crate::http::Server;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::Call;
use fernery_core::artifact::{DiazotrophType, WorkorderId};
use fernery_core::blueprint::{Blueprint, ExecutorKind};
use fernery_core::{JobId, StreamName};
use fernery_engine::pipeline::{azollas, reading, stranding};
use fernery_engine::store::{Claimed, Proof};
use std::collections::HashSet;
use tracing::warn;

/// Refuses if one of these jobs carries a workorder, and names the command for its objective.
pub(in crate::http) async fn refuse(
    call: &Call,
    jobs: &[JobId],
    instead: &'static str,
) -> Result<(), Refused> {
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
            let detail = format!("job {id} carries a workorder of the ticket {objective}; use `{command}`");
            Err(Refusal::new(Code::Conflict, detail))
        }
    }
}

/// The refusal for a whole stream of workorders.
pub(in crate::http) fn stream_refused(stream: &fernery_core::StreamName) -> Refused {
    let detail = format!(
        "the jobs of {stream} carry workorders; use `fernery ticket unblock ID --all` or `fernery ticket cancel ID`"
    );
    Refusal::new(Code::Conflict, detail)
}

/// Remote executors may claim from a stream of workorders only if a blueprint in force says so: the approval was for the
/// program that the blueprint names, and the output of anything else is not what was approved.
pub(in crate::http) async fn may_be_claimed_elsewhere(
    server: &Server,
    streams: &[StreamName],
) -> Result<(), Refused> {
    if let Some(stream) = streams.iter().find(|stream| stream.is_notices()) {
        let detail = format!("the jobs of {stream} are notices, which the server itself sends");
        return Err(Refusal::new(Code::Forbidden, detail));
    }
    if !streams.iter().any(StreamName::is_workorders) {
        return Ok(());
    }
    let known = server.engine().substrate().read(azollas::all).await?;
    let open: HashSet<String> = known
        .iter()
        .flat_map(|registered| {
            let used = registered.blueprint.used_executors().into_iter();
            let remote = used.filter(|(_, executor)| executor.kind == ExecutorKind::Remote);
            remote.map(|(of, _)| registered.blueprint.stream_of(&of, None).to_string()).collect::<Vec<_>>()
        })
        .collect();
    let is_open = |asked: &StreamName| {
        let mut parts = asked.as_str().splitn(3, ':');
        let of = [parts.next(), parts.next()].map(Option::unwrap_or_default).join(":");
        open.contains(&of)
    };
    match streams.iter().find(|asked| asked.is_workorders() && !is_open(asked)) {
        None => Ok(()),
        Some(stream) => {
            let detail = format!("no current blueprint lets remote executors claim workorders of {stream}");
            Err(Refusal::new(Code::Forbidden, detail))
        }
    }
}

fn is_remote(blueprint: &Blueprint, of: &DiazotrophType) -> bool {
    blueprint.executor_of(of).is_some_and(|executor| executor.kind == ExecutorKind::Remote)
}

/// The claimed jobs that a remote executor may have. The blueprint that a workorder was made under decides, not the one in
/// force now: a workorder for a local program is released, and its objective is blocked if no executor here would run it.
pub(in crate::http) async fn for_elsewhere(
    server: &Server,
    claimed: Vec<Claimed>,
) -> Result<Vec<Claimed>, Refused> {
    let ids: Vec<WorkorderId> =
        claimed.iter().filter(|job| job.stream.is_workorders()).map(|job| job.job_id.into()).collect();
    if ids.is_empty() {
        return Ok(claimed);
    }
    let substrate = server.engine().substrate();
    let read = substrate.read(move |sql| {
        let mut open = HashSet::new();
        for id in &ids {
            let Some(work) = reading::workorder_by_id(sql, id)? else { continue };
            let of = &work.workorder.diazotroph_type;
            if azollas::by_digest(sql, &work.blueprint)?.is_some_and(|made| is_remote(&made.blueprint, of)) {
                open.extend(id.job_id());
            }
        }
        Ok(open)
    });
    let (open, trouble) = match read.await {
        Ok(open) => (open, None),
        Err(error) => (HashSet::new(), Some(error)),
    };
    let may =
        |job: &Claimed| trouble.is_none() && (!job.stream.is_workorders() || open.contains(&job.job_id));
    let (handed_out, kept_back): (Vec<_>, Vec<_>) = claimed.into_iter().partition(may);
    if !kept_back.is_empty() {
        let proof = |job: &Claimed| Proof {
            job_id: job.job_id,
            attempt_id: job.attempt_id,
            token_hash: job.lease_token.hash(),
        };
        server.engine().store().release(kept_back.iter().map(proof).collect()).await?;
    }
    if let Some(error) = trouble {
        return Err(error.into());
    }
    for job in kept_back {
        warn!(
            work_order_id = %job.job_id,
            "not handed out: the approval covers an executor inside the server, not a remote one"
        );
        substrate.transact(move |sql| stranding::strand(sql, &job.job_id.into())).await?;
    }
    Ok(handed_out)
}
