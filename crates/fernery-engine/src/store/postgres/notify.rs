//! Nudges between processes: one NOTIFY for all that became claimable in the last moments.
//!
//! Never in the transaction of a job: NOTIFY takes a lock that all notifying commits of the database share. Losing every
//! one of them costs the engine's backstop poll and nothing else.

use super::Shared;
use super::connection::url::Target;
use crate::door;
use crate::signals::Signals;
use crate::supervise::lock;
use fernery_core::StreamName;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_postgres::AsyncMessage;
use tracing::debug;

/// Between two notifications of one process.
const INTERVAL: Duration = Duration::from_millis(10);
/// PostgreSQL takes less than 8000 bytes.
const PAYLOAD_MAX: usize = 7_900;
/// Between two tries to listen again.
const LISTEN_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Notifier {
    /// Tells our own notifications apart.
    name: String,
    pending: Mutex<HashMap<StreamName, usize>>,
    wake: Notify,
}

impl Notifier {
    pub(super) fn new() -> Self {
        let name = format!("{:016x}", u64::from_ne_bytes(door::random_bytes()));
        Self { name, pending: Mutex::default(), wake: Notify::new() }
    }

    /// Jobs of these streams can be claimed; others are told in a moment.
    pub(super) fn tell(&self, claimable: HashMap<StreamName, usize>) {
        if claimable.is_empty() {
            return;
        }
        let mut pending = lock(&self.pending);
        for (stream, jobs) in claimable {
            let known = pending.entry(stream).or_insert(0);
            *known = known.saturating_add(jobs);
        }
        drop(pending);
        self.wake.notify_one();
    }

    fn take(&self) -> HashMap<StreamName, usize> {
        std::mem::take(&mut *lock(&self.pending))
    }

    /// The sender's name, then stream and count in turns; no stream name holds a space. One text for each message.
    fn payloads(&self, claimable: HashMap<StreamName, usize>) -> Vec<String> {
        let mut payloads = Vec::new();
        let mut text = self.name.clone();
        for (stream, jobs) in claimable {
            let next = format!(" {stream} {jobs}");
            if text.len() + next.len() > PAYLOAD_MAX {
                payloads.push(std::mem::replace(&mut text, self.name.clone()));
            }
            text.push_str(&next);
        }
        payloads.push(text);
        payloads
    }

    fn hear(&self, payload: &str, signals: &Signals) {
        let mut words = payload.split(' ');
        if words.next() == Some(&self.name) {
            return;
        }
        while let (Some(stream), Some(jobs)) = (words.next(), words.next()) {
            if let (Ok(stream), Ok(jobs)) = (StreamName::new(stream), jobs.parse()) {
                signals.claimable(&stream, jobs);
            }
        }
    }
}

/// Sends what others should know until it is aborted.
pub(super) async fn send(shared: Arc<Shared>) {
    loop {
        shared.notifier.wake.notified().await;
        let next = Instant::now() + INTERVAL;
        for payload in shared.notifier.payloads(shared.notifier.take()) {
            let sent = async {
                let session = shared.pool.session().await?;
                session.query(include_str!("sql/notify.sql"), &[&payload]).await
            };
            if let Err(trouble) = sent.await {
                debug!(?trouble, "could not notify the other processes; they find the jobs by polling");
            }
        }
        sleep_until(next).await;
    }
}

/// Listens to what others say until it is aborted.
pub(super) async fn listen(shared: Arc<Shared>) {
    loop {
        if let Err(why) = listen_once(shared.pool.target(), &shared).await {
            debug!(why, "cannot LISTEN on PostgreSQL; polling until it works again");
        }
        sleep(LISTEN_PAUSE).await;
    }
}

async fn listen_once(target: &Target, shared: &Shared) -> Result<(), String> {
    let (client, mut wire) = target.wire().await.map_err(|trouble| format!("{trouble:?}"))?;
    let asked = client.batch_execute("LISTEN fernery_ready; LISTEN fernery_inbox");
    let mut asked = std::pin::pin!(asked);
    let mut listening = false;
    loop {
        let message = std::future::poll_fn(|cx| wire.poll_message(cx));
        tokio::select! {
            done = &mut asked, if !listening => {
                done.map_err(|e| e.to_string())?;
                listening = true;
            }
            message = message => match message {
                Some(Ok(AsyncMessage::Notification(heard))) if heard.channel() == "fernery_inbox" => {
                    shared.signals.intake.notify_one();
                }
                Some(Ok(AsyncMessage::Notification(heard))) => {
                    shared.notifier.hear(heard.payload(), &shared.signals);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.to_string()),
                None => return Ok(()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_never_longer_than_postgresql_takes_and_loses_no_stream() {
        let notifier = Notifier::new();
        let many = (0..200).map(|n| (StreamName::stored(&format!("{n:0>200}")), n)).collect();
        let payloads = notifier.payloads(many);
        assert!(payloads.iter().all(|text| text.len() < 8_000));
        let streams: usize = payloads.iter().map(|text| (text.split(' ').count() - 1) / 2).sum();
        assert_eq!(streams, 200);
    }

    #[tokio::test]
    async fn others_are_nudged_and_oneself_is_not() {
        let (one, other) = (Notifier::new(), Notifier::new());
        let signals = Signals::default();
        let streams = [StreamName::stored("a")];
        let payload = one.payloads(HashMap::from([(streams[0].clone(), 1)])).remove(0);
        let parked = signals.parking.park(&streams);
        one.hear(&payload, &signals);
        assert_eq!(signals.parking.streams(), streams);
        other.hear(&payload, &signals);
        parked.nudged().await;
    }
}
