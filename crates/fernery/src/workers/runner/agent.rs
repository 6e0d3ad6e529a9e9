//! Lets an agent make a patch under the runner's lease, and hands in the result.

use super::Slot;
use crate::workers::leftovers::{log_file, run_folder};
use fernery_core::Progress;
use fernery_core::blueprint::Executor;
use fernery_core::names::is_unprintable;
use fernery_core::pipeline::patching::Unready;
use fernery_core::profile::Profile;
use fernery_core::{Timestamp, limits};
use fernery_engine::store::{Beat, Claimed};
use fernery_engine::{StoreError, door};
use fernery_exec::agent::trash::{Content, Whose};
use fernery_exec::agent::{AgentRun, Payload, RunEnd, RunFolder, reserve, unready};
use fernery_exec::git::repository::Repository;
use fernery_exec::sandbox::Probe;
use fernery_exec::stop::{StopOrder, StopReason};
use serde_json::Value;
use tokio::sync::mpsc;

/// Why there is no run.
enum Unmade {
    /// The sandbox that the agent needs is not available; a retry would not help.
    NoSandbox(String),
    /// A retry may help: the reason, as a code and a sentence.
    Broken(&'static str, String),
}

impl Slot {
    pub(super) async fn run_agent(
        &self,
        job: &Claimed,
        executor: &Executor,
        profile: &Profile,
    ) -> Result<(), StoreError> {
        let probe = self.context.probing.probe().await;
        let run = match self.agent_run(job, executor, profile, probe) {
            Ok(run) => run,
            Err(Unmade::NoSandbox(why)) => {
                return self.hand_in(job, unready(Unready::Sandbox, &why)).await.map(drop);
            }
            Err(Unmade::Broken(code, why)) => return self.fail(job, code, &why).await,
        };
        let folder = run.folder.clone();
        let (order, orders) = mpsc::unbounded_channel();
        let (note, notes) = mpsc::unbounded_channel();
        let tell = |reason: StopReason, grace| {
            let _ = order.send(StopOrder { reason, grace });
        };
        let work = async {
            tokio::select! {
                end = run.carry_out(orders, note) => end,
                never = self.say_all(job, notes) => match never {},
            }
        };
        let (end, why) = self.attend(job, reserve, work, tell).await;
        door::failpoint("workorder-ran");
        match (end, why) {
            // The lease is lost: write nothing (invariant 11). The agent's work stays in its folder.
            (end, Some(StopReason::LeaseLost)) => {
                if matches!(end, RunEnd::HandIn(_)) {
                    folder.move_to_trash(
                        Content::OnlyCopy,
                        "its lease was lost before its work could be handed in",
                    );
                }
                Ok(())
            }
            (RunEnd::GivenUp, Some(StopReason::ShuttingDown)) => self.release(job).await,
            (RunEnd::GivenUp, _) => self.fail(job, "given_up", "it was ended before it was done").await,
            (RunEnd::Infrastructure(code, said), _) => self.fail(job, code, &said).await,
            (RunEnd::HandIn(parts), _) => {
                let taken = self.hand_in(job, parts).await?;
                door::failpoint("workorder-handed-in");
                match taken {
                    Ok(()) => folder.move_to_trash(Content::Spare, "its work was handed in"),
                    Err(why) => folder.move_to_trash(Content::OnlyCopy, &why),
                };
                Ok(())
            }
        }
    }

    fn agent_run(
        &self,
        job: &Claimed,
        executor: &Executor,
        profile: &Profile,
        probe: &Probe,
    ) -> Result<AgentRun, Unmade> {
        let unreadable =
            |error: serde_json::Error| Unmade::Broken("unreadable", format!("its payload: {error}"));
        let Payload { workorder, context_snapshot: snapshot } =
            serde_json::from_str(job.payload.get()).map_err(unreadable)?;
        let wanted = executor.sandbox.or(profile.sandbox);
        let tier = probe.choose(wanted).map_err(Unmade::NoSandbox)?;
        let name = snapshot.metadata.get("repo_ref").and_then(Value::as_str).unwrap_or_default();
        let repository = match self.context.repos.get(name) {
            Some(repo) => Repository::open(&repo.path),
            None => Err(format!("repository {name} is not in [repos] of the configuration")),
        };
        let (id, attempt) = (workorder.work_order_id.to_string(), job.attempt_id.to_string());
        let (work, trash) = (&self.context.work, self.context.trash.clone());
        let (path, log) = (run_folder(work, &id, &attempt), log_file(work, &id));
        let objective_id = workorder.objective_id.to_string();
        let whose = Whose { objective_id, work_order_id: id, attempt_id: attempt };
        let folder = RunFolder::new(path, log, trash, whose, self.context.private.clone());
        let folder = folder.map_err(|error| Unmade::Broken("no_folder", error.to_string()))?;
        let (profile, env, hang_max) = (profile.clone(), executor.env.clone(), self.context.lease_ttl);
        Ok(AgentRun { workorder, snapshot, profile, env, tier, repository, folder, hang_max })
    }

    /// Reports what the agent is doing, for as long as it runs.
    async fn say_all(
        &self,
        job: &Claimed,
        mut notes: mpsc::UnboundedReceiver<String>,
    ) -> std::convert::Infallible {
        while let Some(line) = notes.recv().await {
            let beat = Beat { job_id: job.job_id, token_hash: job.lease_token.hash() };
            let printable = line.chars().filter(|c| !is_unprintable(*c));
            let line: String = printable.take(limits::PROGRESS_NOTE_CHARS_MAX).collect();
            let store = self.context.engine.store();
            if let Ok(progress) = Progress::new(spent_percent(job, store.lease_time()), Some(line)) {
                let _ = store.progress(vec![(beat, progress)]).await;
            }
        }
        std::future::pending().await
    }
}

/// How much of its budget is spent.
fn spent_percent(job: &Claimed, now: Timestamp) -> u8 {
    let Some(until) = job.timeout_at else { return 0 };
    let (all, left) = (until.since(job.claimed_at), until.since(now));
    let spent = all.saturating_sub(left).as_millis() * 100 / all.as_millis().max(1);
    u8::try_from(spent.min(100)).unwrap_or(100)
}
