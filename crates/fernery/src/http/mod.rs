//! The HTTP interface over [`Engine`]. All decisions are the engine's.
//!
//! * [`routes`]: the one table of what can be called, by whom, with what answers; router, role check, OpenAPI document and
//!   metrics all come from it
//! * [`wire`]: connections, with a limit on everything; how a request is read and answered
//! * [`access`]: who may come in, and how often
//! * [`calls`]: the calls themselves
//! * [`pages`]: what a browser shows: a client of the calls above, in the same process
//! * [`problem`]: every way to refuse

pub mod access;
pub mod calls;
pub mod metrics;
pub mod openapi;
pub mod pages;
pub mod parameters;
pub mod problem;
pub mod route;
pub mod routes;
pub mod wire;

pub use crate::config::{TlsFiles, WorkerAuth};
pub use access::token_files::{ensure_token_files, token_path};
pub(crate) use calls::objectives::made_up;
pub use calls::pipeline::{Differing, PipelineView};
pub use pages::host::kept as kept_pages_host;
pub use wire::accept::Running;
pub use wire::paced::Pace;

use crate::config::{Exposure, UnsafeSetting, Visitors};
use access::auth::TokenTable;
use access::rate::{RateLimit, SignInRate};
use calls::opened::OpenedStreams;
use calls::ready::Readiness;
use fernery_core::limits;
use fernery_engine::store::StreamLimits;
use fernery_engine::{Engine, door};
use metrics::Metrics;
use pages::live::LiveStreams;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use wire::guards::Hosts;
use wire::paced::HeadBudget;

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// Where to listen; port 0 picks one.
    pub listen: SocketAddr,
    pub tls: Option<TlsFiles>,
    /// A proxy in front does TLS.
    pub insecure_http: bool,
    /// Names of this server beyond loopback ones and its address.
    pub allowed_hosts: Vec<String>,
    /// Whether the worker endpoints ask for a token.
    pub worker_auth: WorkerAuth,
    /// How long a claim holds, as told to workers.
    pub lease_ttl: Duration,
    /// How often workers are told to heartbeat.
    pub heartbeat_interval: Duration,
    /// Connections at once; more are answered 503.
    pub connections_max: usize,
    /// Calls that may wait at once, claims and others; more are answered 429.
    pub waiting_max: usize,
    /// Requests that may be in the store at once; more are answered 503.
    pub writing_max: usize,
    /// Jobs that may be on their way into the store at once; more are answered 503.
    pub enqueuing_max: usize,
    /// Arrays of jobs that may wait to be read at once; more are answered 503.
    pub unread_max: usize,
    /// Bytes that all unfinished heads may take, beyond a small one each; more are answered 503.
    pub head_bytes_max: usize,
    /// Bytes of all bodies that are read or handled at once; more are answered 503.
    pub body_bytes_max: usize,
    /// Streams that may be open; one more is answered 422.
    pub streams_max: StreamLimits,
    /// Requests per second and token, without the reports of workers; more are answered 429.
    pub requests_per_second: Option<NonZeroU32>,
    /// The time limits of connections.
    pub pace: Pace,
    /// How long open requests may go on once the server shuts down.
    pub drain: Duration,
    /// What the workers of this process show to readers.
    pub pipeline: PipelineView,
    /// Azollas of other servers that may ask here, and what.
    pub visitors: Visitors,
    /// The host name of the pages for browsers on this machine, `….localhost`.
    pub pages_host: String,
}

impl ServeSettings {
    /// The defaults, on this address.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            tls: None,
            insecure_http: false,
            allowed_hosts: Vec::new(),
            worker_auth: WorkerAuth::Token,
            lease_ttl: limits::LEASE_TTL_DEFAULT,
            heartbeat_interval: limits::LEASE_TTL_DEFAULT / 3,
            connections_max: 20_000,
            waiting_max: 20_000,
            writing_max: 8_192,
            enqueuing_max: 20_000,
            unread_max: 128,
            head_bytes_max: 32 << 20,
            body_bytes_max: 256 << 20,
            streams_max: StreamLimits::default(),
            requests_per_second: None,
            pace: Pace::default(),
            drain: Duration::from_secs(10),
            pipeline: PipelineView::default(),
            visitors: Visitors::new(),
            pages_host: pages::host::random(),
        }
    }

    fn exposure(&self) -> Exposure<'_> {
        Exposure {
            listen: self.listen,
            allowed_hosts: &self.allowed_hosts,
            insecure_http: self.insecure_http,
            has_tls: self.tls.is_some(),
            worker_auth: self.worker_auth,
        }
    }

    /// Which setting lets other machines in, in words; `None`: only this machine can call.
    pub(crate) fn opened_by(&self) -> Option<String> {
        self.exposure().opened_by()
    }
}

/// What all requests share.
pub struct Server {
    pub(crate) engine: Engine,
    pub(crate) settings: ServeSettings,
    pub(crate) tokens: TokenTable,
    pub(crate) rate: RateLimit,
    pub(crate) sign_in_rate: SignInRate,
    pub(crate) live: Arc<LiveStreams>,
    pub(crate) hosts: Hosts,
    pub(crate) opened: OpenedStreams,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    pub(crate) draining: AtomicBool,
    /// Calls that wait: for a job, for the end of a job, or for a manifest.
    pub(crate) waiting: AtomicUsize,
    /// The claims among them.
    pub(crate) claiming: AtomicUsize,
    pub(crate) writing: AtomicUsize,
    pub(crate) enqueuing: AtomicUsize,
    pub(crate) unread: AtomicUsize,
    pub(crate) readers: Semaphore,
    pub(crate) heads: Arc<HeadBudget>,
    pub(crate) body_bytes: AtomicUsize,
    pub(crate) connections: Arc<Semaphore>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Server {
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.settings.connections_max - self.connections.available_permits()
    }
}

/// Starts to serve. Once this returns, connections are accepted.
pub async fn serve(settings: ServeSettings, engine: Engine) -> io::Result<Running> {
    settings.exposure().check().map_err(|UnsafeSetting { setting, why }| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{setting}: {why}"))
    })?;
    let tls = settings.tls.as_ref().map(wire::tls::acceptor).transpose()?;
    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {}: {error}", settings.listen))
    })?;
    let local_addr = listener.local_addr()?;
    let server = Arc::new(Server {
        connections: Arc::new(Semaphore::new(settings.connections_max)),
        hosts: Hosts::new(local_addr, &settings.allowed_hosts, &settings.pages_host),
        heads: HeadBudget::new(settings.head_bytes_max),
        engine,
        rate: RateLimit::new(settings.requests_per_second),
        sign_in_rate: SignInRate::default(),
        live: Arc::default(),
        settings,
        tokens: TokenTable::default(),
        opened: OpenedStreams::default(),
        metrics: Metrics::new(door::wall_clock()),
        readiness: Readiness::default(),
        draining: AtomicBool::new(false),
        waiting: AtomicUsize::new(0),
        claiming: AtomicUsize::new(0),
        writing: AtomicUsize::new(0),
        enqueuing: AtomicUsize::new(0),
        unread: AtomicUsize::new(0),
        readers: Semaphore::new(wire::aside::readers()),
        body_bytes: AtomicUsize::new(0),
    });
    Ok(wire::accept::start(listener, local_addr, tls, server))
}

/// Raises this process's limit of open files as far as allowed; answers the limit.
pub fn raise_file_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let now = if raised.is_ok() { limit.maximum } else { limit.current };
    now.unwrap_or(u64::MAX)
}
