//! `fernery up`: everything in one process, from the checked settings to the last answer before the end.

use super::capture_deliver::keep_delivering;
use super::data_dir::{self, UrlFile};
use super::failure::{Failure, Outcome};
use super::screen::Screen;
use super::setting_flags::SettingFlags;
use super::settings::{in_force, warn_of_unknown_env};
use super::{Global, log};
use crate::config::{ConfigError, Settings, database};
use crate::http::{self, Running, ServeSettings};
use crate::notices::Allowed;
use crate::peers;
use crate::pipeline::{self, Pipeline, Surroundings};
use crate::transport::RedisTransport;
use clap::Args;
use fernery_engine::store::StoreSettings;
use fernery_engine::transport::Transport;
use fernery_engine::{Engine, EngineSettings, Presence, door};
use serde_json::json;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{debug, info, warn};

/// How long requests that are under way may take once the end was asked for.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);

/// Start the server: everything in one process.
///
/// It prints `listening on URL` once it serves. SIGTERM or SIGINT drains it: no new claims, requests under way are
/// answered, then it ends; a second signal ends it at once.
#[derive(Debug, Args)]
#[command(after_help = "\
Every flag is also FERNERY_… in the environment and a key of the configuration file: flag > environment > file > default.
A password in --database can be read by every process on this machine; put it into FERNERY_DATABASE or the file.

Examples:
  fernery up
  fernery up --listen 127.0.0.1:0 --data /var/lib/fernery
  FERNERY_DATABASE=postgres://fernery:…@db/fernery fernery up --listen 0.0.0.0:8443 --tls-cert s.crt --tls-key s.key")]
pub(super) struct Up {
    #[command(flatten)]
    flags: SettingFlags,
}

pub(super) fn run(up: Up, global: &Global, screen: Screen) -> Outcome {
    if global.url.is_some() {
        return Err(Failure::usage("--url names a server to talk to; `fernery up` serves at --listen"));
    }
    let (_, settings) = in_force(global, up.flags)?;
    warn_of_unknown_env();
    host(&settings, async |url| {
        let line =
            if screen.json { json!({ "listening": url }).to_string() } else { format!("listening on {url}") };
        // A server outlives whoever read its first line.
        let _ = screen.line(&line);
        std::future::pending().await
    })
}

/// Serves for as long as `work`, which is told the URL, takes, or until it is asked to end.
pub(super) fn host(settings: &Settings, work: impl AsyncFnOnce(&str) -> Outcome) -> Outcome {
    log::start(settings);
    // Whatever the server makes, wherever it was told to, is for its owner alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    data_dir::prepare(&settings.data)?;
    // Every waiting claim is a connection, and a connection is a file.
    http::raise_file_limit();
    // Looks for what has arrived four times as often as usual: under a flood a heartbeat waits until somebody looks.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().event_interval(16).build()?;
    let outcome = runtime.block_on(serve(settings, work));
    // Whatever is still under way was given its time.
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
    }
}

async fn serve(settings: &Settings, work: impl AsyncFnOnce(&str) -> Outcome) -> Outcome {
    let mut signals = EndSignals::new()?;
    let cannot_open = |why: &dyn std::fmt::Display| {
        Failure::failed("database", format!("cannot open {}: {why}", database::show(&settings.database)))
    };
    let transport = match &settings.transport {
        Some(settings) => Some(RedisTransport::open(settings).map_err(|why| Failure::failed("redis", why))?),
        None => None,
    };
    let transport = transport.map(|transport| transport as Arc<dyn Transport>);
    let opened = tokio::select! {
        opened = Engine::open(&settings.database, engine_settings(settings, transport)) => opened,
        name = signals.next() => {
            info!(signal = name, "ended before it served");
            return Ok(());
        }
    };
    let engine = opened.map_err(|error| cannot_open(&error))?;
    let outcome = serve_with(settings, work, &engine, &mut signals).await;
    engine.close().await;
    outcome
}

async fn serve_with(
    settings: &Settings,
    work: impl AsyncFnOnce(&str) -> Outcome,
    engine: &Engine,
    signals: &mut EndSignals,
) -> Outcome {
    let refused = |error: std::io::Error| match error.kind() {
        // A certificate that does not fit, a rule that is broken: no second try helps.
        ErrorKind::InvalidInput => Failure::from(ConfigError(error.to_string())),
        _ => Failure::failed("start", error.to_string()),
    };
    let blueprints =
        pipeline::blueprints(&settings.azollas).map_err(|why| Failure::from(ConfigError(why)))?;
    http::ensure_token_files(engine, &settings.data).await.map_err(refused)?;
    let started =
        Pipeline::start(engine.clone(), blueprints, settings.data.clone(), surroundings(settings)).await;
    let pipeline = started.map_err(|error| Failure::failed("start", error.to_string()))?;
    let serving = ServeSettings { pipeline: pipeline.view(), ..serve_settings(settings) };
    let running = http::serve(serving, engine.clone()).await.map_err(refused)?;
    let url = running.url();
    let url_file = UrlFile::write(&settings.data, &reachable(&url)).map_err(refused)?;
    let presence = appear(settings, engine, &url).await;
    let captures = tokio::spawn(keep_delivering(engine.clone(), settings.data.clone()));
    info!(%url, database = %database::show(&settings.database), data = %settings.data.display(), "serving");

    let outcome = until_drained(work(&url), engine, running, pipeline, signals).await;
    // What it has not taken yet stays on disk.
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

/// Serves until the work is done or it is asked to end, and then until all that is under way is answered.
async fn until_drained(
    work: impl Future<Output = Outcome>,
    engine: &Engine,
    running: Running,
    pipeline: Pipeline,
    signals: &mut EndSignals,
) -> Outcome {
    let outcome = tokio::select! {
        outcome = work => outcome,
        signal = signals.next() => {
            info!(
                signal,
                within_s = DRAIN_WITHIN.as_secs(),
                "draining: no new claims, requests under way are answered"
            );
            Ok(())
        }
        error = engine.failed() => {
            return Err(Failure::failed("store", format!("{error}; start it anew to recover")));
        }
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(running.shutdown(), pipeline.stop()) } => outcome,
        second = signals.next() => {
            Err(Failure::failed("ended_at_once", format!("{second} came while draining: ended at once")))
        }
    }
}

/// Shows this process to its peers, and says where it is not set up as they are. A database that is away just now is no
/// reason not to serve.
async fn appear(settings: &Settings, engine: &Engine, url: &str) -> Presence {
    let store = engine.store();
    let started_at = store.now().await.unwrap_or_else(|_| door::wall_clock());
    let own = peers::introduction(settings, engine, url, started_at);
    let presence = Presence::begin(engine, own.clone()).await;
    // Read after it was written: of two that start together, the later one at least sees the other.
    match store.processes().await {
        Ok(alive) => {
            let others = alive.iter().map(|seen| &seen.process);
            let others: Vec<_> = others.filter(|peer| peer.process_id != own.process_id).collect();
            if let Some(differs) = peers::differs_from(&own, &others) {
                warn!(%differs, "this process is not set up as its peers");
            }
        }
        Err(error) => debug!(%error, "not compared with its peers"),
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

/// The URL by which commands on this machine reach a server that listens everywhere.
fn reachable(url: &str) -> String {
    url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
}
