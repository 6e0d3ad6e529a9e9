//! Random acts of a person on the candidates of an inbox: after each, the list, the count and the page that says what needs a
//! person tell of the same candidates.

use crate::pipeline::desk::{line, office};
use crate::pipeline::hands::{id, record};
use crate::pipeline::manifests::manifest_of;
use crate::pipeline::world::World;
use crate::support::backend::Backend;
use crate::support::seed::seeds;
use crate::support::seeded::Seeded;
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, CandidateId};
use fernery_core::pipeline::draft::DraftEdit;
use fernery_engine::pipeline::inbox::candidates;
use fernery_engine::pipeline::snoozes::{self, Subject};
use std::collections::BTreeSet;

on_both_backends!(whatever_a_person_does_list_count_and_page_agree);

const STEPS: usize = 40;
/// How often the page is asked for; it takes some rounds of the workers.
const PAGE_EVERY: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Waiting,
    Discarded,
    /// Promoted or merged.
    Gone,
}

/// What the test knows of one candidate.
#[derive(Debug)]
struct Known {
    id: CandidateId,
    state: State,
    until: Option<Timestamp>,
    urgent: bool,
}

async fn whatever_a_person_does_list_count_and_page_agree<B: Backend>() {
    let count = if std::any::type_name::<B>().contains("Postgres") { 2 } else { 4 };
    for seed in seeds("FERNERY_SEEDS", count) {
        Triage::<B>::begin(seed).await.run().await;
    }
}

struct Triage<B> {
    world: World<B>,
    choice: Seeded,
    known: Vec<Known>,
    captured: usize,
}

impl<B: Backend> Triage<B> {
    async fn begin(seed: u64) -> Self {
        let world = office::<B>("").await;
        let mut triage = Self { world, choice: Seeded::new(seed), known: Vec::new(), captured: 0 };
        triage.capture(6).await;
        triage
    }

    async fn run(mut self) {
        for step in 0..STEPS {
            let what = self.act().await;
            println!("{step} {what}");
            self.agrees().await;
            if step % PAGE_EVERY == 0 {
                self.page_agrees(step).await;
            }
        }
    }

    async fn capture(&mut self, many: usize) {
        let new = (0..many).map(|n| line(self.captured + n, format!("do {}", self.captured + n).as_bytes()));
        self.world.capture(new.collect()).await.expect("captured");
        self.captured += many;
        while self.world.pending().await > 0 {
            self.world.round().await;
        }
        for one in self.world.candidates().await {
            if self.known.iter().all(|known| known.id != one.candidate_id) {
                let id = one.candidate_id;
                self.known.push(Known { id, state: State::Waiting, until: None, urgent: false });
            }
        }
    }

    /// One of those in this state, by its place.
    fn one(&mut self, state: State) -> Option<usize> {
        let those: Vec<usize> = (0..self.known.len()).filter(|n| self.known[*n].state == state).collect();
        (!those.is_empty()).then(|| self.choice.pick(&those))
    }

    async fn act(&mut self) -> String {
        let drawn = self.choice.below(100);
        let state = if (60..75).contains(&drawn) { State::Discarded } else { State::Waiting };
        let Some(n) = self.one(state) else {
            self.capture(2).await;
            return "captured 2".into();
        };
        let of = self.known[n].id.clone();
        match drawn {
            0..10 => {
                let (to, name) = (AzollaId::stored("mec"), id(&format!("t{}", self.captured * 1_000 + n)));
                let act = self
                    .world
                    .act(move |sql, who| candidates::promote(sql, who, (&of, &record()), (&to, &[]), &name));
                act.await.expect("promoted");
                self.known[n].state = State::Gone;
                format!("promoted {n}")
            }
            10..30 => {
                let act =
                    self.world.act(move |sql, who| candidates::discard(sql, who, (&of, &record()), None));
                act.await.expect("discarded");
                (self.known[n].state, self.known[n].until) = (State::Discarded, None);
                format!("discarded {n}")
            }
            30..50 => {
                let until = self.choice.pick(&["2h", "1d", "3d"]);
                let (subject, act) = (Subject::Candidate(of), record());
                let snoozed = self
                    .world
                    .act(move |sql, who| snoozes::snooze(sql, who, (&subject, &act), Some(until)))
                    .await;
                self.known[n].until = snoozed.expect("snoozed");
                format!("snoozed {n} for {until}")
            }
            50..60 => {
                let subject = Subject::Candidate(of);
                let act =
                    self.world.act(move |sql, who| snoozes::snooze(sql, who, (&subject, &record()), None));
                act.await.expect("in sight again");
                self.known[n].until = None;
                format!("{n} in sight")
            }
            60..75 => {
                let act =
                    self.world.act(move |sql, who| candidates::restore(sql, who, (&of, &record()), None));
                act.await.expect("restored");
                self.known[n].state = State::Waiting;
                format!("restored {n}")
            }
            75..83 => self.merge(n).await,
            83..91 => {
                let edit: DraftEdit = DraftEdit { urgency: Some(0), ..DraftEdit::default() };
                let act = self.world.act(move |sql, who| candidates::edit(sql, who, (&of, &record()), &edit));
                act.await.expect("edited");
                self.known[n].urgent = true;
                format!("{n} is urgent")
            }
            _ => {
                let hours = 1 + self.choice.below(30) as u64;
                self.world.advance(hours * 3600).await;
                format!("{hours} hours later")
            }
        }
    }

    async fn merge(&mut self, into: usize) -> String {
        let waits = |n: &usize| *n != into && self.known[*n].state == State::Waiting;
        let Some(other) = (0..self.known.len()).find(waits) else { return "nothing to merge".into() };
        let (to, of) = (self.known[into].id.clone(), self.known[other].id.clone());
        let act = self
            .world
            .act(move |sql, who| candidates::merge(sql, who, (&to, &record()), std::slice::from_ref(&of)));
        act.await.expect("merged");
        (self.known[other].state, self.known[other].until) = (State::Gone, None);
        self.known[into].urgent |= self.known[other].urgent;
        format!("merged {other} into {into}")
    }

    /// Those that a person sees now.
    async fn in_sight(&self) -> Vec<&Known> {
        let now = self.world.substrate.read(|sql| Ok(sql.calendar())).await.expect("read");
        let seen = |one: &&Known| one.state == State::Waiting && one.until.is_none_or(|until| until <= now);
        self.known.iter().filter(seen).collect()
    }

    async fn agrees(&self) {
        let azolla = self.world.azolla.clone();
        let read = self.world.substrate.read(move |sql| {
            let listed = candidates::waiting(sql, &azolla, (Timestamp::default(), ""), 1_000)?;
            let (count, oldest) = candidates::count(sql, &azolla, 1_000)?;
            let first = listed.first().map(|one| one.created_at);
            let listed: Vec<CandidateId> = listed.into_iter().map(|one| one.candidate_id).collect();
            Ok((listed, count, oldest == first))
        });
        let (listed, count, same_oldest) = read.await.expect("read");
        let wanted: BTreeSet<CandidateId> =
            self.in_sight().await.into_iter().map(|one| one.id.clone()).collect();
        assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), wanted);
        assert_eq!((listed.len(), count as usize), (wanted.len(), wanted.len()));
        assert!(same_oldest, "the oldest is the first of the list");
        let kept = self.world.backend.rows(&["SELECT subject_id FROM snoozes"]).await.len();
        assert!(kept <= self.known.iter().filter(|one| one.until.is_some()).count(), "{kept} are kept");
    }

    async fn page_agrees(&self, step: usize) {
        let page = manifest_of(&self.world, &format!("r{step}")).await.manifest.expect("made");
        let own = |name: &str| format!("{}/{name}", self.world.azolla);
        let pressing = page.facts.items.iter().filter(|item| item.item_id.starts_with(&own("candidate/")));
        let others = page.facts.items.iter().find(|item| item.item_id == own("triage"));
        let others = others.map_or(0, |item| {
            let first = item.title.split(' ').next().expect("a word");
            first.parse::<usize>().unwrap_or_else(|_| panic!("{}", item.title))
        });
        let seen = self.in_sight().await;
        let urgent = seen.iter().filter(|one| one.urgent).count();
        assert_eq!((pressing.count(), others), (urgent, seen.len() - urgent), "{:#?}", page.facts.items);
    }
}
