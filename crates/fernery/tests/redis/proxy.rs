//! A TCP line that can be disturbed: slow, cut, reset, or losing every answer. It may be pointed elsewhere, as an address
//! that moves is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Every piece comes this much later.
    Delay(Duration),
    /// Nothing goes through; what was sent meanwhile arrives when it is over.
    Cut,
    /// Connections are reset, new ones too.
    Reset,
    /// What is asked arrives, what is answered is lost. Connections that lost something are reset when it is over.
    Swallow,
    /// As `Swallow`, but connections that lost something stay silent for ever.
    Mute,
}

#[derive(Clone, Copy)]
struct Line {
    fault: Fault,
    to: SocketAddr,
}

pub(crate) struct Proxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
    touched: Arc<AtomicUsize>,
}

impl Proxy {
    /// A line to whoever listens there.
    pub(crate) async fn to(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its number");
        let (line, seen) = watch::channel(Line { fault: Fault::None, to });
        let touched = Arc::new(AtomicUsize::new(0));
        let count = touched.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let connection = Connection { line: seen.clone(), touched: count.clone() };
                tokio::spawn(connection.serve(client));
            }
        });
        Self { address, line, touched }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.line.send_modify(|line| line.fault = fault);
    }

    /// From now on the line leads there; whoever is connected is reset.
    pub(crate) fn point_at(&self, to: SocketAddr) {
        self.line.send_modify(|line| line.to = to);
    }

    /// How many pieces were held back, lost or answered with a reset.
    pub(crate) fn touched(&self) -> usize {
        self.touched.load(Ordering::Relaxed)
    }
}

struct Connection {
    line: watch::Receiver<Line>,
    touched: Arc<AtomicUsize>,
}

/// Why a connection came to its end.
enum End {
    Closed,
    Reset,
}

impl Connection {
    async fn serve(self, mut client: TcpStream) {
        self.wait_while(Fault::Cut).await;
        let to = self.line.borrow().to;
        let end = match TcpStream::connect(to).await {
            Ok(mut server) => {
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                let (from_client, to_client) = client.split();
                let (from_server, to_server) = server.split();
                let end = tokio::select! {
                    end = self.carry(from_client, to_server, false) => end,
                    end = self.carry(from_server, to_client, true) => end,
                    () = self.reset(to) => End::Reset,
                };
                if matches!(end, End::Reset) {
                    let _ = server.set_zero_linger();
                }
                end
            }
            Err(_) => End::Reset,
        };
        if matches!(end, End::Reset) {
            self.touched.fetch_add(1, Ordering::Relaxed);
            let _ = client.set_zero_linger();
        }
    }

    async fn wait_while(&self, fault: Fault) {
        let mut line = self.line.clone();
        let _ = line.wait_for(|line| line.fault != fault).await;
    }

    /// Comes when connections to this place are to be reset.
    async fn reset(&self, to: SocketAddr) {
        let mut line = self.line.clone();
        let _ = line.wait_for(|line| line.fault == Fault::Reset || line.to != to).await;
    }

    async fn carry(&self, mut from: ReadHalf<'_>, mut into: WriteHalf<'_>, answers: bool) -> End {
        let mut piece = vec![0; 1 << 16];
        loop {
            let read = from.read(&mut piece).await;
            let fault = self.line.borrow().fault;
            if fault != Fault::None && (answers || !matches!(fault, Fault::Swallow | Fault::Mute)) {
                self.touched.fetch_add(1, Ordering::Relaxed);
            }
            match fault {
                Fault::Delay(by) => sleep(by).await,
                Fault::Cut => self.wait_while(Fault::Cut).await,
                Fault::Swallow if answers => {
                    self.wait_while(Fault::Swallow).await;
                    return End::Reset;
                }
                Fault::Mute if answers => std::future::pending().await,
                _ => {}
            }
            let Ok(bytes @ 1..) = read else { return End::Closed };
            if into.write_all(&piece[..bytes]).await.is_err() {
                return End::Closed;
            }
        }
    }
}
