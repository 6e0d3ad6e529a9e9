//! All that can be seen of an azolla at one moment, and what must be true of it at every one.

use crate::pipeline::hands::Hands;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus, ObjectiveType, WorkorderStatus};
use fernery_core::blueprint::Blueprint;
use fernery_core::pipeline::lifecycle::{Step, after};
use fernery_engine::pipeline::objectives::{ObjectiveRow, shown};
use fernery_engine::pipeline::reading::{self, Below, EventView, Run, WorkorderView};
use fernery_engine::pipeline::{azollas, room};
use std::collections::{BTreeMap, HashSet};

/// Far more rows than a campaign makes.
const ALL: i64 = 100_000;

#[derive(Clone)]
pub(crate) struct Sight {
    pub(crate) objectives: BTreeMap<ObjectiveId, ObjectiveRow>,
    pub(crate) workorders: Vec<WorkorderView>,
    pub(crate) events: Vec<EventView>,
    pub(crate) runs: Vec<Run>,
    /// Key and number of actions.
    pauses: Vec<(String, usize)>,
    /// Record, objective, digest.
    decisions: Vec<(String, String, String)>,
    /// Of every event and workorder.
    versions: BTreeMap<String, i64>,
    pub(crate) blueprint: Blueprint,
    pub(crate) room: room::Room,
}

impl Sight {
    pub(crate) async fn of(hands: &Hands) -> Self {
        let azolla = hands.azolla.clone();
        let seen = hands.substrate.read(move |sql| {
            let registered = azollas::in_force(sql, &azolla)?.expect("an azolla");
            let newest = Below::newest();
            let objectives = reading::objectives(sql, &reading::ObjectiveFilter::default(), &newest, ALL)?;
            let mut versions = BTreeMap::new();
            for row in sql.query("SELECT event_id, claim_version FROM events", &[])? {
                versions.insert(row.text(0)?.to_string(), row.int(1)?);
            }
            let workorders = reading::workorders(sql, &newest, ALL)?;
            versions
                .extend(workorders.iter().map(|w| (w.workorder.work_order_id.to_string(), w.claim_version)));
            let mut decisions = Vec::new();
            for row in sql.query("SELECT record_id, objective_id, digest FROM decisions", &[])? {
                decisions.push((
                    row.text(0)?.to_string(),
                    row.text(1)?.to_string(),
                    row.text(2)?.to_string(),
                ));
            }
            let pauses = reading::pauses(sql, &newest, ALL)?;
            Ok(Self {
                objectives: objectives.into_iter().map(|o| (o.objective.objective_id.clone(), o)).collect(),
                workorders,
                events: reading::events(sql, &newest, ALL)?,
                runs: reading::runs(sql, &newest, ALL)?,
                pauses: pauses.into_iter().map(|of| (of.key, of.pause.prioritized_actions.len())).collect(),
                decisions,
                versions,
                room: room::room(sql, &registered)?,
                blueprint: (*registered.blueprint).clone(),
            })
        });
        seen.await.expect("read")
    }

    pub(crate) fn active(&self) -> usize {
        self.workorders.iter().filter(|w| !w.judged).count()
    }

    /// Whether a decision covers exactly what is there now.
    fn is_approved(&self, row: &ObjectiveRow) -> bool {
        let digest = shown(&row.objective, &self.blueprint).digest.to_string();
        let id = row.objective.objective_id.as_str();
        row.approval.as_ref().is_some_and(|record| {
            self.decisions.iter().any(|(r, o, d)| r == record.as_str() && o == id && *d == digest)
        })
    }

    /// What holds at every moment.
    pub(crate) fn is_sound(&self) {
        let limit = self.blueprint.limits.concurrency as usize;
        assert!(self.active() <= limit, "{} workorders are active (invariant 12)", self.active());
        let mut of_event = HashSet::new();
        for work in &self.workorders {
            let id = &work.workorder.work_order_id;
            assert!(of_event.insert(&work.event_id), "two workorders of an event (invariant 1)");
            let runs = self.runs.iter().filter(|run| run.record.work_order_id == *id).count();
            assert_eq!(runs, usize::from(work.judged), "runs of workorder {id} (invariant 2)");
            assert_eq!(work.output_id.is_some(), work.workorder.status == WorkorderStatus::Executed);
            let paused = self.pauses.iter().any(|(key, _)| *key == format!("run:{id}"));
            assert_eq!(paused, work.judged, "a judged run has its pause (invariant 13)");
        }
        for (key, actions) in &self.pauses {
            assert!((1..=3).contains(actions), "pause {key} has {actions} actions (invariant 16)");
        }
        for event in &self.events {
            assert_eq!(event.event.processed, event.reason.is_some(), "a processed event says why");
        }
        for (id, row) in &self.objectives {
            let active =
                self.workorders.iter().filter(|w| w.workorder.objective_id == *id && !w.judged).count();
            assert!(active <= 1, "{active} workorders of {id} at once");
            if row.objective.status == ObjectiveStatus::InProgress {
                assert_eq!(active, 1, "{id} is in progress and nothing of it is under way (invariant 17)");
            }
        }
    }

    /// What one act of this kind may have changed since `before`.
    pub(crate) fn follows(&self, before: &Self, allowed: &[Step]) {
        for (id, row) in &self.objectives {
            let Some(was) = before.objectives.get(id) else {
                assert_eq!(row.objective.status, ObjectiveStatus::New, "{id} begins as NEW");
                continue;
            };
            let (from, to) = (was.objective.status, row.objective.status);
            let entered = row.entry - was.entry;
            if from != to {
                let leads = |step: &&Step| after(ObjectiveType::Ticket, from, **step) == Some(to);
                assert!(allowed.iter().any(|s| leads(&s)), "{id}: {from} to {to} by one of {allowed:?}");
                assert_eq!(entered, i64::from(to == ObjectiveStatus::Todo), "{id} counts its entries");
            } else {
                assert_eq!(entered, 0, "{id} stays {from}");
            }
            let granted = [Step::Approve, Step::Reopen].iter().any(|step| allowed.contains(step));
            let (used, before) = (row.spent, was.spent);
            let kept = used.attempts >= before.attempts
                && used.wall_ms >= before.wall_ms
                && used.tokens >= before.tokens;
            assert!(kept || granted, "{id}: {before:?} of its envelope became {used:?} without an approval");
            if (from, to) == (ObjectiveStatus::Todo, ObjectiveStatus::InProgress) {
                let bound = self.blueprint.envelope.attempts.unwrap_or(u32::MAX);
                assert!(used.attempts <= bound, "{id}: {used:?} of {bound} attempts");
            }
            let starts = from != to && matches!(to, ObjectiveStatus::Todo | ObjectiveStatus::InProgress);
            if starts && !allowed.contains(&Step::TryAgain) {
                assert!(self.is_approved(row), "{id}: {from} to {to} without approval (invariant 10)");
            }
        }
        for (id, version) in &before.versions {
            let now = self.versions.get(id).unwrap_or_else(|| panic!("{id} is gone"));
            assert!(now >= version, "{id}: version {version} went back to {now} (invariant 9)");
        }
        for event in before.events.iter().filter(|e| e.event.processed) {
            assert!(self.events.contains(event), "{event:?} was processed twice (invariant 1)");
        }
        for run in &before.runs {
            assert!(self.runs.contains(run), "{run:?} changed (invariant 14)");
        }
    }

    /// What holds once nothing more happens by itself (invariant 17).
    pub(crate) fn is_at_rest(&self) {
        assert_eq!(self.active(), 0, "every workorder has its verdict");
        let full = !matches!(self.room, room::Room::Left(_));
        for (id, row) in &self.objectives {
            match row.objective.status {
                ObjectiveStatus::InProgress => panic!("{id} is in progress and nobody works on it"),
                ObjectiveStatus::Todo => {
                    let waits =
                        self.events.iter().any(|e| e.event.resource_id == id.as_str() && !e.event.processed);
                    assert!(full && waits, "{id} is to do, there is room, and no event says so");
                }
                ObjectiveStatus::Blocked => {
                    let says = row.objective.blocked_reason.is_some();
                    let paused = self.pauses.iter().any(|(key, _)| {
                        key.contains(id.as_str())
                            || self.workorders.iter().any(|w| {
                                w.workorder.objective_id == *id
                                    && *key == format!("run:{}", w.workorder.work_order_id)
                            })
                            || self.events.iter().any(|e| {
                                e.event.resource_id == id.as_str()
                                    && *key == format!("event:{}", e.event.event_id)
                            })
                    });
                    assert!(says && paused, "{id} is blocked and does not say why");
                }
                _ => {}
            }
        }
        let open = self.events.iter().filter(|e| !e.event.processed).count();
        assert!(open == 0 || full, "{open} events wait though there is room");
    }
}
