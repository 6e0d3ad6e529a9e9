//! A proxy between client and server that knows requests from replies: it notes every request, and can lose a reply, hold
//! one back, refuse to pass a request on, or answer in the server's place.

use crate::campaign::Target;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

/// What becomes of a request.
#[derive(Clone)]
pub(crate) enum Fate {
    /// It reaches the server, its reply is lost, the line is cut.
    LoseReply,
    /// It does not reach the server; the line is cut.
    Cut,
    /// It reaches the server, its reply waits until it is let go.
    HoldReply(Arc<Hold>),
    /// It does not reach the server; this is the answer: status line and headers, body.
    Answer(&'static str, &'static str),
}

/// A reply held back.
#[derive(Default)]
pub(crate) struct Hold {
    arrived: Notify,
    let_go: Notify,
}

impl Hold {
    /// Waits until the server has replied.
    pub(crate) async fn arrived(&self) {
        timeout(Duration::from_secs(30), self.arrived.notified()).await.expect("a reply in time");
    }

    pub(crate) fn let_go(&self) {
        self.let_go.notify_one();
    }
}

struct Rule {
    path: &'static str,
    fate: Fate,
    once: bool,
    /// Requests that pass before it applies.
    skip: usize,
}

/// A request that passed.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) body: Value,
    pub(crate) at: Instant,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    seen: Vec<Seen>,
}

#[derive(Clone)]
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    count: Arc<watch::Sender<usize>>,
}

impl Proxy {
    /// A proxy before the server, wherever it listens at the moment.
    pub(crate) async fn before(target: &Target) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its number");
        let proxy = Self { address, state: Arc::default(), count: Arc::new(watch::channel(0).0) };
        let (shared, target) = (proxy.clone(), target.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (shared, target) = (shared.clone(), target.clone());
                tokio::spawn(async move { shared.pass(client, &target).await });
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request to this path fares so.
    pub(crate) fn once(&self, path: &'static str, fate: Fate) {
        self.state.lock().expect("no panic").rules.push(Rule { path, fate, once: true, skip: 0 });
    }

    /// The request after the next one to this path fares so.
    pub(crate) fn skip_once(&self, path: &'static str, fate: Fate) {
        self.state.lock().expect("no panic").rules.push(Rule { path, fate, once: true, skip: 1 });
    }

    /// Every request to this path fares so until it is mended.
    pub(crate) fn always(&self, path: &'static str, fate: Fate) {
        self.state.lock().expect("no panic").rules.push(Rule { path, fate, once: false, skip: 0 });
    }

    /// Everything passes again.
    pub(crate) fn mend(&self) {
        self.state.lock().expect("no panic").rules.clear();
    }

    /// The requests to this path so far.
    pub(crate) fn seen(&self, path: &str) -> Vec<Seen> {
        let state = self.state.lock().expect("no panic");
        state.seen.iter().filter(|seen| without_query(&seen.path) == path).cloned().collect()
    }

    /// The paths of all requests so far.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.state.lock().expect("no panic").seen.iter().map(|seen| seen.path.clone()).collect()
    }

    /// Waits until there have been this many requests to the path.
    pub(crate) async fn wait_for(&self, path: &str, count: usize) {
        let mut changed = self.count.subscribe();
        let enough = timeout(Duration::from_secs(30), async {
            while self.seen(path).len() < count {
                changed.changed().await.expect("the proxy lives");
            }
        });
        enough.await.unwrap_or_else(|_| panic!("{count} requests to {path}: {:?}", self.paths()));
    }

    fn fate(&self, seen: Seen) -> Option<Fate> {
        let mut state = self.state.lock().expect("no panic");
        let rule = state.rules.iter().position(|rule| rule.path == without_query(&seen.path));
        let fate = rule.and_then(|place| {
            let rule = &mut state.rules[place];
            if rule.skip > 0 {
                rule.skip -= 1;
                return None;
            }
            let fate = rule.fate.clone();
            if rule.once {
                state.rules.remove(place);
            }
            Some(fate)
        });
        state.seen.push(seen);
        drop(state);
        self.count.send_modify(|count| *count += 1);
        fate
    }

    async fn pass(&self, mut client: TcpStream, target: &Target) -> Option<()> {
        client.set_nodelay(true).ok()?;
        loop {
            let (head, body) = message(&mut client).await.ok()?;
            let path = head.split(' ').nth(1)?.to_string();
            let seen =
                Seen { path, body: serde_json::from_slice(&body).unwrap_or_default(), at: Instant::now() };
            let fate = self.fate(seen);
            match fate {
                Some(Fate::Cut) => return None,
                Some(Fate::Answer(head, body)) => {
                    let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                    client.write_all(answer.as_bytes()).await.ok()?;
                    continue;
                }
                _ => {}
            }
            let mut server = TcpStream::connect(target.address()).await.ok()?;
            server.set_nodelay(true).ok()?;
            server.write_all(head.as_bytes()).await.ok()?;
            server.write_all(&body).await.ok()?;
            // A client that hangs up must not be kept alive before the server.
            let (head, body) = tokio::select! {
                reply = message(&mut server) => reply.ok()?,
                _ = client.read_u8() => return None,
            };
            match fate {
                Some(Fate::LoseReply) => return None,
                Some(Fate::HoldReply(hold)) => {
                    hold.arrived.notify_one();
                    hold.let_go.notified().await;
                }
                _ => {}
            }
            client.write_all(head.as_bytes()).await.ok()?;
            client.write_all(&body).await.ok()?;
        }
    }
}

/// One request or reply: its head, and its body by Content-Length.
async fn message(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).map_err(io::Error::other)?;
    let length = head
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Ok(0), |(_, value)| value.trim().parse().map_err(io::Error::other))?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((head, body))
}

fn without_query(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
}
