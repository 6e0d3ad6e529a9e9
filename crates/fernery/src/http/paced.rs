//! A connection that does not wait for ever.
//!
//! hyper's own header time-out also runs while a kept-alive connection is idle, so the two cannot differ there. This
//! wrapper tells the phases apart: it gives a request's head ten seconds, an idle connection 75, and a client that does not
//! read its answer 30. It also keeps the bytes of the head, which show what the parser drops, and puts a problem body on
//! the bare answers that hyper sends to what it cannot parse.

use super::problem::{Code, Refusal};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How long connections may take over what.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// For the whole body.
    pub body: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For the client to take some of the answer.
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

/// How long a closing connection goes on reading what the client still sends, so that the answer is not lost to a reset.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes of a head that are kept.
const HEAD_BYTES_MAX: usize = 64 << 10;

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const SERVING: u8 = 2;
const ANSWERED: u8 = 3;

/// What the connection and the requests on it tell each other.
#[derive(Debug)]
pub struct Progress {
    phase: AtomicU8,
    /// The request was refused before its body was read.
    unread: AtomicBool,
    head: Mutex<Vec<u8>>,
}

impl Progress {
    fn new() -> Arc<Self> {
        // A new connection owes a request at once.
        Arc::new(Self { phase: AtomicU8::new(HEAD), unread: AtomicBool::new(false), head: Mutex::default() })
    }

    /// A request has arrived; `look` sees the bytes of its head.
    pub fn serving<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        self.phase.store(SERVING, Ordering::Relaxed);
        let mut head = self.head();
        let seen = look(&head);
        head.clear();
        head.shrink_to(1024);
        seen
    }

    /// The answer is handed over.
    pub fn answered(&self) {
        self.phase.store(ANSWERED, Ordering::Relaxed);
    }

    /// The rest of the request is not going to be read.
    pub fn leave_unread(&self) {
        self.unread.store(true, Ordering::Relaxed);
    }

    fn head(&self) -> MutexGuard<'_, Vec<u8>> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection.
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
    /// Our answer in place of hyper's bare one, and how much of it is written.
    instead: Option<(Vec<u8>, usize)>,
}

impl<S> Paced<S> {
    /// Wraps a fresh connection.
    pub fn new(inner: S, pace: Pace) -> (Self, Arc<Progress>) {
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

    /// Whether what is written now answers something that never became a request.
    fn is_automatic(&self) -> bool {
        self.instead.is_some() || matches!(self.phase(), IDLE | HEAD)
    }

    fn replace(&mut self, bare: &[u8]) {
        if self.instead.is_some() {
            return;
        }
        let long_line = !self.progress.head().iter().take(8 << 10).any(|byte| *byte == b'\n');
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

/// A whole answer for a connection that never had a request, and closes.
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

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut this.inner).poll_read(cx, buf) {
            read?;
            let phase = this.phase();
            let new = &buf.filled()[before..];
            if phase == IDLE && !new.is_empty() {
                this.progress.phase.store(HEAD, Ordering::Relaxed);
                this.since = Instant::now();
            }
            if matches!(phase, IDLE | HEAD) {
                let mut head = this.progress.head();
                let room = HEAD_BYTES_MAX.saturating_sub(head.len());
                head.extend_from_slice(&new[..new.len().min(room)]);
            }
            return Poll::Ready(Ok(()));
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
