//! No sequence strands a ticket (invariant 17): neither an azolla that nobody hosts any more, nor executors that are gone.

use crate::pipeline::acts::block;
use crate::pipeline::world::{Hands, World, blueprint, draft, good};
use crate::support::backend::Backend;
use fernery_core::artifact::{AzollaId, BlockerKind, ObjectiveId, ObjectiveStatus, WorkorderId};
use fernery_engine::pipeline::claims::Claimer;
use fernery_engine::pipeline::judging::Judged;
use fernery_engine::pipeline::objectives;
use fernery_engine::pipeline::scheduling::Scheduled;
use fernery_engine::pipeline::{azollas, hosts, stranding};

on_both_backends!(
    a_ticket_whose_executors_are_gone_is_blocked_with_a_reason_and_goes_on_with_others,
    a_workorder_of_the_kind_in_force_is_left_alone,
    an_azolla_is_hosted_for_as_long_as_somebody_says_so,
    an_azolla_that_a_process_names_no_more_is_not_hosted_from_that_moment,
    tickets_of_an_azolla_that_nobody_hosts_can_be_cancelled_blocked_edited_and_go_on_later,
    a_gate_that_runs_a_program_does_not_run_where_its_azolla_is_not_hosted,
);

pub(crate) const OTHER: &str =
    "diazotroph_type = \"OTHER_DIAZOTROPH\"\n[executors.OTHER_DIAZOTROPH]\nkind = \"remote\"\n";

pub(crate) async fn of_other_types(hands: &Hands) -> Vec<WorkorderId> {
    let azolla = hands.azolla.clone();
    let found = hands.substrate.read(move |sql| stranding::of_other_types(sql, &azolla, "", 10)).await;
    found.expect("read")
}

pub(crate) async fn strand(hands: &Hands, id: WorkorderId) -> bool {
    hands.substrate.transact(move |sql| stranding::strand(sql, &id)).await.expect("written")
}

/// As the worker `cleanup` of another process does.
pub(crate) async fn close_unwanted(hands: &Hands) -> Vec<Judged> {
    let by = Claimer { owner_id: "cleanup".into(), ttl: crate::pipeline::world::LEASE };
    let done = hands.substrate.transact(move |sql| {
        let mut done = Vec::new();
        for azolla in azollas::hosting(sql)?.abandoned().cloned().collect::<Vec<_>>() {
            for held in stranding::take_unwanted(sql, &azolla, &by, 10)? {
                done.push(stranding::close(sql, &held)?);
            }
        }
        Ok(done)
    });
    done.await.expect("closed")
}

async fn a_ticket_whose_executors_are_gone_is_blocked_with_a_reason_and_goes_on_with_others<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    world.pass().await;
    world.put_in_force(blueprint(OTHER)).await;
    let found = of_other_types(&world).await;
    assert_eq!(found.len(), 1);
    assert!(strand(&world, found[0].clone()).await);
    let before = world.dump().await;
    assert!(!strand(&world, found[0].clone()).await, "once");
    assert_eq!(world.dump().await, before);
    let row = world.row(&ticket).await;
    assert_eq!(row.objective.status, ObjectiveStatus::Blocked);
    let blocker = &row.objective.blocked_on[0];
    assert_eq!((blocker.kind, blocker.resolved), (BlockerKind::DependencyChange, false));
    assert!(blocker.description.contains("TEXT_DIAZOTROPH") && blocker.description.contains("OTHER"));
    // Its workorder ends as every one does.
    assert_eq!(world.cancel_jobs().await, 1);
    assert_eq!(world.judge().await.len(), 1);
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::New);
    world.approve(&ticket).await.expect("approved");
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
    assert_eq!(of_other_types(&world).await, []);
}

async fn a_workorder_of_the_kind_in_force_is_left_alone<B: Backend>() {
    let (world, _) = World::<B>::with_ticket("").await;
    world.pass().await;
    assert_eq!(of_other_types(&world).await, []);
    let chain = world.chain(&crate::pipeline::hands::id("t")).await;
    let id = chain.workorders[0].workorder.work_order_id.clone();
    let before = world.dump().await;
    assert!(!strand(&world, id).await);
    assert_eq!(world.dump().await, before);
}

async fn hosted(hands: &Hands) -> bool {
    let azolla = hands.azolla.clone();
    hands.substrate.read(move |sql| Ok(azollas::hosting(sql)?.is_hosted(&azolla))).await.expect("read")
}

pub(crate) async fn attend(hands: &Hands) {
    say(hands, "me", std::slice::from_ref(&hands.azolla)).await;
}

/// A process says which azollas it hosts.
pub(crate) async fn say(hands: &Hands, owner: &'static str, hosted: &[AzollaId]) {
    let hosted = hosted.to_vec();
    let done = hands.substrate.transact(move |sql| hosts::say(sql, owner, &hosted, &[])).await;
    done.expect("written");
}

async fn an_azolla_is_hosted_for_as_long_as_somebody_says_so<B: Backend>() {
    let world = World::<B>::new("").await;
    assert!(!hosted(&world).await, "nobody has said so yet");
    for _ in 0..3 {
        attend(&world).await;
        world.advance(59).await;
        assert!(hosted(&world).await);
    }
    world.advance(1).await;
    assert!(!hosted(&world).await);
}

async fn an_azolla_that_a_process_names_no_more_is_not_hosted_from_that_moment<B: Backend>() {
    let world = World::<B>::new("").await;
    let renamed = AzollaId::stored("renamed");
    attend(&world).await;
    assert!(hosted(&world).await);
    // At the same instant, by the same process: a reload, or a restart under the same name.
    say(&world, "me", std::slice::from_ref(&renamed)).await;
    assert!(!hosted(&world).await, "it names another one");
    attend(&world).await;
    say(&world, "another", std::slice::from_ref(&world.azolla)).await;
    say(&world, "me", &[]).await;
    assert!(hosted(&world).await, "another process still hosts it");
    let leave = |alone| world.substrate.transact(move |sql| hosts::leave(sql, "another", alone));
    leave(false).await.expect("left");
    assert!(!hosted(&world).await, "nobody is left");
    // What a process that was killed said is forgotten by the next one on a database of its own.
    attend(&world).await;
    leave(true).await.expect("left");
    assert!(!hosted(&world).await);
    let azolla = world.azolla.clone();
    let since = world.substrate.read(move |sql| Ok(azollas::hosting(sql)?.last(&azolla))).await;
    assert!(since.expect("read").is_some(), "but when it last was is known");
}

/// In the hands of nobody: no pass of readiness, scheduler or gate from here on.
async fn left_alone<B: Backend>(how_far: ObjectiveStatus) -> (World<B>, ObjectiveId) {
    let (world, ticket) = World::<B>::with_ticket("").await;
    attend(&world).await;
    if how_far == ObjectiveStatus::InProgress {
        world.pass().await;
    }
    world.advance(61).await;
    assert_eq!(world.status(&ticket).await, how_far);
    (world, ticket)
}

async fn tickets_of_an_azolla_that_nobody_hosts_can_be_cancelled_blocked_edited_and_go_on_later<
    B: Backend,
>() {
    let (world, ticket) = left_alone::<B>(ObjectiveStatus::Todo).await;
    let (of, draft) = (ticket.clone(), draft("Do something else"));
    let edited = world.act(move |sql, who| objectives::edit(sql, who, &of, &draft)).await.expect("edited");
    assert_eq!(edited.objective.status, ObjectiveStatus::New);
    block(&world, &ticket, None).await.expect("blocked");
    world.unblock(&ticket).await.expect("unblocked");
    world.cancel(&ticket).await.expect("cancelled");
    world.unblock(&ticket).await.expect("unblocked");

    let (world, ticket) = left_alone::<B>(ObjectiveStatus::InProgress).await;
    world.cancel(&ticket).await.expect("cancelled");
    assert_eq!(world.cancel_jobs().await, 1);
    let closed = close_unwanted(&world).await;
    assert!(matches!(closed[..], [Judged::Recorded(_)]), "{closed:?}");
    let chain = world.chain(&ticket).await;
    assert_eq!([chain.output_bundles.len(), chain.runs.len(), chain.pauses.len()], [1; 3]);
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::Todo);
    // Hosted again, it goes on by itself.
    attend(&world).await;
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
}

async fn a_gate_that_runs_a_program_does_not_run_where_its_azolla_is_not_hosted<B: Backend>() {
    let gates = "gates = [{ kind = \"command\", name = \"tests\", argv = [\"/bin/false\"], timeout = \"1s\", sandbox = \"none\" }]\n";
    let (world, ticket) = World::<B>::with_ticket(gates).await;
    attend(&world).await;
    world.pass().await;
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, good()).await;
    world.cancel(&ticket).await.expect("cancelled");
    assert_eq!(close_unwanted(&world).await, [], "those who host it judge it");
    world.advance(61).await;
    let closed = close_unwanted(&world).await;
    let [Judged::Recorded(run)] = &closed[..] else { panic!("{closed:?}") };
    assert_eq!(run.gate_reason, "not judged: gate tests did not run");
    for run in world.chain(&ticket).await.runs {
        crate::pipeline::history::replays(&world, run).await;
    }
}
