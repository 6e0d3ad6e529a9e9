//! Jobs are claimed, kept, and given back undelivered.

use super::end::Report;
use super::read;
use super::rows;
use super::write::{Tx, Waiting};
use crate::error::StoreResult;
use crate::store::{Ask, Beat, BeatAnswer, Claimed, Proof};
use fernery_core::lease::Message;
use fernery_core::settle::Ending;
use fernery_core::{Holding, Progress, StreamName, Timestamp, limits};
use rusqlite::params;
use std::time::Duration;

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
                    // An operator came between: as if its holder had handed it back.
                    self.settle(&held, Ending::Released, Report::NONE)?;
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

    pub(super) fn heartbeat(&mut self, beats: &[Beat]) -> StoreResult<Vec<BeatAnswer>> {
        let until = self.now.after(self.settings.lease_ttl);
        let mut answers = Vec::with_capacity(beats.len());
        for beat in beats {
            let id = beat.job_id.uuid();
            let key = params![id.as_bytes(), beat.token_hash.0, self.now.as_millis(), until.as_millis()];
            let renewed = match self.hot.lease_renew.execute(key)? {
                0 => None,
                _ => {
                    let told = self.hot.lease_renewed.query_row(
                        params![id.as_bytes(), beat.token_hash.0],
                        |row| {
                            Ok(BeatAnswer::Extended {
                                expires_at: rows::instant(row, 0)?,
                                cancel_requested: row.get(1)?,
                            })
                        },
                    )?;
                    Some(told)
                }
            };
            answers.push(match renewed {
                Some(answer) => answer,
                None if read::brief(self.db, beat.job_id)?.is_some() => BeatAnswer::LeaseLost,
                None => BeatAnswer::Unknown,
            });
        }
        Ok(answers)
    }

    pub(super) fn progress(&mut self, items: &[(Beat, Progress)]) -> StoreResult<Vec<bool>> {
        let mut statement = self.db.prepare_cached(include_str!("sql/lease_progress.sql"))?;
        let mut kept = Vec::with_capacity(items.len());
        for (beat, progress) in items {
            let id = beat.job_id.uuid();
            let row = params![id.as_bytes(), beat.token_hash.0, progress.percent(), progress.note()];
            kept.push(statement.execute(row)? == 1);
        }
        Ok(kept)
    }
}
