//! What people do themselves, put off, take back, and write down once for many times.

use crate::pipeline::desk::{line, office};
use crate::pipeline::hands::id;
use crate::pipeline::world::{Hands, World, record};
use crate::support::backend::Backend;
use fernery_core::artifact::{
    EventId, GateResult, ObjectiveId, ObjectiveStatus, PauseReason, RecordId, SnapshotId, WorkorderStatus,
};
use fernery_core::blueprint::Blueprint;
use fernery_engine::door;
use fernery_engine::pipeline::acts::Refusal;
use fernery_engine::pipeline::inbox::candidates::{self, CandidateStatus};
use fernery_engine::pipeline::inbox::recurrences;
use fernery_engine::pipeline::person::{self, Doing};
use fernery_engine::pipeline::reading::Decision;
use fernery_engine::pipeline::scheduling::{Ids, Scheduled};
use fernery_engine::pipeline::snoozes::{self, Subject};
use fernery_engine::pipeline::{azollas, blockers, decisions, room};
use serde_json::json;
use tokio::task::JoinSet;

on_both_backends!(
    done_ends_in_done_from_wherever_a_ticket_stands,
    done_is_done_once_however_often_and_by_however_many_it_is_said,
    done_races_with_the_workers_and_comes_to_one_run,
    what_is_not_for_people_or_in_the_way_cannot_be_done,
    what_waits_for_a_person_takes_no_room_and_no_budget,
    a_cancelled_task_ends_like_any_other_and_can_be_taken_up_again,
    a_line_that_comes_again_is_captured_once_each_time,
    times_that_passed_while_nobody_looked_are_one,
    what_is_snoozed_is_out_of_sight_until_then,
    a_discard_can_be_taken_back,
);

/// The azolla `a`, whose tickets people do.
async fn people<B: Backend>(more: &str) -> World<B> {
    let world = World::<B>::empty().await;
    let text = format!("extends = \"tasks\"\nazolla_id = \"a\"\n{more}");
    world.put_in_force(Blueprint::parse(&text, &|_| None).unwrap_or_else(|f| panic!("{f:#?}"))).await;
    world
}

fn doing(record_id: &RecordId, note: Option<&str>) -> Doing {
    let chance = door::Chance::default();
    Doing {
        record_id: record_id.clone(),
        approval_id: record(),
        digest: None,
        note: note.map(str::to_string),
        event_id: EventId::stored(&door::artifact_id()),
        ids: Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) },
    }
}

impl Hands {
    async fn done(&self, of: &ObjectiveId, act: &RecordId, note: Option<&str>) -> Result<Decision, Refusal> {
        let (of, doing) = (of.clone(), doing(act, note));
        self.act(move |sql, who| person::done(sql, who, &of, &doing)).await
    }
}

/// Every artifact of one run that passed and was confirmed.
async fn is_done_once(hands: &Hands, ticket: &ObjectiveId, content: &str) {
    let (row, chain) = (hands.row(ticket).await, hands.chain(ticket).await);
    assert_eq!((row.objective.status, row.unconfirmed), (ObjectiveStatus::Done, false));
    let kinds: Vec<_> = chain.decisions.iter().map(|decision| decision.kind.as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "APPROVE").count(), 1, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "CONFIRM").count(), 1, "{kinds:?}");
    assert!(chain.events.iter().all(|event| event.event.processed) && chain.events.len() == 1);
    let [work] = &chain.workorders[..] else { panic!("{:?}", chain.workorders) };
    assert_eq!((work.workorder.status, work.judged, work.spent_ms), (WorkorderStatus::Executed, true, 0));
    let [bundle] = &chain.output_bundles[..] else { panic!("{:?}", chain.output_bundles) };
    assert_eq!(bundle.content, content);
    let [run] = &chain.runs[..] else { panic!("{:?}", chain.runs) };
    assert_eq!(run.record.gate_result, GateResult::Pass);
    let [pause] = &chain.pauses[..] else { panic!("{:?}", chain.pauses) };
    assert_eq!(pause.pause.reason, PauseReason::RunComplete);
    let job = hands.store.job(work.workorder.work_order_id.job_id().unwrap()).await.unwrap();
    assert_eq!(job.expect("its job").brief.status, fernery_core::JobStatus::Succeeded);
}

/// Invariants 1, 2, 10, 13, 16.
async fn done_ends_in_done_from_wherever_a_ticket_stands<B: Backend>() {
    let world = people::<B>("").await;
    for stage in ["new", "approved", "emitted", "claimed", "scheduled"] {
        let ticket = world.create(stage).await;
        if stage != "new" {
            world.approve(&ticket).await.expect("approved");
        }
        if matches!(stage, "emitted" | "claimed") {
            assert_eq!(world.emit().await, 1);
        }
        let mut taken = if stage == "claimed" { world.take_events("scheduler").await } else { Vec::new() };
        if stage == "scheduled" {
            assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
            assert!(world.claim().await.is_none(), "no program claims it");
        }
        world.done(&ticket, &record(), Some("oat milk")).await.unwrap_or_else(|r| panic!("{stage}: {r:?}"));
        is_done_once(&world, &ticket, "oat milk").await;
        if let Some((event, held)) = taken.pop() {
            let late = world.schedule(event, held).await;
            assert!(matches!(late, Scheduled::Before(_)), "the scheduler finds it done: {late:?}");
        }
        assert!(world.pass().await.is_empty() && world.judge().await.is_empty(), "{stage}: nothing is left");
        is_done_once(&world, &ticket, "oat milk").await;
    }
}

/// Invariant 19.
async fn done_is_done_once_however_often_and_by_however_many_it_is_said<B: Backend>() {
    let world = people::<B>("").await;
    let ticket = world.create("t").await;
    let act = record();
    let first = world.done(&ticket, &act, None).await.expect("done");
    assert_eq!(world.done(&ticket, &act, None).await.expect("the same again"), first);
    assert!(matches!(world.done(&ticket, &act, Some("other")).await, Err(Refusal::Taken)));
    assert_eq!(world.done(&ticket, &record(), None).await.expect("it is done"), first);
    let Err(Refusal::Conflict(why)) = world.done(&ticket, &record(), Some("two litres")).await else {
        panic!("the note is lost")
    };
    assert!(why.contains("done already") && why.contains("your note was not kept"), "{why}");
    is_done_once(&world, &ticket, "Done.").await;

    let ticket = world.create("u").await;
    let elsewhere = world.elsewhere().await;
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let (hands, of) = (if n % 2 == 0 { (*world).clone() } else { elsewhere.clone() }, ticket.clone());
        tasks.spawn(async move { hands.done(&of, &record(), None).await });
    }
    let all = tasks.join_all().await;
    let records: std::collections::BTreeSet<_> =
        all.into_iter().map(|done| done.expect("done").record_id.to_string()).collect();
    assert_eq!(records.len(), 1, "one of them did it");
    is_done_once(&world, &ticket, "Done.").await;
}

async fn done_races_with_the_workers_and_comes_to_one_run<B: Backend>() {
    let world = people::<B>("").await;
    let elsewhere = world.elsewhere().await;
    for n in 0..10 {
        let ticket = world.create(&format!("t{n}")).await;
        world.approve(&ticket).await.expect("approved");
        let (hands, of) = ((*world).clone(), ticket.clone());
        let (done, _) = tokio::join!(async move { hands.done(&of, &record(), None).await }, elsewhere.pass());
        done.unwrap_or_else(|refusal| panic!("{refusal:?}"));
        world.pass().await;
        is_done_once(&world, &ticket, "Done.").await;
    }
}

async fn what_is_not_for_people_or_in_the_way_cannot_be_done<B: Backend>() {
    let world = people::<B>("").await;
    let unknown = world.done(&id("nobody"), &record(), None).await;
    assert!(matches!(unknown, Err(Refusal::Unknown)), "{unknown:?}");
    let ticket = world.create("t").await;
    let of = ticket.clone();
    let blocked = world.act(move |sql, who| {
        let kind = fernery_core::artifact::BlockerKind::UserInput;
        blockers::block(sql, who, (&of, &record()), None, kind, "which shop?")
    });
    blocked.await.expect("blocked");
    let Err(Refusal::Conflict(why)) = world.done(&ticket, &record(), None).await else {
        panic!("not refused")
    };
    assert!(why.contains("which shop?") && why.contains("fernery ticket unblock t --blocker b1"), "{why}");
    let too_long = world.create("u").await;
    let Err(Refusal::Unfit(why)) = world.done(&too_long, &record(), Some(&"x".repeat(65_537))).await else {
        panic!("not refused")
    };
    assert_eq!(why[0].path, "/note");
    let before = world.dump().await;
    let mut other = doing(&record(), None);
    other.digest = Some(fernery_core::Digest::of_bytes(b"other"));
    let of = too_long.clone();
    let changed = world.act(move |sql, who| person::done(sql, who, &of, &other)).await;
    assert!(matches!(changed, Err(Refusal::Changed { .. })), "{changed:?}");
    assert_eq!(world.dump().await, before, "a refusal writes nothing");

    let programs = World::<B>::new("").await;
    let ticket = programs.create("t").await;
    let Err(Refusal::Conflict(why)) = programs.done(&ticket, &record(), None).await else {
        panic!("not refused")
    };
    assert!(why.contains("a program does the work"), "{why}");
}

/// Invariant 12 is about programs.
async fn what_waits_for_a_person_takes_no_room_and_no_budget<B: Backend>() {
    let world =
        people::<B>("[limits]\nconcurrency = 1\nreview_limit = 1\n[budget]\nworkorder = \"1m\"\n").await;
    let mut tickets = Vec::new();
    for n in 0..5 {
        let ticket = world.create(&format!("t{n}")).await;
        world.approve(&ticket).await.expect("approved");
        tickets.push(ticket);
    }
    assert_eq!(world.pass().await.len(), 5, "all of them wait for their person at once");
    world.advance(3_600).await;
    world.store.reap(100).await.expect("reaped");
    for ticket in &tickets {
        assert_eq!(world.status(ticket).await, ObjectiveStatus::InProgress, "no clock runs");
        world.done(ticket, &record(), None).await.expect("done");
        is_done_once(&world, ticket, "Done.").await;
    }
    let of = world.azolla.clone();
    let room = world
        .substrate
        .read(move |sql| {
            let known = azollas::in_force(sql, &of)?.expect("in force");
            room::room(sql, &known)
        })
        .await;
    assert!(matches!(room, Ok(room::Room::Left(_))), "{room:?}");
}

async fn a_cancelled_task_ends_like_any_other_and_can_be_taken_up_again<B: Backend>() {
    let world = people::<B>("").await;
    let ticket = world.create("t").await;
    world.approve(&ticket).await.expect("approved");
    world.pass().await;
    let of = ticket.clone();
    world.act(move |sql, who| blockers::cancel(sql, who, (&of, &record()), None)).await.expect("cancelled");
    world.cancel_jobs().await;
    world.judge().await;
    assert_eq!(world.chain(&ticket).await.runs.len(), 1);
    let Err(Refusal::Conflict(why)) = world.done(&ticket, &record(), None).await else {
        panic!("not refused")
    };
    assert!(why.contains("fernery ticket unblock t --all"), "{why}");
    let of = ticket.clone();
    let unblocked = world.act(move |sql, who| {
        blockers::unblock(sql, who, (&of, &record()), &fernery_engine::pipeline::blockers::Resolved::All)
    });
    unblocked.await.expect("unblocked");
    world.done(&ticket, &record(), None).await.expect("done");
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Done);
    // And done again, if it was not right.
    let (of, deciding) = (ticket.clone(), crate::pipeline::hands::deciding(None, Some("the other milk")));
    world.act(move |sql, who| decisions::reopen(sql, who, &of, &deciding)).await.expect("reopened");
    world.done(&ticket, &record(), Some("now")).await.expect("done again");
    let chain = world.chain(&ticket).await;
    assert_eq!(chain.runs.len(), 3);
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Done);
}

async fn fire(hands: &Hands) -> usize {
    let azolla = hands.azolla.clone();
    hands.substrate.transact(move |sql| recurrences::fire(sql, &azolla, 100)).await.expect("fired")
}

async fn titles(hands: &Hands) -> Vec<String> {
    while hands.pending().await > 0 {
        hands.round().await;
    }
    hands.candidates().await.into_iter().rev().map(|one| one.draft.title).collect()
}

const DAY: u64 = 24 * 3600;

async fn a_line_that_comes_again_is_captured_once_each_time<B: Backend>() {
    let mut world = office::<B>("").await;
    world
        .capture(vec![line(1, b"every day water the plants +home"), line(2, b"every time")])
        .await
        .expect("captured");
    world.capture(vec![line(1, b"every day water the plants +home")]).await.expect("the same again");
    assert_eq!(titles(&world).await, ["water the plants", "every time"]);
    assert_eq!(fire(&world).await, 0, "the line itself is the first");
    for day in 1..=3_usize {
        world.advance(DAY).await;
        world.crash().await;
        let elsewhere = world.elsewhere().await;
        let (one, other) = tokio::join!(fire(&world), fire(&elsewhere));
        assert_eq!(one + other, 1, "day {day}");
        assert_eq!(fire(&world).await, 0, "day {day}");
        assert_eq!(titles(&world).await.len(), 2 + day);
    }
    let last = world.candidates().await.remove(0);
    assert_eq!(
        (last.draft.title.as_str(), &last.draft.metadata["projects"]),
        ("water the plants", &json!(["home"]))
    );
    assert!(last.draft.metadata.contains_key("due_at"), "{last:?}");
    let (azolla, act) = (world.azolla.clone(), record());
    let all = world.substrate.read(move |sql| recurrences::all(sql, &azolla, 10)).await.expect("read");
    let [line] = &all[..] else { panic!("{all:?}") };
    assert_eq!((line.every.as_str(), line.text.as_str()), ("every day", "water the plants +home"));
    for _ in 0..2 {
        let (of, act) = (line.recurrence_id.clone(), act.clone());
        let stopped = world.act(move |sql, who| recurrences::stop(sql, who, (&of, &act))).await;
        assert!(stopped.expect("stopped").stopped_at.is_some());
    }
    world.advance(DAY).await;
    assert_eq!(fire(&world).await, 0);
}

async fn times_that_passed_while_nobody_looked_are_one<B: Backend>() {
    let world = office::<B>("").await;
    world.capture(vec![line(1, b"every day water the plants")]).await.expect("captured");
    assert_eq!(titles(&world).await.len(), 1);
    world.advance(10 * DAY).await;
    assert_eq!((fire(&world).await, fire(&world).await), (1, 0));
    assert_eq!(titles(&world).await.len(), 2);
    world.advance(DAY).await;
    assert_eq!((fire(&world).await, fire(&world).await), (1, 0), "and then as before");
}

async fn what_is_snoozed_is_out_of_sight_until_then<B: Backend>() {
    let world = office::<B>("").await;
    world.capture(vec![line(1, b"buy milk"), line(2, b"buy bread")]).await.expect("captured");
    titles(&world).await;
    let milk =
        world.candidates().await.into_iter().find(|one| one.draft.title == "buy milk").unwrap().candidate_id;
    let snooze = |subject: Subject, act: RecordId, until: Option<&str>| {
        let until = until.map(str::to_string);
        world.act(move |sql, who| snoozes::snooze(sql, who, (&subject, &act), until.as_deref()))
    };
    let seen = async || {
        let azolla = world.azolla.clone();
        let waiting = world.substrate.read(move |sql| {
            let all = candidates::waiting(sql, &azolla, (fernery_core::Timestamp::default(), ""), 10)?;
            Ok((all.len(), candidates::count(sql, &azolla, 10)?.0))
        });
        waiting.await.expect("read")
    };
    let subject = Subject::Candidate(milk.clone());
    let act = record();
    let until = snooze(subject.clone(), act.clone(), Some("2d")).await.expect("snoozed");
    assert!(until.is_some());
    assert_eq!(seen().await, (1, 1));
    let later = snooze(subject.clone(), record(), Some("4d")).await.expect("snoozed");
    assert!(later > until);
    assert_eq!(
        snooze(subject.clone(), act, Some("2d")).await.expect("the same act again"),
        later,
        "is not done again"
    );
    world.advance(3 * DAY).await;
    assert_eq!(seen().await, (1, 1));
    world.advance(DAY + 60).await;
    assert_eq!(seen().await, (2, 2), "then it is there again");
    snooze(subject.clone(), record(), Some("1d")).await.expect("snoozed");
    assert_eq!(snooze(subject.clone(), record(), None).await.expect("off"), None);
    assert_eq!(seen().await, (2, 2));
    let never = snooze(subject, record(), Some("soon")).await;
    assert!(matches!(&never, Err(Refusal::Unfit(why)) if why[0].path == "/until"), "{never:?}");
    let nobody = snooze(Subject::Objective(id("nobody")), record(), Some("1d")).await;
    assert!(matches!(nobody, Err(Refusal::Unknown)), "{nobody:?}");
}

async fn a_discard_can_be_taken_back<B: Backend>() {
    let world = office::<B>("").await;
    world.capture(vec![line(1, b"buy milk")]).await.expect("captured");
    titles(&world).await;
    let of = world.candidates().await.remove(0).candidate_id;
    let restore = |act: &RecordId| {
        let (of, act) = (of.clone(), act.clone());
        world.act(move |sql, who| candidates::restore(sql, who, (&of, &act), None))
    };
    assert!(matches!(restore(&record()).await, Err(Refusal::Conflict(_))), "it waits");
    let id = of.clone();
    world
        .act(move |sql, who| candidates::discard(sql, who, (&id, &record()), None))
        .await
        .expect("discarded");
    let act = record();
    assert_eq!(restore(&act).await.expect("restored").status, CandidateStatus::Waiting);
    assert_eq!(restore(&act).await.expect("the same again").status, CandidateStatus::Waiting);
    let (id, to, name) =
        (of.clone(), fernery_core::artifact::AzollaId::stored("mec"), crate::pipeline::hands::id("t"));
    let promoted =
        world.act(move |sql, who| candidates::promote(sql, who, (&id, &record()), (&to, &[]), &name));
    promoted.await.expect("promoted");
    assert!(matches!(restore(&record()).await, Err(Refusal::Conflict(_))), "a promotion stands");
}
