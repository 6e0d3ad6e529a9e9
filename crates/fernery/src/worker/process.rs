//! The worker's side of a job's process: takes a guard, feeds stdin, keeps what is written within bounds, and knows how it
//! ended.
//!
//! Dropping a run closes the guard's socket, and with it ends the job.

use super::capture::{Head, Tail};
use super::link::{Ended, Exit, Link, Order, Report, Stopped};
use super::outcome::Seen;
use super::tree::{self, Process};
use fernery_core::limits;
use rustix::process::{Pid, Signal, WaitOptions, getpid, waitpid};
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
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

/// The hidden command that is a guard.
pub const GUARD_COMMAND: &str = "worker-guard";
/// The variable that marks every process of an attempt.
pub const ATTEMPT_VARIABLE: &str = "FERNERY_JOB_ATTEMPT_ID";
/// How long a guard may take to be there.
const GUARD_WITHIN: Duration = Duration::from_secs(10);
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
}

#[derive(Debug)]
struct Guard {
    child: Child,
    pid: i32,
    link: Link,
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
        Self { program, command, grace, idle: Mutex::new(Vec::new()) }
    }

    /// Starts a guard, so that the first job finds one.
    pub async fn prepare(&self) -> io::Result<()> {
        let guard = self.spawn().await?;
        self.give_back(guard);
        Ok(())
    }

    /// Ends all guards that are idle, and waits for them.
    pub async fn close(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().expect("not poisoned"));
        for Guard { mut child, link, .. } in idle {
            drop(link);
            let _ = timeout(GUARD_WITHIN, child.wait()).await;
        }
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
        let ms = |duration: Duration| duration.as_millis() as u64;
        let order =
            Order::Start { env: input.env, grace_ms: ms(self.grace), silence_ms_max: ms(input.hang_max) };
        let ended = match Run::start(&guard.link, &order).await {
            Ok(mut run) => {
                let alive = run.attend(input.stdin, self.grace, input.hang_max / ALIVE_TIMES, stops);
                alive.await.map(|ended| (ended, run))
            }
            Err(not_run) => Err(not_run),
        };
        match ended {
            Ok((Ended { exit, stopped, leftovers, immortal }, run)) => {
                let seen = run.finish(exit);
                if immortal.is_empty() {
                    self.give_back(guard);
                }
                Ok(Ran { seen, stopped, leftovers, immortal })
            }
            Err(NotRun::NoGuard(why)) => {
                let Guard { mut child, pid, link } = guard;
                drop(link);
                // Its orphans are ours from the moment on that its end can be noticed.
                let _ = timeout(GUARD_WITHIN, child.wait()).await;
                kill_orphans(pid, marker).await;
                Err(NotRun::NoGuard(why))
            }
            Err(not_started) => {
                self.give_back(guard);
                Err(not_started)
            }
        }
    }
}

/// A job under way.
struct Run<'g> {
    link: &'g Link,
    stdin: Option<pipe::Sender>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    written: Head,
    complaints: Tail,
}

impl<'g> Run<'g> {
    async fn start(link: &'g Link, order: &Order) -> Result<Self, NotRun> {
        let no_pipe = |error: io::Error| NotRun::NotStarted(format!("no pipe for it: {error}"));
        let gone = |error: io::Error| NotRun::NoGuard(format!("the guard of the job is gone: {error}"));
        let (its_stdin, stdin) = io::pipe().map_err(no_pipe)?;
        let (stdout, its_stdout) = io::pipe().map_err(no_pipe)?;
        let (stderr, its_stderr) = io::pipe().map_err(no_pipe)?;
        let run = Self {
            link,
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
        match link.receive::<Report>().await.map_err(gone)? {
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
                            self.stop(grace).await;
                        }
                    }
                    _ => reading = false,
                },
                read = self.stderr.read(&mut err), if listening => match read {
                    Ok(n) if n > 0 => self.complaints.push(&err[..n]),
                    _ => listening = false,
                },
                () = &mut feed, if feeding => feeding = false,
                Some(grace) = stops.recv() => self.stop(grace).await,
                _ = alive.tick() => self.tell(&Order::Alive).await,
            }
        }
    }

    async fn stop(&self, grace: Duration) {
        self.tell(&Order::Stop { grace_ms: grace.as_millis() as u64 }).await;
    }

    /// A guard that is gone is noticed by the next look at its reports.
    async fn tell(&self, order: &Order) {
        let _ = self.link.send(order, &[] as &[OwnedFd]).await;
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
