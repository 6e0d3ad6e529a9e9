//! Cleans up after agents whose server or worker died: kills their processes and takes a patch of their work before anybody
//! else claims the workorder.

use super::run_folder::DeadRunFolder;
pub use super::run_folder::in_use;
use super::trash::{Content, Trash, Whose, remove_all};
use crate::git::clone::Clone as PrivateClone;
use crate::git::take_patch::{NoPatch, take_patch};
use crate::guard::ATTEMPT_VARIABLE;
use crate::guard::bears;
use crate::guard::tree::{self, Process};
use crate::sandbox::Cell;
use rustix::process::{Signal, getpid};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long surviving processes are hunted before this process goes on.
const HUNT_FOR: Duration = Duration::from_secs(10);
const HUNT_EVERY: Duration = Duration::from_millis(5);

/// Kills every process that has the mark of one of these attempts, or belongs to the user that ran it; answers whether
/// none is left.
pub async fn end_survivors(attempts: &[String]) -> bool {
    let users: Vec<u32> = attempts.iter().filter_map(|attempt| Cell::spare_uid(attempt)).collect();
    let until = Instant::now() + HUNT_FOR;
    loop {
        let found = survivors(attempts, &users);
        if found.is_empty() {
            return true;
        }
        if Instant::now() > until {
            tracing::warn!(?found, "cannot kill processes that an earlier server process left behind");
            return false;
        }
        for pid in found {
            tree::kill(pid);
            if let Some(process) = Process::look(pid) {
                process.signal(Signal::KILL);
            }
        }
        sleep(HUNT_EVERY).await;
    }
}

fn survivors(attempts: &[String], users: &[u32]) -> Vec<i32> {
    if attempts.is_empty() {
        return Vec::new();
    }
    let me = getpid().as_raw_nonzero().get();
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = all.flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let user = entry.metadata().ok()?.uid();
        Some((pid, user))
    });
    let marks: Vec<_> =
        attempts.iter().map(|attempt| (ATTEMPT_VARIABLE.to_string(), attempt.clone())).collect();
    let is_left =
        |(pid, user): &(i32, u32)| users.contains(user) || marks.iter().any(|mark| bears(*pid, mark));
    let found = pids.filter(|(pid, _)| *pid != me).filter(is_left).map(|(pid, _)| pid);
    found.filter(|pid| Process::look(*pid).is_some_and(|process| !process.zombie)).collect()
}

/// What became of the folder of a dead run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rescued {
    /// It is in the trash.
    Kept,
    /// It is not the folder of an agent.
    Nobodys,
    /// It cannot be taken now.
    Later,
}

/// Takes a patch of the work in the folder of a dead run and moves the folder to the trash.
pub async fn rescue(folder: &Path, trash: &Trash, (work_order_id, attempt_id): (&str, &str)) -> Rescued {
    let left = match DeadRunFolder::look(folder) {
        Ok(Some(left)) => left,
        Ok(None) => return Rescued::Nobodys,
        Err(error) => {
            tracing::warn!(
                %error, folder = %folder.display(),
                "cannot move the folder of a crashed run to the trash now; will retry"
            );
            return Rescued::Later;
        }
    };
    let clone = PrivateClone::left_in(&left.folder, &left.base);
    let (content, why) = match take_patch(&clone).await {
        Ok(found) if found.patch.is_empty() => {
            (Content::Spare, "its process died; it had changed nothing yet".to_string())
        }
        Ok(found) => match left.write_patch(&found.patch) {
            Ok(()) => (Content::OnlyCopy, "its process died; its changes are in captured.patch".to_string()),
            Err(error) => {
                (Content::OnlyCopy, format!("its process died; its patch could not be written: {error}"))
            }
        },
        Err(NoPatch::Unfit(why) | NoPatch::Trouble(why)) => {
            (Content::OnlyCopy, format!("its process died; {why}"))
        }
    };
    let _ = remove_all(&left.folder.join("home"));
    let (work_order_id, attempt_id) = (work_order_id.to_string(), attempt_id.to_string());
    let whose = Whose { objective_id: left.objective_id.clone(), work_order_id, attempt_id };
    match trash.take(&left.folder, &whose, content, &why) {
        Ok(in_trash) => {
            tracing::info!(place = %in_trash.display(), %why, "moved the folder of a crashed run to the trash");
            Rescued::Kept
        }
        Err(error) => {
            tracing::warn!(
                %error, folder = %folder.display(),
                "cannot move the folder of a crashed run to the trash; it stays in place"
            );
            Rescued::Later
        }
    }
}
