//! The guard of one slot of a worker: starts one job after another and is the parent of whatever a job leaves behind.
//!
//! It is a separate process because it must outlive the worker: once the socket to the worker is closed, for whatever
//! reason, it kills everything below it and ends. A worker that hangs renews no lease either, so after some silence the
//! job is killed as well. The guard is a *child subreaper*: a process that loses its parent becomes the guard's child,
//! however often it forked and whatever session it made. So "no child left" proves that a job is over, and the guard
//! accepts no other proof.

use super::link::{Ended, Exit, Link, Order, Report, Stopped};
use super::tree;
use rustix::io::Errno;
use rustix::process::{
    Signal, WaitOptions, getpid, set_child_subreaper, set_parent_process_death_signal, setsid, wait,
};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// How often KILL is repeated while something is left: processes born meanwhile did not get it.
const KILL_EVERY: Duration = Duration::from_millis(5);
/// After this long the worker is told which processes survived KILL, and goes on with another guard.
const KILL_WITHIN: Duration = Duration::from_secs(10);

/// The whole program of a guard. Its socket is its stdin.
pub fn main(command: Vec<OsString>) -> io::Result<()> {
    // A session of its own, so that neither Ctrl-C nor a signal to the worker's group reaches it. Fails only if
    // it already leads a process group.
    let _ = setsid();
    set_child_subreaper(Some(getpid()))?;
    // A job may stop (SIGSTOP) its guard, and a stopped guard does not notice the death of its worker: so the kernel
    // sends it CONT then. (Also if only the worker's thread that started it ends, which does no harm.)
    set_parent_process_death_signal(Some(Signal::CONT))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let link = Link::new(io::stdin().as_fd().try_clone_to_owned()?)?;
        Guard { command, link, job: None, me: getpid().as_raw_nonzero().get() }.serve().await
    })
}

struct Guard {
    command: Vec<OsString>,
    link: Link,
    job: Option<Job>,
    me: i32,
}

struct Job {
    pid: i32,
    grace: Duration,
    silence_max: Duration,
    /// When the worker counts as silent for too long.
    silent_at: Instant,
    exit: Option<Exit>,
    stopped: Option<Stopped>,
    leftovers: u32,
    phase: Phase,
}

enum Phase {
    Runs,
    /// All processes got TERM and have until then.
    Terminated {
        kill_at: Instant,
    },
    /// All processes get KILL again and again.
    Killed {
        next_at: Instant,
        give_up_at: Instant,
    },
}

impl Guard {
    async fn serve(mut self) -> io::Result<()> {
        let mut child_ended = signal(SignalKind::child())?;
        // Stopping a whole service signals the guard too; it ignores that and ends with its worker.
        let _heard = [
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::quit())?,
        ];
        self.tell(&Report::Ready).await;
        loop {
            let wake_at = self.job.as_ref().map(Job::wake_at);
            tokio::select! {
                order = self.link.receive::<Order>() => match order {
                    Ok(Some((order, files))) => self.obey(order, files).await,
                    Ok(None) | Err(_) => return self.kill_all(&mut child_ended).await,
                },
                _ = child_ended.recv() => {}
                () = sleep_until(wake_at.unwrap_or_else(Instant::now)), if wake_at.is_some() => {}
            }
            self.advance().await;
        }
    }

    /// A dead worker is noticed at the next order.
    async fn tell(&self, report: &Report) {
        let _ = self.link.send(report, &[] as &[OwnedFd]).await;
    }

    async fn obey(&mut self, order: Order, files: Vec<OwnedFd>) {
        let ms = Duration::from_millis;
        match order {
            Order::Start { env, grace_ms, silence_ms_max } => {
                self.start(&env, files, ms(grace_ms), ms(silence_ms_max)).await;
            }
            Order::Stop { grace_ms } => self.stop(ms(grace_ms)),
            Order::Alive => {}
        }
        if let Some(job) = &mut self.job {
            job.silent_at = Instant::now() + job.silence_max;
        }
    }

    async fn start(
        &mut self,
        env: &[(String, String)],
        files: Vec<OwnedFd>,
        grace: Duration,
        silence_max: Duration,
    ) {
        let Ok([stdin, stdout, stderr]) = <[OwnedFd; 3]>::try_from(files) else {
            let why = "the order came without its three files".to_string();
            return self.tell(&Report::NotStarted { errno: None, why }).await;
        };
        if self.job.is_some() {
            let why = "another job is under way".to_string();
            return self.tell(&Report::NotStarted { errno: None, why }).await;
        }
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).envs(env.iter().map(|(name, value)| (name, value)));
        command.process_group(0);
        command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        let spawned = command.spawn();
        // Now only the command holds its ends of the pipes.
        drop(command);
        match spawned {
            Ok(child) => {
                let pid = child.id() as i32;
                let (exit, stopped, leftovers, phase) = (None, None, 0, Phase::Runs);
                let silent_at = Instant::now() + silence_max;
                self.job = Some(Job { pid, grace, silence_max, silent_at, exit, stopped, leftovers, phase });
                self.tell(&Report::Started { pid }).await;
            }
            Err(error) => {
                self.tell(&Report::NotStarted { errno: error.raw_os_error(), why: error.to_string() }).await;
            }
        }
    }

    fn stop(&mut self, grace: Duration) {
        let Some(job) = &mut self.job else { return };
        // A command that has ended by now was not stopped.
        if job.reap() && job.exit.is_some() {
            return;
        }
        job.stopped_by(Stopped::Ordered);
        let kill_at = Instant::now() + grace;
        match &mut job.phase {
            Phase::Runs => {
                if !grace.is_zero() {
                    tree::terminate(self.me, job.exit.is_none().then_some(job.pid));
                }
                job.phase = Phase::Terminated { kill_at };
            }
            // A later order may shorten the grace of an earlier one.
            Phase::Terminated { kill_at: before } => *before = kill_at.min(*before),
            Phase::Killed { .. } => {}
        }
    }

    /// Reaps ended processes, and does what is due.
    async fn advance(&mut self) {
        let Some(job) = &mut self.job else {
            // Reaps what survived KILL until now.
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            return;
        };
        let none_left = job.reap();
        if let (true, Some(exit)) = (none_left, job.exit) {
            let ended = job.ended(exit, Vec::new());
            self.job = None;
            return self.tell(&Report::Ended(ended)).await;
        }
        let now = Instant::now();
        if now >= job.silent_at && !matches!(job.phase, Phase::Killed { .. }) {
            job.stopped_by(Stopped::Silence);
            job.phase = Phase::Terminated { kill_at: now };
        }
        match job.phase {
            Phase::Runs if job.exit.is_some() => {
                job.leftovers = tree::terminate(self.me, None) as u32;
                job.phase = Phase::Terminated { kill_at: now + job.grace };
            }
            Phase::Terminated { kill_at } if now >= kill_at => {
                tree::kill(self.me);
                job.phase = Phase::Killed { next_at: now + KILL_EVERY, give_up_at: now + KILL_WITHIN };
            }
            Phase::Killed { next_at, give_up_at } if now >= next_at => {
                let immortal: Vec<i32> = tree::kill(self.me).iter().map(|p| p.pid).collect();
                if now >= give_up_at {
                    let ended = job.ended(job.exit.unwrap_or(Exit::Signal(9)), immortal);
                    self.job = None;
                    return self.tell(&Report::Ended(ended)).await;
                }
                job.phase = Phase::Killed { next_at: now + KILL_EVERY, give_up_at };
            }
            _ => {}
        }
    }

    /// Nobody renews the lease any more, and soon another worker may hold the job.
    async fn kill_all(&self, child_ended: &mut tokio::signal::unix::Signal) -> io::Result<()> {
        let mut pause = KILL_EVERY;
        loop {
            tree::kill(self.me);
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(Errno::INTR) => {}
                    Err(_) => return Ok(()),
                }
            }
            // A process in uninterruptible sleep dies when its disk answers.
            let _ = tokio::time::timeout(pause, child_ended.recv()).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }
}

impl Job {
    fn wake_at(&self) -> Instant {
        match self.phase {
            Phase::Runs => self.silent_at,
            Phase::Terminated { kill_at } => kill_at.min(self.silent_at),
            Phase::Killed { next_at, .. } => next_at,
        }
    }

    fn stopped_by(&mut self, what: Stopped) {
        if self.exit.is_none() {
            self.stopped.get_or_insert(what);
        }
    }

    fn ended(&self, exit: Exit, immortal: Vec<i32>) -> Ended {
        Ended { exit, stopped: self.stopped, leftovers: self.leftovers, immortal }
    }

    /// Reaps all ended processes, orphans too. Answers whether none is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == self.pid => {
                    self.exit = match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => Some(Exit::Code(code)),
                        (_, Some(signal)) => Some(Exit::Signal(signal)),
                        _ => self.exit,
                    };
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }
}
