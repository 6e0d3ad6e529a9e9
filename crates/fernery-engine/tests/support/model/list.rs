//! Pages of the model: the whole list, from behind the cursor, cut at the limit.

use super::state::{Job, Place, State};
use fernery_core::{Holding, JobId, JobStatus, StreamName};
use fernery_engine::store::{
    Cursor, DeadFilter, DeadGroup, DeadGroups, DeadLetter, JobBrief, JobFilter, Page,
};

impl State {
    pub(crate) fn dead_page(
        &self,
        filter: &DeadFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Page<DeadLetter> {
        let mut dead = self.dead(filter);
        dead.sort_by_key(|letter| std::cmp::Reverse((letter.buried_at, letter.job_id)));
        let on = |letter: &DeadLetter| Cursor::Buried { at: letter.buried_at, job_id: letter.job_id };
        cut(dead.into_iter().map(|letter| (on(&letter), letter)), after, limit)
    }

    pub(crate) fn dead_groups(&self, stream: Option<&StreamName>, newest: usize, limit: usize) -> DeadGroups {
        let dead = DeadFilter { stream: stream.cloned(), ..DeadFilter::default() };
        let dead = self.dead_page(&dead, None, newest).rows;
        let mut groups: Vec<DeadGroup> = Vec::new();
        for letter in &dead {
            let same = |group: &&mut DeadGroup| {
                (&group.newest.stream, &group.newest.code) == (&letter.stream, &letter.code)
            };
            match groups.iter_mut().find(same) {
                Some(group) => {
                    (group.oldest_at, group.jobs) = (letter.buried_at, group.jobs + 1);
                    group.died_at.insert(0, letter.buried_at);
                }
                None => groups.push(DeadGroup {
                    newest: letter.clone(),
                    oldest_at: letter.buried_at,
                    jobs: 1,
                    died_at: vec![letter.buried_at],
                }),
            }
        }
        groups.truncate(limit);
        let looked_from = dead.last().map(|letter| letter.buried_at);
        DeadGroups { groups, looked_at: dead.len() as u64, looked_from }
    }

    pub(crate) fn leases(&self, after: Option<JobId>, limit: usize) -> Vec<Holding> {
        let held = self.jobs.values().filter_map(|job| job.holding().cloned());
        held.filter(|held| after.is_none_or(|after| held.job_id > after)).take(limit).collect()
    }

    pub(crate) fn job_page(&self, filter: &JobFilter, after: Option<Cursor>, limit: usize) -> Page<JobBrief> {
        let wanted = |job: &&Job| {
            let brief = job.brief();
            filter.status.is_none_or(|status| status == brief.status)
                && filter.stream.as_ref().is_none_or(|stream| *stream == brief.stream)
                && (filter.producer.is_none() || filter.producer == brief.producer)
        };
        let mut rows: Vec<(Cursor, JobBrief)> = self
            .jobs
            .values()
            .rev()
            .filter(wanted)
            .map(|job| (Cursor::Below(job.brief().job_id), job.brief()))
            .collect();
        if filter.status == Some(JobStatus::Queued) {
            rows = self
                .queued_in_claim_order()
                .into_iter()
                .filter(|job| wanted(job))
                .map(|job| (job.queue_cursor(), job.brief()))
                .collect();
        }
        cut(rows.into_iter(), after, limit)
    }

    /// Ready jobs by stream and place, then the scheduled ones by id.
    fn queued_in_claim_order(&self) -> Vec<&Job> {
        let ready = self.streams.keys().flat_map(|stream| self.ready(stream)).map(|(_, id)| &self.jobs[&id]);
        let scheduled = self.jobs.values().filter(|job| matches!(job.place, Place::Scheduled { .. }));
        ready.chain(scheduled).collect()
    }
}

impl Job {
    fn queue_cursor(&self) -> Cursor {
        let brief = self.brief();
        match self.place {
            Place::Ready(message) => Cursor::Ready { stream: brief.stream, seq: message.seq },
            _ => Cursor::Scheduled(Some(brief.job_id)),
        }
    }
}

/// The page behind `after` in a list that names the cursor of each row.
fn cut<T>(rows: impl Iterator<Item = (Cursor, T)>, after: Option<Cursor>, limit: usize) -> Page<T> {
    let mut behind =
        rows.skip_while(|(cursor, _)| after.as_ref().is_some_and(|after| !is_behind(after, cursor)));
    let page: Vec<(Cursor, T)> = behind.by_ref().take(limit).collect();
    let last = page.last().map(|(cursor, _)| cursor.clone());
    Page {
        next: last.filter(|_| behind.next().is_some()),
        rows: page.into_iter().map(|(_, row)| row).collect(),
    }
}

/// Whether a row lies behind a cursor. Rows may have come and gone since the cursor was given out.
fn is_behind(after: &Cursor, row: &Cursor) -> bool {
    match (after, row) {
        (Cursor::Below(after), Cursor::Below(row)) => row < after,
        (Cursor::Buried { at, job_id }, Cursor::Buried { at: row_at, job_id: row }) => {
            (row_at, row) < (at, job_id)
        }
        (Cursor::Ready { stream, seq }, Cursor::Ready { stream: row_stream, seq: row_seq }) => {
            (row_stream, row_seq) > (stream, seq)
        }
        (Cursor::Ready { .. } | Cursor::Scheduled(None), Cursor::Scheduled(_)) => true,
        (Cursor::Scheduled(Some(after)), Cursor::Scheduled(Some(row))) => row > after,
        _ => false,
    }
}
