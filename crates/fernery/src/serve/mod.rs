//! The server: from the checked settings to the shutdown.

pub(crate) mod data_dir;
mod log;
pub(crate) mod peers;
mod port;
pub(crate) mod running;
mod spool_delivery;

use crate::block_on::block_on;
use crate::config::{ConfigError, Settings, database};
use crate::http::{self, Running, ServeSettings};
use crate::outgoing::notices::Allowed;
use crate::redis::RedisTransport;
use crate::workers::reload::{Live, Unloaded};
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
use tokio::sync::Notify;
use tracing::{debug, info, warn};

/// How long open requests may take once the shutdown has begun.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);

/// How long the steps that tasks are in the middle of may take after that.
const LAST_STEPS_WITHIN: Duration = Duration::from_millis(500);

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
    let cannot_hold =
        |error| Stopped::Usage(format!("cannot use the data directory {}: {error}", settings.data.display()));
    let held = running::hold(&settings.data).map_err(cannot_hold)?;
    if held.is_some() {
        // Of a server that was killed: commands wait for the URL of this one.
        data_dir::forget_url(&settings.data);
    }
    // Every waiting claim needs a connection, and so a file descriptor.
    http::raise_file_limit();
    // Polls for I/O four times as often as the default: under a flood, heartbeats wait for the next poll.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().event_interval(16).build();
    let runtime = runtime.map_err(Stopped::start)?;
    let outcome = block_on(&runtime, serve(settings, work));
    // Tasks that still run have had their time to end. What they do now ends first, so that the last line of the log is why the
    // server ended, and not that a worker found the store closed.
    runtime.shutdown_timeout(LAST_STEPS_WITHIN);
    drop(held);
    outcome
}

struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// It was started from a terminal.
    had_terminal: bool,
    /// Somebody asks to read the blueprints again.
    reload: Arc<Notify>,
}

impl EndSignals {
    fn new() -> std::io::Result<Self> {
        // Before our own handler takes its place.
        let outlives_terminal = ignores_hangup();
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            had_terminal: has_terminal() && !outlives_terminal,
            reload: Arc::default(),
        })
    }

    /// The next signal to end. A hangup ends a server whose terminal is gone, and is a request to others.
    async fn next(&mut self) -> &'static str {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return "SIGTERM",
                _ = self.interrupt.recv() => return "SIGINT",
                _ = self.hangup.recv() => match self.had_terminal && !has_terminal() {
                    true => return "SIGHUP",
                    false => self.reload.notify_one(),
                },
            }
        }
    }
}

/// Whether it was started so that a hangup does not end it, as by `nohup`.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 1)
}

fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Reads the blueprints again whenever somebody asks for it.
async fn keep_reloading(live: Arc<Live>, asked: Arc<Notify>) {
    loop {
        asked.notified().await;
        match live.clone().reload().await {
            Ok(done) => match &done.changed_config {
                Some(file) => {
                    warn!(%file, "reload: the configuration has changed too, which needs a restart")
                }
                None if done.azollas.is_empty() => info!("reload: nothing has changed"),
                None => {}
            },
            Err(Unloaded::Mistakes(mistakes)) => {
                for mistake in mistakes {
                    warn!(%mistake, "reload refused; nothing was applied");
                }
            }
            Err(Unloaded::Store(error)) => warn!(%error, "reload failed; nothing was applied"),
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
        ErrorKind::AddrInUse => Stopped::start(port::in_use(settings.listen)),
        _ => Stopped::start(error),
    };
    let blueprints =
        workers::blueprints::read(&settings.azollas).map_err(|why| Stopped::Config(ConfigError(why)))?;
    http::ensure_token_files(engine, &settings.data).await.map_err(refused)?;
    let started =
        Pipeline::start(engine.clone(), blueprints, settings.data.clone(), surroundings(settings)).await;
    let pipeline = started.map_err(Stopped::start)?;
    let pages_host = match http::kept_pages_host(&settings.data) {
        Ok(host) => host,
        Err(error) => {
            pipeline.stop().await;
            return Err(refused(error).into());
        }
    };
    let serving = ServeSettings { pipeline: pipeline.view(), pages_host, ..serve_settings(settings) };
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
    let reloads = engine.loops().run("reload", {
        let (live, asked) = (pipeline.live(), signals.reload.clone());
        move || keep_reloading(live.clone(), asked.clone())
    });
    info!(%url, database = %database::show(&settings.database), data = %settings.data.display(), "serving");

    let outcome = until_drained(work(&url), engine, running, pipeline, signals).await;
    // Captures not yet stored stay on disk.
    captures.abort();
    let _ = captures.await;
    reloads.abort();
    drop(url_file);
    presence.end().await;
    outcome
}

fn surroundings(settings: &Settings) -> Surroundings {
    let (hosts, private_addresses) = (settings.notice_hosts.clone(), settings.notice_private);
    Surroundings {
        azollas: Some(settings.azollas.clone()),
        config: settings.file.clone(),
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
    let draining = |signal: &str| {
        info!(signal, within_s = DRAIN_WITHIN.as_secs(), "draining: no new claims; finishing open requests");
    };
    let (outcome, mut asked) = tokio::select! {
        outcome = work => (outcome, false),
        signal = signals.next() => {
            draining(signal);
            (Ok(()), true)
        }
        error = engine.failed() => {
            return Err(Stopped::failed("store", format!("{error}; restart the server to recover")).into());
        }
    };
    let mut ending = std::pin::pin!(async { tokio::join!(running.shutdown(), pipeline.stop()) });
    loop {
        tokio::select! {
            ((), ()) = &mut ending => return outcome,
            second = signals.next() => match asked {
                true => {
                    let why = format!("{second} arrived while draining: ended at once");
                    return Err(Stopped::failed("ended_at_once", why).into());
                }
                false => {
                    draining(second);
                    asked = true;
                }
            },
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
