//! Claims jobs, and undoes claims that never reached their caller.

use super::SqliteStore;
use super::rows;
use super::settle::HolderReport;
use super::tx::{Tx, Waiting};
use super::writer::Writer;
use crate::error::StoreResult;
use crate::store::{Ask, Claim, Claimed, Proof};
use async_trait::async_trait;
use fernery_core::job::lease::Message;
use fernery_core::job::settle::Ending;
use fernery_core::{Holding, StreamName, Timestamp, limits};
use rusqlite::params;
use std::time::Duration;

/// Claimed jobs on their way to the caller. Dropped on the way, they go back.
struct Delivery {
    claimed: Vec<Claimed>,
    writer: Writer,
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.claimed.is_empty() {
            return;
        }
        let proofs: Vec<Proof> = self
            .claimed
            .drain(..)
            .map(|c| Proof { job_id: c.job_id, attempt_id: c.attempt_id, token_hash: c.lease_token.hash() })
            .collect();
        self.writer.send(move |tx| tx.unclaim(&proofs));
    }
}

#[async_trait]
impl Claim for SqliteStore {
    async fn claim(&self, ask: Ask) -> StoreResult<Vec<Claimed>> {
        // Nearly always no lease of these streams has run out, as far as this process knows: then nothing is asked for it.
        let bound = self.expiries.of(&ask.streams);
        if bound.at <= self.clock.now()
            && let Err(error) = self.take_expired(&ask.streams, bound).await
        {
            // The reaper warns, and not as often as claims come.
            tracing::debug!(%error, "a claim could not settle expired leases; the reaper will retry");
        }
        let writer = self.writer()?;
        let back = writer.clone();
        let mut delivery = writer
            .call_if_wanted(move |tx| Ok(Delivery { claimed: tx.claim(&ask)?, writer: back.clone() }))
            .await?;
        for claimed in &delivery.claimed {
            if self.expiries.made(&claimed.stream, claimed.expires_at, claimed.claimed_at) {
                self.signals.leased.notify_one();
            }
        }
        self.signals.unwritten_stats.note(delivery.claimed.iter().map(Claimed::happened));
        Ok(std::mem::take(&mut delivery.claimed))
    }
}

impl Tx<'_> {
    pub(super) fn claim(&mut self, ask: &Ask) -> StoreResult<Vec<Claimed>> {
        let mut claimed = Vec::new();
        for stream in ask.streams.iter() {
            let bytes: usize = claimed.iter().map(|c: &Claimed| c.payload.get().len()).sum();
            if claimed.len() == ask.max || bytes >= limits::CLAIM_BYTES_MAX {
                break;
            }
            if !self.paused.contains(stream) {
                self.claim_from(stream, ask, &mut claimed)?;
            }
        }
        Ok(claimed)
    }

    fn claim_from(&mut self, stream: &StreamName, ask: &Ask, claimed: &mut Vec<Claimed>) -> StoreResult<()> {
        let first = claimed.len();
        let mut picked = self.hot.ready_pick.query(params![stream.as_str(), ask.max - first])?;
        let mut bytes = claimed.iter().map(|c| c.payload.get().len()).sum::<usize>();
        while bytes < limits::CLAIM_BYTES_MAX
            && let Some(row) = picked.next()?
        {
            let job_id = rows::job_id(row, 1)?;
            let message = Message { seq: row.get(0)?, ready_at: rows::instant(row, 2)? };
            let tally = rows::tally(row, 5)?;
            let attempt_no = row.get::<_, u32>(4)? + 1;
            let max_attempts = row.get(9)?;
            let timeout: Option<i64> = row.get(10)?;
            let timeout_at = timeout
                .map(|ms| self.now.after(Duration::from_millis(u64::try_from(ms).unwrap_or_default())));
            let expires_at = Holding::reach(self.now, self.settings.lease_ttl, timeout_at);
            let attempt_id = self.settings.chance.attempt_id();
            let lease_token = self.settings.chance.lease_token();
            self.hot.lease_insert.execute(params![
                job_id.uuid().as_bytes(),
                attempt_id.uuid().as_bytes(),
                lease_token.hash().0,
                ask.worker_id.as_str(),
                stream.as_str(),
                message.seq,
                message.ready_at.as_millis(),
                self.now.as_millis(),
                expires_at.as_millis(),
                timeout_at.map(Timestamp::as_millis),
                row.get::<_, i64>(3)? + 1,
                attempt_no,
                tally.failed,
                tally.lost,
                tally.released,
                max_attempts,
                row.get::<_, Option<String>>(11)?
            ])?;
            let payload = rows::json(row, 8)?;
            bytes += payload.get().len();
            claimed.push(Claimed {
                job_id,
                attempt_id,
                lease_token,
                stream: stream.clone(),
                message,
                payload,
                attempt_no,
                max_attempts,
                claimed_at: self.now,
                expires_at,
                timeout_at,
            });
        }
        drop(picked);
        let taken = claimed.len() - first;
        if let Some(last) = claimed[first..].last() {
            self.hot.ready_remove_through.execute(params![stream.as_str(), last.message.seq])?;
            let counts = self.count(stream);
            counts.ready -= taken as i64;
            counts.running += taken as i64;
        }
        Ok(())
    }

    /// Undoes a claim that never reached its caller: the job is back at its place, as if it had not been asked for.
    pub(super) fn unclaim(&mut self, proofs: &[Proof]) -> StoreResult<()> {
        for proof in proofs {
            if let Some(held) = self.take_lease(proof)? {
                if held.cancel_requested {
                    // An operator cancelled it meanwhile: as if its holder had released it.
                    self.settle(&held, Ending::Released, HolderReport::NONE)?;
                    continue;
                }
                self.count(&held.stream).running -= 1;
                let waiting = Waiting {
                    claim_version: held.claim_version + 1,
                    attempt_no: held.attempt_no - 1,
                    tally: held.tally,
                };
                self.wait(held.job_id, &held.stream, held.message.seq, None, waiting)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::SqliteStore;
    use crate::door::LeaseClock;
    use crate::store::{Ask, Claim, Enqueue, NewJob, Reap, Store, StoreSettings};
    use fernery_core::{StreamName, Timestamp, WorkerId};
    use rusqlite::StatementStatus::Run;
    use serde_json::value::RawValue;

    fn ask(streams: &[&str]) -> Ask {
        let streams = streams.iter().map(|name| StreamName::stored(name)).collect();
        Ask { worker_id: WorkerId::new("w").unwrap(), streams, max: 1 }
    }

    /// Transactions, looks into a stream, and looks at what runs out.
    async fn costs(store: &SqliteStore) -> (i32, i32, usize) {
        let looks = store.expiries.looks();
        let runs = |tx: &mut super::Tx<'_>| (tx.hot.begin.get_status(Run), tx.hot.ready_pick.get_status(Run));
        let (begun, picked) = store.write(move |tx| Ok(runs(tx))).await.unwrap();
        (begun, picked, looks)
    }

    #[tokio::test]
    async fn a_claim_that_finds_nothing_costs_one_transaction_and_one_look_into_each_stream() {
        let folder = tempfile::tempdir().unwrap();
        let clock = LeaseClock::manual(Timestamp::from_millis(1_800_000_000_000));
        let settings = StoreSettings::default();
        let path = folder.path().join("fernery.db");
        let store = SqliteStore::open(&path, settings.clone(), clock.clone(), Default::default()).unwrap();
        let payload = RawValue::from_string("{}".to_string()).unwrap();
        store.enqueue(vec![NewJob::new(StreamName::stored("a"), payload); 3]).await.unwrap();
        assert_eq!(store.claim(Ask { max: 3, ..ask(&["a"]) }).await.unwrap().len(), 3);
        let before = costs(&store).await;
        for _ in 0..10 {
            assert!(store.claim(ask(&["a", "b"])).await.unwrap().is_empty());
        }
        let after = costs(&store).await;
        assert_eq!((after.0 - before.0, after.1 - before.1), (10 + 1, 20), "the one is this count's own");
        assert_eq!(after.2, before.2, "three leases are held, and none has run out");
        clock.advance(settings.lease_ttl);
        assert_eq!(store.claim(ask(&["a", "b"])).await.unwrap().len(), 1);
        assert_eq!(store.expiries.looks(), before.2 + 1);
        assert_eq!(store.claim(ask(&["a", "b"])).await.unwrap().len(), 1);
        assert_eq!(store.expiries.looks(), before.2 + 1, "once for all that have run out");
        store.close().await;
    }

    #[tokio::test]
    async fn a_claim_that_meets_an_expired_lease_waits_for_no_reader() {
        let folder = tempfile::tempdir().unwrap();
        let clock = LeaseClock::manual(Timestamp::from_millis(1_800_000_000_000));
        let settings = StoreSettings::default();
        let path = folder.path().join("fernery.db");
        let store = SqliteStore::open(&path, settings.clone(), clock.clone(), Default::default()).unwrap();
        let payload = RawValue::from_string("{}".to_string()).unwrap();
        store.enqueue(vec![NewJob::new(StreamName::stored("a"), payload)]).await.unwrap();
        assert_eq!(store.claim(ask(&["a"])).await.unwrap().len(), 1);
        clock.advance(settings.lease_ttl);
        let occupied = store.readers.occupied().await;
        let soon = std::time::Duration::from_secs(10);
        let claimed = tokio::time::timeout(soon, store.claim(ask(&["a"]))).await;
        assert_eq!(claimed.expect("while all readers are busy").unwrap().len(), 1);
        tokio::time::timeout(soon, store.reap(1)).await.expect("the reaper neither").unwrap();
        drop(occupied);
        store.close().await;
    }
}
