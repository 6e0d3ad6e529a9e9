//! What becomes of a guard whose socket is closed: it is woken until it has ended with its job, and where it does not, the
//! worker ends both.

use super::GUARD_WITHIN;
use crate::worker::tree::{self, Process};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use std::time::Duration;
use tokio::process::Child;
use tokio::time::{Instant, sleep, timeout};

/// How long a guard may take to end its job once its socket is closed. After that the worker ends both.
pub(super) const LET_GO: Duration = Duration::from_secs(2);
/// How often a guard is woken meanwhile: its job may stop it again.
pub(super) const WAKE_EVERY: Duration = Duration::from_millis(50);
/// How long the orphans of a dead guard are hunted before the worker goes on.
const HUNT_FOR: Duration = Duration::from_secs(10);
const HUNT_EVERY: Duration = Duration::from_millis(5);

/// Lets a guard go on that somebody has stopped. Nobody has taken notice of its end, so its number is its own.
pub(super) fn wake(guard: i32) {
    if let Some(pid) = Pid::from_raw(guard) {
        let _ = kill_process(pid, Signal::CONT);
    }
}

/// Waits until a guard whose socket is closed has ended with its job, and ends them if they do not.
pub(super) async fn see_off(mut child: Child, guard: i32, marker: Option<(String, String)>) {
    let until = Instant::now() + LET_GO;
    while Instant::now() < until {
        wake(guard);
        if timeout(WAKE_EVERY, child.wait()).await.is_ok() {
            // Its orphans are ours from the moment on that its end can be noticed.
            return kill_orphans(guard, marker).await;
        }
    }
    // As long as the guard is there, all that the job has left is below it, whatever session it made for itself.
    let until = Instant::now() + HUNT_FOR;
    while Instant::now() < until && !tree::kill(guard).is_empty() {
        sleep(HUNT_EVERY).await;
    }
    let _ = child.start_kill();
    let _ = timeout(GUARD_WITHIN, child.wait()).await;
    kill_orphans(guard, marker).await;
}

/// Kills what a guard has left that died itself: it is in the guard's session or bears the attempt's mark. What has shed
/// both is not told from what this process was the parent of before.
async fn kill_orphans(session: i32, marker: Option<(String, String)>) {
    let me = getpid().as_raw_nonzero().get();
    let until = Instant::now() + HUNT_FOR;
    while Instant::now() < until {
        let orphans: Vec<Process> = tree::children(me)
            .into_iter()
            .filter_map(Process::look)
            .filter(|p| p.session == session || marker.as_ref().is_some_and(|m| bears(p.pid, m)))
            .collect();
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            tree::kill(orphan.pid);
            orphan.signal(Signal::KILL);
            let _ = waitpid(Pid::from_raw(orphan.pid), WaitOptions::NOHANG);
        }
        sleep(HUNT_EVERY).await;
    }
}

/// Whether a process was started with this variable.
pub(crate) fn bears(pid: i32, (name, value): &(String, String)) -> bool {
    let wanted = format!("{name}={value}");
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
}
