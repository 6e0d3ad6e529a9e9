//! What must hold of a store at rest, whatever happened before.

use crate::support::dump::{all_dead, all_jobs};
use fernery_core::{AttemptOutcome, JobStatus};
use fernery_engine::store::{DeadFilter, JobFilter, JobView, Store};
use std::collections::BTreeMap;

/// Fails unless every job is in one place (invariant 5), every ended attempt closed once (6), versions only grew (9), and
/// counts and lists tell the same.
pub(crate) async fn assert_consistent(store: &dyn Store) {
    let mut by_place: BTreeMap<(String, JobStatus), i64> = BTreeMap::new();
    for brief in all_jobs(store, JobFilter::default()).await {
        let view = store.job(brief.job_id).await.expect("job").expect("a listed job can be read");
        assert_job(&view);
        *by_place.entry((brief.stream.to_string(), brief.status)).or_default() += 1;
    }
    for stream in store.streams(None, usize::MAX).await.expect("streams") {
        let jobs = |status| by_place.get(&(stream.name.to_string(), status)).copied().unwrap_or_default();
        let counts = &stream.counts;
        assert_eq!(counts.ready + counts.scheduled, jobs(JobStatus::Queued), "queued of {stream:?}");
        assert_eq!(counts.running, jobs(JobStatus::Running), "running of {stream:?}");
        assert_eq!(counts.dead, jobs(JobStatus::Dead), "dead of {stream:?}");
        assert!(counts.succeeded >= jobs(JobStatus::Succeeded), "succeeded of {stream:?}");
        assert!(counts.cancelled >= jobs(JobStatus::Cancelled), "cancelled of {stream:?}");
        assert_eq!(counts.ready > 0, stream.oldest_ready_at.is_some(), "oldest of {stream:?}");
    }
    for status in JobStatus::ALL {
        let filter = JobFilter { status: Some(*status), ..JobFilter::default() };
        let listed = all_jobs(store, filter).await.len() as i64;
        let counted: i64 = by_place.iter().filter(|((_, s), _)| s == status).map(|(_, n)| n).sum();
        assert_eq!(listed, counted, "the list of {status}");
    }
    let dead = all_dead(store, DeadFilter::default()).await.len() as i64;
    let counted: i64 = by_place.iter().filter(|((_, s), _)| *s == JobStatus::Dead).map(|(_, n)| n).sum();
    assert_eq!(dead, counted, "the dead-letter queue holds the dead jobs");
}

fn assert_job(view: &JobView) {
    let job_id = view.brief.job_id;
    let status = view.brief.status;
    assert_eq!(view.brief.finished_at.is_some(), status.is_final(), "{view:?}");
    assert!(view.attempts.windows(2).all(|two| two[0].attempt_no < two[1].attempt_no), "{view:?}");
    assert!(view.attempts.windows(2).all(|two| two[0].claim_version < two[1].claim_version), "{view:?}");
    let open: Vec<_> = view.attempts.iter().filter(|attempt| attempt.outcome.is_none()).collect();
    assert_eq!(open.len(), usize::from(status == JobStatus::Running), "open attempts of {job_id}");
    if let Some(open) = open.first() {
        assert_eq!(open.attempt_no, view.attempts.last().expect("it is one of them").attempt_no);
    }
    assert!(view.attempts.iter().all(|a| a.finished_at.is_some() == a.outcome.is_some()), "{view:?}");
    let won = |outcome| view.attempts.iter().filter(|a| a.outcome == Some(outcome)).count();
    let succeeded = won(AttemptOutcome::Succeeded);
    assert_eq!(succeeded, usize::from(status == JobStatus::Succeeded), "one success ends it: {view:?}");
}
