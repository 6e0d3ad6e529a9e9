//! A minimal HTTP client for measuring: one connection, one request at a time. It does as little work as possible, because it
//! shares the cores with the server.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One kept-alive connection.
pub(super) struct Wire {
    stream: TcpStream,
    head: String,
    out: Vec<u8>,
    read: Vec<u8>,
}

impl Wire {
    pub(super) async fn connect(address: SocketAddr, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let head = format!(
            " HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: "
        );
        Ok(Self { stream, head, out: Vec::new(), read: Vec::with_capacity(16 << 10) })
    }

    /// A connection of a browser that is signed in.
    pub(super) async fn browser(address: SocketAddr, host: &str, cookie: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let head =
            format!(" HTTP/1.1\r\nhost: {host}\r\naccept: text/html\r\ncookie: {cookie}\r\ncontent-length: ");
        Ok(Self { stream, head, out: Vec::new(), read: Vec::with_capacity(64 << 10) })
    }

    /// Asks for a page.
    pub(super) async fn get(&mut self, path: &str) -> Result<(u16, &[u8])> {
        self.request("GET", path, b"").await
    }

    /// Sends a request; returns status and body. The body is valid until the next call.
    pub(super) async fn post(&mut self, path: &str, body: &[u8]) -> Result<(u16, &[u8])> {
        self.request("POST", path, body).await
    }

    pub(super) async fn request(&mut self, method: &str, path: &str, body: &[u8]) -> Result<(u16, &[u8])> {
        self.out.clear();
        for part in [method.as_bytes(), b" ", path.as_bytes(), self.head.as_bytes()] {
            self.out.extend_from_slice(part);
        }
        self.out.extend_from_slice(body.len().to_string().as_bytes());
        self.out.extend_from_slice(b"\r\n\r\n");
        self.out.extend_from_slice(body);
        self.stream.write_all(&self.out).await?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<(u16, &[u8])> {
        self.read.clear();
        let (head_end, status, length) = loop {
            self.more().await?;
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                let (status, length) = head(&self.read[..end])?;
                break (end + 4, status, length);
            }
        };
        while self.read.len() < head_end + length {
            self.more().await?;
        }
        Ok((status, &self.read[head_end..head_end + length]))
    }

    async fn more(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
            _ => Ok(()),
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn head(bytes: &[u8]) -> Result<(u16, usize)> {
    let bad = || Error::new(ErrorKind::InvalidData, "not an HTTP answer with a length");
    let text = std::str::from_utf8(bytes).map_err(|_| bad())?;
    let status = text.get(9..12).and_then(|s| s.parse().ok()).ok_or_else(bad)?;
    let length = text
        .split("\r\n")
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .ok_or_else(bad)?;
    Ok((status, length))
}
