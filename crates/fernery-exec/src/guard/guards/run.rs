//! One running job, from the start order to the guard's report that it is over: feeds stdin, keeps output within
//! bounds, and keeps the guard awake.

use super::send_off::{WAKE_EVERY, wake};
use super::{Listener, NotRun, OutputStream, Seen};
use crate::guard::bounded_output::{Head, Tail};
use crate::guard::link::{Ended, Exit, Link, Order, Report};
use fernery_core::limits;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

/// How long beyond the grace a guard may take to report the end of a job that it was ordered to end. It tries by itself
/// for two thirds of that.
const OBEY_WITHIN: Duration = Duration::from_secs(15);
/// Bytes read from a pipe at once: the capacity of a pipe.
const READ_BYTES: usize = 64 << 10;

pub(super) struct Run<'g> {
    link: &'g Link,
    guard: i32,
    stdin: Option<pipe::Sender>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    written: Head,
    written_end: Tail,
    complaints: Tail,
    pub(super) listener: Option<&'g Listener<'g>>,
}

impl<'g> Run<'g> {
    pub(super) async fn start(link: &'g Link, guard: i32, order: &Order) -> Result<Self, NotRun> {
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
            written_end: Tail::new(limits::ERROR_TEXT_BYTES_MAX),
            complaints: Tail::new(limits::ERROR_TEXT_BYTES_MAX),
            listener: None,
        };
        let files: [OwnedFd; 3] = [its_stdin.into(), its_stdout.into(), its_stderr.into()];
        link.send(order, &files).await.map_err(gone)?;
        // Only the job may hold its ends of the pipes, or they would never close.
        drop(files);
        // The command may have stopped its guard before the guard could report that it runs.
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

    /// Feeds and reads until the guard reports the end.
    pub(super) async fn attend(
        &mut self,
        stdin: &[u8],
        full: Option<Duration>,
        alive_every: Duration,
        mut stops: UnboundedReceiver<Duration>,
    ) -> Result<Ended, NotRun> {
        let every = alive_every.max(Duration::from_millis(1));
        let mut alive = interval_at(Instant::now() + every, every);
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sender = self.stdin.take();
        let feed = async move {
            if let Some(sender) = &mut sender {
                // The command may end without reading all of its stdin.
                let _ = sender.write_all(stdin).await;
            }
        };
        tokio::pin!(feed);
        let (mut feeding, mut reading, mut listening) = (true, true, true);
        let (mut out, mut err) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        // The socket is full while the guard does not read; nothing else here waits for that.
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
                        self.written_end.push(&out[..n]);
                        self.hear(OutputStream::Stdout, &out[..n]);
                        // The job can no longer succeed, and may never stop by itself.
                        if let Some(grace) = full
                            && self.written.is_cut()
                            && !before
                        {
                            self.stop(grace, &mut unsent, &mut obey_by);
                        }
                    }
                    _ => reading = false,
                },
                read = self.stderr.read(&mut err), if listening => match read {
                    Ok(n) if n > 0 => {
                        self.complaints.push(&err[..n]);
                        self.hear(OutputStream::Stderr, &err[..n]);
                    }
                    _ => listening = false,
                },
                () = &mut feed, if feeding => feeding = false,
                Some(grace) = stops.recv() => self.stop(grace, &mut unsent, &mut obey_by),
                _ = alive.tick() => {
                    unsent = unsent.or(Some(Order::Alive));
                    // A guard stopped by its own job would not notice that the job has ended.
                    wake(self.guard);
                }
                () = tell(self.link, unsent.as_ref()) => unsent = None,
                () = at(obey_by) => return Err(NotRun::NoGuard("the guard of the job does not answer".into())),
            }
        }
    }

    fn hear(&self, from: OutputStream, bytes: &[u8]) {
        if let Some(listener) = self.listener {
            listener(from, bytes);
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

    /// Reads the rest of the pipes. No writer is left, unless the job gave its end to another process.
    pub(super) fn finish(mut self, exit: Exit) -> Seen {
        let listener = self.listener;
        let hear = |from, bytes: &[u8]| listener.into_iter().for_each(|listener| listener(from, bytes));
        if let Ok(stdout) = self.stdout.into_nonblocking_fd() {
            rest_of(stdout, |bytes| {
                self.written.push(bytes);
                self.written_end.push(bytes);
                hear(OutputStream::Stdout, bytes);
            });
        }
        if let Ok(stderr) = self.stderr.into_nonblocking_fd() {
            rest_of(stderr, |bytes| {
                self.complaints.push(bytes);
                hear(OutputStream::Stderr, bytes);
            });
        }
        Seen { exit, stdout: self.written, stdout_end: self.written_end, stderr: self.complaints }
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

/// Sends an order; pending for ever without one. A dead guard is noticed at the next read of its reports.
async fn tell(link: &Link, order: Option<&Order>) {
    match order {
        Some(order) => drop(link.send(order, &[] as &[OwnedFd]).await),
        None => std::future::pending().await,
    }
}

/// Waits until this instant; for ever without one.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpid;
    use std::io::Write;
    use tokio::time::sleep;

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
            written_end: Tail::new(limits::ERROR_TEXT_BYTES_MAX),
            complaints: Tail::new(limits::ERROR_TEXT_BYTES_MAX),
            listener: None,
        };
        // More words than the socket of somebody who does not read can take, and then more bytes than a pipe can.
        let (_stops, orders) = tokio::sync::mpsc::unbounded_channel();
        let job = async {
            sleep(Duration::from_secs(1)).await;
            let bytes = vec![b'x'; 4 * READ_BYTES];
            let written = tokio::task::spawn_blocking(move || its_stdout.write_all(&bytes));
            timeout(Duration::from_secs(10), written).await.expect("somebody reads").unwrap().unwrap();
        };
        tokio::select! {
            ended = run.attend(b"", Some(Duration::ZERO), Duration::from_millis(1), orders) => panic!("{ended:?}"),
            () = job => {}
        }
    }
}
