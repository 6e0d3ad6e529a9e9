//! Claims by messages, and the handling of messages that led to no job.

use super::prefetched::Taken;
use super::relay::Messaging;
use crate::door::failpoint;
use crate::error::StoreResult;
use crate::store::Claimed;
use crate::store::postgres::Shared;
use crate::store::postgres::claim::{ClaimBatch, Slots};
use crate::store::postgres::connection::retry::Trouble;
use crate::store::postgres::rows::{Param, cell, millis, rows_limit};
use crate::transport::{Hint, MessageId, Reason};
use fernery_core::{StreamName, limits};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::time::Instant;
use tracing::debug;
use uuid::Uuid;

/// How often a claim reads more messages if none led to a job.
const READS: usize = 4;

/// What a message is worth now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// Its job waits under it.
    Waiting,
    /// It is the current lease's own.
    Held,
    /// Its job went on without it.
    Stale,
    /// There is no such job.
    Unknown,
}

/// Messages column by column, as the statements take them.
pub(crate) struct HintColumns<'a> {
    stream: Vec<&'a str>,
    place: Vec<i64>,
    job_id: Vec<Uuid>,
    version: Vec<i64>,
    ms: Vec<i64>,
    n: Vec<i64>,
}

impl<'a> HintColumns<'a> {
    fn of(hints: &[&'a Hint]) -> Self {
        let each = || hints.iter();
        Self {
            stream: each().map(|hint| hint.note.stream.as_str()).collect(),
            place: each().map(|hint| hint.note.place).collect(),
            job_id: each().map(|hint| hint.note.job_id.uuid()).collect(),
            version: each().map(|hint| hint.note.version).collect(),
            ms: each().map(|hint| hint.message.ms).collect(),
            n: each().map(|hint| hint.message.n).collect(),
        }
    }

    fn params(&self) -> [Param<'_>; 6] {
        [&self.stream, &self.place, &self.job_id, &self.version, &self.ms, &self.n]
    }
}

impl ClaimBatch {
    /// Fills slots with the jobs that messages name. If there are none, the database must be read.
    ///
    /// Stale messages are skipped: a claim that read the database leaves the messages of its jobs behind, and the next
    /// claim would find only those.
    pub(crate) async fn take_hinted(
        &self,
        messaging: &Messaging,
        streams: &[StreamName],
        slots: &Slots<'_>,
    ) -> Result<Vec<(usize, Claimed)>, Trouble> {
        for _ in 0..READS {
            match self.take_hinted_once(messaging, streams, slots).await? {
                Some(claimed) if claimed.is_empty() => {}
                Some(claimed) => return Ok(claimed),
                None => break,
            }
        }
        Ok(Vec::new())
    }

    /// `None` if there is no message.
    async fn take_hinted_once(
        &self,
        messaging: &Messaging,
        streams: &[StreamName],
        slots: &Slots<'_>,
    ) -> Result<Option<Vec<(usize, Claimed)>>, Trouble> {
        let hints = self.messages(messaging, streams, slots.len()).await;
        if hints.is_empty() {
            return Ok(None);
        }
        // Of two messages about the same enqueue only one is needed.
        let mut told = HashSet::with_capacity(hints.len());
        let new = |hint: &&Hint| told.insert((hint.note.job_id, hint.note.place, hint.note.version));
        let once: Vec<&Hint> = hints.iter().filter(new).collect();
        let claimed = match self.take_these(streams, &once, slots).await {
            Ok(claimed) => claimed,
            Err(trouble) => {
                let now = Instant::now();
                messaging.prefetched.keep(hints.into_iter().map(|hint| (now, hint)));
                return Err(trouble);
            }
        };
        failpoint("claim-committed");
        let taken: HashSet<(&StreamName, i64, i64)> =
            claimed.iter().map(|(_, c)| (&c.stream, c.message.ready_at.as_millis(), c.message.seq)).collect();
        let left: Vec<Hint> = hints
            .iter()
            .filter(|hint| !taken.contains(&(&hint.note.stream, hint.message.ms, hint.message.n)))
            .cloned()
            .collect();
        if !left.is_empty() {
            // In the background: the caller waits only for its jobs.
            let shared = self.shared.clone();
            tokio::spawn(async move { shared.deal_with(left).await });
        }
        Ok(Some(claimed))
    }

    /// Messages for a claim: first those that an earlier claim did not use, then new ones.
    async fn messages(&self, messaging: &Messaging, streams: &[StreamName], max: usize) -> Vec<Hint> {
        let streams = messaging.prefetched.open(streams);
        let Taken { hints: mut prefetched, of_each } = messaging.prefetched.take(&streams, max);
        let Some(of_first) = of_each.first() else { return Vec::new() };
        if *of_first >= max {
            return prefetched.into_iter().map(|(_, hint)| hint).collect();
        }
        let mail = match messaging.transport.read(&streams, &of_each, max).await {
            Ok(mail) => mail,
            Err(away) => {
                debug!(%away, "cannot read messages; claiming from the database");
                messaging.prefetched.keep(prefetched);
                return Vec::new();
            }
        };
        if !mail.hints.is_empty() {
            failpoint("claim-read");
        }
        if !mail.set_up_anew.is_empty() {
            messaging.suspect(mail.set_up_anew);
        }
        if prefetched.is_empty() {
            return mail.hints;
        }
        let now = Instant::now();
        prefetched.extend(mail.hints.into_iter().map(|hint| (now, hint)));
        // Stable: in each stream the older ones stay in front.
        prefetched.sort_by_key(|(_, hint)| streams.iter().position(|stream| *stream == hint.note.stream));
        messaging.prefetched.keep(prefetched.split_off(max.min(prefetched.len())));
        prefetched.into_iter().map(|(_, hint)| hint).collect()
    }

    async fn take_these(
        &self,
        streams: &[StreamName],
        hints: &[&Hint],
        slots: &Slots<'_>,
    ) -> Result<Vec<(usize, Claimed)>, Trouble> {
        let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
        let hashes = slots.hashes(0);
        let limit = rows_limit(hashes.len());
        let ttl_ms = millis(self.shared.settings.lease_ttl);
        let bytes_max = rows_limit(limits::CLAIM_BYTES_MAX);
        let columns = HintColumns::of(hints);
        let [stream, place, job_id, version, ms, n] = columns.params();
        let (attempts, workers, askers) = (&slots.attempt_ids, &slots.workers, &slots.asks);
        let params: [Param<'_>; 14] = [
            &names, &limit, attempts, &hashes, workers, &ttl_ms, askers, &bytes_max, stream, place, job_id,
            version, ms, n,
        ];
        let session = self.shared.pool.session().await?;
        let sql = if hints.iter().all(|hint| Some(&hint.note.stream) == streams.first()) {
            include_str!("../sql/claim_hinted.sql")
        } else {
            include_str!("../sql/claim_hinted_later.sql")
        };
        let rows = session.query(sql, &params).await?;
        drop(session);
        Ok(rows.iter().map(|row| slots.claimed(row, 0)).collect::<StoreResult<_>>()?)
    }
}

impl Shared {
    /// What these messages are worth.
    pub(crate) async fn judge(&self, hints: &[&Hint]) -> Result<Vec<Worth>, Trouble> {
        let columns = HintColumns::of(hints);
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("../sql/hints_judged.sql"), &columns.params()).await?;
        let worth = |row| {
            Ok(match cell::<&str>(row, 1)? {
                "waiting" => Worth::Waiting,
                "held" => Worth::Held,
                "stale" => Worth::Stale,
                _ => Worth::Unknown,
            })
        };
        Ok(rows.iter().map(worth).collect::<StoreResult<_>>()?)
    }

    /// Deletes useless messages. A message whose job is still waiting is kept for the next claim; the message of a
    /// current lease stays.
    async fn deal_with(self: Arc<Self>, hints: Vec<Hint>) {
        let Some(messaging) = &self.messaging else { return };
        let judged = self.judge(&hints.iter().collect::<Vec<_>>()).await;
        let now = Instant::now();
        match judged {
            Ok(worth) => {
                self.take_away(&hints.iter().collect::<Vec<_>>(), &worth);
                let waiting = hints.into_iter().zip(worth).filter(|(_, worth)| *worth == Worth::Waiting);
                messaging.prefetched.keep(waiting.map(|(hint, _)| (now, hint)));
            }
            Err(trouble) => {
                debug!(?trouble, "could not check unused messages; will retry");
                messaging.prefetched.keep(hints.into_iter().map(|hint| (now, hint)));
            }
        }
    }

    /// Answers how many it took away.
    pub(crate) fn take_away(&self, hints: &[&Hint], worth: &[Worth]) -> usize {
        let Some(messaging) = &self.messaging else { return 0 };
        let mut gone = 0;
        for (kind, why) in [(Worth::Stale, Reason::Stale), (Worth::Unknown, Reason::Unknown)] {
            let of_kind: Vec<(StreamName, MessageId)> = hints
                .iter()
                .zip(worth)
                .filter(|(_, worth)| **worth == kind)
                .map(|(hint, _)| (hint.note.stream.clone(), hint.message))
                .collect();
            gone += of_kind.len();
            messaging.transport.finished(of_kind, why);
        }
        gone
    }
}
