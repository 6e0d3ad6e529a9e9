//! A TCP proxy that can lose a reply: what was asked arrives, what is answered does not, and then the line is cut.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Proxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The reply to the next request that holds these bytes is lost.
    marked: Option<Vec<u8>>,
    /// How many replies were lost.
    lost: usize,
    /// How many statements PostgreSQL was asked to run.
    statements: usize,
}

/// What a client of PostgreSQL sends, cut into its messages.
#[derive(Default)]
struct Messages {
    unread: Vec<u8>,
    begun: bool,
}

impl Messages {
    /// Takes what was sent; answers how many statements it runs.
    fn statements(&mut self, sent: &[u8]) -> usize {
        self.unread.extend_from_slice(sent);
        let mut found = 0;
        loop {
            // The first message has no letter before its length.
            let letter = usize::from(self.begun);
            let Some(length) = self.unread.get(letter..letter + 4) else { return found };
            let end = letter + u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if self.unread.len() < end {
                return found;
            }
            found += usize::from(self.begun && matches!(self.unread[0], b'E' | b'Q'));
            self.begun = true;
            self.unread.drain(..end);
        }
    }
}

/// A server that has said nothing for this long has finished its answer.
const QUIET: Duration = Duration::from_millis(150);

impl Proxy {
    /// A proxy before the server at this port.
    pub(crate) async fn before(server_port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await {
                    tokio::spawn(pump(client, server, shared.clone()));
                }
            }
        });
        Self { port, state }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Loses the reply to the next request that holds `mark`.
    pub(crate) fn lose_reply_to(&self, mark: &[u8]) {
        self.state.lock().expect("no panic").marked = Some(mark.to_vec());
    }

    /// How many statements PostgreSQL was asked to run so far.
    #[allow(dead_code, reason = "each suite uses its part")]
    pub(crate) fn statements(&self) -> usize {
        self.state.lock().expect("no panic").statements
    }

    /// How many replies were lost so far.
    pub(crate) fn lost(&self) -> usize {
        self.state.lock().expect("no panic").lost
    }
}

async fn pump(client: TcpStream, server: TcpStream, state: Arc<Mutex<State>>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut messages = Messages::default();
    loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(bytes @ 1..) = read else { return };
                let statements = messages.statements(&asked[..bytes]);
                state.lock().expect("no panic").statements += statements;
                if to_server.write_all(&asked[..bytes]).await.is_err() {
                    return;
                }
                if is_marked(&state, &asked[..bytes]) {
                    while let Ok(Ok(1..)) = tokio::time::timeout(QUIET, from_server.read(&mut answered)).await {}
                    state.lock().expect("no panic").lost += 1;
                    return;
                }
            }
            read = from_server.read(&mut answered) => {
                let Ok(bytes @ 1..) = read else { return };
                if to_client.write_all(&answered[..bytes]).await.is_err() {
                    return;
                }
            }
        }
    }
}

fn is_marked(state: &Mutex<State>, asked: &[u8]) -> bool {
    let mut state = state.lock().expect("no panic");
    let found =
        state.marked.as_ref().is_some_and(|mark| asked.windows(mark.len()).any(|window| window == &mark[..]));
    if found {
        state.marked = None;
    }
    found
}
