//! Has an agent make a patch under the lease that the runner holds, and hands in what came of it.

use super::leftovers::{log_file, run_folder};
use super::runner::{Slot, Why};
use crate::diazotroph::trash::Whose;
use crate::diazotroph::{Done, EndOrder, Errand, Payload, Place, reserve, unready};
use crate::git::repository::Repository;
use crate::sandbox::Probe;
use fernery_core::blueprint::Executor;
use fernery_core::limits;
use fernery_core::names::is_unprintable;
use fernery_core::pipeline::patching::{Cut, Unready};
use fernery_core::profile::Profile;
use fernery_core::progress::Progress;
use fernery_engine::store::{Beat, Claimed};
use fernery_engine::{StoreError, door};
use serde_json::Value;
use tokio::sync::mpsc;

impl Why {
    /// As the run of an agent has it; `None`: it says nothing about the run.
    fn cut(self) -> Option<Cut> {
        match self {
            Self::Cancelled => Some(Cut::Cancelled),
            Self::Budget => Some(Cut::Budget),
            Self::ShuttingDown | Self::LeaseLost => None,
        }
    }
}

/// Why there is no errand.
enum Unmade {
    /// Nothing here contains the agent as it has to be, and trying again would not help.
    NoSandbox(String),
    /// It may go better another time: the reason, in a word and a sentence.
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
        let errand = match self.errand(job, executor, profile, probe) {
            Ok(errand) => errand,
            Err(Unmade::NoSandbox(why)) => {
                return self.hand_in(job, unready(Unready::Sandbox, &why)).await.map(drop);
            }
            Err(Unmade::Broken(code, why)) => return self.fail(job, code, &why).await,
        };
        let place = errand.place().clone();
        let (order, orders) = mpsc::unbounded_channel();
        let (note, notes) = mpsc::unbounded_channel();
        let tell = |why: Why, grace| {
            let _ = order.send(EndOrder { grace, cut: why.cut() });
        };
        let work = async {
            tokio::select! {
                done = errand.carry_out(orders, note) => done,
                never = self.say_all(job, notes) => match never {},
            }
        };
        let (done, why) = self.attend(job, reserve, work, tell).await;
        door::failpoint("workorder-ran");
        match (done, why) {
            // Not the holder any more: not one write (invariant 11). What was made stays here.
            (done, Some(Why::LeaseLost)) => {
                if matches!(done, Done::HandIn(_)) {
                    place.keep(false, "its lease was lost before its work could be handed in");
                }
                Ok(())
            }
            (Done::GivenUp, Some(Why::ShuttingDown)) => self.release(job).await,
            (Done::GivenUp, _) => self.fail(job, "given_up", "it was ended before it was done").await,
            (Done::Infrastructure(code, said), _) => self.fail(job, code, &said).await,
            (Done::HandIn(parts), _) => {
                let taken = self.hand_in(job, parts).await?;
                door::failpoint("workorder-handed-in");
                match taken {
                    Ok(()) => place.keep(true, "its work was handed in"),
                    Err(why) => place.keep(false, &why),
                };
                Ok(())
            }
        }
    }

    fn errand(
        &self,
        job: &Claimed,
        executor: &Executor,
        profile: &Profile,
        probe: &Probe,
    ) -> Result<Errand, Unmade> {
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
        let (folder, log) = (run_folder(work, &id, &attempt), log_file(work, &id));
        let objective_id = workorder.objective_id.to_string();
        let whose = Whose { objective_id, work_order_id: id, attempt_id: attempt };
        let place = Place::new(folder, log, trash, whose);
        let place = place.map_err(|error| Unmade::Broken("no_folder", error.to_string()))?;
        let (profile, env, hang_max) = (profile.clone(), executor.env.clone(), self.context.lease_ttl);
        Ok(Errand { workorder, snapshot, profile, env, tier, repository, place, hang_max })
    }

    /// Lets people see what it is doing, for as long as it does.
    async fn say_all(
        &self,
        job: &Claimed,
        mut notes: mpsc::UnboundedReceiver<String>,
    ) -> std::convert::Infallible {
        while let Some(line) = notes.recv().await {
            let beat = Beat { job_id: job.job_id, token_hash: job.lease_token.hash() };
            let printable = line.chars().filter(|c| !is_unprintable(*c));
            let line: String = printable.take(limits::PROGRESS_NOTE_CHARS_MAX).collect();
            if let Ok(progress) = Progress::new(spent_percent(job), Some(line)) {
                let _ = self.context.engine.store().progress(vec![(beat, progress)]).await;
            }
        }
        std::future::pending().await
    }
}

/// How much of its budget is spent.
fn spent_percent(job: &Claimed) -> u8 {
    let Some(until) = job.timeout_at else { return 0 };
    let (all, left) = (until.since(job.claimed_at), until.since(door::wall_clock()));
    let spent = all.saturating_sub(left).as_millis() * 100 / all.as_millis().max(1);
    u8::try_from(spent.min(100)).unwrap_or(100)
}
