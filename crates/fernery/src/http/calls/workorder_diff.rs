//! What changed from the result of one attempt at an objective to that of another. The artifacts have the patches; their trees
//! are made in a folder of this process, from the repository that it has.

use super::named::{named, unknown};
use crate::http::problem::{Code, Refusal};
use crate::http::wire::answer::{Call, Replied, Reply};
use fernery_client::wire::WorkorderDifference;
use fernery_core::artifact::{ObjectiveId, WorkorderId};
use fernery_engine::StoreError;
use fernery_engine::pipeline::{Sql, reading};
use fernery_exec::git::difference::PatchedBase;
use serde_json::Value;

/// The result of one attempt.
struct Attempt {
    objective_id: ObjectiveId,
    repo_ref: String,
    side: PatchedBase,
}

/// `GET /v1/workorders/{id}/diff`
pub async fn read(call: Call) -> Replied {
    let id: WorkorderId = named(&call)?;
    let since: Option<WorkorderId> = call.query.parsed("since")?;
    let Some(since) = since else {
        return Err(Refusal::field(
            Code::Invalid,
            "?since",
            "the workorder of the earlier attempt is missing",
        ));
    };
    let substrate = call.server.engine().substrate();
    let asked = [since.clone(), id.clone()];
    let found = substrate.read(move |sql| Ok([attempt(sql, &asked[0])?, attempt(sql, &asked[1])?])).await?;
    let [Some(before), Some(after)] = found else {
        return Err(unknown(&call, "output of a workorder")());
    };
    let conflict = |why: String| Refusal::new(Code::Conflict, why);
    if before.objective_id != after.objective_id {
        return Err(conflict(format!("{since} and {id} are attempts at two objectives")));
    }
    for (of, attempt) in [(&since, &before), (&id, &after)] {
        let patch = &attempt.side.patch;
        if attempt.side.base.is_empty() || !patch.is_empty() && !patch.starts_with("diff --git ") {
            return Err(conflict(format!("the output of {of} is no patch")));
        }
    }
    let (base_sha, since_base_sha) = (after.side.base.clone(), before.side.base.clone());
    let made = call.server.settings.pipeline.difference(&id, after.repo_ref, [before.side, after.side]);
    let Some(made) = made else {
        return Err(Refusal::new(
            Code::NoRepository,
            "this process has no repositories; ask one that works on tickets",
        ));
    };
    let patch = made.await.map_err(conflict)?;
    let (work_order_id, since) = (id.to_string(), since.to_string());
    Reply::json(200, &WorkorderDifference { work_order_id, since, base_sha, since_base_sha, patch })
}

fn attempt(sql: &mut dyn Sql, id: &WorkorderId) -> Result<Option<Attempt>, StoreError> {
    let (Some(work), Some(bundle)) = (reading::workorder_by_id(sql, id)?, reading::bundle(sql, id)?) else {
        return Ok(None);
    };
    let snapshot = reading::snapshot(sql, &work.workorder.context_snapshot_id)?;
    let said = |name: &str| {
        let value =
            snapshot.as_ref().and_then(|snapshot| snapshot.metadata.get(name)).and_then(Value::as_str);
        value.unwrap_or_default().to_string()
    };
    let side = PatchedBase { base: said("commit_sha"), patch: bundle.content };
    Ok(Some(Attempt { objective_id: work.workorder.objective_id, repo_ref: said("repo_ref"), side }))
}
