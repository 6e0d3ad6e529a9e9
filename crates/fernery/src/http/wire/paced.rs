//! A connection with time-outs for each phase.
//!
//! hyper's own header time-out also runs while a kept-alive connection is idle, so the two could not differ. This
//! wrapper tells the phases apart: a request's head has ten seconds, an idle connection 75, and a client that does not
//! read its answer 30. It also follows the bytes of heads ([`Framing`]), which show what the parser drops, and puts a
//! problem body on the bare answers that hyper sends to requests it cannot parse.
//!
//! Anybody can send heads, so their memory is bounded: they are read in small steps, so that hyper's buffer does not
//! grow ahead of them, and all unfinished heads share one [`HeadBudget`].

use super::framing::{Framing, Head};
use crate::http::problem::{Code, Refusal};
use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The time limits of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// For the whole body.
    pub body: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For the client to read some of the answer.
    pub write: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
        }
    }
}

/// How long a closing connection goes on reading, so that a reset does not lose the answer.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes of a head per read. Less than hyper's first buffer: a read that fills the buffer doubles it.
const HEAD_STEP: usize = 4 << 10;
/// A larger head is the last on its connection: hyper keeps the large buffer as long as the connection lives.
pub const HEAD_BYTES_KEPT: usize = 8 << 10;
/// Never part of a request: no head contains a NUL.
const NO_HEAD: &[u8] = b"\0\r\n\r\n";

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const SERVING: u8 = 2;
const ANSWERED: u8 = 3;

/// The state shared by the connection and its requests.
#[derive(Debug)]
pub struct Progress {
    phase: AtomicU8,
    /// The request was refused before its body was read.
    unread: AtomicBool,
    /// Bytes have come since the last request: the next request was not complete before the last answer.
    fresh: AtomicBool,
    framing: Mutex<Framing>,
}

/// A request as its connection has seen it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// What its head says; `None` if the framing is lost.
    pub head: Option<Head>,
    /// Its whole head had arrived before the previous request was answered (pipelining).
    pub pipelined: bool,
}

/// Bytes that the unfinished heads of all connections may take together, beyond a first step that is free for each.
#[derive(Debug)]
pub struct HeadBudget {
    bytes_max: usize,
    bytes: AtomicUsize,
    refused: AtomicU64,
}

impl HeadBudget {
    /// So many bytes for all.
    pub fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, bytes: AtomicUsize::new(0), refused: AtomicU64::new(0) })
    }

    /// Heads refused because the budget was used up.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        let taken = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        self.refused.fetch_add(u64::from(!taken), Ordering::Relaxed);
        taken
    }
}

/// The share of one connection in the budget.
#[derive(Debug)]
struct Share {
    budget: Arc<HeadBudget>,
    bytes: usize,
}

impl Share {
    /// Grows the share to a head of so many bytes; false if the budget does not allow it.
    fn fit(&mut self, head_bytes: usize) -> bool {
        // Like hyper's buffer: the next power of two with room for another step.
        let wanted = if head_bytes <= HEAD_STEP { 0 } else { (head_bytes + HEAD_STEP).next_power_of_two() };
        if wanted > self.bytes {
            if !self.budget.take(wanted - self.bytes) {
                return false;
            }
            self.bytes = wanted;
        }
        true
    }

    fn give_back(&mut self) {
        self.budget.bytes.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Progress {
    fn new() -> Arc<Self> {
        // A new connection must send a request at once.
        Arc::new(Self {
            phase: AtomicU8::new(HEAD),
            unread: AtomicBool::new(false),
            fresh: AtomicBool::new(false),
            framing: Mutex::default(),
        })
    }

    /// A request has arrived.
    pub fn serving(&self) -> Seen {
        self.phase.store(SERVING, Ordering::Relaxed);
        let pipelined = !self.fresh.swap(false, Ordering::Relaxed);
        Seen { head: self.framing().next_head(), pipelined }
    }

    /// The answer is handed over.
    pub fn answered(&self) {
        self.phase.store(ANSWERED, Ordering::Relaxed);
    }

    /// The rest of the request is not going to be read.
    pub fn leave_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    fn framing(&self) -> MutexGuard<'_, Framing> {
        self.framing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub struct Paced<S> {
    inner: S,
    pace: Pace,
    progress: Arc<Progress>,
    /// Since when the phase lasts.
    since: Instant,
    /// Since when a write is stuck.
    stuck_since: Option<Instant>,
    closing_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Our answer instead of hyper's bare one, and how much of it is written.
    instead: Option<(Vec<u8>, usize)>,
    share: Share,
}

impl<S> Paced<S> {
    /// Wraps a fresh connection.
    pub fn new(inner: S, pace: Pace, budget: Arc<HeadBudget>) -> (Self, Arc<Progress>) {
        let progress = Progress::new();
        let paced = Self {
            inner,
            pace,
            progress: progress.clone(),
            since: Instant::now(),
            stuck_since: None,
            closing_since: None,
            timer: None,
            instead: None,
            share: Share { budget, bytes: 0 },
        };
        (paced, progress)
    }

    fn phase(&self) -> u8 {
        self.progress.phase.load(Ordering::Relaxed)
    }

    /// Ready once the deadline has passed. The timer is moved lazily: it may be early, never late.
    fn poll_deadline(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    fn poll_stuck(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let since = *self.stuck_since.get_or_insert_with(Instant::now);
        ready!(self.poll_deadline(cx, since + self.pace.write));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Whether hyper is answering something that never became a request.
    fn is_automatic(&self) -> bool {
        self.instead.is_some() || matches!(self.phase(), IDLE | HEAD)
    }

    fn replace(&mut self, bare: &[u8]) {
        if self.instead.is_some() {
            return;
        }
        let long_line = self.progress.framing().is_in_request_line();
        let code = match bare.get(9..12) {
            Some(b"431") if long_line => Code::UriTooLong,
            Some(b"414") => Code::UriTooLong,
            Some(b"431") => Code::HeadersTooLarge,
            _ => Code::BadRequest,
        };
        self.instead = Some((bare_answer(code, code.title()), 0));
        self.progress.leave_unread();
    }
}

/// A complete answer for a connection that never had a request; the connection then closes.
pub fn bare_answer(code: Code, detail: &str) -> Vec<u8> {
    let body = Refusal::new(code, detail).body(false);
    let reason =
        http::StatusCode::from_u16(code.status()).ok().and_then(|s| s.canonical_reason()).unwrap_or("");
    let retry = code.retry_after().map_or(String::new(), |after| format!("retry-after: {after}\r\n"));
    let head = format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/problem+json\r\nx-content-type-options: nosniff\r\n\
         cache-control: no-store\r\n{retry}connection: close\r\ncontent-length: {}\r\n\r\n",
        code.status(),
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

impl<S: AsyncRead + Unpin> Paced<S> {
    /// Reads a step of a head.
    fn poll_read_head(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut step = [MaybeUninit::<u8>::uninit(); HEAD_STEP];
        let room = buf.remaining().min(HEAD_STEP);
        let mut step = ReadBuf::uninit(&mut step[..room]);
        ready!(Pin::new(&mut self.inner).poll_read(cx, &mut step))?;
        let new = step.filled();
        if new.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if self.phase() == IDLE {
            self.progress.phase.store(HEAD, Ordering::Relaxed);
            self.since = Instant::now();
        }
        self.progress.fresh.store(true, Ordering::Relaxed);
        let unfinished = {
            let mut framing = self.progress.framing();
            framing.read(new);
            framing.unfinished_bytes()
        };
        if self.share.fit(unfinished) {
            buf.put_slice(new);
        } else if buf.remaining() >= NO_HEAD.len() {
            // hyper answers a request that it cannot parse and closes; this replaces its answer.
            let detail = "too many request heads are being read; send a smaller one, or try again";
            self.instead = Some((bare_answer(Code::Busy, detail), 0));
            self.progress.leave_unread();
            buf.put_slice(NO_HEAD);
        } else {
            return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let phase = this.phase();
        let read = if matches!(phase, IDLE | HEAD) {
            this.poll_read_head(cx, buf)
        } else {
            let before = buf.filled().len();
            let read = Pin::new(&mut this.inner).poll_read(cx, buf);
            this.progress.framing().read(&buf.filled()[before..]);
            read
        };
        if read.is_ready() {
            return read;
        }
        let deadline = match this.phase() {
            IDLE => this.since + this.pace.idle,
            HEAD => this.since + this.pace.head,
            _ => return Poll::Pending,
        };
        ready!(this.poll_deadline(cx, deadline));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.is_automatic() {
            this.replace(buf);
            return Poll::Ready(Ok(buf.len()));
        }
        match Pin::new(&mut this.inner).poll_write(cx, buf) {
            Poll::Pending => this.poll_stuck(cx),
            done => {
                this.stuck_since = None;
                done
            }
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.is_automatic() {
            this.replace(bufs.iter().find(|buf| !buf.is_empty()).map_or(&[], |buf| &**buf));
            return Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()));
        }
        match Pin::new(&mut this.inner).poll_write_vectored(cx, bufs) {
            Poll::Pending => this.poll_stuck(cx),
            done => {
                this.stuck_since = None;
                done
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while let Some((answer, written)) = &mut this.instead
            && *written < answer.len()
        {
            *written += ready!(Pin::new(&mut this.inner).poll_write(cx, &answer[*written..]))?;
        }
        ready!(Pin::new(&mut this.inner).poll_flush(cx))?;
        if this.phase() == ANSWERED {
            this.progress.phase.store(IDLE, Ordering::Relaxed);
            this.since = Instant::now();
            this.share.give_back();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        let this = &mut *self;
        if this.closing_since.is_none() {
            ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
            this.closing_since = Some(Instant::now());
        }
        if !this.progress.unread.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let mut waste = [std::mem::MaybeUninit::<u8>::uninit(); 4096];
        loop {
            let mut buf = ReadBuf::uninit(&mut waste);
            match Pin::new(&mut this.inner).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => break,
            }
        }
        let deadline = this.closing_since.unwrap_or_else(Instant::now) + LINGER;
        ready!(this.poll_deadline(cx, deadline));
        Poll::Ready(Ok(()))
    }
}
