//! Browsers, as far as a server notices: sessions, tabs that ask for pages, and streams that tell of changes.

use super::server::Server;
use super::wire::Wire;
use crate::http::access::rate::SIGN_IN_BURST;
use crate::http::pages::live::STREAMS_OF_SESSION_MAX;
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What a tab that follows shows.
const FOLLOWED: &str = "/streams";

/// A session at a server's pages.
#[derive(Clone)]
pub(super) struct Browser {
    address: SocketAddr,
    host: String,
    cookie: String,
}

impl Browser {
    /// Signs in with a token.
    pub(super) async fn sign_in(server: &Server, token: &str) -> Result<Self> {
        let (address, host) = (server.address, pages_host(&server.data, server.address)?);
        let form = format!("token={token}&next=%2F");
        let request = format!(
            "POST /sign-in HTTP/1.1\r\nhost: {host}\r\norigin: http://{host}\r\nconnection: close\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        );
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        ensure!(
            answer.starts_with("HTTP/1.1 303"),
            "signing in answered {}",
            answer.lines().next().unwrap_or("")
        );
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie =
            cookie.and_then(|cookie| cookie.split(';').next()).context("no cookie after signing in")?;
        Ok(Self { address, host, cookie: cookie.to_string() })
    }

    /// A connection for pages.
    pub(super) async fn tab(&self) -> Result<Wire> {
        Ok(Wire::browser(self.address, &self.host, &self.cookie).await?)
    }
}

/// The name and port under which the pages of a server on this machine live.
fn pages_host(data: &Path, address: SocketAddr) -> Result<String> {
    let file = data.join("pages.host");
    let name = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    Ok(format!("{}:{}", name.trim(), address.port()))
}

/// An open tab.
pub(super) struct Tab;

impl Tab {
    /// Opens so many streams; with `follows`, each asks for a page whenever it is told of a change. They end with what is returned.
    pub(super) async fn listening(
        server: &Server,
        count: usize,
        follows: bool,
    ) -> Result<JoinSet<Result<()>>> {
        let sessions = count.div_ceil(STREAMS_OF_SESSION_MAX);
        let mut operator = Wire::connect(server.address, &server.operator).await?;
        let mut browsers = Vec::with_capacity(sessions);
        while browsers.len() < sessions {
            let (status, body) = operator.post("/v1/tokens", br#"{"role":"viewer","name":"bench"}"#).await?;
            ensure!(status == 201, "making a token answered {status}");
            let made: serde_json::Value = serde_json::from_slice(body)?;
            let token = made["token"].as_str().context("no token")?;
            let at_once = SIGN_IN_BURST.get() as usize;
            for _ in 0..at_once.min(sessions - browsers.len()) {
                browsers.push(Browser::sign_in(server, token).await?);
            }
        }
        let (told, mut opened) = mpsc::channel(count.max(1));
        let mut tabs = JoinSet::new();
        for n in 0..count {
            tabs.spawn(listen(browsers[n / STREAMS_OF_SESSION_MAX].clone(), follows, told.clone()));
        }
        drop(told);
        for n in 0..count {
            ensure!(opened.recv().await.is_some(), "only {n} of {count} streams could be opened");
        }
        Ok(tabs)
    }
}

/// Reads a stream until it is dropped; says once that it is open.
async fn listen(browser: Browser, follows: bool, told: mpsc::Sender<()>) -> Result<()> {
    let mut stream = TcpStream::connect(browser.address).await?;
    let (host, cookie) = (&browser.host, &browser.cookie);
    let request = format!(
        "GET /events HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\naccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let (mut read, mut told) = (Vec::new(), Some(told));
    let mut page = if follows { Some(browser.tab().await?) } else { None };
    loop {
        read.clear();
        ensure!(stream.read_buf(&mut read).await? > 0, "the server ended a stream");
        let text = String::from_utf8_lossy(&read);
        if let Some(told) = told.take() {
            ensure!(
                text.starts_with("HTTP/1.1 200"),
                "a stream answered {}",
                text.lines().next().unwrap_or("")
            );
            told.send(()).await?;
        }
        if let Some(page) = &mut page
            && text.contains("event: changed")
        {
            let (status, _) = page.get(FOLLOWED).await?;
            ensure!(status == 200, "{FOLLOWED} answered {status}");
        }
    }
}
