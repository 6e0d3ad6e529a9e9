//! Claims jobs. Jobs that never reached their caller go back to their streams.

use super::after_commit::AfterCommit;
use super::connection::retry::{Tries, Trouble};
use super::grouper::Verb;
use super::rows::{self, At, Param, cell, count, instant, job_id, json, maybe_instant, millis, rows_limit};
use super::scan_start::FRONT;
use super::{PostgresStore, Shared};
use crate::error::{StoreError, StoreResult};
use crate::store::{Ask, Claim, Claimed, Proof};
use async_trait::async_trait;
use fernery_core::job::lease::Message;
use fernery_core::{AttemptId, LeaseToken, StreamName, Timestamp, TokenHash, limits};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_postgres::Row;
use tracing::{debug, warn};
use uuid::Uuid;

#[async_trait]
impl Claim for PostgresStore {
    async fn claim(&self, ask: Ask) -> StoreResult<Vec<Claimed>> {
        Ok(self.claims.call(ask).await?.accept())
    }
}

pub(super) struct ClaimBatch {
    pub(super) shared: Arc<Shared>,
    pub(super) undelivered: mpsc::UnboundedSender<Vec<Proof>>,
}

/// Attempt ids and tokens for the rows of a claim. They are made before the statement runs, so that a claim whose reply
/// was lost can be found.
pub(super) struct Slots<'a> {
    pub(super) attempt_ids: Vec<Uuid>,
    tokens: Vec<LeaseToken>,
    hashes: Vec<TokenHash>,
    pub(super) workers: Vec<&'a str>,
    /// Which ask it belongs to.
    pub(super) asks: Vec<i32>,
}

impl Verb for ClaimBatch {
    type Call = Ask;
    type Reply = Delivery;

    const FOR_ITS_CALLER_ONLY: bool = true;

    fn items(ask: &Ask) -> usize {
        ask.max
    }

    fn together(first: &Ask, other: &Ask) -> bool {
        first.streams == other.streams
    }

    async fn run(&self, asks: &[Ask]) -> StoreResult<Vec<Delivery>> {
        let mut tries = Tries::new(self.shared.settings.chance);
        let mut slots = self.slots(asks);
        let claimed = loop {
            match self.take(asks, &slots).await {
                Ok(claimed) => break claimed,
                Err(trouble) => {
                    let maybe = matches!(trouble, Trouble::Maybe(_));
                    tries.again(trouble).await?;
                    if maybe {
                        let found = self.taken_before(&slots, &mut tries).await?;
                        if !found.is_empty() {
                            break found;
                        }
                        // Should the lost statement still be on its way, it and the next one must not share ids.
                        slots = self.slots(asks);
                    }
                }
            }
        };
        let mut deliveries: Vec<Delivery> =
            asks.iter().map(|_| Delivery { claimed: Vec::new(), back: self.undelivered.clone() }).collect();
        let mut ends = Vec::with_capacity(asks.len());
        let mut end = 0;
        for ask in asks {
            end += ask.max;
            ends.push(end);
        }
        for (_, claimed) in &claimed {
            if self.shared.expiries.made(&claimed.stream, claimed.expires_at, claimed.claimed_at) {
                self.shared.signals.leased.notify_one();
            }
        }
        self.shared.signals.unwritten_stats.note(claimed.iter().map(|(_, claimed)| claimed.happened()));
        for (slot, claimed) in claimed {
            let owner = ends.partition_point(|end| *end <= slot);
            match deliveries.get_mut(owner) {
                Some(delivery) => delivery.claimed.push(claimed),
                None => return Err(StoreError::Corrupt("a claim took more jobs than it asked for".into())),
            }
        }
        Ok(deliveries)
    }
}

impl ClaimBatch {
    fn slots<'a>(&self, asks: &'a [Ask]) -> Slots<'a> {
        let chance = self.shared.settings.chance;
        let workers: Vec<&str> =
            asks.iter().flat_map(|ask| std::iter::repeat_n(ask.worker_id.as_str(), ask.max)).collect();
        let tokens: Vec<LeaseToken> = workers.iter().map(|_| chance.lease_token()).collect();
        Slots {
            attempt_ids: workers.iter().map(|_| chance.attempt_id().uuid()).collect(),
            hashes: tokens.iter().map(LeaseToken::hash).collect(),
            tokens,
            workers,
            asks: (0..).zip(asks).flat_map(|(n, ask)| std::iter::repeat_n(n, ask.max)).collect(),
        }
    }

    async fn take(&self, asks: &[Ask], slots: &Slots<'_>) -> Result<Vec<(usize, Claimed)>, Trouble> {
        let Some(first) = asks.first() else { return Ok(Vec::new()) };
        let streams = &first.streams;
        let mut past_messages = None;
        if let Some(messaging) = &self.shared.messaging {
            // There are no messages for expired leases.
            if !messaging.database_poll.is_due(streams, Instant::now())
                && !self.shared.expiries.seem_due(streams)
            {
                let claimed = self.take_hinted(messaging, streams, slots).await?;
                if !claimed.is_empty() {
                    return Ok(claimed);
                }
            }
            past_messages =
                Some((&messaging.database_poll, messaging.database_poll.begins(streams, Instant::now())));
        }
        let claimed = self.take_unhinted(streams, slots).await?;
        if let (Some((database_poll, before)), Some((_, last))) = (past_messages, claimed.last())
            && (claimed.len() == slots.tokens.len() || slots.is_full_of_bytes(&claimed))
        {
            database_poll.ended_at(&last.stream, streams, &before, Instant::now());
        }
        Ok(claimed)
    }

    /// Fills slots with jobs that wait, whether a message tells of them or not.
    async fn take_unhinted(
        &self,
        streams: &[StreamName],
        slots: &Slots<'_>,
    ) -> Result<Vec<(usize, Claimed)>, Trouble> {
        let starts = self.shared.scan_starts.starts(streams, Instant::now());
        let bound = self.shared.expiries.of(streams);
        let mut claimed = match self.take_from(streams, &starts, slots, 0, Some(bound.at)).await? {
            Some(claimed) => claimed,
            None => {
                if let Err(trouble) = self.shared.take_expired(streams, bound).await {
                    // The reaper warns, and not as often as claims come.
                    debug!(?trouble, "a claim could not settle expired leases; the reaper will retry");
                }
                self.take_from(streams, &starts, slots, 0, None).await?.unwrap_or_default()
            }
        };
        if claimed.len() == slots.tokens.len() {
            self.remember(streams, &starts, &claimed);
            return Ok(claimed);
        }
        streams.iter().for_each(|stream| self.shared.scan_starts.forget(stream));
        if slots.is_full_of_bytes(&claimed) {
            return Ok(claimed);
        }
        if starts.iter().any(|start| *start != FRONT) {
            // Fewer jobs than asked for: others may lie before the start position.
            let front = vec![FRONT; streams.len()];
            match self.take_from(streams, &front, slots, claimed.len(), None).await {
                Ok(more) => claimed.extend(more.into_iter().flatten()),
                Err(trouble) if claimed.is_empty() => return Err(trouble),
                // The jobs of the first query are returned. If this query took more, their leases expire.
                Err(trouble) => {
                    debug!(?trouble, "the second query of a claim failed; returning the jobs of the first")
                }
            }
        }
        Ok(claimed)
    }

    /// Fills the slots from `used` on. `None`: leases of these streams may have run out, since it is past `runs_out_at`.
    async fn take_from(
        &self,
        streams: &[StreamName],
        starts: &[i64],
        slots: &Slots<'_>,
        used: usize,
        runs_out_at: Option<Timestamp>,
    ) -> Result<Option<Vec<(usize, Claimed)>>, Trouble> {
        let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
        let hashes = slots.hashes(used);
        let (attempts, workers) = (&slots.attempt_ids[used..], &slots.workers[used..]);
        let (askers, bytes_max) = (&slots.asks[used..], rows_limit(limits::CLAIM_BYTES_MAX));
        let limit = rows_limit(hashes.len());
        let ttl_ms = millis(self.shared.settings.lease_ttl);
        let session = self.shared.pool.session().await?;
        let due = runs_out_at.map(At);
        let params: [Param<'_>; 10] =
            [&names, &limit, &attempts, &hashes, &workers, &ttl_ms, &askers, &bytes_max, &starts, &due];
        let rows = session.query(include_str!("sql/claim.sql"), &params).await?;
        drop(session);
        if let Some(first) = rows.first()
            && cell::<i64>(first, 0)? == 0
        {
            return Ok(None);
        }
        Ok(Some(rows.iter().map(|row| slots.claimed(row, used)).collect::<StoreResult<_>>()?))
    }

    /// The next claim goes on where this one, which got all it asked for, ended.
    fn remember(&self, streams: &[StreamName], starts: &[i64], claimed: &[(usize, Claimed)]) {
        let Some((_, last)) = claimed.last() else { return };
        let now = Instant::now();
        for (stream, start) in streams.iter().zip(starts) {
            let of_stream = claimed.iter().rev().find(|(_, c)| c.stream == *stream);
            self.shared.scan_starts.passed(stream, *start, of_stream.map(|(_, c)| c.message.seq), now);
            if *stream == last.stream {
                // What follows was not looked at.
                break;
            }
        }
    }

    async fn taken_before(&self, slots: &Slots<'_>, tries: &mut Tries) -> StoreResult<Vec<(usize, Claimed)>> {
        loop {
            let found = async {
                let session = self.shared.pool.session().await?;
                session.query(include_str!("sql/claimed_before.sql"), &[&slots.attempt_ids]).await
            };
            match found.await {
                Ok(rows) => return rows.iter().map(|row| slots.claimed(row, 0)).collect(),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }
}

impl Slots<'_> {
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The tokens' hashes from slot `first` on.
    pub(super) fn hashes(&self, first: usize) -> Vec<&[u8]> {
        self.hashes[first..].iter().map(|hash| hash.0.as_slice()).collect()
    }

    /// Whether a caller got fewer jobs than asked for because of their size: then slots in between stay empty.
    fn is_full_of_bytes(&self, claimed: &[(usize, Claimed)]) -> bool {
        let mut bytes: HashMap<i32, usize> = HashMap::new();
        for (slot, claimed) in claimed {
            *bytes.entry(self.asks[*slot]).or_default() += claimed.payload.get().len();
        }
        bytes.into_values().any(|bytes| bytes >= limits::CLAIM_BYTES_MAX)
    }

    /// A claimed row; its number counts from the slot `first`.
    pub(super) fn claimed(&self, row: &Row, first: usize) -> StoreResult<(usize, Claimed)> {
        let number = usize::try_from(cell::<i64>(row, 0)? - 1).unwrap_or(usize::MAX);
        let slot = first.saturating_add(number);
        let (Some(attempt_id), Some(lease_token)) = (self.attempt_ids.get(slot), self.tokens.get(slot))
        else {
            return Err(StoreError::Corrupt("a claim took more jobs than it asked for".into()));
        };
        let claimed = Claimed {
            job_id: job_id(row, 1)?,
            attempt_id: AttemptId::from_uuid(*attempt_id),
            lease_token: *lease_token,
            stream: rows::stream(row, 2)?,
            message: match rows::message_id(row, 11)? {
                Some(id) => Message { seq: id.n, ready_at: Timestamp::from_millis(id.ms) },
                None => Message { seq: cell(row, 3)?, ready_at: instant(row, 4)? },
            },
            payload: json(row, 5)?,
            attempt_no: count(row, 6)?,
            max_attempts: count(row, 7)?,
            expires_at: instant(row, 8)?,
            timeout_at: maybe_instant(row, 9)?,
            claimed_at: instant(row, 10)?,
        };
        Ok((slot, claimed))
    }
}

/// Claimed jobs on their way to the caller. Dropped on the way, they go back.
pub(super) struct Delivery {
    claimed: Vec<Claimed>,
    back: mpsc::UnboundedSender<Vec<Proof>>,
}

impl Delivery {
    pub(super) fn accept(mut self) -> Vec<Claimed> {
        std::mem::take(&mut self.claimed)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.claimed.is_empty() {
            return;
        }
        let proofs = self.claimed.iter().map(|c| Proof {
            job_id: c.job_id,
            attempt_id: c.attempt_id,
            token_hash: c.lease_token.hash(),
        });
        // After the store is closed nobody puts them back: their leases expire.
        let _ = self.back.send(proofs.collect());
    }
}

/// Puts undelivered jobs back until the store is closed, and then those that are under way.
pub(super) async fn take_back(shared: Arc<Shared>, undelivered: &mut mpsc::UnboundedReceiver<Vec<Proof>>) {
    loop {
        let received = tokio::select! {
            biased;
            received = undelivered.recv() => received,
            () = shared.closing.notified() => {
                undelivered.close();
                continue;
            }
        };
        let Some(mut proofs) = received else { return };
        while let Ok(more) = undelivered.try_recv() {
            proofs.extend(more);
        }
        proofs.sort_unstable_by_key(|proof| proof.job_id);
        let mut tries = Tries::new(shared.settings.chance);
        while let Err(trouble) = unclaim(&shared, &proofs).await {
            if let Err(error) = tries.again(trouble).await {
                warn!(
                    %error, jobs = proofs.len(),
                    "could not return undelivered jobs to their streams; they come back when their \
                     leases expire"
                );
                break;
            }
        }
    }
}

async fn unclaim(shared: &Shared, proofs: &[Proof]) -> Result<(), Trouble> {
    let ids: Vec<Uuid> = proofs.iter().map(|proof| proof.job_id.uuid()).collect();
    let hashes: Vec<&[u8]> = proofs.iter().map(|proof| proof.token_hash.0.as_slice()).collect();
    let session = shared.pool.session().await?;
    let mut after = AfterCommit::default();
    for row in session.query(include_str!("sql/unclaim.sql"), &[&ids, &hashes]).await? {
        let stream = rows::stream(&row, 0)?;
        shared.scan_starts.forget(&stream);
        after.waits(&stream, None);
        after.messages.extend(rows::message(&row, 0)?);
    }
    drop(session);
    shared.announce(after);
    Ok(())
}
