//! Heartbeats, one or many: leases are renewed, and the progress that their holders report is stored.

use fernery_core::Progress;
use fernery_engine::error::StoreResult;
use fernery_engine::store::{Beat, BeatAnswer, Store};

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct BeatResult {
    pub(in crate::http) answer: BeatAnswer,
    /// Its progress was not stored, because it was lower than before.
    pub(in crate::http) went_back: bool,
}

/// The part of a store that heartbeats need.
pub(in crate::http) trait Leases: Send + Sync {
    fn renew(&self, beats: Vec<Beat>) -> impl Future<Output = StoreResult<Vec<BeatAnswer>>> + Send;
    fn note(&self, said: Vec<(Beat, Progress)>) -> impl Future<Output = StoreResult<Vec<bool>>> + Send;
}

impl Leases for dyn Store + '_ {
    async fn renew(&self, beats: Vec<Beat>) -> StoreResult<Vec<BeatAnswer>> {
        self.heartbeat(beats).await
    }

    async fn note(&self, said: Vec<(Beat, Progress)>) -> StoreResult<Vec<bool>> {
        self.progress(said).await
    }
}

/// Takes heartbeats; answers each, in order.
pub(in crate::http) async fn extend(
    leases: &(impl Leases + ?Sized),
    beats: Vec<(Beat, Option<Progress>)>,
) -> StoreResult<Vec<BeatResult>> {
    let answers = leases.renew(beats.iter().map(|(beat, _)| *beat).collect()).await?;
    let mut results: Vec<BeatResult> =
        answers.into_iter().map(|answer| BeatResult { answer, went_back: false }).collect();
    let said = beats.into_iter().enumerate().filter_map(|(n, (beat, said))| Some((n, (beat, said?))));
    let (places, said): (Vec<usize>, Vec<(Beat, Progress)>) = said.unzip();
    if said.is_empty() {
        return Ok(results);
    }
    let all: Vec<Beat> = said.iter().map(|(beat, _)| *beat).collect();
    let kept = leases.note(said).await?;
    let refused = places.into_iter().zip(all).zip(kept).filter(|(_, kept)| !kept).map(|(place, _)| place);
    let (places, again): (Vec<usize>, Vec<Beat>) = refused.unzip();
    if again.is_empty() {
        return Ok(results);
    }
    // The store refuses lower progress and a lost lease in the same way, and the lease may be lost between the two writes. A
    // second renewal tells which of them it was.
    for (place, answer) in places.into_iter().zip(leases.renew(again).await?) {
        results[place] = BeatResult { answer, went_back: matches!(answer, BeatAnswer::Extended { .. }) };
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_core::{JobId, LeaseToken, Timestamp};
    use std::sync::atomic::{AtomicUsize, Ordering};

    const EXTENDED: BeatAnswer =
        BeatAnswer::Extended { expires_at: Timestamp::from_millis(60_000), cancel_requested: false };

    fn beat(n: u128) -> Beat {
        let uuid = uuid::Uuid::from_u128(n);
        Beat { job_id: JobId::from_uuid(uuid), token_hash: LeaseToken::from_random(uuid).hash() }
    }

    fn at(percent: u8) -> Option<Progress> {
        Some(Progress::new(percent, None).unwrap())
    }

    /// Leases; number 2 is lost after its first renewal, and only 50 percent is accepted as progress.
    #[derive(Default)]
    struct LostBetween {
        renewals: AtomicUsize,
    }

    impl Leases for LostBetween {
        async fn renew(&self, beats: Vec<Beat>) -> StoreResult<Vec<BeatAnswer>> {
            let first = self.renewals.fetch_add(1, Ordering::Relaxed) == 0;
            let answer = |b: &Beat| match first || b.job_id != beat(2).job_id {
                true => EXTENDED,
                false => BeatAnswer::LeaseLost,
            };
            Ok(beats.iter().map(answer).collect())
        }

        async fn note(&self, said: Vec<(Beat, Progress)>) -> StoreResult<Vec<bool>> {
            Ok(said.iter().map(|(_, progress)| progress.percent() == 50).collect())
        }
    }

    #[tokio::test]
    async fn a_lease_that_is_lost_between_the_two_writes_is_lost_and_not_a_step_back() {
        let leases = LostBetween::default();
        let beats = vec![(beat(1), at(50)), (beat(2), at(90)), (beat(3), None), (beat(4), at(10))];
        let results = extend(&leases, beats).await.unwrap();
        let good = BeatResult { answer: EXTENDED, went_back: false };
        let lost = BeatResult { answer: BeatAnswer::LeaseLost, went_back: false };
        assert_eq!(results, [good, lost, good, BeatResult { went_back: true, ..good }]);
    }

    #[tokio::test]
    async fn what_is_kept_is_asked_for_once() {
        let leases = LostBetween::default();
        for said in [None, at(50)] {
            extend(&leases, vec![(beat(1), said)]).await.unwrap();
        }
        assert_eq!(leases.renewals.into_inner(), 2);
    }
}
