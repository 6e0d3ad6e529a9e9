//! Jobs are claimed, and go back if their claimer left before it was told.

use super::Shared;
use super::after::After;
use super::columns::{self, Param, cell, count, instant, job_id, json, maybe_instant, millis, rows_limit};
use super::grouper::Verb;
use super::heads::FRONT;
use super::trouble::{Tries, Trouble};
use crate::error::{StoreError, StoreResult};
use crate::store::{Ask, Claimed, Proof};
use fernery_core::lease::Message;
use fernery_core::{AttemptId, LeaseToken, StreamName, Timestamp, TokenHash, limits};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_postgres::Row;
use tracing::{debug, warn};
use uuid::Uuid;

pub(super) struct Claim {
    pub(super) shared: Arc<Shared>,
    pub(super) undelivered: mpsc::UnboundedSender<Vec<Proof>>,
}

/// What each row of a claim gets if there is one: made before, so that a claim whose reply was lost can be found.
pub(super) struct Slots<'a> {
    pub(super) attempt_ids: Vec<Uuid>,
    tokens: Vec<LeaseToken>,
    hashes: Vec<TokenHash>,
    pub(super) workers: Vec<&'a str>,
    /// Which ask it belongs to.
    pub(super) asks: Vec<i32>,
}

impl Verb for Claim {
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
        for (slot, claimed) in claimed {
            let owner = ends.partition_point(|end| *end <= slot);
            match deliveries.get_mut(owner) {
                Some(delivery) => delivery.claimed.push(claimed),
                None => return Err(StoreError::Corrupt("a claim took more than was asked".into())),
            }
        }
        Ok(deliveries)
    }
}

impl Claim {
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
        if let Some(post) = &self.shared.post {
            if !post.healing.is_due(streams, Instant::now()) {
                let claimed = self.take_hinted(post, streams, slots).await?;
                if !claimed.is_empty() {
                    return Ok(claimed);
                }
            }
            past_messages = Some((&post.healing, post.healing.begins(streams, Instant::now())));
        }
        let claimed = self.take_unhinted(streams, slots).await?;
        if let (Some((healing, before)), Some((_, last))) = (past_messages, claimed.last())
            && (claimed.len() == slots.tokens.len() || slots.is_full_of_bytes(&claimed))
        {
            healing.ended_at(&last.stream, streams, &before, Instant::now());
        }
        Ok(claimed)
    }

    /// Fills slots with jobs that wait, whether a message tells of them or not.
    async fn take_unhinted(
        &self,
        streams: &[StreamName],
        slots: &Slots<'_>,
    ) -> Result<Vec<(usize, Claimed)>, Trouble> {
        let starts = self.shared.heads.starts(streams, Instant::now());
        let mut claimed = self.take_from(streams, &starts, slots, 0).await?;
        if claimed.len() == slots.tokens.len() {
            self.remember(streams, &starts, &claimed);
            return Ok(claimed);
        }
        streams.iter().for_each(|stream| self.shared.heads.forget(stream));
        if slots.is_full_of_bytes(&claimed) {
            return Ok(claimed);
        }
        if starts.iter().any(|start| *start != FRONT) {
            // Less than asked for: the rest may stand further in front.
            let front = vec![FRONT; streams.len()];
            match self.take_from(streams, &front, slots, claimed.len()).await {
                Ok(more) => claimed.extend(more),
                Err(trouble) if claimed.is_empty() => return Err(trouble),
                // What is had is had; what this may have taken beyond it runs out.
                Err(trouble) => debug!(?trouble, "the second look of a claim failed"),
            }
        }
        Ok(claimed)
    }

    /// Fills the slots from `used` on.
    async fn take_from(
        &self,
        streams: &[StreamName],
        starts: &[i64],
        slots: &Slots<'_>,
        used: usize,
    ) -> Result<Vec<(usize, Claimed)>, Trouble> {
        let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
        let hashes = slots.hashes(used);
        let (attempts, workers) = (&slots.attempt_ids[used..], &slots.workers[used..]);
        let (askers, bytes_max) = (&slots.asks[used..], rows_limit(limits::CLAIM_BYTES_MAX));
        let limit = rows_limit(hashes.len());
        let ttl_ms = millis(self.shared.settings.lease_ttl);
        let session = self.shared.pool.session().await?;
        let params: [Param<'_>; 9] =
            [&names, &limit, &attempts, &hashes, &workers, &ttl_ms, &askers, &bytes_max, &starts];
        let sql = concat!(include_str!("sql/claim_pick.sql"), include_str!("sql/claim_take.sql"));
        let rows = session.query(sql, &params).await?;
        drop(session);
        Ok(rows.iter().map(|row| slots.claimed(row, used)).collect::<StoreResult<_>>()?)
    }

    /// The next claim goes on where this one, which got all it asked for, ended.
    fn remember(&self, streams: &[StreamName], starts: &[i64], claimed: &[(usize, Claimed)]) {
        let Some((_, last)) = claimed.last() else { return };
        let now = Instant::now();
        for (stream, start) in streams.iter().zip(starts) {
            let of_stream = claimed.iter().rev().find(|(_, c)| c.stream == *stream);
            self.shared.heads.passed(stream, *start, of_stream.map(|(_, c)| c.message.seq), now);
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

    /// Whether somebody got fewer jobs than asked for because of their size: then slots are left empty in between.
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
            return Err(StoreError::Corrupt("a claim took more than was asked".into()));
        };
        let claimed = Claimed {
            job_id: job_id(row, 1)?,
            attempt_id: AttemptId::from_uuid(*attempt_id),
            lease_token: *lease_token,
            stream: columns::stream(row, 2)?,
            message: match columns::message_id(row, 11)? {
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
        // Nobody takes them back once the store is closed: then the leases run out.
        let _ = self.back.send(proofs.collect());
    }
}

/// Puts undelivered jobs back until the store is closed, and then those that are under way.
pub(super) async fn take_back(shared: Arc<Shared>, mut undelivered: mpsc::UnboundedReceiver<Vec<Proof>>) {
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
                warn!(%error, jobs = proofs.len(), "undelivered jobs could not be put back; their leases run out");
                break;
            }
        }
    }
}

async fn unclaim(shared: &Shared, proofs: &[Proof]) -> Result<(), Trouble> {
    let ids: Vec<Uuid> = proofs.iter().map(|proof| proof.job_id.uuid()).collect();
    let hashes: Vec<&[u8]> = proofs.iter().map(|proof| proof.token_hash.0.as_slice()).collect();
    let session = shared.pool.session().await?;
    let mut after = After::default();
    for row in session.query(include_str!("sql/unclaim.sql"), &[&ids, &hashes]).await? {
        let stream = columns::stream(&row, 0)?;
        shared.heads.forget(&stream);
        after.waits(&stream, None);
        after.messages.extend(columns::message(&row, 0)?);
    }
    drop(session);
    shared.announce(after);
    Ok(())
}
