//! Accepts connections, one task each, no more than the cap, until told to stop.

use super::answer;
use super::paced::{Paced, bare_answer};
use crate::http::Server;
use crate::http::access::repeats::LINES;
use crate::http::problem::Code;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

/// Bytes of a head that are read before it is refused; the guards refuse smaller ones by kind.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Connections beyond the cap that get an answer; further ones are just closed.
const TURNED_AWAY_MAX: usize = 64;

/// The stage of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Closing {
    Open,
    /// Finish the open request, accept no other.
    Drain,
    /// Now.
    Cut,
}

#[derive(Debug)]
pub struct Running {
    pub local_addr: SocketAddr,
    server: Arc<Server>,
    closing: watch::Sender<Closing>,
    accepting: JoinHandle<()>,
    telling: JoinHandle<()>,
}

impl Running {
    /// What to open: `http://…` or `https://…`.
    pub fn url(&self) -> String {
        let scheme = if self.server.settings.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.local_addr)
    }

    /// The host name of the pages for browsers on this machine.
    pub fn pages_host(&self) -> &str {
        self.server.hosts.own()
    }

    /// Streams that browsers have open.
    pub fn open_streams(&self) -> usize {
        self.server.live.listening()
    }

    pub fn connections(&self) -> usize {
        self.server.open_connections()
    }

    /// Claims that wait.
    pub fn waiting_claims(&self) -> usize {
        self.server.claiming.load(Ordering::Relaxed)
    }

    /// Calls that wait, claims and others.
    pub fn waiting_calls(&self) -> usize {
        self.server.waiting.load(Ordering::Relaxed)
    }

    /// Takes no more connections and no more claims, lets open requests finish for a while, then closes the rest. The
    /// engine stays open.
    pub async fn shutdown(self) {
        self.server.draining.store(true, Ordering::Release);
        self.server.engine().drain();
        self.server.live.close();
        self.accepting.abort();
        self.telling.abort();
        self.closing.send_replace(Closing::Drain);
        let all = u32::try_from(self.server.settings.connections_max).unwrap_or(u32::MAX);
        if timeout(self.server.settings.drain, self.server.connections.acquire_many(all)).await.is_err() {
            self.closing.send_replace(Closing::Cut);
            let _ = self.server.connections.acquire_many(all).await;
        }
    }
}

pub(in crate::http) fn start(
    listener: TcpListener,
    local_addr: SocketAddr,
    tls: Option<TlsAcceptor>,
    server: Arc<Server>,
) -> Running {
    let (closing, watched) = watch::channel(Closing::Open);
    let listener = Arc::new(listener);
    let accepting = server.engine().loops().clone().run("accept", {
        let server = server.clone();
        move || accept(listener.clone(), tls.clone(), server.clone(), watched.clone())
    });
    let telling = server.engine().loops().clone().run("log_repeats", || LINES.tell());
    Running { local_addr, server, closing, accepting, telling }
}

async fn accept(
    listener: Arc<TcpListener>,
    tls: Option<TlsAcceptor>,
    server: Arc<Server>,
    closing: watch::Receiver<Closing>,
) {
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Probably out of file descriptors; an immediate retry would only burn CPU.
                warn!(%error, "cannot accept a connection");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let Ok(permit) = server.connections.clone().try_acquire_owned() else {
            server.metrics.turned_away();
            if tls.is_none()
                && let Ok(permit) = turned_away.clone().try_acquire_owned()
            {
                tokio::spawn(turn_away(stream, permit));
            }
            continue;
        };
        server.metrics.connected();
        let (server, closing) = (server.clone(), closing.clone());
        match tls.clone() {
            None => drop(tokio::spawn(serve(stream, server, closing, permit))),
            Some(tls) => drop(tokio::spawn(async move {
                match timeout(server.settings.pace.head, tls.accept(stream)).await {
                    Ok(Ok(stream)) => serve(stream, server, closing, permit).await,
                    Ok(Err(error)) => debug!(%error, "TLS handshake failed"),
                    Err(_) => debug!("TLS handshake took too long"),
                }
            })),
        }
    }
}

/// Sends the reason, then waits until the client has read it: closing at once could reset the connection and lose the
/// answer.
async fn turn_away(mut stream: TcpStream, _permit: OwnedSemaphorePermit) {
    let told = async {
        stream.write_all(&bare_answer(Code::Busy, "too many connections")).await?;
        stream.shutdown().await?;
        let mut waste = [0; 512];
        while stream.read(&mut waste).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = timeout(Duration::from_secs(1), told).await;
}

async fn serve<S>(
    stream: S,
    server: Arc<Server>,
    mut closing: watch::Receiver<Closing>,
    permit: OwnedSemaphorePermit,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _permit = permit;
    let (stream, progress) = Paced::new(stream, server.settings.pace, server.heads.clone());
    let service = service_fn(move |request| {
        let response = answer::answer(server.clone(), progress.clone(), request);
        async { Ok::<_, Infallible>(response.await) }
    });
    let mut http = http1::Builder::new();
    http.header_read_timeout(None).max_buf_size(BUFFER_BYTES_MAX);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        done = &mut connection => return over(done),
        _ = closing.wait_for(|closing| *closing >= Closing::Drain) => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        done = connection => over(done),
        _ = closing.wait_for(|closing| *closing == Closing::Cut) => {}
    }
}

fn over(done: hyper::Result<()>) {
    if let Err(error) = done {
        debug!(%error, "connection ended");
    }
}
