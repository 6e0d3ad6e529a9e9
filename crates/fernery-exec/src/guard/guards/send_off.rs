//! Ends a guard whose socket is closed: wakes it until it has ended with its job; if it does not end, the worker kills
//! both.

use super::GUARD_WITHIN;
use crate::guard::tree::{self, Process};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use std::time::Duration;
use tokio::process::Child;
use tokio::time::{Instant, sleep, timeout};

/// How long a guard may take to end its job once its socket is closed. After that the worker kills both.
pub(super) const LET_GO: Duration = Duration::from_secs(2);
/// How often the guard is woken meanwhile: its job may stop it again.
pub(super) const WAKE_EVERY: Duration = Duration::from_millis(50);
/// How long the orphans of a dead guard are hunted before the worker goes on.
const HUNT_FOR: Duration = Duration::from_secs(10);
const HUNT_EVERY: Duration = Duration::from_millis(5);

/// Wakes a stopped guard. It has not been reaped, so its pid is still its own.
pub(super) fn wake(guard: i32) {
    if let Some(pid) = Pid::from_raw(guard) {
        let _ = kill_process(pid, Signal::CONT);
    }
}

/// Waits until a guard whose socket is closed has ended with its job, and kills them if they do not end.
pub(super) async fn see_off(mut child: Child, guard: i32, marker: Option<(String, String)>) {
    let until = Instant::now() + LET_GO;
    while Instant::now() < until {
        wake(guard);
        if timeout(WAKE_EVERY, child.wait()).await.is_ok() {
            // From the moment its end is visible, its orphans are children of this process.
            return kill_orphans(guard, marker).await;
        }
    }
    // While the guard lives, all processes of the job are below it, whatever session they made.
    let until = Instant::now() + HUNT_FOR;
    while Instant::now() < until && !tree::kill(guard).is_empty() {
        sleep(HUNT_EVERY).await;
    }
    let _ = child.start_kill();
    let _ = timeout(GUARD_WITHIN, child.wait()).await;
    kill_orphans(guard, marker).await;
}

/// Kills the processes that a dead guard left: those in its session or with the attempt's mark. A process without both
/// cannot be told from earlier children of this process.
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
