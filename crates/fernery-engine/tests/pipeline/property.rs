//! Random operators, workers, executors, crashes and steps of the clock, held against the list of transitions.

use crate::pipeline::hands::Hands;
use crate::pipeline::history::replays;
use crate::pipeline::sight::Sight;
use crate::pipeline::stranded::{OTHER, close_unwanted, of_other_types, strand};
use crate::pipeline::world::{World, bad, blueprint, deciding, draft, good, record};
use crate::support::backend::Backend;
use crate::support::seed::seeds;
use crate::support::seeded::Seeded;
use fernery_core::artifact::{BlockerKind, Event, ObjectiveId, ObjectiveStatus};
use fernery_core::pipeline::lifecycle::Step;
use fernery_engine::pipeline::blockers;
use fernery_engine::pipeline::claims::{self, HeldClaim};
use fernery_engine::pipeline::decisions;
use fernery_engine::pipeline::journal;
use fernery_engine::pipeline::objectives;
use fernery_engine::store::Claimed;
use serde_json::json;

on_both_backends!(campaign_whatever_happens_the_pipeline_stays_sound_and_comes_to_rest);

const STEPS: usize = 250;
const TICKETS: usize = 6;
const OWNERS: [&str; 3] = ["ada", "bob", "cyd"];
const LIMITS: &str = "[limits]\nconcurrency = 2\nreview_limit = 3\n";
const STRICT: &str = "[retry]\ngate_failures = 1\n[limits]\nconcurrency = 2\nreview_limit = 3\n";

/// An envelope that is soon used up.
const TIGHT: &str = "[envelope]\nattempts = 2\ntokens = 100\n[limits]\nconcurrency = 2\nreview_limit = 3\n";

async fn campaign_whatever_happens_the_pipeline_stays_sound_and_comes_to_rest<B: Backend>() {
    let count = if std::any::type_name::<B>().contains("Postgres") { 2 } else { 12 };
    for seed in seeds("FERNERY_SEEDS", count) {
        Campaign::<B>::begin(seed).await.run().await;
    }
}

struct Campaign<B> {
    world: World<B>,
    choice: Seeded,
    tickets: Vec<ObjectiveId>,
    /// In the hands of workers that may or may not come to writing.
    events: Vec<(Event, HeldClaim)>,
    executed: Vec<HeldClaim>,
    jobs: Vec<Claimed>,
    /// By how many seconds the clock was set back, all in all.
    behind: u64,
}

/// As the worker `cleanup` does, though it may be in somebody's hands. Answers how many.
async fn strand_all(hands: &Hands) -> usize {
    let mut stranded = 0;
    for id in of_other_types(hands).await {
        stranded += usize::from(strand(hands, id).await);
    }
    stranded
}

const SCHEDULER: &[Step] = &[Step::Schedule, Step::Block, Step::ApprovalLapsed];
const GATE: &[Step] = &[Step::Pass, Step::TryAgain, Step::GiveUp];

impl<B: Backend> Campaign<B> {
    async fn begin(seed: u64) -> Self {
        let world = World::new(LIMITS).await;
        let choice = Seeded::new(seed);
        Self { world, choice, tickets: vec![], events: vec![], executed: vec![], jobs: vec![], behind: 0 }
    }

    async fn run(mut self) {
        let mut before = Sight::of(&self.world).await;
        for step in 0..STEPS {
            let (what, allowed) = self.act().await;
            println!("{step} {what}");
            let now = Sight::of(&self.world).await;
            now.is_sound();
            now.follows(&before, allowed);
            before = now;
        }
        self.heal().await;
        let rest = Sight::of(&self.world).await;
        rest.is_sound();
        rest.is_at_rest();
        for run in rest.runs {
            replays(&self.world, run).await;
        }
        self.all_can_be_done().await;
        while self.world.substrate.transact(|sql| journal::seal(sql, 50)).await.expect("sealed").0 > 0 {}
        let (verified, _) =
            self.world.substrate.read(|sql| journal::verify(sql, None, 100_000)).await.expect("read");
        assert_eq!(verified.fault, None);
        let strays = self.world.substrate.read(|sql| journal::strays(sql, "", 100_000)).await.expect("read");
        assert_eq!(strays, journal::Strays::None);
    }

    /// No ticket is stranded: whatever became of it, what an operator can do leads it to its end.
    async fn all_can_be_done(&mut self) {
        for _ in 0..self.tickets.len() + 2 {
            for ticket in &self.tickets {
                use ObjectiveStatus::{Blocked, Done, New};
                let (world, status) = (&self.world, self.world.status(ticket).await);
                match status {
                    Blocked => drop(world.unblock(ticket).await.expect("unblocked")),
                    New => drop(world.approve(ticket).await.expect("approved")),
                    Done => drop(world.confirm(ticket).await.expect("confirmed")),
                    _ => {}
                }
            }
            self.heal().await;
        }
        for ticket in &self.tickets {
            assert_eq!(self.world.status(ticket).await, ObjectiveStatus::Done, "{ticket} is stranded");
        }
    }

    /// One verb of somebody; answers what it was and how it may move objectives.
    async fn act(&mut self) -> (String, &'static [Step]) {
        match self.choice.below(100) {
            0..19 => self.operate().await,
            19 => {
                let seconds = self.choice.pick(&[1, 30, 90]);
                self.world.set_back(seconds).await;
                self.behind += seconds;
                (format!("the clock is set back by {seconds} s"), &[])
            }
            20 => (format!("strand {}", strand_all(&self.world).await), &[Step::GiveUp]),
            21 => (format!("close {:?}", close_unwanted(&self.world).await), &[]),
            30..36 => (format!("emit {}", self.world.emit().await), &[]),
            22..30 => self.take_events().await,
            36..48 => self.schedule().await,
            48..54 => self.claim().await,
            54..74 => self.report().await,
            74..80 => self.take_executed().await,
            80..92 => self.judge().await,
            92 => self.renew().await,
            93 | 94 => (format!("cancel {} jobs", self.world.cancel_jobs().await), &[]),
            95 | 96 => {
                let seconds = self.choice.pick(&[1, 20, 61, 90]);
                self.world.advance(seconds).await;
                let reaped = self.world.store.reap(100).await.expect("reaped").moved;
                self.world.store.promote(100).await.expect("promoted");
                (format!("{seconds} s later {reaped} are reaped"), &[])
            }
            97 => {
                let other = format!("{OTHER}{LIMITS}");
                let other = self.choice.pick(&[STRICT, TIGHT, TIGHT, LIMITS, &other]);
                self.world.put_in_force(blueprint(other)).await;
                (format!("another blueprint: {other:?}"), &[])
            }
            98 => {
                self.world.crash().await;
                ("crash".into(), &[])
            }
            _ => {
                self.world.substrate.transact(|sql| journal::seal(sql, 20)).await.expect("sealed");
                ("seal".into(), &[])
            }
        }
    }

    async fn operate(&mut self) -> (String, &'static [Step]) {
        if self.tickets.len() < TICKETS && (self.tickets.is_empty() || self.choice.chance(25)) {
            let ticket = self.world.create(&format!("t{}", self.tickets.len())).await;
            self.tickets.push(ticket.clone());
            return (format!("create {ticket}"), &[]);
        }
        let ticket = self.choice.pick(&self.tickets);
        let id = ticket.clone();
        let (noted, draft) = (deciding(None, Some("more")), draft(&format!("Do {}", self.choice.below(3))));
        let world = &self.world;
        let (name, done, allowed): (_, bool, &'static [Step]) = match self.choice.below(16) {
            0..7 => ("approve", world.approve(&ticket).await.is_ok(), &[Step::Approve]),
            7 => {
                let done = world.act(move |sql, who| objectives::edit(sql, who, &id, &draft)).await;
                ("edit", done.is_ok(), &[Step::Edit])
            }
            8 => {
                let kind = BlockerKind::UserInput;
                let record = record();
                let done = world
                    .act(move |sql, who| blockers::block(sql, who, (&id, &record), None, kind, "why"))
                    .await;
                ("block", done.is_ok(), &[Step::Block])
            }
            9..12 => {
                let steps =
                    &[Step::Unblock { approved: true }, Step::Unblock { approved: false }, Step::TakeUp];
                ("unblock", world.unblock(&ticket).await.is_ok(), steps)
            }
            12 | 13 => ("confirm", world.confirm(&ticket).await.is_ok(), &[]),
            14 => {
                let done = world.act(move |sql, who| decisions::reopen(sql, who, &id, &noted)).await;
                ("reopen", done.is_ok(), &[Step::Reopen])
            }
            _ => ("cancel", world.cancel(&ticket).await.is_ok(), &[Step::Cancel]),
        };
        (format!("{name} {ticket}: {done}"), allowed)
    }

    /// One of what is held; sometimes it stays in hand, to be written again by somebody who forgot.
    fn held<T: Clone>(choice: &mut Seeded, of: &mut Vec<T>) -> Option<T> {
        if of.is_empty() {
            return None;
        }
        let n = choice.below(of.len());
        Some(if choice.chance(20) { of[n].clone() } else { of.swap_remove(n) })
    }

    async fn take_events(&mut self) -> (String, &'static [Step]) {
        let owner = self.choice.pick(&OWNERS);
        let taken = self.world.take_events(owner).await;
        let what = format!("{owner} takes {} events", taken.len());
        self.events.extend(taken);
        (what, &[])
    }

    async fn take_executed(&mut self) -> (String, &'static [Step]) {
        let owner = self.choice.pick(&OWNERS);
        let taken = self.world.take_executed(owner).await;
        let what = format!("{owner} takes {} executed", taken.len());
        self.executed.extend(taken);
        (what, &[])
    }

    async fn claim(&mut self) -> (String, &'static [Step]) {
        let job = self.world.claim().await;
        let what = format!("claim {}", job.is_some());
        self.jobs.extend(job);
        (what, &[])
    }

    async fn schedule(&mut self) -> (String, &'static [Step]) {
        let Some((event, held)) = Self::held(&mut self.choice, &mut self.events) else {
            return self.take_events().await;
        };
        let what = format!("schedule {} by {}", event.resource_id, held.owner_id);
        let came = self.world.schedule(event, held).await;
        (format!("{what}: {came:?}"), SCHEDULER)
    }

    async fn report(&mut self) -> (String, &'static [Step]) {
        let Some(job) = Self::held(&mut self.choice, &mut self.jobs) else {
            return self.claim().await;
        };
        let blocked =
            json!({"title": "?", "content": "", "notes": "which?", "metadata": {"outcome": "BLOCKED"}});
        let dear = json!({"title": "-", "content": "", "notes": "", "metadata": {"outcome": "FAILED", "tokens": 60}});
        let answer = match self.choice.below(11) {
            10 => self.world.hand_in(&job, dear).await,
            0..4 => self.world.hand_in(&job, good()).await,
            4..6 => self.world.hand_in(&job, bad()).await,
            6 => self.world.hand_in(&job, blocked).await,
            7 => self.world.hand_in(&job, json!({"no": "bundle"})).await,
            8 => self.world.fail(&job).await,
            _ => return ("an executor is lost".into(), &[]),
        };
        (format!("report {answer:?}"), &[])
    }

    async fn judge(&mut self) -> (String, &'static [Step]) {
        let Some(held) = Self::held(&mut self.choice, &mut self.executed) else {
            return self.take_executed().await;
        };
        let owner = held.owner_id.clone();
        if self.choice.chance(20) {
            return (format!("{owner} cannot judge: {:?}", self.world.judge_in_trouble(held).await), GATE);
        }
        (format!("{owner} judges: {:?}", self.world.judge_one(held).await), GATE)
    }

    async fn renew(&mut self) -> (String, &'static [Step]) {
        let Some((event, held)) = Self::held(&mut self.choice, &mut self.events) else {
            return ("nothing to renew".into(), &[]);
        };
        let renewed = self
            .world
            .substrate
            .transact(move |sql| claims::renew(sql, &held, crate::pipeline::world::LEASE))
            .await;
        let renewed = renewed.expect("stored");
        let what = format!("renewed {}", renewed.is_some());
        self.events.extend(renewed.map(|held| (event, held)));
        (what, &[])
    }

    /// Faults stop: every worker makes its passes, and executors do their work, until nothing changes.
    async fn heal(&mut self) {
        let world = &self.world;
        let mut quiet = 0;
        // What was held or put off by a clock that was ahead is so until the clock is there again.
        world.advance(std::mem::take(&mut self.behind)).await;
        for _ in 0..100 {
            world.advance(61).await;
            let mut moved = strand_all(world).await + close_unwanted(world).await.len();
            moved += world.store.reap(100).await.expect("reaped").moved;
            moved += world.store.promote(100).await.expect("promoted").moved;
            moved += world.cancel_jobs().await;
            moved += world.emit().await;
            for (event, held) in world.take_events("healer").await {
                use fernery_engine::pipeline::scheduling::Scheduled;
                let came = world.schedule(event, held).await;
                moved += usize::from(!matches!(came, Scheduled::NoRoom(_)));
            }
            while let Some(job) = world.claim().await {
                world.hand_in(&job, good()).await;
                moved += 1;
            }
            moved += world.judge().await.len();
            quiet = if moved == 0 { quiet + 1 } else { 0 };
            // A retry may be due only after a while.
            if quiet == 3 {
                return;
            }
        }
        panic!("it never comes to rest");
    }
}
