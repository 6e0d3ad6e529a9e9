//! Turns an azolla's notices into jobs and delivers them, by a signed webhook or a program. Each is retried on its own
//! until it is delivered or goes to the dead-letter queue.

use super::Context;
use super::driver::{Pass, PollingWorker, caught};
use crate::outgoing::notices::{self, NotSent, Webhook};
use async_trait::async_trait;
use fernery_core::WorkerId;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::{Blueprint, Notices};
use fernery_engine::pipeline::inbox::notices::{self as noted, Channel, NoticeJob};
use fernery_engine::store::{Ask, Cause, Claimed, Completion, Failure, Proof};
use fernery_engine::{StoreError, door};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tracing::warn;

const BATCH: i64 = 100;
const CLAIM_WAIT: Duration = Duration::from_secs(30);
/// How long a program may take over a notice.
const COMMAND_WITHIN: Duration = Duration::from_secs(20);

pub(super) struct Notifier;

#[async_trait]
impl PollingWorker for Notifier {
    fn name(&self) -> &'static str {
        "notifier"
    }

    fn serves(&self, blueprint: &Blueprint) -> bool {
        blueprint.notices.is_some()
    }

    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let (of, chance) = (azolla.clone(), context.engine.settings().store.chance);
        let substrate = context.engine.substrate();
        let done = substrate.transact(move |sql| noted::dispatch(sql, &of, chance, BATCH)).await?;
        if done > 0 {
            door::failpoint("notices-dispatched");
        }
        let mut pass = Pass { again: done as i64 == BATCH, ..Pass::default() };
        pass.count("dispatched", done as u64);
        Ok(pass)
    }
}

/// Delivers the notices of the azollas that this process hosts.
pub(super) fn deliver(context: &Arc<Context>) -> Option<JoinHandle<()>> {
    let blueprints = context.blueprints();
    let telling = blueprints.iter().filter(|blueprint| blueprint.notices.is_some());
    let streams: Vec<_> = telling.map(|blueprint| noted::stream(&blueprint.azolla_id)).collect();
    if streams.is_empty() {
        return None;
    }
    let context = context.clone();
    let worker_id = WorkerId::stored(&format!("{}-notices", context.owner));
    let ask = Ask { worker_id, streams: streams.into(), max: 1 };
    let loops = context.engine.loops().clone();
    Some(loops.run("notices", move || tell_all(context.clone(), ask.clone())))
}

async fn tell_all(context: Arc<Context>, ask: Ask) {
    loop {
        let claimed = match context.engine.claim(ask.clone(), CLAIM_WAIT).await {
            Ok(claimed) => claimed,
            Err(error) => {
                warn!(%error, "cannot claim notices; will retry");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        for job in claimed {
            if let Err(error) = caught(tell(&context, &job)).await {
                warn!(
                    %error, job_id = %job.job_id,
                    "could not report a notice as sent; it comes back when its lease expires"
                );
            }
        }
    }
}

async fn tell(context: &Context, job: &Claimed) -> Result<(), StoreError> {
    let proof = Proof { job_id: job.job_id, attempt_id: job.attempt_id, token_hash: job.lease_token.hash() };
    let told = match serde_json::from_str::<NoticeJob>(job.payload.get()) {
        Ok(notice_job) => told(context, &notice_job).await,
        Err(error) => Err(NotSent::Refused(format!("this is no notice: {error}"))),
    };
    door::failpoint("notice-told");
    let store = context.engine.store();
    match told {
        Ok(()) => {
            let result = super::runner::report::raw(&json!({"told": true}));
            store.complete(vec![Completion { proof, result }]).await?;
        }
        Err(error) => {
            let retryable = matches!(error, NotSent::Later(_));
            warn!(job_id = %job.job_id, %error, retryable, "could not send a notice");
            let code = if retryable { "not_sent_yet" } else { "refused" };
            let cause = Cause { code: code.into(), message: error.to_string(), stack: None, retryable };
            store.fail(vec![Failure::new(proof, cause)]).await?;
        }
    }
    Ok(())
}

async fn told(context: &Context, notice_job: &NoticeJob) -> Result<(), NotSent> {
    let refused = |why: &str| Err(NotSent::Refused(why.to_string()));
    let blueprints = context.blueprints();
    let of = blueprints.iter().find(|blueprint| blueprint.azolla_id == notice_job.notice.azolla_id);
    let Some(Notices { webhook, secret_env, command, .. }) = of.and_then(|of| of.notices.as_ref()) else {
        return refused("its azolla sends no notices any more");
    };
    let body = serde_json::to_vec(&notice_job.notice).map_err(|error| NotSent::Refused(error.to_string()))?;
    match (notice_job.channel, webhook) {
        (Channel::Webhook, Some(url)) => {
            let name = secret_env.as_deref().unwrap_or_default();
            let Ok(secret) = std::env::var(name) else {
                return refused(&format!(
                    "the environment variable {name} with the signing secret is not set"
                ));
            };
            let webhook = Webhook { url: url.clone(), secret };
            notices::send(&webhook, &context.allowed, &notice_job.notice.notice_id, &body).await
        }
        (Channel::Command, _) if !command.is_empty() => {
            // The lease outlasts the program, so that no second one is started for the same notice.
            let within = COMMAND_WITHIN.min(context.lease_ttl / 2);
            notices::run_hook(command, &body, within).await
        }
        _ => refused("its azolla does not send notices this way any more"),
    }
}
