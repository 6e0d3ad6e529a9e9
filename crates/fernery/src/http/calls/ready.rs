//! Whether this server can work: a write becomes durable in time. Also warnings that a person should look at.

use crate::http::Server;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use fernery_client::wire::{Health, HealthFinding};
use fernery_engine::clock_step::{self, Doubt};
use fernery_engine::supervise::caught;
use fernery_engine::{Engine, StoreError, door};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a write may take. Shorter than the time-outs of those who ask, so that they get the reason.
const WITHIN: Duration = Duration::from_secs(3);
/// How long an answer is reused: anybody may ask, and each try is a write.
const FRESH: Duration = Duration::from_secs(1);

type Tried = Result<Option<Doubt>, StoreError>;

/// The last try to write. There is never more than one at a time, so that tries do not pile up on a disk that hangs.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    last: watch::Sender<Option<(Instant, Tried)>>,
    under_way: AtomicBool,
}

impl Readiness {
    /// Reads each time, and writes unless a write was tried within [`FRESH`].
    async fn tried(&self, engine: &Engine) -> Result<Option<Doubt>, Refused> {
        let both = async {
            engine.store().next_due().await?;
            self.written(engine).await
        };
        timeout(WITHIN, both).await.unwrap_or_else(|_| {
            let why = format!(
                "a write was not durable within {} s: the disk or the database hangs",
                WITHIN.as_secs()
            );
            Err(Refusal::new(Code::Unavailable, why))
        })
    }

    async fn written(&self, engine: &Engine) -> Result<Option<Doubt>, Refused> {
        let mut seen = self.0.last.subscribe();
        if let Some((at, tried)) = &*seen.borrow_and_update()
            && at.elapsed() < FRESH
        {
            return tried.clone().map_err(Into::into);
        }
        if !self.0.under_way.swap(true, Ordering::AcqRel) {
            tokio::spawn(self.clone().try_once(engine.clone()));
        }
        // The sender lives as long as `self`.
        let _ = seen.changed().await;
        seen.borrow().as_ref().map_or(Ok(None), |(_, tried)| tried.clone().map_err(Into::into))
    }

    async fn try_once(self, engine: Engine) {
        let work = async {
            engine.store().try_write().await?;
            engine.store().clock_doubt().await
        };
        let tried = caught(work).await.unwrap_or_else(|why| Err(StoreError::Corrupt(why.to_string())));
        self.0.under_way.store(false, Ordering::Release);
        self.0.last.send_replace(Some((door::stop_watch(), tried)));
    }
}

/// `GET /readyz`
pub async fn readyz(call: Call) -> Replied {
    if call.server.draining.load(Ordering::Acquire) {
        return Err(Refusal::new(Code::Unavailable, "the server is shutting down"));
    }
    let doubt = call.server.readiness.tried(call.server.engine()).await?;
    // None of these findings stops jobs: the server is still ready, and names them.
    health(&call, findings(&call.server, doubt))
}

/// The answer of a server that lives.
pub fn health(call: &Call, findings: Vec<HealthFinding>) -> Replied {
    let status = if findings.is_empty() { "ok" } else { "degraded" };
    let backend = call.server.engine().store().backend().to_string();
    let version = env!("CARGO_PKG_VERSION").to_string();
    Reply::json(200, &Health { status: status.to_string(), version, backend, findings })
}

/// Anybody may read these, so they contain no file, no address and no text of a panic.
fn findings(server: &Server, doubt: Option<Doubt>) -> Vec<HealthFinding> {
    let finding = |check: &str, detail: String, remedy: &str| HealthFinding {
        check: check.to_string(),
        detail,
        remedy: remedy.to_string(),
    };
    let engine = server.engine();
    let mut found = Vec::new();
    if let Some(doubt) = doubt {
        found.push(finding("clock", format!("{doubt}; retention is suspended"), clock_step::REMEDY));
    }
    for seen in engine.loops().views().into_iter().filter(|seen| seen.troubled) {
        let detail =
            format!("the background loop {} panicked recently ({} times in total)", seen.name, seen.panics);
        let remedy = "it is restarted automatically; report the panic in the log as a bug";
        found.push(finding("loop", detail, remedy));
    }
    if engine.settings().store.transport.as_ref().is_some_and(|transport| transport.trouble().is_some()) {
        let detail =
            "Redis is down or does not accept or deliver messages; jobs are claimed from the database";
        found.push(finding("transport", detail.to_string(), "check Redis; `fernery doctor` says more"));
    }
    found
}

/// How the loops are doing, for Prometheus.
pub fn loops_text(engine: &Engine, text: &mut String) {
    let name = "fernery_loop_panics_total";
    let _ = writeln!(
        text,
        "# HELP {name} Panics of each background loop; it was restarted after each.\n# TYPE {name} counter"
    );
    for seen in engine.loops().views() {
        let _ = writeln!(text, "{name}{{loop=\"{}\"}} {}", seen.name, seen.panics);
    }
}
