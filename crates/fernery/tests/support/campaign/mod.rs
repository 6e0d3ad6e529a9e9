//! Real processes under real faults: a server that can be killed, and calls that may get no answer.
#![allow(dead_code, reason = "not every test binary needs all of it")]

pub(crate) mod load;

use serde_json::Value;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Where a server listens now, and the tokens that it takes.
#[derive(Clone)]
pub(crate) struct Target {
    address: Arc<RwLock<SocketAddr>>,
    pub(crate) operator: String,
    pub(crate) worker: String,
}

impl Target {
    /// Where it listens now.
    pub(crate) fn address(&self) -> SocketAddr {
        *self.address.read().expect("not poisoned")
    }

    /// The same server, by another way.
    pub(crate) fn through(&self, address: SocketAddr) -> Self {
        Self { address: Arc::new(RwLock::new(address)), ..self.clone() }
    }

    /// One call on a connection of its own. An error means that there was no whole answer: the call may or may not have
    /// been carried out.
    pub(crate) async fn call(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: &Value,
    ) -> io::Result<(u16, Value)> {
        let address = *self.address.read().expect("not poisoned");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let exchange = async {
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            stream.write_all(request.as_bytes()).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            parse(&answer)
        };
        timeout(Duration::from_secs(10), exchange).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
    }

    /// A page that is no JSON.
    pub(crate) async fn text(&self, path: &str) -> String {
        let address = self.address();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("a page");
        answer
    }

    /// Calls until there is a whole answer that is not "come back later". Only for calls that may be repeated.
    pub(crate) async fn insist(&self, token: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
        loop {
            match self.call(token, method, path, body).await {
                Ok((429 | 503, _)) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                Ok(answer) => return answer,
            }
        }
    }
}

fn parse(answer: &[u8]) -> io::Result<(u16, Value)> {
    let cut = || io::Error::new(ErrorKind::UnexpectedEof, "the answer was cut off");
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").ok_or_else(cut)?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.get(9..12).and_then(|s| s.parse().ok()).ok_or_else(cut)?;
    let length: usize = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0);
    let body = answer.get(end + 4..end + 4 + length).ok_or_else(cut)?;
    let value =
        if body.is_empty() { Value::Null } else { serde_json::from_slice(body).map_err(|_| cut())? };
    Ok((status, value))
}

/// A `fernery up` that can be killed and started again on the same data.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    child: Child,
    pub(crate) target: Target,
}

impl Server {
    /// Starts one on a fresh folder; `database` is a URL, or `None` for SQLite inside the folder.
    pub(crate) async fn start(database: Option<&str>, arguments: &[&str]) -> Self {
        Self::start_in(database, arguments, &[]).await
    }

    /// As [`Server::start`], with more in its environment.
    pub(crate) async fn start_in(
        database: Option<&str>,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut all: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        if let Some(url) = database {
            all.extend(["--database".into(), url.into()]);
        }
        let environment: Vec<(String, String)> =
            environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let (child, address) = up(&folder.path().join("data"), &all, &environment).await;
        let token = |name: &str| {
            let path: PathBuf = folder.path().join("data").join(name);
            std::fs::read_to_string(&path).expect("a token file").trim().to_owned()
        };
        let target = Target {
            address: Arc::new(RwLock::new(address)),
            operator: token("operator.token"),
            worker: token("worker.token"),
        };
        Self { folder, arguments: all, environment, child, target }
    }

    /// Resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory that it ever had, in bytes.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, figure: &str) -> u64 {
        let id = self.child.id().expect("it runs");
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix(figure)).expect("its size");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// `kill -9`, without a warning.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("killed");
    }

    /// SIGTERM, and waits for its end.
    pub(crate) async fn stop(&mut self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).expect("it runs");
        let pid = rustix::process::Pid::from_raw(id).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told to end");
        assert!(self.child.wait().await.expect("ended").success());
    }

    /// From the next start on, this is in its environment, or is not.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.extend(value.map(|value| (name.to_string(), value.to_string())));
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) {
        self.child.wait().await.expect("ended");
    }

    /// Starts it again on the same data.
    pub(crate) async fn restart(&mut self) {
        let (child, address) = up(&self.folder.path().join("data"), &self.arguments, &self.environment).await;
        self.child = child;
        *self.target.address.write().expect("not poisoned") = address;
    }
}

async fn up(
    data: &std::path::Path,
    arguments: &[String],
    environment: &[(String, String)],
) -> (Child, SocketAddr) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fernery"))
        .args(["up", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .args(arguments)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    while let Some(line) = lines.next_line().await.expect("its output") {
        if let Some((_, address)) = line.split_once("listening on http://") {
            let address = address.trim().trim_end_matches('/').parse().expect("an address");
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (child, address);
        }
    }
    panic!("the server ended before it listened: {:?}", child.wait().await);
}
