//! The patch executor on another machine: a worker that claims workorders for its own repositories and makes patches in
//! private clones of them.

use super::handler::weightier;
use crate::config::Repos;
use fernery_client::worker::{self, Failure, Job};
use fernery_core::artifact::{ContextSnapshot, DiazotrophType, Workorder};
use fernery_core::names::RESERVED_STREAM_PREFIX;
use fernery_core::profile::Profile;
use fernery_core::{JobId, StreamName};
use fernery_exec::agent::trash::{Content, Trash, Whose};
use fernery_exec::agent::{AgentRun, Payload, RunEnd, RunFolder, reserve};
use fernery_exec::git::repository::Repository;
use fernery_exec::sandbox::Tier;
use fernery_exec::sandbox::modes::Private;
use fernery_exec::stop::{StopOrder, StopReason};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// How long an agent may take to end on TERM.
const GRACE: Duration = Duration::from_secs(5);

/// Makes patches for one kind of workorder.
#[derive(Clone, Debug)]
pub(crate) struct RemotePatches {
    pub(crate) profile: Profile,
    /// The sandbox of the agent.
    pub(crate) tier: Tier,
    /// The repositories that are here.
    pub(crate) repos: Repos,
    /// Where clones are made.
    pub(crate) work: PathBuf,
    /// Where clones go when a run is over.
    pub(crate) trash: Trash,
    /// Files whose modes no run may open to other users.
    pub(crate) private: Private,
    /// Folders in the trash whose work the server has not yet accepted, by job.
    pub(crate) unanswered: Arc<Mutex<HashMap<JobId, PathBuf>>>,
}

impl RemotePatches {
    /// The streams to claim from: one for each repository of this worker.
    pub(crate) fn streams(&self, of: &DiazotrophType) -> Vec<StreamName> {
        let stream = |repo: &String| StreamName::stored(&format!("{RESERVED_STREAM_PREFIX}{of}:{repo}"));
        self.repos.keys().map(stream).collect()
    }

    /// The server has answered a report about this job. Work that it accepted need not be kept forever.
    pub(crate) fn answered(&self, job: JobId, taken: bool) {
        let kept = self.unanswered.lock().expect("not poisoned").remove(&job);
        if let Some(kept) = kept.filter(|_| taken)
            && let Err(error) = self.trash.mark_handed_in(&kept).and_then(|()| self.trash.empty())
        {
            tracing::warn!(%error, "could not clean up the trash");
        }
    }

    /// Carries one workorder out.
    pub(crate) async fn run(&self, job: Job) -> Result<Box<RawValue>, Failure> {
        let Payload { workorder, context_snapshot: snapshot } = job.payload()?;
        // What earlier attempts have left of the budget.
        let whole = Duration::from_millis(workorder.budget_ms);
        let budget = job.time_out().map_or(whole, |left| left.min(whole));
        let run = self.agent_run(&job, workorder, snapshot)?;
        let folder = run.folder.clone();
        let (order, orders) = mpsc::unbounded_channel();
        let (note, mut notes) = mpsc::unbounded_channel::<String>();
        let since = tokio::time::Instant::now();
        let work = run.carry_out(orders, note);
        tokio::pin!(work);
        let deadline = tokio::time::sleep(budget.saturating_sub(reserve(budget)));
        tokio::pin!(deadline);
        let (mut reason, mut spent) = (None, false);
        let end = loop {
            tokio::select! {
                end = &mut work => break end,
                Some(line) = notes.recv() => {
                    let percent = since.elapsed().as_millis() * 100 / budget.as_millis().max(1);
                    job.progress(u8::try_from(percent.min(100)).unwrap_or(100), Some(&line));
                }
                why = weightier(&job, reason) => {
                    reason = Some(why);
                    let _ = order.send(stop_order(why));
                }
                () = &mut deadline, if !spent => {
                    spent = true;
                    let grace = reserve(budget) / 2;
                    let _ = order.send(StopOrder { reason: StopReason::BudgetSpent, grace });
                }
            }
        };
        match end {
            RunEnd::HandIn(parts) => {
                // Until the server has accepted the work, this folder is the only copy.
                let kept =
                    folder.move_to_trash(Content::OnlyCopy, "the server has not acknowledged its work yet");
                if let Some(kept) = kept {
                    self.unanswered.lock().expect("not poisoned").insert(job.id(), kept);
                }
                to_raw_value(&parts).map_err(|error| Failure::new("unreadable", error.to_string()))
            }
            RunEnd::Infrastructure(code, said) => Err(Failure::new(code, said)),
            RunEnd::GivenUp => Err(Failure::release()),
        }
    }

    fn agent_run(
        &self,
        job: &Job,
        workorder: Workorder,
        snapshot: ContextSnapshot,
    ) -> Result<AgentRun, Failure> {
        let name = snapshot.metadata.get("repo_ref").and_then(Value::as_str).unwrap_or_default();
        let repository = match self.repos.get(name) {
            Some(repo) => Repository::open(&repo.path),
            None => return Err(Failure::release()),
        };
        let (id, attempt) = (workorder.work_order_id.to_string(), job.attempt_id().to_string());
        let path = self.work.join(format!("run-{id}-{attempt}"));
        let log = self.work.join("logs").join(format!("{id}.log"));
        let objective_id = workorder.objective_id.to_string();
        let whose = Whose { objective_id, work_order_id: id, attempt_id: attempt };
        let folder = RunFolder::new(path, log, self.trash.clone(), whose, self.private.clone())
            .map_err(|error| Failure::new("no_folder", error.to_string()))?;
        let (profile, tier, hang_max) = (self.profile.clone(), self.tier, job.lease_ttl());
        Ok(AgentRun { workorder, snapshot, profile, env: Vec::new(), tier, repository, folder, hang_max })
    }
}

/// Translates the loop's reason to stop for the run of an agent.
fn stop_order(told: worker::StopReason) -> StopOrder {
    let (reason, grace) = match told {
        worker::StopReason::CancelRequested => (StopReason::Cancelled, GRACE),
        worker::StopReason::ShuttingDown => (StopReason::ShuttingDown, GRACE),
        // The lease may be lost already.
        worker::StopReason::LeaseUnsure | worker::StopReason::TimedOut => (StopReason::LeaseLost, GRACE / 5),
        worker::StopReason::LeaseLost => (StopReason::LeaseLost, Duration::ZERO),
    };
    StopOrder { reason, grace }
}
