//! Random people, workers, executors, crashes and steps of the clock on an inbox: whatever the order, one workorder is under way
//! at most, triage goes before a manifest, nothing captured is lost or doubled, and everything comes to rest.

use crate::pipeline::desk::{DUTY, answer, line, office};
use crate::pipeline::hands::id;
use crate::pipeline::world::World;
use crate::support::backend::Backend;
use crate::support::seed::seeds;
use crate::support::seeded::Seeded;
use fernery_core::artifact::{CaptureStatus, Event, EventType};
use fernery_core::inbox::Question;
use fernery_engine::pipeline::claims::HeldClaim;
use fernery_engine::pipeline::scheduling::Scheduled;
use fernery_engine::store::Claimed as Job;
use std::collections::BTreeSet;

on_both_backends!(campaign_whatever_happens_nothing_captured_is_lost_or_doubled);

const STEPS: usize = 150;
const OWNERS: [&str; 3] = ["ada", "bob", "cyd"];

async fn campaign_whatever_happens_nothing_captured_is_lost_or_doubled<B: Backend>() {
    let count = if std::any::type_name::<B>().contains("Postgres") { 3 } else { 15 };
    for seed in seeds("FERNERY_SEEDS", count) {
        Inbox::<B>::begin(seed).await.run().await;
    }
}

struct Inbox<B> {
    world: World<B>,
    choice: Seeded,
    captured: usize,
    requested: usize,
    /// In the hands of workers that may or may not come to writing.
    events: Vec<(Event, HeldClaim)>,
    executed: Vec<HeldClaim>,
    jobs: Vec<(Job, Question)>,
}

impl<B: Backend> Inbox<B> {
    async fn begin(seed: u64) -> Self {
        let world = office::<B>("[triage]\nbatch = 4\n").await;
        let choice = Seeded::new(seed);
        Self { world, choice, captured: 0, requested: 0, events: vec![], executed: vec![], jobs: vec![] }
    }

    async fn run(mut self) {
        for step in 0..STEPS {
            let what = self.act().await;
            println!("{step} {what}");
            self.is_sound().await;
        }
        for _ in 0..400 {
            self.world.advance(61).await;
            self.world.store.reap(100).await.expect("reaped");
            self.world.store.promote(100).await.expect("promoted");
            let judged = self.world.round().await;
            let open = self.world.take(EventType::ManifestRequested, "healer", 10).await;
            for (event, held) in open {
                self.world.schedule_manifest(event, held).await;
            }
            if judged == 0 && self.at_rest().await {
                return self.all_is_there().await;
            }
        }
        panic!("it never comes to rest");
    }

    async fn act(&mut self) -> String {
        match self.choice.below(100) {
            0..12 => {
                let many = 1 + self.choice.below(6);
                let new = (0..many)
                    .map(|n| line(self.captured + n, format!("do {}", self.captured + n).as_bytes()));
                self.world.capture(new.collect()).await.expect("captured");
                self.captured += many;
                format!("{many} captured")
            }
            12..16 => {
                self.requested += 1;
                let event = self.world.request(&format!("r{}", self.requested)).await;
                format!("requested {}", event.request_id)
            }
            16..26 => format!("announced {}", self.world.announce(3).await),
            26..40 => {
                let (owner, of) = (
                    self.choice.pick(&OWNERS),
                    self.choice.pick(&[EventType::CaptureReady, EventType::ManifestRequested]),
                );
                let limit = 1 + self.choice.below(3) as i64;
                let taken = self.world.take(of, owner, limit).await;
                let what = format!("{owner} takes {} {of}", taken.len());
                self.events.extend(taken);
                what
            }
            40..58 => self.schedule().await,
            58..66 => {
                let job = self.world.claim_question().await;
                let what = format!("claimed {}", job.is_some());
                self.jobs.extend(job);
                what
            }
            66..80 => self.report().await,
            80..86 => {
                let owner = self.choice.pick(&OWNERS);
                let taken = self.world.take_executed(owner).await;
                let what = format!("{owner} takes {} executed", taken.len());
                self.executed.extend(taken);
                what
            }
            86..95 => {
                let Some(held) = held(&mut self.choice, &mut self.executed) else {
                    return "nothing to judge".into();
                };
                if self.choice.chance(15) {
                    return format!("cannot judge: {:?}", self.world.judge_in_trouble(held).await);
                }
                // Somebody else may have judged it meanwhile: then there is nothing to hear.
                format!("judged {:?}", self.world.judge_if_there(held).await)
            }
            95..98 => {
                let seconds = self.choice.pick(&[1, 5, 30, 61, 130]);
                self.world.advance(seconds).await;
                let reaped = self.world.store.reap(100).await.expect("reaped").moved;
                self.world.store.promote(100).await.expect("promoted");
                format!("{seconds} s later {reaped} are reaped")
            }
            _ => {
                self.world.crash().await;
                "crash".into()
            }
        }
    }

    async fn schedule(&mut self) -> String {
        let Some((event, held)) = held(&mut self.choice, &mut self.events) else {
            return "nothing to schedule".into();
        };
        let waits = self.captures_wait().await;
        let (of, name) = (event.event_type, event.resource_id.clone());
        let done = match of {
            EventType::CaptureReady => self.world.schedule_triage(vec![(event, held)]).await.remove(0),
            _ => self.world.schedule_manifest(event, held).await,
        };
        if of == EventType::ManifestRequested && matches!(done, Scheduled::Workorder(_)) {
            assert!(!waits, "a manifest went before captures that wait (invariant 12)");
        }
        format!("scheduled {of} {name}: {done:?}")
    }

    async fn captures_wait(&self) -> bool {
        let of = self.world.azolla.clone();
        let waits =
            self.world.substrate.read(move |sql| fernery_engine::pipeline::room::captures_wait(sql, &of));
        waits.await.expect("read")
    }

    async fn report(&mut self) -> String {
        let Some((job, question)) = held(&mut self.choice, &mut self.jobs) else {
            return "nothing to report".into();
        };
        let answered = match self.choice.below(8) {
            0..4 => self.world.hand_in(&job, answer(&question.builtin_answer())).await,
            4 => self.world.hand_in(&job, answer("not JSON at all")).await,
            5 => self.world.hand_in(&job, answer("{\"candidates\": [], \"lines\": []}")).await,
            6 => self.world.fail(&job).await,
            _ => return "an executor is lost".into(),
        };
        format!("reported {answered:?}")
    }

    /// Invariants 1, 2, 12, 13.
    async fn is_sound(&self) {
        let chain = self.world.chain(&id(DUTY)).await;
        let active = chain.workorders.iter().filter(|work| !work.judged).count();
        assert!(active <= 1, "{active} workorders are under way");
        let captures = self.world.captures().await;
        let in_open: Vec<_> = captures
            .iter()
            .filter(|view| view.capture.status == CaptureStatus::Pending && view.work_order_id.is_some())
            .collect();
        for view in in_open {
            let work = chain
                .workorders
                .iter()
                .find(|work| Some(&work.workorder.work_order_id) == view.work_order_id.as_ref());
            assert!(
                work.is_some_and(|work| !work.judged),
                "a capture is stuck in a workorder that has ended"
            );
        }
        let mut unprocessed = BTreeSet::new();
        let events = self.world.substrate.read(|sql| {
            fernery_engine::pipeline::reading::events(
                sql,
                &fernery_engine::pipeline::reading::Below::newest(),
                10_000,
            )
        });
        for view in events.await.expect("read") {
            if !view.event.processed && view.event.event_type == EventType::CaptureReady {
                assert!(
                    unprocessed.insert(view.event.resource_id.clone()),
                    "two unprocessed events of one capture"
                );
            }
        }
        assert_eq!(captures.len(), self.captured);
    }

    async fn at_rest(&self) -> bool {
        let chain = self.world.chain(&id(DUTY)).await;
        self.world.pending().await == 0
            && chain.workorders.iter().all(|work| work.judged)
            && self.world.take(EventType::ManifestRequested, "looker", 1).await.is_empty()
    }

    async fn all_is_there(&self) {
        let candidates = self.world.candidates().await;
        let titles: BTreeSet<&str> = candidates.iter().map(|one| one.draft.title.as_str()).collect();
        assert_eq!(
            (candidates.len(), titles.len()),
            (self.captured, self.captured),
            "one candidate for each capture"
        );
        let chain = self.world.chain(&id(DUTY)).await;
        assert_eq!(chain.runs.len(), chain.workorders.len(), "one verdict for each workorder");
    }
}

/// One of what is held; sometimes it stays in hand, to be written again by somebody who forgot.
fn held<T: Clone>(choice: &mut Seeded, of: &mut Vec<T>) -> Option<T> {
    if of.is_empty() {
        return None;
    }
    let n = choice.below(of.len());
    Some(if choice.chance(20) { of[n].clone() } else { of.swap_remove(n) })
}
