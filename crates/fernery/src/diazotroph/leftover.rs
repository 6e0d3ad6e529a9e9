//! What agents left behind whose processes died: they are ended, and what they had made is captured, before anybody takes
//! their place.

use super::place::LeftPlace;
pub(crate) use super::place::in_use;
use super::trash::{Trash, Whose, remove_all};
use crate::git::capture::{Uncaptured, capture};
use crate::git::clone::Clone as PrivateClone;
use crate::sandbox::Cell;
use crate::worker::process::ATTEMPT_VARIABLE;
use crate::worker::process::bears;
use crate::worker::tree::{self, Process};
use rustix::process::{Signal, getpid};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long survivors are hunted before this process goes on.
const HUNT_FOR: Duration = Duration::from_secs(10);
const HUNT_EVERY: Duration = Duration::from_millis(5);

/// Ends every process that bears the mark of one of these attempts, or is of the user that ran it; answers whether none is
/// left.
pub(crate) async fn end_survivors(attempts: &[String]) -> bool {
    let users: Vec<u32> = attempts.iter().filter_map(|attempt| Cell::spare_uid(attempt)).collect();
    let until = Instant::now() + HUNT_FOR;
    loop {
        let found = survivors(attempts, &users);
        if found.is_empty() {
            return true;
        }
        if Instant::now() > until {
            tracing::warn!(?found, "processes of runs that ended with an earlier process cannot be ended");
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
pub(crate) enum Rescued {
    /// It is in the trash.
    Kept,
    /// It holds no agent's work.
    Nobodys,
    /// It cannot be taken now.
    Later,
}

/// Captures what lies in the folder of a dead run and moves it to the trash.
pub(crate) async fn rescue(
    folder: &Path,
    trash: &Trash,
    (work_order_id, attempt_id): (&str, &str),
) -> Rescued {
    let left = match LeftPlace::look(folder) {
        Ok(Some(left)) => left,
        Ok(None) => return Rescued::Nobodys,
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "the folder of a dead run cannot be taken now");
            return Rescued::Later;
        }
    };
    let clone = PrivateClone::left_in(&left.folder, &left.base);
    let (captured, why) = match capture(&clone).await {
        Ok(found) if found.patch.is_empty() => {
            (true, "its process died; nothing had changed yet".to_string())
        }
        Ok(found) => match left.write_patch(&found.patch) {
            Ok(()) => (false, "its process died; what it had changed is in captured.patch".to_string()),
            Err(error) => (false, format!("its process died; its patch could not be written: {error}")),
        },
        Err(Uncaptured::Unfit(why) | Uncaptured::Trouble(why)) => (false, format!("its process died; {why}")),
    };
    let _ = remove_all(&left.folder.join("home"));
    let (work_order_id, attempt_id) = (work_order_id.to_string(), attempt_id.to_string());
    let whose = Whose { objective_id: left.objective_id.clone(), work_order_id, attempt_id };
    match trash.take(&left.folder, &whose, captured, &why) {
        Ok(place) => {
            tracing::info!(place = %place.display(), %why, "the folder of a dead run is in the trash");
            Rescued::Kept
        }
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "the folder of a dead run stays where it is");
            Rescued::Later
        }
    }
}
