//! The HTTP interface: transport over [`Engine`], and nothing that the engine does not decide.
//!
//! * [`routes`]: the one table of what can be called, by whom, with what answers; router, role check, OpenAPI document and
//!   metrics all come from it
//! * [`accept`], [`paced`], [`tls`]: connections, with a limit on everything they may take
//! * [`answer`]: a request's way from its head to its answer
//! * [`guards`], [`auth`], [`token`], [`token_files`], [`rate`]: who may come in, and how often
//! * [`body`], [`json`], [`json_scan`], [`query`], [`cursor`]: what is read of a request
//! * [`contract`], [`batch`], [`jobs`], [`dlq`], [`streams`], [`tokens`], [`process`]: the calls themselves; of the
//!   pipeline [`objectives`], [`decisions`], [`pipeline`], [`workorder_log`], [`import`]; of the inbox [`captures`],
//!   [`candidates`], [`manifests`]
//! * [`problem`]: every way to refuse

pub mod accept;
pub mod answer;
pub mod auth;
pub mod batch;
mod beats;
pub mod body;
pub mod candidates;
pub mod captures;
pub mod contract;
pub mod cursor;
pub mod decisions;
pub mod dlq;
pub mod guards;
pub mod import;
pub mod jobs;
pub mod json;
pub mod json_scan;
pub mod manifests;
pub mod metrics;
pub mod objectives;
pub mod openapi;
mod openapi_links;
pub mod paced;
pub mod pipeline;
pub mod problem;
pub mod process;
pub mod query;
pub mod rate;
pub mod routes;
pub mod streams;
pub mod tls;
pub mod token;
pub mod token_files;
pub mod tokens;
mod waiting;
mod workorder_jobs;
pub mod workorder_log;

pub use accept::Running;
pub use auth::WorkerAuth;
pub use paced::Pace;
pub use pipeline::PipelineView;
pub use tls::TlsFiles;
pub use token_files::{ensure_token_files, token_path};

use crate::http::auth::TokenTable;
use crate::http::guards::Hosts;
use crate::http::metrics::Metrics;
use crate::http::rate::RateLimit;
use fernery_core::limits;
use fernery_engine::{Engine, door};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// Where to listen; port 0 picks one.
    pub listen: SocketAddr,
    /// Certificate and key.
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
    /// Connections at once; what comes beyond is answered 503.
    pub connections_max: usize,
    /// Claims that may wait at once; what comes beyond is answered 429.
    pub waiting_max: usize,
    /// Requests that may be in the store at once; what comes beyond is answered 503.
    pub writing_max: usize,
    /// Jobs of producers that may be on their way into the store at once; what comes beyond is answered 503.
    pub enqueuing_max: usize,
    /// Arrays of jobs that may wait to be read at once; what comes beyond is answered 503.
    pub unread_max: usize,
    /// Bytes of all bodies that are being read or handled at once; what comes beyond is answered 503.
    pub body_bytes_max: usize,
    /// Requests a second of each token, reports of workers aside; what comes beyond is answered 429.
    pub requests_per_second: Option<NonZeroU32>,
    /// How long connections may take over what.
    pub pace: Pace,
    /// How long open requests may go on once the server shuts down.
    pub drain: Duration,
    /// What the pipeline's workers in this process tell of themselves.
    pub pipeline: PipelineView,
    /// Azollas of other servers that may ask here, and what.
    pub visitors: crate::config::Visitors,
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
            body_bytes_max: 256 << 20,
            requests_per_second: None,
            pace: Pace::default(),
            drain: Duration::from_secs(10),
            pipeline: PipelineView::default(),
            visitors: crate::config::Visitors::new(),
        }
    }

    fn check(&self) -> io::Result<()> {
        let refuse = |rule: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, rule.to_string()));
        if self.listen.ip().is_loopback() {
            return Ok(());
        }
        if self.worker_auth == WorkerAuth::None {
            return refuse("--worker-auth none is for loopback only: others could claim and finish jobs");
        }
        if self.tls.is_none() && !self.insecure_http {
            return refuse(
                "off loopback tokens need TLS: give --tls-cert and --tls-key, or --insecure-http if a proxy does it",
            );
        }
        Ok(())
    }
}

/// What all requests share.
#[derive(Debug)]
pub struct Server {
    pub(crate) engine: DebugEngine,
    pub(crate) settings: ServeSettings,
    pub(crate) tokens: TokenTable,
    pub(crate) rate: RateLimit,
    pub(crate) hosts: Hosts,
    pub(crate) metrics: Metrics,
    pub(crate) draining: AtomicBool,
    pub(crate) waiting: AtomicUsize,
    pub(crate) writing: AtomicUsize,
    pub(crate) enqueuing: AtomicUsize,
    pub(crate) unread: AtomicUsize,
    pub(crate) readers: Semaphore,
    pub(crate) body_bytes: AtomicUsize,
    pub(crate) connections: Arc<Semaphore>,
}

/// An engine that prints as its backend.
pub(crate) struct DebugEngine(pub(crate) Engine);

impl std::fmt::Debug for DebugEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.0.store().backend())
    }
}

impl Server {
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine.0
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.settings.connections_max - self.connections.available_permits()
    }
}

/// Starts to serve. Once this returns, connections are accepted.
pub async fn serve(settings: ServeSettings, engine: Engine) -> io::Result<Running> {
    settings.check()?;
    let tls = settings.tls.as_ref().map(tls::acceptor).transpose()?;
    let listener = TcpListener::bind(settings.listen).await.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {}: {error}", settings.listen))
    })?;
    let local_addr = listener.local_addr()?;
    let server = Arc::new(Server {
        connections: Arc::new(Semaphore::new(settings.connections_max)),
        hosts: Hosts::new(local_addr, &settings.allowed_hosts),
        engine: DebugEngine(engine),
        rate: RateLimit::new(settings.requests_per_second),
        settings,
        tokens: TokenTable::default(),
        metrics: Metrics::new(door::wall_clock()),
        draining: AtomicBool::new(false),
        waiting: AtomicUsize::new(0),
        writing: AtomicUsize::new(0),
        enqueuing: AtomicUsize::new(0),
        unread: AtomicUsize::new(0),
        readers: Semaphore::new(jobs::readers()),
        body_bytes: AtomicUsize::new(0),
    });
    Ok(accept::start(listener, local_addr, tls, server))
}

/// Raises this process's limit of open files as far as it may, and says how far that is.
pub fn raise_file_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let now = if raised.is_ok() { limit.maximum } else { limit.current };
    now.unwrap_or(u64::MAX)
}
