//! The blueprints that this process hosts, and how they are read again while it runs.
//!
//! A reload reads and checks every file first. It applies all of them or none: in the database in one transaction, then in this
//! process. Work that is under way goes on under the blueprint that it was made under.
//!
//! Nothing is applied by itself: an edited file is only noticed. So two servers on one database do not fight over a blueprint of
//! which each has a file of its own: the last start or reload decides, and `changes` shows the other one's difference.

use super::runner::Runner;
use super::{Context, blueprints, notifier};
use crate::config::Repos;
use fernery_client::wire::{AzollaChange, Difference, ReloadResponse};
use fernery_core::artifact::{AzollaId, WorkorderId};
use fernery_core::blueprint::Blueprint;
use fernery_core::canonical::Digest;
use fernery_core::pipeline::ground::Premises;
use fernery_engine::pipeline::{azollas, voiding};
use fernery_engine::{StoreError, door};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, JoinSet};
use tracing::{info, warn};

/// Waiting tickets of one status that are looked at, to tell whose approval a change voids.
const VOIDED_MAX: i64 = 100;
/// How often the files are looked at, to tell that one was edited.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The blueprints that a process hosts now.
pub(super) struct HostedNow(RwLock<Arc<Vec<Blueprint>>>);

impl HostedNow {
    pub(super) fn new(blueprints: Vec<Blueprint>) -> Self {
        Self(RwLock::new(Arc::new(blueprints)))
    }

    pub(super) fn now(&self) -> Arc<Vec<Blueprint>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, blueprints: Vec<Blueprint>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(blueprints);
    }
}

/// What is made anew by a reload.
struct Running {
    runner: Runner,
    notices: Option<JoinHandle<()>>,
}

impl Running {
    fn start(context: &Arc<Context>) -> Self {
        Self { runner: Runner::start(context), notices: notifier::deliver(context) }
    }
}

/// The part of the workers that follows the blueprints.
pub(crate) struct Live {
    pub(super) context: Arc<Context>,
    files: Option<Vec<PathBuf>>,
    /// The configuration file, and what was in it at the start.
    config: Option<(PathBuf, Option<Digest>)>,
    /// One reload at a time; none any more when the process ends.
    running: Mutex<Option<Vec<Running>>>,
}

/// Why nothing was reloaded.
#[derive(Debug)]
pub(crate) enum Unloaded {
    /// Everything that is wrong with the files, a line each.
    Mistakes(Vec<String>),
    Store(StoreError),
}

impl From<StoreError> for Unloaded {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(why) => Self::Mistakes(vec![why]),
            other => Self::Store(other),
        }
    }
}

impl Live {
    pub(super) fn start(context: Arc<Context>, files: Option<Vec<PathBuf>>, config: Option<PathBuf>) -> Self {
        let running = Mutex::new(Some(vec![Running::start(&context)]));
        let config = config.map(|file| std::path::absolute(&file).unwrap_or(file));
        let config = config.map(|file| (content_of(&file), file)).map(|(content, file)| (file, content));
        Self { context, files, config, running }
    }

    /// The configuration file, if something else is in it than at the start.
    fn changed_config(&self) -> Option<String> {
        let (file, before) = self.config.as_ref()?;
        (content_of(file) != *before).then(|| file.display().to_string())
    }

    /// The gate of this process that is at work on a workorder.
    pub(crate) fn gate_at_work(&self, id: &WorkorderId) -> Option<String> {
        self.context.at_work.gate_of(id)
    }

    pub(crate) fn premises(&self) -> Premises {
        self.context.premises()
    }

    pub(crate) fn repos(&self) -> &Repos {
        &self.context.repos
    }

    /// Reads and checks the files.
    async fn read(&self) -> Result<Vec<Blueprint>, Unloaded> {
        let Some(files) = self.files.clone() else {
            return Err(Unloaded::Mistakes(vec!["the blueprints of this server come from no files".into()]));
        };
        let read = tokio::task::spawn_blocking(move || blueprints::read(&files)).await;
        let read = read.map_err(|error| Unloaded::Mistakes(vec![error.to_string()]))?;
        let read = read.map_err(|why| Unloaded::Mistakes(why.lines().map(str::to_string).collect()))?;
        let Context { engine, probing, registry, .. } = &*self.context;
        let mistakes = blueprints::check_here(engine, &read, probing, registry).await?;
        if mistakes.is_empty() { Ok(read) } else { Err(Unloaded::Mistakes(mistakes)) }
    }

    /// What a reload would change.
    pub(crate) async fn changes(&self) -> Result<ReloadResponse, Unloaded> {
        let new = self.read().await?;
        let (azollas, changed_config) = (self.compared(&new).await?, self.changed_config());
        Ok(ReloadResponse { applied: false, azollas, changed_config })
    }

    /// Reads the files again, and applies all of them or none. Once begun it comes to its end, also where whoever asked for it does
    /// not wait: the database must not have other blueprints in force than this process runs.
    pub(crate) async fn reload(self: Arc<Self>) -> Result<ReloadResponse, Unloaded> {
        let reloading = tokio::spawn(async move { self.reload_to_the_end().await });
        let ended = reloading.await;
        ended.unwrap_or_else(|error| Err(Unloaded::Store(StoreError::Unavailable(error.to_string()))))
    }

    async fn reload_to_the_end(&self) -> Result<ReloadResponse, Unloaded> {
        let mut running = self.running.lock().await;
        let Some(running) = &mut *running else {
            return Err(Unloaded::Mistakes(vec!["this server is ending".into()]));
        };
        let new = self.read().await?;
        let azollas = self.compared(&new).await?;
        door::failpoint("reload-checked");
        let all = new.clone();
        self.context.engine.substrate().transact(move |sql| azollas::register_all(sql, &all)).await?;
        door::failpoint("reload-registered");
        self.context.hosted.replace(new);
        // The database has them in force by now, so this process runs them whatever happens here. It is said again soon.
        if let Err(error) = self.context.host().await {
            warn!(%error, "could not record what this process hosts since the reload");
        }
        for before in running.iter_mut() {
            before.runner.retire();
            if let Some(notices) = before.notices.take() {
                notices.abort();
            }
        }
        running.retain_mut(|before| !before.runner.is_over());
        running.push(Running::start(&self.context));
        for change in &azollas {
            info!(
                azolla_id = %change.azolla_id, changes = %told(change), approvals_voided = change.voided.len(), "reloaded"
            );
        }
        Ok(ReloadResponse { applied: true, azollas, changed_config: self.changed_config() })
    }

    /// The azollas whose blueprints differ from those in force, or that come or go.
    async fn compared(&self, new: &[Blueprint]) -> Result<Vec<AzollaChange>, StoreError> {
        let mut ids: Vec<AzollaId> = new.iter().map(|blueprint| blueprint.azolla_id.clone()).collect();
        let gone: Vec<AzollaId> = self.context.azollas().into_iter().filter(|id| !ids.contains(id)).collect();
        ids.extend(gone);
        let of = ids.clone();
        let substrate = self.context.engine.substrate();
        let after: Vec<Blueprint> = new.to_vec();
        let in_force = substrate.read(move |sql| {
            let mut found = Vec::new();
            for id in &of {
                let before = azollas::in_force(sql, id)?;
                let after = after.iter().find(|blueprint| blueprint.azolla_id == *id);
                let voided = match (&before, after) {
                    (Some(before), Some(after)) => {
                        voiding::voided(sql, &before.blueprint, after, VOIDED_MAX)?
                    }
                    _ => (Vec::new(), false),
                };
                found.push((before, voided));
            }
            Ok(found)
        });
        let in_force = in_force.await?;
        let hosted = self.context.azollas();
        let mut changes = Vec::new();
        for (azolla_id, (before, (voided, voided_more))) in ids.into_iter().zip(in_force) {
            let after = new.iter().find(|blueprint| blueprint.azolla_id == azolla_id);
            let document = |blueprint: &Blueprint| -> Value {
                serde_json::from_str(&blueprint.to_json()).unwrap_or_default()
            };
            let digest = |blueprint: &Blueprint| Digest::of_bytes(blueprint.to_json().as_bytes());
            let was = before.as_ref().filter(|_| hosted.contains(&azolla_id));
            if was.map(|was| was.digest) == after.map(digest) {
                continue;
            }
            let mut difference = Vec::new();
            if let (Some(before), Some(after)) = (&before, after) {
                differ("", &document(&before.blueprint), &document(after), &mut difference);
            }
            let before = was.map(|was| was.digest);
            changes.push(AzollaChange {
                azolla_id,
                before,
                after: after.map(digest),
                difference,
                voided,
                voided_more,
            });
        }
        Ok(changes)
    }

    /// Tells in the log when a file was edited, once for each edit.
    pub(super) fn watch(self: Arc<Self>) -> JoinHandle<()> {
        let loops = self.context.engine.loops().clone();
        loops.run("blueprints", move || {
            let live = self.clone();
            async move {
                // The first look compares in any case: a file may have been edited since it was read.
                let mut seen = None;
                loop {
                    tokio::time::sleep(LOOK_EVERY).await;
                    let now = Some(live.content());
                    if now != seen {
                        seen = now;
                        live.tell().await;
                    }
                }
            }
        })
    }

    fn content(&self) -> Vec<Option<Digest>> {
        self.files.iter().flatten().map(|file| content_of(file)).collect()
    }

    async fn tell(&self) {
        match self.changes().await {
            Ok(found) => {
                for change in &found.azollas {
                    info!(
                        azolla_id = %change.azolla_id, changes = %told(change),
                        "its blueprint was edited; `fernery azolla reload` or SIGHUP applies it"
                    );
                }
            }
            Err(Unloaded::Mistakes(mistakes)) => {
                warn!(mistakes = %mistakes.join("; "), "a blueprint was edited and cannot be applied");
            }
            Err(Unloaded::Store(error)) => warn!(%error, "a blueprint was edited, and could not be compared"),
        }
    }

    /// Stops running programs and releases their jobs.
    pub(super) async fn stop(&self) {
        let mut stopping = JoinSet::new();
        let all = self.running.lock().await.take().unwrap_or_default();
        // All at once, before anything else gets a turn.
        all.iter().for_each(|running| running.runner.end());
        for Running { runner, notices } in all {
            if let Some(notices) = notices {
                notices.abort();
            }
            stopping.spawn(runner.stop());
        }
        while stopping.join_next().await.is_some() {}
    }
}

fn content_of(file: &Path) -> Option<Digest> {
    std::fs::read(file).ok().map(|bytes| Digest::of_bytes(&bytes))
}

/// The smallest parts in which two documents differ.
fn differ(path: &str, before: &Value, now: &Value, found: &mut Vec<Difference>) {
    let at = |part: &str| format!("{path}/{part}");
    match (before, now) {
        (same, as_before) if same == as_before => {}
        (Value::Object(before), Value::Object(now)) => {
            let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
            let of =
                |object: &Map<String, Value>, name: &String| object.get(name).cloned().unwrap_or_default();
            names.into_iter().for_each(|name| differ(&at(name), &of(before, name), &of(now, name), found));
        }
        (Value::Array(before), Value::Array(now)) if before.len() == now.len() => {
            let pairs = before.iter().zip(now).enumerate();
            pairs.for_each(|(nth, (before, now))| differ(&at(&nth.to_string()), before, now, found));
        }
        _ => found.push(Difference { path: path.to_string(), before: before.clone(), now: now.clone() }),
    }
}

/// What changes, in a line.
pub(crate) fn told(change: &AzollaChange) -> String {
    match (change.before, change.after) {
        (None, _) => "new here".to_string(),
        (_, None) => "no longer hosted here".to_string(),
        _ => {
            let parts = change.difference.iter().filter_map(|part| part.path.split('/').nth(1));
            parts.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_is_as_small_as_it_can_be() {
        let before = json!({"gates": [{"kind": "a"}, {"kind": "b", "timeout_ms": 1}], "limits": {"x": 1}, "same": [1]});
        let now = json!({"gates": [{"kind": "a"}, {"kind": "b", "timeout_ms": 2}], "new": true, "same": [1], "limits": {"x": 1}});
        let mut found = Vec::new();
        differ("", &before, &now, &mut found);
        let told: Vec<String> =
            found.iter().map(|of| format!("{} {} {}", of.path, of.before, of.now)).collect();
        assert_eq!(told, ["/gates/1/timeout_ms 1 2", "/new null true"]);
        let mut found = Vec::new();
        differ("", &json!({"gates": [1]}), &json!({"gates": [1, 2]}), &mut found);
        assert_eq!((found.len(), found[0].path.as_str()), (1, "/gates"));
    }
}
