//! Runs the program of an executor under the runner's lease, and hands in the result.

use super::Slot;
use crate::config::duration::millis;
use crate::workers::leftovers::run_folder;
use crate::workers::stop_watch;
use fernery_core::blueprint::Executor;
use fernery_core::names::showable;
use fernery_core::pipeline::execution::notes_of_spent_budget;
use fernery_core::pipeline::membrane::Outcome;
use fernery_engine::store::Claimed;
use fernery_engine::{StoreError, door};
use fernery_exec::agent::{occupy, remove_all};
use fernery_exec::command::{Command, cell};
use fernery_exec::guard::{ATTEMPT_VARIABLE, Input, NotRun, Ran, Stopped};
use fernery_exec::sandbox::modes::settle;
use fernery_exec::sandbox::{Cell, Tier};
use fernery_exec::stop::StopReason;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

/// How much of a program's output is kept as content; all parts together have a limit.
const KEPT_BYTES_MAX: usize = 768 << 10;
/// At most this much of the budget is reserved for stopping the program and handing in.
const RESERVE_MAX: Duration = Duration::from_secs(2);

impl Slot {
    pub(super) async fn run_program(&self, job: &Claimed, executor: &Executor) -> Result<(), StoreError> {
        let tier = match self.context.probing.choose(executor.sandbox).await {
            Ok(tier) => tier,
            Err(why) => return self.fail(job, "no_sandbox", &why).await,
        };
        let attempt = job.attempt_id.to_string();
        let folder = run_folder(&self.context.work, &job.job_id.to_string(), &attempt);
        let _occupied = match occupy(&folder) {
            Ok(occupied) => occupied,
            Err(error) => return self.fail(job, "no_folder", &error.to_string()).await,
        };
        let cell = Cell { network: executor.network, ..cell(&folder, &attempt) };
        let command = match Command::new(&executor.argv, &executor.env, &cell, tier) {
            Ok(command) => command,
            Err(error) => return self.fail(job, "no_folder", &error.to_string()).await,
        };
        let since = stop_watch();
        let env = vec![
            (ATTEMPT_VARIABLE.to_string(), job.attempt_id.to_string()),
            ("FERNERY_WORK_ORDER_ID".to_string(), job.job_id.to_string()),
        ];
        let (stop, stops) = mpsc::unbounded_channel();
        let stdin = job.payload.get().as_bytes();
        let input =
            Input { env, stdin, ends_when_full: true, listener: None, hang_max: self.context.lease_ttl };
        let run = command.run(input, stops);
        let tell = |_: StopReason, grace| {
            let _ = stop.send(grace);
        };
        let (ran, why) = self.attend(job, |budget| RESERVE_MAX.min(budget / 10), run, tell).await;
        door::failpoint("workorder-ran");
        let ms = millis(since.elapsed());
        command.close().await;
        settle(&folder, &self.context.private).await;
        let _ = remove_all(&folder);
        match (ran, why) {
            // The lease is lost: write nothing (invariant 11).
            (_, Some(StopReason::LeaseLost)) => Ok(()),
            // This process hung; that says nothing about the work.
            (Ok(ran), _) if ran.stopped == Some(Stopped::Silence) => {
                self.fail(job, "host_hung", "this process hung for longer than its lease").await
            }
            (Ok(ran), Some(StopReason::ShuttingDown)) if ran.stopped.is_some() => self.release(job).await,
            (Ok(ran), why) => self.hand_in(job, parts((executor, tier), ran, why, ms)).await.map(drop),
            (Err(NotRun::NoCommand(said)), _) => self.fail(job, "no_command", &said).await,
            (Err(NotRun::NotStarted(said)), _) => self.fail(job, "cannot_start", &said).await,
            (Err(NotRun::NoGuard(said)), _) => self.fail(job, "guard_died", &said).await,
        }
    }
}

/// What a program that ran hands in: the parts that it wrote as JSON, or its text as content.
fn parts((executor, tier): (&Executor, Tier), ran: Ran, why: Option<StopReason>, ms: u64) -> Value {
    let exit = ran.seen.exit.code();
    let stopped = ran.stopped.is_some();
    let complaints = showable(&ran.seen.stderr.text());
    let (cut, bytes) = (ran.seen.stdout.is_cut(), ran.seen.stdout.kept());
    let facts = |outcome: Outcome| json!({"outcome": outcome.as_str(), "executor": executor.argv.first(), "sandbox": tier, "exit": exit, "wall_ms": ms});
    let plain = |outcome: Outcome, title: &str, content: &str, notes: &str| json!({"title": title, "content": content, "notes": notes, "metadata": facts(outcome)});
    let text = String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}");
    // Replacing bytes that are not UTF-8 makes the text longer.
    let text = &text[..text.floor_char_boundary(KEPT_BYTES_MAX)];
    match why {
        Some(StopReason::BudgetSpent) if stopped => {
            let captured = match text.len() {
                0 => "nothing, because it had written nothing".to_string(),
                bytes => format!("{bytes} bytes that it had written, as content"),
            };
            let notes = notes_of_spent_budget(Some(ms), &captured, &complaints);
            return plain(Outcome::Budget, "The budget is spent", text, &notes);
        }
        Some(StopReason::Cancelled) if stopped => {
            return plain(Outcome::Cancelled, "Cancelled", text, &complaints);
        }
        _ => {}
    }
    if cut {
        return plain(Outcome::Protocol, "More output than may be handed in", &text[..0], &complaints);
    }
    if exit != Some(0) {
        let title = exit
            .map_or("The program was killed".to_string(), |code| format!("The program exited with {code}"));
        return plain(Outcome::Failed, &title, text, &complaints);
    }
    if std::str::from_utf8(&bytes).is_err() {
        return plain(Outcome::Protocol, "The output is not UTF-8", "", &complaints);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(mut given)) if given.contains_key("title") && given.contains_key("content") => {
            if let Some(metadata) = given.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
                && let Value::Object(facts) = facts(Outcome::Output)
            {
                for (name, value) in facts {
                    // The program decides about its outcome, but not about the facts of its run.
                    if name != "outcome" || !metadata.contains_key(&name) {
                        metadata.insert(name, value);
                    }
                }
            }
            Value::Object(given)
        }
        _ if text.trim().is_empty() => plain(Outcome::NoChange, "The program said nothing", "", &complaints),
        _ => plain(Outcome::Output, "Output of the program", text, &complaints),
    }
}
