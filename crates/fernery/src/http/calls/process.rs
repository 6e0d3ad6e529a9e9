//! The process itself: health, metrics, the OpenAPI document, the other processes, and who the caller is.

use super::ready::health;
use crate::config::duration::millis;
use crate::http::access::auth::token_needed;
use crate::http::openapi;
use crate::http::problem::{Code, Refusal};
use crate::http::wire::answer::{Call, JSON, Replied, Reply};
use bytes::Bytes;
use fernery_client::wire::{PollerInfo, PollerList, ProcessInfo, ProcessList, WhoAmI};
use fernery_engine::store::LivingProcess;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// `GET /healthz`
pub async fn healthz(call: Call) -> Replied {
    health(&call, Vec::new())
}

/// `GET /metrics`
pub async fn metrics(call: Call) -> Replied {
    let text = call.server.metrics.render(&call.server).await;
    Ok(Reply { status: 200, content_type: "text/plain; version=0.0.4; charset=utf-8", body: text.into() })
}

/// `GET /openapi.json`
pub async fn openapi(_: Call) -> Replied {
    static DOCUMENT: OnceCell<Bytes> = OnceCell::const_new();
    // Written once, on another thread: it takes so long that other calls would notice.
    let written = || async { spawn_blocking(|| openapi::text().into()).await };
    let body = DOCUMENT.get_or_try_init(written).await;
    let body = body.map_err(|_| Refusal::new(Code::Internal, Code::Internal.title()))?.clone();
    Ok(Reply { status: 200, content_type: JSON, body })
}

/// `GET /v1/whoami`
pub async fn whoami(call: Call) -> Replied {
    let token = call.caller.0.ok_or_else(token_needed)?;
    let row = &token.row;
    let me = WhoAmI {
        token_id: row.token_id.clone(),
        name: row.name.clone(),
        role: token.role,
        streams: row.streams.clone(),
        expires_at: row.expires_at,
    };
    Reply::json(200, &me)
}

/// `GET /v1/processes`
pub async fn list(call: Call) -> Replied {
    let processes = call.server.engine().store().processes().await?;
    Reply::json(200, &ProcessList { processes: processes.into_iter().map(info).collect() })
}

/// `GET /v1/pollers`
pub async fn pollers(call: Call) -> Replied {
    let pollers = call.server.engine().pollers().into_iter().map(|poller| PollerInfo {
        worker_id: poller.worker_id.to_string(),
        streams: poller.streams.to_vec(),
        heard_at: poller.heard_at,
        waiting: poller.waiting,
    });
    Reply::json(200, &PollerList { pollers: pollers.collect() })
}

fn info(LivingProcess { process, seen_at }: LivingProcess) -> ProcessInfo {
    ProcessInfo {
        process_id: process.process_id.to_string(),
        host: process.host,
        pid: process.pid,
        url: process.url,
        version: process.version,
        schema_version: process.schema_version,
        lease_ttl_ms: millis(process.lease_ttl),
        heartbeat_interval_ms: millis(process.heartbeat_interval),
        reap_interval_ms: millis(process.reap_interval),
        transport: process.transport,
        started_at: process.started_at,
        seen_at,
    }
}
