//! The server: from the checked settings to the shutdown.

pub(crate) mod data_dir;
mod log;
pub(crate) mod peers;
mod spool_delivery;

use crate::config::{ConfigError, Settings, database};
use crate::http::{self, Running, ServeSettings};
use crate::outgoing::notices::Allowed;
use crate::redis::RedisTransport;
use crate::workers::{self, Pipeline, Surroundings};
use data_dir::UrlFile;
use fernery_engine::signals::Signals;
use fernery_engine::store::StoreSettings;
use fernery_engine::transport::Transport;
use fernery_engine::{Engine, EngineSettings, Presence, door, open_store};
use std::fmt::Display;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{debug, info, warn};

/// How long open requests may take once the shutdown has begun.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);

/// Why a server did not start, or ended without being asked.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// It was called in a way that cannot work.
    Usage(String),
    /// Settings, or files that they name, that cannot be used.
    Config(ConfigError),
    /// Something failed; the code is for programs.
    Failed { code: &'static str, why: String },
}

impl Stopped {
    fn failed(code: &'static str, why: String) -> Self {
        Self::Failed { code, why }
    }

    fn start(why: impl Display) -> Self {
        Self::failed("start", why.to_string())
    }
}

/// Serves until `work` is done or a signal asks the server to end. `work` gets the URL.
pub(crate) fn host<E: From<Stopped>>(
    settings: &Settings,
    work: impl AsyncFnOnce(&str) -> Result<(), E>,
) -> Result<(), E> {
    log::start(settings);
    // Files that the server creates are for its owner alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    data_dir::prepare(&settings.data).map_err(Stopped::Usage)?;
    // Every waiting claim needs a connection, and so a file descriptor.
    http::raise_file_limit();
    // Polls for I/O four times as often as the default: under a flood, heartbeats wait for the next poll.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().event_interval(16).build();
    let runtime = runtime.map_err(Stopped::start)?;
    let outcome = runtime.block_on(serve(settings, work));
    // Tasks that still run have had their time to end.
    runtime.shutdown_background();
    outcome
}

struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl EndSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

fn engine_settings(settings: &Settings, transport: Option<Arc<dyn Transport>>) -> EngineSettings {
    EngineSettings {
        store: StoreSettings { lease_ttl: settings.lease_ttl, transport, ..StoreSettings::default() },
        reap_interval: settings.reap_interval,
        retention: settings.retention,
        dead_letter_retention: settings.dead_letter_retention,
    }
}

async fn serve<E: From<Stopped>>(
    settings: &Settings,
    work: impl AsyncFnOnce(&str) -> Result<(), E>,
) -> Result<(), E> {
    let mut signals = EndSignals::new().map_err(Stopped::start)?;
    let cannot_open = |why: &dyn std::fmt::Display| {
        Stopped::failed("database", format!("cannot open {}: {why}", database::show(&settings.database)))
    };
    let told = Arc::new(Signals::default());
    let transport = match &settings.transport {
        Some(settings) => {
            Some(RedisTransport::open(settings, &told.loops).map_err(|why| Stopped::failed("redis", why))?)
        }
        None => None,
    };
    let transport = transport.map(|transport| transport as Arc<dyn Transport>);
    let running = engine_settings(settings, transport);
    let opened = tokio::select! {
        opened = open_store(&settings.database, running.store.clone(), told.clone()) => opened,
        name = signals.next() => {
            info!(signal = name, "stopped by a signal during start-up");
            return Ok(());
        }
    };
    let engine = Engine::start(opened.map_err(|error| cannot_open(&error))?, told, running);
    let outcome = serve_with(settings, work, &engine, &mut signals).await;
    engine.close().await;
    outcome
}

async fn serve_with<E: From<Stopped>>(
    settings: &Settings,
    work: impl AsyncFnOnce(&str) -> Result<(), E>,
    engine: &Engine,
    signals: &mut EndSignals,
) -> Result<(), E> {
    let refused = |error: std::io::Error| match error.kind() {
        // For example a certificate that does not fit its key: a retry does not help.
        ErrorKind::InvalidInput => Stopped::Config(ConfigError(error.to_string())),
        ErrorKind::AddrInUse => {
            Stopped::start(format!("{error}; choose another port with --listen (port 0 picks a free one)"))
        }
        _ => Stopped::start(error),
    };
    let blueprints =
        workers::blueprints(&settings.azollas).map_err(|why| Stopped::Config(ConfigError(why)))?;
    http::ensure_token_files(engine, &settings.data).await.map_err(refused)?;
    let started =
        Pipeline::start(engine.clone(), blueprints, settings.data.clone(), surroundings(settings)).await;
    let pipeline = started.map_err(Stopped::start)?;
    let serving = ServeSettings { pipeline: pipeline.view(), ..serve_settings(settings) };
    let serving = http::serve(serving, engine.clone()).await;
    let serving = serving.and_then(|running| {
        let url_file = UrlFile::write(&settings.data, &reachable(&running.url()))?;
        Ok((running, url_file))
    });
    let (running, url_file) = match serving {
        Ok(serving) => serving,
        Err(error) => {
            // Otherwise its workers would log that the store is closed, and hide the reason.
            pipeline.stop().await;
            return Err(refused(error).into());
        }
    };
    let url = running.url();
    let presence = appear(settings, engine, &url).await;
    let captures = engine.loops().run("spool", {
        let (engine, data) = (engine.clone(), settings.data.clone());
        move || spool_delivery::keep_delivering(engine.clone(), data.clone())
    });
    info!(%url, database = %database::show(&settings.database), data = %settings.data.display(), "serving");

    let outcome = until_drained(work(&url), engine, running, pipeline, signals).await;
    // Captures not yet stored stay on disk.
    captures.abort();
    let _ = captures.await;
    drop(url_file);
    presence.end().await;
    outcome
}

fn surroundings(settings: &Settings) -> Surroundings {
    let (hosts, private_addresses) = (settings.notice_hosts.clone(), settings.notice_private);
    Surroundings {
        repos: settings.repos.clone(),
        registry: settings.registry.clone(),
        allowed: Allowed { hosts, private_addresses },
    }
}

/// Serves until the work is done or the server is asked to end, and then until all open requests are answered.
async fn until_drained<E: From<Stopped>>(
    work: impl Future<Output = Result<(), E>>,
    engine: &Engine,
    running: Running,
    pipeline: Pipeline,
    signals: &mut EndSignals,
) -> Result<(), E> {
    let outcome = tokio::select! {
        outcome = work => outcome,
        signal = signals.next() => {
            info!(
                signal,
                within_s = DRAIN_WITHIN.as_secs(),
                "draining: no new claims; finishing open requests"
            );
            Ok(())
        }
        error = engine.failed() => {
            return Err(Stopped::failed("store", format!("{error}; restart the server to recover")).into());
        }
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(running.shutdown(), pipeline.stop()) } => outcome,
        second = signals.next() => {
            Err(Stopped::failed("ended_at_once", format!("{second} arrived while draining: ended at once")).into())
        }
    }
}

/// Registers this process for its peers, and logs where its settings differ from theirs. Serves
/// also if the database does not answer now.
async fn appear(settings: &Settings, engine: &Engine, url: &str) -> Presence {
    let store = engine.store();
    let started_at = store.now().await.unwrap_or_else(|_| door::wall_clock());
    let own = peers::introduction(settings, engine, url, started_at);
    let presence = Presence::begin(engine, own.clone()).await;
    // Read after writing: of two processes that start together, at least the later one sees the other.
    match store.processes().await {
        Ok(alive) => {
            let others = alive.iter().map(|seen| &seen.process);
            let others: Vec<_> = others.filter(|peer| peer.process_id != own.process_id).collect();
            if let Some(differs) = peers::differs_from(&own, &others) {
                warn!(%differs, "this process has other settings than its peers");
            }
        }
        Err(error) => debug!(%error, "could not compare the settings with those of the peers"),
    }
    presence
}

fn serve_settings(settings: &Settings) -> ServeSettings {
    ServeSettings {
        tls: settings.tls.clone(),
        insecure_http: settings.insecure_http,
        allowed_hosts: settings.allowed_hosts.clone(),
        worker_auth: settings.worker_auth,
        requests_per_second: settings.requests_per_second,
        lease_ttl: settings.lease_ttl,
        heartbeat_interval: settings.heartbeat_interval,
        drain: DRAIN_WITHIN,
        visitors: settings.visitors.clone(),
        ..ServeSettings::new(settings.listen)
    }
}

/// The URL for commands on this machine, also if the server listens on all addresses.
fn reachable(url: &str) -> String {
    url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
}
