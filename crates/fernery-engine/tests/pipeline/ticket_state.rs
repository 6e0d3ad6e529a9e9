//! What is said of a ticket fits how it stands: which blockers are open, what asks a question, what needs a new approval, and what
//! becomes of a finished one that was cancelled.

use crate::pipeline::acts::block;
use crate::pipeline::questions::{answer, ask, edit};
use crate::pipeline::world::{Hands, World, blueprint, deciding, good, record};
use crate::support::backend::Backend;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::pipeline::possible::Verb;
use fernery_engine::pipeline::acts::Refusal;
use fernery_engine::pipeline::blockers::{self, Resolved};
use fernery_engine::pipeline::{decisions, objectives, ticket_state};

on_both_backends!(
    after_an_unblock_reason_and_pause_name_what_is_still_open,
    a_question_is_answered_and_not_unblocked_whatever_else_happens,
    an_approval_that_a_blueprint_made_void_is_told,
    what_was_done_when_it_was_cancelled_is_done_again_with_its_run_to_confirm,
    only_what_was_done_and_is_still_approved_is_done_again,
    a_cancelled_ticket_is_not_approved_and_the_refusal_says_what_to_do,
);

/// What a person reads, and whether this can be done.
async fn told(hands: &Hands, ticket: &ObjectiveId, verb: Verb) -> (Vec<String>, bool) {
    let of = ticket.clone();
    let pause = last_actions(hands, ticket).await;
    let read = hands.substrate.read(move |sql| {
        let row = objectives::load(sql, &of)?.expect("a ticket");
        let mut state = ticket_state::of(sql, &row)?;
        state.pause = pause.clone();
        Ok((state.next(), state.allows(verb)))
    });
    read.await.expect("read")
}

async fn last_actions(hands: &Hands, ticket: &ObjectiveId) -> Option<fernery_core::artifact::PauseState> {
    hands.chain(ticket).await.pauses.into_iter().map(|of| of.pause).max_by_key(|pause| pause.created_at)
}

async fn resolve(hands: &Hands, ticket: &ObjectiveId, name: &str) {
    let these = Resolved::These(vec![name.parse().expect("an id")]);
    hands.unblock_from(ticket, these).await.expect("unblocked");
}

async fn finish<B: Backend>(world: &World<B>) {
    world.pass().await;
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, good()).await;
    world.judge().await;
}

async fn after_an_unblock_reason_and_pause_name_what_is_still_open<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    for name in ["one", "two", "three"] {
        block(&world, &ticket, Some(name)).await.expect("blocked");
        world.advance(1).await;
    }
    resolve(&world, &ticket, "one").await;
    let (row, (next, _)) = (world.row(&ticket).await, told(&world, &ticket, Verb::Unblock).await);
    let reason = row.objective.blocked_reason.expect("a reason");
    assert_eq!(reason, "blocked on two (a question), three (a question)");
    let pause = world.chain(&ticket).await.pauses.pop().expect("a pause");
    assert_eq!(pause.happened, "something else is still in its way");
    assert_eq!(pause.pause.prioritized_actions, next);
    assert!(next[0].ends_with("fernery ticket unblock t --blocker two") && next.len() == 2, "{next:?}");
    assert!(!next.iter().any(|action| action.contains("one")), "{next:?}");
    world.unblock(&ticket).await.expect("unblocked");
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Todo);
}

async fn a_question_is_answered_and_not_unblocked_whatever_else_happens<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    ask(&world, &ticket, "Which colour?").await;
    world.advance(1).await;
    block(&world, &ticket, Some("mine")).await.expect("blocked");
    let (next, can) = told(&world, &ticket, Verb::Answer).await;
    assert!(can && next[0].contains("fernery ticket answer t \"…\"   (Which colour?)"), "{next:?}");
    // Cancelled, it is taken up again by an answer.
    world.advance(1).await;
    world.cancel(&ticket).await.expect("cancelled");
    let pause = last_actions(&world, &ticket).await.expect("a pause");
    assert_eq!(pause.prioritized_actions, told(&world, &ticket, Verb::Answer).await.0);
    assert!(pause.prioritized_actions[0].ends_with("fernery ticket answer t \"…\""), "{pause:?}");
    let Err(Refusal::Status(now)) = world.approve(&ticket).await else { panic!("it is cancelled") };
    assert!(now.why.starts_with("t is cancelled;") && now.why.contains("ticket answer t"), "{}", now.why);

    // What is left after the answer is what is named.
    let other = world.create("u").await;
    world.approve(&other).await.expect("approved");
    ask(&world, &other, "Which file?").await;
    world.advance(1).await;
    block(&world, &other, Some("mine")).await.expect("blocked");
    world.advance(1).await;
    answer(&world, &other, "both").await;
    let row = world.row(&other).await;
    assert_eq!(row.objective.blocked_reason.as_deref(), Some("blocked on mine (a question)"));
    let (next, can) = told(&world, &other, Verb::Answer).await;
    assert!(!can && next[0].ends_with("fernery ticket unblock u --blocker mine"), "{next:?}");
}

async fn an_approval_that_a_blueprint_made_void_is_told<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    block(&world, &ticket, Some("mine")).await.expect("blocked");
    let approve = "No approval covers it now: after that it is NEW, then: fernery ticket approve t";
    assert!(!told(&world, &ticket, Verb::Unblock).await.0.iter().any(|action| action == approve));
    world.put_in_force(blueprint("[retry]\ngate_failures = 7\n")).await;
    let (next, _) = told(&world, &ticket, Verb::Unblock).await;
    assert_eq!(next.last().map(String::as_str), Some(approve), "{next:?}");
    // And so it comes.
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::New);
}

async fn what_was_done_when_it_was_cancelled_is_done_again_with_its_run_to_confirm<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    finish(&world).await;
    let run = world.last_run(&ticket).await;
    for _ in 0..2 {
        world.advance(1).await;
        world.cancel(&ticket).await.expect("cancelled");
        world.advance(1).await;
        let (of, by) = (ticket.clone(), record());
        let unblock = move |sql: &mut dyn fernery_engine::pipeline::Sql, who: &_| {
            blockers::unblock(sql, who, (&of, &by), &Resolved::All)
        };
        let row = world.act(unblock.clone()).await.expect("taken up again");
        assert_eq!((row.objective.status, row.unconfirmed), (ObjectiveStatus::Done, true));
        assert_eq!(row.objective.blocked_reason, None);
        let before = world.dump().await;
        world.act(unblock).await.expect("the same act again, because its answer was lost");
        assert_eq!(world.dump().await, before);
    }
    assert_eq!(world.pass().await, [], "nothing is worked on");
    let pause = world.chain(&ticket).await.pauses.pop().expect("a pause");
    assert_eq!(pause.happened, "taken up again, with its result to confirm");
    assert!(pause.pause.prioritized_actions[0].ends_with("fernery ticket confirm t"), "{pause:?}");
    assert_eq!(world.last_run(&ticket).await, run);
    world.confirm(&ticket).await.expect("the same run is confirmed");
    assert!(!world.row(&ticket).await.unconfirmed);
}

async fn only_what_was_done_and_is_still_approved_is_done_again<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("[limits]\nconcurrency = 0\nreview_limit = 0\n").await;
    finish(&world).await;
    // It was DONE before, and then reopened: another attempt is wanted.
    world.cancel(&ticket).await.expect("cancelled");
    world.unblock(&ticket).await.expect("taken up again");
    let (of, again) = (ticket.clone(), deciding(None, Some("once more")));
    world.act(move |sql, who| decisions::reopen(sql, who, &of, &again)).await.expect("reopened");
    world.cancel(&ticket).await.expect("cancelled");
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::Todo);
    // Its text has changed: that run was made for another one.
    finish(&world).await;
    world.cancel(&ticket).await.expect("cancelled");
    edit(&world, &ticket, "Do something else").await;
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::New);
}

async fn a_cancelled_ticket_is_not_approved_and_the_refusal_says_what_to_do<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    finish(&world).await;
    let before = world.dump().await;
    world.approve(&ticket).await.expect("the approval that it has, for whoever lost the answer to it");
    assert_eq!(world.dump().await, before);
    world.cancel(&ticket).await.expect("cancelled");
    let (of, again) = (ticket.clone(), deciding(None, Some("once more")));
    let reopened = world.act(move |sql, who| decisions::reopen(sql, who, &of, &again)).await;
    for refused in [world.approve(&ticket).await, reopened] {
        let Err(Refusal::Status(now)) = refused else { panic!("it is cancelled: {refused:?}") };
        assert_eq!(
            (now.status, &now.possible[..]),
            (ObjectiveStatus::Blocked, &[Verb::Edit, Verb::Block, Verb::Unblock][..])
        );
        assert!(now.why.ends_with("To take it up again: fernery ticket unblock t --all"), "{}", now.why);
    }
}
