//! Reads changed objectives of every azolla that this one may read, on this server and on others; claims nothing (a
//! unique key prevents duplicates); writes pauses of its own azolla for overdue objectives. Takes no slot. Does nothing
//! when nothing is due.

use super::Context;
use super::driver::{Pass, PollingWorker};
use crate::outgoing::queries::{Target, at_once};
use async_trait::async_trait;
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, Objective, QueryStatus};
use fernery_core::blueprint::{Blueprint, ReadableArtifact, WorkerKind};
use fernery_core::inbox::foreign;
use fernery_engine::pipeline::inbox::{deadlines, queries};
use fernery_engine::{StoreError, door};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Mutex;

const BATCH: i64 = 200;
/// A row with an earlier time may be committed after the last one read, so this much is read again.
const OVERLAP: Duration = Duration::from_secs(60);
/// How often all open objectives are read again, in case a change was missed.
const WHOLE_EVERY: Duration = Duration::from_secs(3600);

/// Pages of one azolla per pass, so that a faulty remote azolla cannot send pages for ever.
const PAGES_MAX: usize = 200;

/// Up to where the objectives of one azolla have been read.
#[derive(Clone)]
struct Mark {
    at: Timestamp,
    whole_at: std::time::Instant,
}

#[derive(Default)]
pub(super) struct DeadlineMonitor {
    read: Mutex<BTreeMap<(AzollaId, AzollaId), Mark>>,
}

#[async_trait]
impl PollingWorker for DeadlineMonitor {
    fn name(&self) -> &'static str {
        "deadline_monitor"
    }

    fn serves(&self, blueprint: &Blueprint) -> bool {
        blueprint.workers.contains_key(&WorkerKind::DeadlineMonitor)
    }

    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let mut pass = Pass::default();
        let targets = context.asker(azolla).targets().await?;
        let mut whole = false;
        // Concurrently: an azolla that is away holds up none of the others.
        let watching = targets.iter().map(|target| self.watch(context, azolla, target));
        for watched in at_once(watching).await {
            let (of_it, was_whole) = watched?;
            of_it.counts.iter().for_each(|(name, count)| pass.count(name, *count));
            whole |= was_whole;
        }
        if whole {
            let (by, of) =
                (azolla.clone(), targets.into_iter().map(|target| target.azolla_id).collect::<Vec<_>>());
            context.engine.substrate().transact(move |sql| deadlines::watch_only(sql, &by, &of)).await?;
        }
        if pass.counts.contains_key("watched") {
            door::failpoint("deadlines-watched");
        }
        let by = azolla.clone();
        let told = context.engine.substrate().transact(move |sql| deadlines::tell(sql, &by, BATCH)).await?;
        if told > 0 {
            door::failpoint("deadlines-told");
        }
        pass.count("overdue", told as u64);
        pass.again = told as i64 == BATCH;
        Ok(pass)
    }
}

impl DeadlineMonitor {
    /// Reads what changed in one azolla since the last read, page by page; from time to time everything that is open.
    /// Answers whether it read everything.
    async fn watch(
        &self,
        context: &Context,
        by: &AzollaId,
        target: &Target,
    ) -> Result<(Pass, bool), StoreError> {
        let mut pass = Pass::default();
        let key = (by.clone(), target.azolla_id.clone());
        let known = self.read.lock().await.get(&key).cloned();
        let fresh = known.filter(|mark| mark.whole_at.elapsed() < WHOLE_EVERY);
        let whole = fresh.is_none();
        let whole_at = fresh.as_ref().map_or_else(door::stop_watch, |mark| mark.whole_at);
        let mut at = fresh.map_or(Timestamp::default(), |mark| mark.at.before(OVERLAP));
        let (mut after_id, mut read_at) = (String::new(), None);
        for _ in 0..PAGES_MAX {
            let filter = [
                ("updated_after".to_string(), json!(at)),
                ("after_id".to_string(), json!(after_id)),
                ("open".to_string(), json!(whole)),
            ]
            .into();
            let answered = context.asker(by).ask(target, ReadableArtifact::Objective, filter).await?;
            if answered.response.status != QueryStatus::Ok {
                pass.count(answered.response.status.as_str(), 1);
                return Ok((pass, whole));
            }
            read_at.get_or_insert(answered.response.created_at);
            let found = answered.response.results;
            let full = found.len() as i64 == queries::RESULTS_MAX;
            let objectives: Vec<Objective> = found.iter().filter_map(foreign::objective).collect();
            let Some(last) = objectives.last() else { break };
            let moved = (last.updated_at, foreign::own_id(last)) > (at, after_id.as_str());
            (at, after_id) = (last.updated_at, foreign::own_id(last).to_string());
            pass.count("watched", objectives.len() as u64);
            let (by, of, server) =
                (by.clone(), target.azolla_id.clone(), target.server().map(str::to_string));
            let watch = move |sql: &mut dyn fernery_engine::pipeline::Sql| {
                deadlines::watch(sql, &by, (&of, server.as_deref()), &objectives)
            };
            context.engine.substrate().transact(watch).await?;
            // A remote azolla that breaks the order must not cause an endless loop.
            if !full || !moved {
                break;
            }
        }
        // Every change up to this time was read, or will be within the overlap.
        if let Some(at) = read_at {
            self.read.lock().await.insert(key, Mark { at, whole_at });
        }
        Ok((pass, whole))
    }
}
