//! Reads objectives that changed, of every azolla that this one may read, here and elsewhere; claims nothing (a unique key
//! excludes); writes pauses of its own azolla for what is overdue. Takes no slot. Does nothing when nothing is due.

use super::Context;
use super::driver::{Pass, PollingWorker};
use crate::membrane::{self, Target};
use async_trait::async_trait;
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, Objective, QueryStatus};
use fernery_core::blueprint::{Blueprint, ReadableArtifact, WorkerKind};
use fernery_engine::substrate::{deadlines, querying};
use fernery_engine::{StoreError, door};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Mutex;

const BATCH: i64 = 200;
/// What was written just before something that was read may have become visible just after it: so much is read again.
const OVERLAP: Duration = Duration::from_secs(60);
/// How often everything is looked at again, whatever was missed.
const WHOLE_EVERY: Duration = Duration::from_secs(3600);

/// Pages of one azolla in one pass: one elsewhere that makes things up is not followed for ever.
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
        let targets = membrane::targets(context, azolla).await?;
        let mut whole = false;
        for target in &targets {
            whole |= self.watch(context, azolla, target, &mut pass).await?;
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
    /// Reads what changed in one azolla since it was last read, page by page; now and then all that is open. Answers whether it
    /// was that.
    async fn watch(
        &self,
        context: &Context,
        by: &AzollaId,
        target: &Target,
        pass: &mut Pass,
    ) -> Result<bool, StoreError> {
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
            let answered = membrane::ask(context, by, target, ReadableArtifact::Objective, filter).await?;
            if answered.response.status != QueryStatus::Ok {
                pass.count(answered.response.status.as_str(), 1);
                return Ok(whole);
            }
            read_at.get_or_insert(answered.response.created_at);
            let found = answered.response.results;
            let full = found.len() as i64 == querying::RESULTS_MAX;
            let objectives: Vec<Objective> =
                found.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect();
            let Some(last) = objectives.last() else { break };
            let moved = (last.updated_at, last.objective_id.as_str()) > (at, after_id.as_str());
            (at, after_id) = (last.updated_at, last.objective_id.to_string());
            pass.count("watched", objectives.len() as u64);
            let (by, of, server) =
                (by.clone(), target.azolla_id.clone(), target.server().map(str::to_string));
            let watch = move |sql: &mut dyn fernery_engine::substrate::Sql| {
                deadlines::watch(sql, &by, (&of, server.as_deref()), &objectives)
            };
            context.engine.substrate().transact(watch).await?;
            // One elsewhere that does not keep to the order is not followed in circles.
            if !full || !moved {
                break;
            }
        }
        // Whatever changed by then was among what was read, or comes within the overlap.
        if let Some(at) = read_at {
            self.read.lock().await.insert(key, Mark { at, whole_at });
        }
        Ok(whole)
    }
}
