//! The worker's side of a job's process: takes a guard, feeds stdin, keeps what is written within bounds, and knows how it
//! ended.
//!
//! Dropping a run closes the guard's socket, and with it ends the job. A guard that is not idle is watched until it has
//! ended: one that its own job has stopped is woken, and where it does not do its work the worker does it.

use super::capture::{Head, Tail};
use super::link::{Ended, Exit, Link, Order, Report, Stopped};
use super::outcome::Seen;
use super::tree::{self, Process};
use fernery_core::limits;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};

/// The hidden command that is a guard.
pub const GUARD_COMMAND: &str = "worker-guard";
/// The variable that marks every process of an attempt.
pub const ATTEMPT_VARIABLE: &str = "FERNERY_JOB_ATTEMPT_ID";
/// How long a guard may take to be there.
const GUARD_WITHIN: Duration = Duration::from_secs(10);
/// How long a guard may take to end its job once its socket is closed. After that the worker ends both.
const LET_GO: Duration = Duration::from_secs(2);
/// How often a guard is woken meanwhile: its job may stop it again.
const WAKE_EVERY: Duration = Duration::from_millis(50);
/// How long beyond the grace a guard may take to say that a job has ended which it was told to end. It tries itself for
/// two thirds of that.
const OBEY_WITHIN: Duration = Duration::from_secs(15);
/// How long the orphans of a dead guard are hunted before the worker goes on.
const HUNT_FOR: Duration = Duration::from_secs(10);
const HUNT_EVERY: Duration = Duration::from_millis(5);
/// How often within the time that it may hang this process says that it does not.
const ALIVE_TIMES: u32 = 4;
/// Bytes taken from a pipe at once: as many as one holds.
const READ_BYTES: usize = 64 << 10;

/// The guards of a worker: as many as jobs have run at once.
#[derive(Debug)]
pub struct Guards {
    /// The program that is a guard when it is called so.
    program: PathBuf,
    command: Vec<OsString>,
    grace: Duration,
    idle: Mutex<Vec<Guard>>,
    /// Guards that were sent off, until they have ended.
    leaving: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Guard {
    child: Child,
    pid: i32,
    link: Link,
}

/// A guard at work. Dropped with it, it is sent off.
struct Busy<'g> {
    guards: &'g Guards,
    guard: Option<Guard>,
    marker: Option<(String, String)>,
}

/// One job to run.
#[derive(Debug)]
pub struct Input<'a> {
    /// What the command is told about its job.
    pub env: Vec<(String, String)>,
    /// What it reads on stdin.
    pub stdin: &'a [u8],
    /// If this process hangs for so long, the job is killed: nobody renews its lease then.
    pub hang_max: Duration,
}

/// A job that has run.
#[derive(Debug)]
pub struct Ran {
    /// What was seen of it.
    pub seen: Seen,
    /// Why the command was ended before it ended by itself; `None` if it had the last word.
    pub stopped: Option<Stopped>,
    /// How many processes were left after the command's own end and had to be ended.
    pub leftovers: u32,
    /// Processes that not even KILL has ended yet; their guard stays after them.
    pub immortal: Vec<i32>,
}

/// Why a job has not run to an end that anybody saw.
#[derive(Debug)]
pub enum NotRun {
    /// The command cannot be started, by this machine's doing and for any job.
    NoCommand(String),
    /// The command could not be started this time.
    NotStarted(String),
    /// The guard died, or there was none. Whatever it had started has been killed.
    NoGuard(String),
}

impl Guards {
    /// Guards that run this command.
    pub fn new(program: PathBuf, command: Vec<OsString>, grace: Duration) -> Self {
        Self { program, command, grace, idle: Mutex::default(), leaving: Mutex::default() }
    }

    /// Starts a guard, so that the first job finds one.
    pub async fn prepare(&self) -> io::Result<()> {
        let guard = self.spawn().await?;
        self.give_back(guard);
        Ok(())
    }

    /// Ends all guards that are idle, and waits for them and for all that were sent off before.
    pub async fn close(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().expect("not poisoned"));
        for guard in idle {
            self.send_off(guard, None);
        }
        let mut leaving = std::mem::take(&mut *self.leaving.lock().expect("not poisoned"));
        while leaving.join_next().await.is_some() {}
    }

    /// Closes a guard's socket and sees to it that guard and job end. Whoever waits on what this returns waits for that.
    fn send_off(&self, guard: Guard, marker: Option<(String, String)>) -> oneshot::Receiver<()> {
        let Guard { child, pid, link } = guard;
        drop(link);
        wake(pid);
        let (done, waiting) = oneshot::channel();
        // Without a runtime the program ends, and the guard does its work alone.
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
            // One that has died while it was idle had nothing to lose.
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
        command.stdin(Stdio::from(there)).stdout(Stdio::null());
        let child = command.spawn()?;
        // It holds the guard's end of the socket, and would hide the guard's death.
        drop(command);
        let pid = child.id().map_or(0, |id| id as i32);
        let link = Link::new(here)?;
        match timeout(GUARD_WITHIN, link.receive::<Report>()).await {
            Ok(Ok(Some((Report::Ready, _)))) => Ok(Guard { child, pid, link }),
            Ok(Err(error)) => Err(error),
            _ => Err(io::Error::other("the guard process did not start")),
        }
    }

    /// Runs one job to its end. Each duration that comes through `stops` ends it: TERM, that long to obey, KILL.
    pub async fn run(&self, input: Input<'_>, stops: UnboundedReceiver<Duration>) -> Result<Ran, NotRun> {
        let marker = input.env.iter().find(|(name, _)| name == ATTEMPT_VARIABLE).cloned();
        let guard = self.take().await.map_err(|error| NotRun::NoGuard(error.to_string()))?;
        let pid = guard.pid;
        let mut busy = Busy { guards: self, guard: Some(guard), marker };
        let Some(Guard { link, .. }) = &busy.guard else { unreachable!("it was put there") };
        let ms = |duration: Duration| duration.as_millis() as u64;
        let order =
            Order::Start { env: input.env, grace_ms: ms(self.grace), silence_ms_max: ms(input.hang_max) };
        let ended = match Run::start(link, pid, &order).await {
            Ok(mut run) => {
                let alive_every = input.hang_max / ALIVE_TIMES;
                let ended = run.attend(input.stdin, self.grace, alive_every, stops).await;
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

impl Busy<'_> {
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
    }
}

/// A job under way.
struct Run<'g> {
    link: &'g Link,
    guard: i32,
    stdin: Option<pipe::Sender>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    written: Head,
    complaints: Tail,
}

impl<'g> Run<'g> {
    async fn start(link: &'g Link, guard: i32, order: &Order) -> Result<Self, NotRun> {
        let no_pipe = |error: io::Error| NotRun::NotStarted(format!("no pipe for it: {error}"));
        let gone = |error: io::Error| NotRun::NoGuard(format!("the guard of the job is gone: {error}"));
        let (its_stdin, stdin) = io::pipe().map_err(no_pipe)?;
        let (stdout, its_stdout) = io::pipe().map_err(no_pipe)?;
        let (stderr, its_stderr) = io::pipe().map_err(no_pipe)?;
        let run = Self {
            link,
            guard,
            stdin: Some(pipe::Sender::from_owned_fd(stdin.into()).map_err(no_pipe)?),
            stdout: pipe::Receiver::from_owned_fd(stdout.into()).map_err(no_pipe)?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into()).map_err(no_pipe)?,
            written: Head::new(limits::PAYLOAD_BYTES_MAX),
            complaints: Tail::new(limits::ERROR_TEXT_BYTES_MAX),
        };
        let files: [OwnedFd; 3] = [its_stdin.into(), its_stdout.into(), its_stderr.into()];
        link.send(order, &files).await.map_err(gone)?;
        // Only the job may hold its ends, or they would never close.
        drop(files);
        // The command may have stopped its guard before the guard could say that it runs.
        let report = loop {
            match timeout(WAKE_EVERY, link.receive::<Report>()).await {
                Ok(report) => break report.map_err(gone)?,
                Err(_) => wake(guard),
            }
        };
        match report {
            Some((Report::Started { .. }, _)) => Ok(run),
            Some((Report::NotStarted { errno, why }, _)) => Err(not_started(errno, why)),
            _ => Err(NotRun::NoGuard("the guard of the job died before it started the command".into())),
        }
    }

    /// Feeds and reads until the guard says that it is over.
    async fn attend(
        &mut self,
        stdin: &[u8],
        grace: Duration,
        alive_every: Duration,
        mut stops: UnboundedReceiver<Duration>,
    ) -> Result<Ended, NotRun> {
        let every = alive_every.max(Duration::from_millis(1));
        let mut alive = interval_at(Instant::now() + every, every);
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sender = self.stdin.take();
        let feed = async move {
            if let Some(sender) = &mut sender {
                // Whoever does not want to read it all need not.
                let _ = sender.write_all(stdin).await;
            }
        };
        tokio::pin!(feed);
        let (mut feeding, mut reading, mut listening) = (true, true, true);
        let (mut out, mut err) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        // The socket takes no more while the guard does not read; nothing else here waits for that.
        let (mut unsent, mut obey_by) = (None, None);
        loop {
            tokio::select! {
                report = self.link.receive::<Report>() => match report {
                    Ok(Some((Report::Ended(ended), _))) => return Ok(ended),
                    Ok(Some(_)) => {}
                    Ok(None) => return Err(NotRun::NoGuard("the guard of the job died".into())),
                    Err(error) => return Err(NotRun::NoGuard(format!("the guard of the job died: {error}"))),
                },
                read = self.stdout.read(&mut out), if reading => match read {
                    Ok(n) if n > 0 => {
                        let before = self.written.is_cut();
                        self.written.push(&out[..n]);
                        // Nothing that it may still do makes this a success, and it may never stop by itself.
                        if self.written.is_cut() && !before {
                            self.stop(grace, &mut unsent, &mut obey_by);
                        }
                    }
                    _ => reading = false,
                },
                read = self.stderr.read(&mut err), if listening => match read {
                    Ok(n) if n > 0 => self.complaints.push(&err[..n]),
                    _ => listening = false,
                },
                () = &mut feed, if feeding => feeding = false,
                Some(grace) = stops.recv() => self.stop(grace, &mut unsent, &mut obey_by),
                _ = alive.tick() => unsent = unsent.or(Some(Order::Alive)),
                () = tell(self.link, unsent.as_ref()) => unsent = None,
                () = at(obey_by) => return Err(NotRun::NoGuard("the guard of the job does not answer".into())),
            }
        }
    }

    fn stop(&self, grace: Duration, unsent: &mut Option<Order>, obey_by: &mut Option<Instant>) {
        let mut grace_ms = grace.as_millis() as u64;
        if let Some(Order::Stop { grace_ms: before }) = unsent {
            grace_ms = grace_ms.min(*before);
        }
        *unsent = Some(Order::Stop { grace_ms });
        let by = Instant::now().checked_add(grace.saturating_add(OBEY_WITHIN));
        *obey_by = obey_by.iter().copied().chain(by).min();
        // Its own job may have stopped it.
        wake(self.guard);
    }

    /// Takes what still lies in the pipes. Nobody is left to write, except whom the job has handed its end to.
    fn finish(mut self, exit: Exit) -> Seen {
        if let Ok(stdout) = self.stdout.into_nonblocking_fd() {
            rest_of(stdout, |bytes| self.written.push(bytes));
        }
        if let Ok(stderr) = self.stderr.into_nonblocking_fd() {
            rest_of(stderr, |bytes| self.complaints.push(bytes));
        }
        Seen { exit, stdout: self.written, stderr: self.complaints }
    }
}

fn rest_of(pipe: OwnedFd, mut take: impl FnMut(&[u8])) {
    let mut pipe = File::from(pipe).take(limits::PAYLOAD_BYTES_MAX as u64 + READ_BYTES as u64);
    let mut bytes = vec![0; READ_BYTES];
    loop {
        match pipe.read(&mut bytes) {
            Ok(n) if n > 0 => take(&bytes[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

fn not_started(errno: Option<i32>, why: String) -> NotRun {
    use rustix::io::Errno;
    let lasting =
        [Errno::NOENT, Errno::ACCESS, Errno::PERM, Errno::NOEXEC, Errno::NOTDIR, Errno::ISDIR, Errno::LOOP];
    match errno.map(Errno::from_raw_os_error) {
        Some(errno) if lasting.contains(&errno) => NotRun::NoCommand(why),
        _ => NotRun::NotStarted(why),
    }
}

/// Sends an order; never ready without one. A guard that is gone is noticed by the next look at its reports.
async fn tell(link: &Link, order: Option<&Order>) {
    match order {
        Some(order) => drop(link.send(order, &[] as &[OwnedFd]).await),
        None => std::future::pending().await,
    }
}

/// At this instant; never without one.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Lets a guard go on that somebody has stopped. Nobody has taken notice of its end, so its number is its own.
fn wake(guard: i32) {
    if let Some(pid) = Pid::from_raw(guard) {
        let _ = kill_process(pid, Signal::CONT);
    }
}

/// Waits until a guard whose socket is closed has ended with its job, and ends them if they do not.
async fn see_off(mut child: Child, guard: i32, marker: Option<(String, String)>) {
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

fn bears(pid: i32, (name, value): &(String, String)) -> bool {
    let wanted = format!("{name}={value}");
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[tokio::test]
    async fn a_guard_that_takes_no_orders_does_not_hold_up_what_its_job_writes() {
        let (here, _there) = Link::pair().unwrap();
        let link = Link::new(here).unwrap();
        let (stdout, mut its_stdout) = io::pipe().unwrap();
        let (stderr, _its_stderr) = io::pipe().unwrap();
        let mut run = Run {
            link: &link,
            guard: getpid().as_raw_nonzero().get(),
            stdin: None,
            stdout: pipe::Receiver::from_owned_fd(stdout.into()).unwrap(),
            stderr: pipe::Receiver::from_owned_fd(stderr.into()).unwrap(),
            written: Head::new(limits::PAYLOAD_BYTES_MAX),
            complaints: Tail::new(limits::ERROR_TEXT_BYTES_MAX),
        };
        // More words than the socket of somebody who does not read can take, and then more bytes than a pipe can.
        let (_stops, orders) = tokio::sync::mpsc::unbounded_channel();
        let job = async {
            sleep(Duration::from_secs(1)).await;
            let bytes = vec![b'x'; 4 * READ_BYTES];
            let written = tokio::task::spawn_blocking(move || its_stdout.write_all(&bytes));
            timeout(GUARD_WITHIN, written).await.expect("somebody reads").unwrap().unwrap();
        };
        tokio::select! {
            ended = run.attend(b"", Duration::ZERO, Duration::from_millis(1), orders) => panic!("{ended:?}"),
            () = job => {}
        }
    }
}
