//! The worker's side of a job's process: takes a guard, runs the job under it, and gives the guard back or sends it
//! off.
//!
//! Dropping a run closes the guard's socket, which ends the job. A guard that is not idle is watched until it has
//! ended: if its own job has stopped it, it is woken, and if it fails to kill the job, the worker does.

mod run;
mod send_off;

use super::bounded_output::{Head, Tail};
use super::link::{Ended, Exit, Link, Order, Report, Stopped};
use fernery_door as door;
use run::Run;
pub(crate) use send_off::bears;
use send_off::{LET_GO, see_off, wake};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The hidden command that runs a guard.
pub const GUARD_COMMAND: &str = "worker-guard";
/// The variable that marks every process of an attempt.
pub const ATTEMPT_VARIABLE: &str = "FERNERY_JOB_ATTEMPT_ID";
/// How long a guard may take to start.
const GUARD_WITHIN: Duration = Duration::from_secs(10);
/// How many signs of life this process sends within the time that it may hang.
const ALIVE_TIMES: u32 = 4;

/// The guards of a worker: as many as jobs have run at once.
#[derive(Debug)]
pub struct Guards {
    /// The program that runs as a guard.
    program: PathBuf,
    command: Vec<OsString>,
    grace: Duration,
    /// Their folder and variables; `None`: those of this process, without its settings.
    confined: Option<(PathBuf, Vec<String>)>,
    idle: Mutex<Vec<Guard>>,
    /// How many guards are at work.
    busy: watch::Sender<usize>,
    /// Guards that were sent off and have not ended yet.
    leaving: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Guard {
    child: Child,
    pid: i32,
    link: Link,
}

/// A guard at work. If this is dropped with the guard in it, the guard is sent off.
struct Busy<'g> {
    guards: &'g Guards,
    guard: Option<Guard>,
    marker: Option<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// Hears what a job writes.
pub type Listener<'a> = dyn Fn(OutputStream, &[u8]) + Send + Sync + 'a;

/// One job to run.
pub struct Input<'a> {
    /// Variables for the command about its job.
    pub env: Vec<(String, String)>,
    /// What it reads on stdin.
    pub stdin: &'a [u8],
    /// Whether it is killed once it has written more than may be kept.
    pub ends_when_full: bool,
    /// Gets all output as it is written.
    pub listener: Option<&'a Listener<'a>>,
    /// If this process hangs for so long, the job is killed: nobody renews its lease then.
    pub hang_max: Duration,
}

/// The evidence of a job that has ended.
#[derive(Debug)]
pub struct Seen {
    /// How the command ended.
    pub exit: Exit,
    pub stdout: Head,
    /// The end of stdout.
    pub stdout_end: Tail,
    /// The end of stderr.
    pub stderr: Tail,
}

/// A job that has run.
#[derive(Debug)]
pub struct Ran {
    /// What was seen of it.
    pub seen: Seen,
    /// Why the command was stopped; `None` if it ended by itself.
    pub stopped: Option<Stopped>,
    /// How many processes outlived the command and had to be killed.
    pub leftovers: u32,
    /// Processes that KILL has not ended yet; their guard waits for them.
    pub immortal: Vec<i32>,
}

/// Why a job has no known end.
#[derive(Debug)]
pub enum NotRun {
    /// The command cannot be started on this machine, whatever the job.
    NoCommand(String),
    /// The command could not be started this time.
    NotStarted(String),
    /// The guard died, or could not be started. Everything that it had started has been killed.
    NoGuard(String),
}

impl Guards {
    /// Guards that run this command.
    pub fn new(program: PathBuf, command: Vec<OsString>, grace: Duration) -> Self {
        let (idle, leaving) = (Mutex::default(), Mutex::default());
        Self { program, command, grace, confined: None, idle, busy: watch::channel(0).0, leaving }
    }

    /// Lets them work in this folder and see these variables only.
    pub fn within(mut self, folder: &Path, env: &[String]) -> Self {
        self.confined = Some((folder.to_owned(), env.to_vec()));
        self
    }

    /// Starts a guard, so that the first job finds one.
    pub async fn prepare(&self) -> io::Result<()> {
        let guard = self.spawn().await?;
        self.give_back(guard);
        Ok(())
    }

    /// Ends all idle guards, and waits for them and for those that were sent off. Call it when no run is wanted any
    /// more; a run that is still held is not waited for.
    pub async fn close(&self) {
        // An aborted task drops its run a moment later.
        let _ = timeout(LET_GO, self.busy.subscribe().wait_for(|busy| *busy == 0)).await;
        let idle = std::mem::take(&mut *self.idle.lock().expect("not poisoned"));
        for guard in idle {
            self.send_off(guard, None);
        }
        let mut leaving = std::mem::take(&mut *self.leaving.lock().expect("not poisoned"));
        while leaving.join_next().await.is_some() {}
    }

    /// Closes a guard's socket and makes sure that guard and job end. The returned value tells when.
    fn send_off(&self, guard: Guard, marker: Option<(String, String)>) -> oneshot::Receiver<()> {
        let Guard { child, pid, link } = guard;
        drop(link);
        wake(pid);
        let (done, waiting) = oneshot::channel();
        // Without a runtime this program is ending, and the guard works alone.
        if let Ok(runtime) = Handle::try_current() {
            let mut leaving = self.leaving.lock().expect("not poisoned");
            while leaving.try_join_next().is_some() {}
            let ending = async move {
                see_off(child, pid, marker).await;
                let _ = done.send(());
            };
            leaving.spawn_on(ending, &runtime);
        }
        waiting
    }

    fn give_back(&self, guard: Guard) {
        self.idle.lock().expect("not poisoned").push(guard);
    }

    async fn take(&self) -> io::Result<Guard> {
        loop {
            let idle = self.idle.lock().expect("not poisoned").pop();
            let Some(mut guard) = idle else { return self.spawn().await };
            // A guard that died while idle had no job.
            if let Ok(None) = guard.child.try_wait() {
                return Ok(guard);
            }
        }
    }

    async fn spawn(&self) -> io::Result<Guard> {
        let (here, there) = Link::pair()?;
        let mut command = Command::new(&self.program);
        command.arg0("fernery").arg(GUARD_COMMAND).arg("--").args(&self.command);
        // The guard's environment is what jobs see: no token, no server, no setting.
        for (name, _) in std::env::vars_os() {
            if name.as_bytes().starts_with(b"FERNERY_") {
                command.env_remove(name);
            }
        }
        if let Some((folder, names)) = &self.confined {
            command.current_dir(folder).env_clear();
            command.envs(names.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        }
        command.stdin(Stdio::from(there)).stdout(Stdio::null());
        let child = command.spawn()?;
        // It holds the guard's end of the socket, which would hide the guard's death.
        drop(command);
        let pid = child.id().map_or(0, |id| id as i32);
        let link = Link::new(here)?;
        match timeout(GUARD_WITHIN, link.receive::<Report>()).await {
            Ok(Ok(Some((Report::Ready, _)))) => Ok(Guard { child, pid, link }),
            Ok(Err(error)) => Err(error),
            _ => Err(io::Error::other("the guard process did not start")),
        }
    }

    /// Runs one job to its end. Each duration received from `stops` ends it: TERM, so long a grace, KILL.
    pub async fn run(&self, input: Input<'_>, stops: UnboundedReceiver<Duration>) -> Result<Ran, NotRun> {
        let marker = input.env.iter().find(|(name, _)| name == ATTEMPT_VARIABLE).cloned();
        let guard = self.take().await.map_err(|error| NotRun::NoGuard(error.to_string()))?;
        let pid = guard.pid;
        let mut busy = Busy::new(self, guard, marker);
        door::failpoint("guard-ready");
        let Some(Guard { link, .. }) = &busy.guard else { unreachable!("it was put there") };
        let ms = |duration: Duration| duration.as_millis() as u64;
        let order =
            Order::Start { env: input.env, grace_ms: ms(self.grace), silence_ms_max: ms(input.hang_max) };
        let ended = match Run::start(link, pid, &order).await {
            Ok(mut run) => {
                door::failpoint("program-started");
                let alive_every = input.hang_max / ALIVE_TIMES;
                run.listener = input.listener;
                let ended = run
                    .attend(input.stdin, input.ends_when_full.then_some(self.grace), alive_every, stops)
                    .await;
                ended.map(|Ended { exit, stopped, leftovers, immortal }| {
                    let seen = run.finish(exit);
                    Ran { seen, stopped, leftovers, immortal }
                })
            }
            Err(not_run) => Err(not_run),
        };
        match ended {
            Ok(ran) => {
                if ran.immortal.is_empty() {
                    busy.give_back();
                }
                Ok(ran)
            }
            Err(NotRun::NoGuard(why)) => {
                if let Some(ended) = busy.send_off() {
                    let _ = ended.await;
                }
                Err(NotRun::NoGuard(why))
            }
            Err(not_started) => {
                busy.give_back();
                Err(not_started)
            }
        }
    }
}

impl<'g> Busy<'g> {
    fn new(guards: &'g Guards, guard: Guard, marker: Option<(String, String)>) -> Self {
        guards.busy.send_modify(|busy| *busy += 1);
        Self { guards, guard: Some(guard), marker }
    }

    fn give_back(&mut self) {
        if let Some(guard) = self.guard.take() {
            self.guards.give_back(guard);
        }
    }

    fn send_off(&mut self) -> Option<oneshot::Receiver<()>> {
        let guard = self.guard.take()?;
        Some(self.guards.send_off(guard, self.marker.take()))
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.send_off();
        self.guards.busy.send_modify(|busy| *busy -= 1);
    }
}
