//! A snooze is gone when it has passed or its thing has ended: what is counted and kept does not grow with history.

use crate::pipeline::desk::{line, office};
use crate::pipeline::hands::{Hands, deciding, id, record};
use crate::pipeline::world::{World, good};
use crate::support::backend::Backend;
use fernery_core::artifact::{AzollaId, CandidateId, ObjectiveId, ObjectiveStatus};
use fernery_engine::pipeline::decisions;
use fernery_engine::pipeline::inbox::candidates;
use fernery_engine::pipeline::snoozes::{self, Subject};

on_both_backends!(
    a_snooze_ends_with_the_candidate_that_it_hides,
    a_snooze_ends_with_the_ticket_that_it_hides,
    snoozes_that_have_passed_are_deleted_with_the_next_one,
);

async fn snooze(hands: &Hands, subject: Subject, until: &'static str) {
    let snoozed = hands.act(move |sql, who| snoozes::snooze(sql, who, (&subject, &record()), Some(until)));
    assert!(snoozed.await.expect("snoozed").is_some());
}

async fn kept<B: Backend>(world: &World<B>) -> usize {
    world.backend.rows(&["SELECT * FROM snoozes"]).await.len()
}

async fn triaged<B: Backend>(world: &World<B>, lines: usize) -> Vec<CandidateId> {
    let new = (0..lines).map(|n| line(n, format!("thing {n}").as_bytes())).collect();
    world.capture(new).await.expect("captured");
    while world.pending().await > 0 {
        world.round().await;
    }
    world.candidates().await.into_iter().map(|one| one.candidate_id).collect()
}

async fn a_snooze_ends_with_the_candidate_that_it_hides<B: Backend>() {
    let world = office::<B>("").await;
    let ids = triaged(&world, 4).await;
    for id in &ids {
        snooze(&world, Subject::Candidate(id.clone()), "2d").await;
    }
    assert_eq!(kept(&world).await, 4);
    let (of, to, name) = (ids[0].clone(), AzollaId::stored("mec"), id("t"));
    let promoted =
        world.act(move |sql, who| candidates::promote(sql, who, (&of, &record()), (&to, &[]), &name));
    promoted.await.expect("promoted");
    assert_eq!(kept(&world).await, 3);
    let of = ids[1].clone();
    let discarded = world.act(move |sql, who| candidates::discard(sql, who, (&of, &record()), None));
    discarded.await.expect("discarded");
    assert_eq!(kept(&world).await, 2);
    let of = ids[1].clone();
    let restored = world.act(move |sql, who| candidates::restore(sql, who, (&of, &record()), None));
    restored.await.expect("restored");
    assert_eq!(waiting(&world).await, (1, 1), "what was discarded and taken back is in sight");
    let (into, other) = (ids[2].clone(), ids[3].clone());
    let merged = world
        .act(move |sql, who| candidates::merge(sql, who, (&into, &record()), std::slice::from_ref(&other)));
    merged.await.expect("merged");
    assert_eq!(kept(&world).await, 1, "the one that is left is still out of sight");
    assert_eq!(waiting(&world).await, (1, 1));
}

/// How many are listed, and how many are counted.
async fn waiting(hands: &Hands) -> (usize, u64) {
    let azolla = hands.azolla.clone();
    let waiting = hands.substrate.read(move |sql| {
        let all = candidates::waiting(sql, &azolla, (fernery_core::Timestamp::default(), ""), 100)?;
        Ok((all.len(), candidates::count(sql, &azolla, 100)?.0))
    });
    waiting.await.expect("read")
}

async fn a_snooze_ends_with_the_ticket_that_it_hides<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    let hide = async |of: &ObjectiveId| snooze(&world, Subject::Objective(of.clone()), "2d").await;
    hide(&ticket).await;
    world.pass().await;
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, good()).await;
    world.judge().await;
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Done);
    assert_eq!(kept(&world).await, 1, "a person still has to look at it, later");
    world.confirm(&ticket).await.expect("confirmed");
    assert_eq!(kept(&world).await, 0);
    let (of, again) = (ticket.clone(), deciding(None, Some("more")));
    world.act(move |sql, who| decisions::reopen(sql, who, &of, &again)).await.expect("reopened");
    let other = world.create("u").await;
    hide(&other).await;
    world.cancel(&other).await.expect("cancelled");
    assert_eq!(kept(&world).await, 0);
}

async fn snoozes_that_have_passed_are_deleted_with_the_next_one<B: Backend>() {
    let world = office::<B>("").await;
    let ids = triaged(&world, 3).await;
    snooze(&world, Subject::Candidate(ids[0].clone()), "1d").await;
    snooze(&world, Subject::Candidate(ids[1].clone()), "3d").await;
    world.advance(2 * 24 * 3600).await;
    assert_eq!(waiting(&world).await, (2, 2), "it is in sight before anybody deletes it");
    snooze(&world, Subject::Candidate(ids[2].clone()), "3d").await;
    assert_eq!(kept(&world).await, 2);
    // One that has passed can be put off again.
    snooze(&world, Subject::Candidate(ids[0].clone()), "1d").await;
    assert_eq!((kept(&world).await, waiting(&world).await), (3, (0, 0)));
}
