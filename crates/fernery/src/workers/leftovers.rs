//! Work folders that killed processes of this database left behind. A folder is removed when nobody holds its
//! workorder: until then it may be in use.

use fernery_engine::pipeline::{claims, journal};
use fernery_engine::{Engine, StoreError};
use fernery_exec::agent::leftover::{self, Rescued, in_use};
use fernery_exec::agent::trash::{Trash, remove_all};
use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinHandle;

/// Holders that are looked up. If there are more, the owner of a folder is unknown, and all folders stay.
const HOLDERS_MAX: usize = 10_000;
/// Folders removed per pass.
const REMOVED_AT_ONCE: usize = 16;
/// Characters of the name of a database's folder.
const NAME_CHARS: usize = 16;
/// Characters of a workorder's id.
const ID_CHARS: usize = 36;

/// The work folder of an attempt at a workorder.
pub(super) fn run_folder(work: &Path, work_order_id: &str, attempt_id: &str) -> PathBuf {
    work.join(format!("run-{work_order_id}-{attempt_id}"))
}

/// The work folder of one gate over a workorder, under one claim.
pub(super) fn gate_folder(work: &Path, work_order_id: &str, gate: &str, claim_version: i64) -> PathBuf {
    work.join(format!("gate-{work_order_id}-{claim_version}-{gate}"))
}

/// The log of an executor's output for a workorder.
pub(super) fn log_file(work: &Path, work_order_id: &str) -> PathBuf {
    work.join("logs").join(format!("{work_order_id}.log"))
}

/// The log of a gate over a workorder.
pub(super) fn gate_log_file(work: &Path, work_order_id: &str, gate: &str) -> PathBuf {
    work.join("logs").join(format!("{work_order_id}.gate-{gate}.log"))
}

/// How long logs are kept, and how many at most.
const LOG_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
const LOGS_MAX: usize = 4_000;

/// Removes logs that are too old or too many; answers how many.
pub(super) fn remove_logs(work: &Path) -> io::Result<u64> {
    let entries = match std::fs::read_dir(work.join("logs")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let written = |entry: std::fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let mut logs: Vec<_> = entries.flatten().filter_map(written).collect();
    logs.sort();
    let too_many = logs.len().saturating_sub(LOGS_MAX);
    let mut removed = 0;
    for (nth, (at, path)) in logs.iter().enumerate() {
        if nth < too_many || at.elapsed().is_ok_and(|age| age > LOG_KEPT) {
            std::fs::remove_file(path)?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// The workorder of a folder, and the rest of the folder's name; `None`: it is not one of ours.
fn workorder_of(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix("run-").or_else(|| name.strip_prefix("gate-"))?;
    Some((rest.get(..ID_CHARS)?, rest[ID_CHARS..].strip_prefix('-')?))
}

/// The folder of this database under the data directory. It is named after the first seal of the journal, which stays
/// the same wherever the database is moved.
pub(super) async fn work_of(data: &Path, engine: &Engine) -> Result<PathBuf, StoreError> {
    let substrate = engine.substrate();
    let mut first = substrate.read(journal::first_seal).await?;
    if first.is_none() {
        // Another process may seal first.
        substrate.transact(|sql| journal::seal(sql, 1)).await?;
        first = substrate.read(journal::first_seal).await?;
    }
    let first = first.ok_or_else(|| StoreError::Unavailable("the journal has no first seal yet".into()))?;
    let name: String = first.to_string().chars().take(NAME_CHARS).collect();
    Ok(data.join("work").join(name))
}

/// The folders that were there when this process started.
pub(super) struct Leftovers {
    left: Vec<Left>,
    trash: Trash,
    /// The first pass removes nothing: the holder may not have reported yet.
    looked: bool,
    /// Folders may be large, so they are removed in the background.
    removing: Option<JoinHandle<()>>,
}

struct Left {
    work_order_id: String,
    attempt_id: String,
    /// The mark in the environment of its processes.
    mark: String,
    path: PathBuf,
}

impl Leftovers {
    pub(super) fn of(work: &Path, trash: Trash) -> Self {
        let entries = std::fs::read_dir(work).into_iter().flatten().flatten();
        let found = entries.filter(|entry| entry.file_type().is_ok_and(|of| of.is_dir()));
        let ours = found.filter_map(|entry| {
            let name = entry.file_name();
            let name = name.to_str()?;
            let (id, attempt) = workorder_of(name)?;
            let mark = if name.starts_with("gate-") { name } else { attempt };
            let (work_order_id, attempt_id, mark) = (id.into(), attempt.into(), mark.into());
            Some(Left { work_order_id, attempt_id, mark, path: entry.path() })
        });
        Self { left: ours.collect(), trash, looked: false, removing: None }
    }

    /// Kills the processes that have the mark of one of these folders, unless the folder is in use.
    pub(super) async fn end_survivors(&self) {
        let marks: Vec<String> =
            self.left.iter().filter(|left| !in_use(&left.path)).map(|left| left.mark.clone()).collect();
        leftover::end_survivors(&marks).await;
    }

    /// Starts to remove some folders whose workorder nobody holds; answers how many.
    pub(super) async fn remove(&mut self, engine: &Engine) -> Result<u64, StoreError> {
        if self.left.is_empty() || self.removing.as_ref().is_some_and(|removing| !removing.is_finished()) {
            return Ok(0);
        }
        if !std::mem::replace(&mut self.looked, true) {
            return Ok(0);
        }
        let mut claims = engine.substrate().read(|sql| claims::all(sql, HOLDERS_MAX as i64)).await?;
        let leases = engine.store().workorder_leases(HOLDERS_MAX).await?;
        if claims.len().max(leases.len()) >= HOLDERS_MAX {
            return Ok(0);
        }
        claims.extend(leases);
        let held: HashSet<String> = claims.into_iter().map(|claim| claim.resource_id).collect();
        let is_kept = |left: &Left| held.contains(&left.work_order_id) || in_use(&left.path);
        let (kept, mut free): (Vec<_>, Vec<_>) = self.left.drain(..).partition(is_kept);
        self.left = kept;
        self.left.extend(free.split_off(free.len().min(REMOVED_AT_ONCE)));
        let removed = free.len() as u64;
        let trash = self.trash.clone();
        self.removing = Some(tokio::spawn(async move {
            for left in free {
                let of = (left.work_order_id.as_str(), left.attempt_id.as_str());
                if leftover::rescue(&left.path, &trash, of).await == Rescued::Nobodys {
                    let _ = tokio::task::spawn_blocking(move || remove(&left.path)).await;
                }
            }
        }));
        Ok(removed)
    }
}

fn remove(path: &Path) {
    match remove_all(path) {
        Ok(()) => {}
        // Another process of this database removed it first.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            let path = path.display();
            tracing::warn!(%error, %path, "could not remove an unused work folder; will retry");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_says_whose_it_is_and_others_are_none_of_ours() {
        let id = "01a1e3e2-734c-733e-bc35-21863cbd72e5";
        let work = Path::new("/work");
        for folder in [run_folder(work, id, id), gate_folder(work, id, "my-tests", 7)] {
            let name = folder.file_name().unwrap().to_str().unwrap();
            assert_eq!(workorder_of(name).map(|(of, _)| of), Some(id));
        }
        for other in ["notes", "run-", "run-short-x", &format!("run-{id}"), &format!("gate-{id}x-y")] {
            assert_eq!(workorder_of(other), None, "{other}");
        }
    }
}
