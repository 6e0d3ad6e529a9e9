//! A server for tests that answers with exact bytes and records the requests.

use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What happens to one connection.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Send these bytes, then close.
    Say(Vec<u8>),
    /// Send nothing until the caller leaves.
    Silence,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (given, value) = line.split_once(':')?;
            given.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// The server; it ends when this is dropped.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    asked: mpsc::UnboundedReceiver<Asked>,
    _serving: JoinSet<()>,
}

/// An answer with this status, these header lines and this body.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Act {
    let length = body.len();
    Act::Say(format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes())
}

impl Scripted {
    /// Follows the script, one act for each connection; the last act is repeated.
    pub(crate) async fn start(script: Vec<Act>) -> Self {
        Self::start_with(script, None).await
    }

    /// The same over TLS.
    pub(crate) async fn start_with(script: Vec<Act>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (told, asked) = mpsc::unbounded_channel();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            for place in 0.. {
                let (tcp, _) = listener.accept().await.expect("a connection");
                let act = script[place.min(script.len() - 1)].clone();
                let (tls, told) = (tls.clone(), told.clone());
                connections.spawn(async move {
                    match tls {
                        None => follow(tcp, act, told).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(tcp).await {
                                follow(stream, act, told).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, asked, _serving: serving }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests that were read until now.
    pub(crate) fn requests(&mut self) -> Vec<Asked> {
        std::iter::from_fn(|| self.asked.try_recv().ok()).collect()
    }
}

async fn follow(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    act: Act,
    told: mpsc::UnboundedSender<Asked>,
) {
    let Some(asked) = read(&mut stream).await else { return };
    let _ = told.send(asked);
    if let Act::Say(bytes) = act {
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
    }
    // Wait for the caller to close: closing first could destroy bytes that it has not read yet.
    let _ = stream.read(&mut [0]).await;
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let body = bytes.split_off(end);
    let mut asked = Asked { head: String::from_utf8(bytes).ok()?, body };
    let length: usize = asked.header("content-length")?.parse().ok()?;
    while asked.body.len() < length {
        if stream.read_buf(&mut asked.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(asked)
}
