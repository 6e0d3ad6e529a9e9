//! An operator's act whose answer was lost is asked for again: it is answered as it was, and nothing is done twice
//! (invariant 19).

use crate::pipeline::hands::Hands;
use crate::pipeline::world::{World, blueprint, good, record};
use crate::support::backend::{Backend, Postgres, settings};
use crate::support::postgres::{fresh_database, open_store};
use crate::support::proxy::Proxy;
use fernery_core::artifact::{AzollaId, BlockerKind, ObjectiveId, ObjectiveStatus, RecordId, RunId};
use fernery_core::canonical::Digest;
use fernery_engine::pipeline::acts::{Actor, Answer, Refusal};
use fernery_engine::pipeline::blockers::{self, Resolved};
use fernery_engine::pipeline::decisions::{self, Deciding};
use fernery_engine::pipeline::{Sql, Substrate, objectives, reading};
use serde_json::json;

on_both_backends!(
    an_act_that_is_asked_for_again_is_answered_as_it_was,
    a_repeated_act_does_not_undo_later_acts,
    the_id_of_one_act_is_not_taken_for_another,
    the_id_of_an_act_is_its_actors_and_of_this_content,
    the_id_of_one_act_goes_to_one_of_two_at_once,
    runs_are_listed_in_the_order_of_the_entries_whatever_the_clock_says,
    a_confirmation_names_the_run_that_was_looked_at,
    the_difference_includes_changes_of_the_blueprint,
);

/// The acts in an order in which each is allowed, with how the ticket stands after it.
const ACTS: [(&str, ObjectiveStatus); 7] = [
    ("approve", ObjectiveStatus::Todo),
    ("block", ObjectiveStatus::Blocked),
    ("unblock", ObjectiveStatus::Todo),
    ("work", ObjectiveStatus::Done),
    ("confirm", ObjectiveStatus::Done),
    ("reopen", ObjectiveStatus::Todo),
    ("cancel", ObjectiveStatus::Blocked),
];

/// Carries an act out, and answers as text what it answered.
fn carry_out_as(
    sql: &mut dyn Sql,
    who: &Actor,
    act: &str,
    id: &ObjectiveId,
    record_id: &RecordId,
    run: &RunId,
) -> Answer<String> {
    let deciding = Deciding {
        record_id: record_id.clone(),
        digest: None,
        note: Some("why".into()),
        premises: None,
        from_scratch: false,
    };
    let of = (id, record_id);
    let kind = BlockerKind::UserInput;
    Ok(match act {
        "approve" => decisions::approve(sql, who, id, &deciding)?.map(|d| format!("{d:?}")),
        "confirm" => decisions::confirm(sql, who, (id, run), &deciding)?.map(|d| format!("{d:?}")),
        "reopen" => decisions::reopen(sql, who, id, &deciding)?.map(|d| format!("{d:?}")),
        "block" => blockers::block(sql, who, of, None, kind, "why")?.map(|s| format!("{s:?}")),
        "unblock" => blockers::unblock(sql, who, of, &Resolved::All)?.map(|s| format!("{s:?}")),
        _ => blockers::cancel(sql, who, of, None)?.map(|s| format!("{s:?}")),
    })
}

fn carry_out(
    sql: &mut dyn Sql,
    act: &str,
    id: &ObjectiveId,
    record_id: &RecordId,
    run: &RunId,
) -> Answer<String> {
    carry_out_as(sql, &Actor("operator".into()), act, id, record_id, run)
}

async fn act(
    hands: &Hands,
    act: &'static str,
    id: &ObjectiveId,
    record_id: &RecordId,
) -> Result<String, Refusal> {
    let run = hands.last_run(id).await;
    let (id, record_id) = (id.clone(), record_id.clone());
    hands.substrate.transact(move |sql| carry_out(sql, act, &id, &record_id, &run)).await.expect("stored")
}

async fn work(hands: &Hands) {
    hands.pass().await;
    let job = hands.claim().await.expect("its job");
    hands.hand_in(&job, good()).await;
    hands.judge().await;
}

async fn an_act_that_is_asked_for_again_is_answered_as_it_was<B: Backend>() {
    let world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    for (name, status) in ACTS {
        if name == "work" {
            work(&world).await;
        } else {
            let record = record();
            let first = act(&world, name, &ticket, &record).await;
            assert!(first.is_ok(), "{name}: {first:?}");
            let before = world.dump().await;
            assert_eq!(act(&world, name, &ticket, &record).await, first, "{name} again");
            assert_eq!(world.dump().await, before, "{name} again writes nothing");
        }
        assert_eq!(world.status(&ticket).await, status, "{name}");
    }
}

async fn a_repeated_act_does_not_undo_later_acts<B: Backend>() {
    let world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    let mut done = Vec::new();
    for (name, _) in ACTS {
        if name == "work" {
            work(&world).await;
            continue;
        }
        let record = record();
        act(&world, name, &ticket, &record).await.expect(name);
        done.push((name, record));
        let before = world.dump().await;
        for (earlier, record) in &done {
            assert!(act(&world, earlier, &ticket, record).await.is_ok(), "{earlier} after {name}");
        }
        assert_eq!(world.dump().await, before);
    }
}

async fn the_id_of_one_act_is_not_taken_for_another<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    let (record, other) = (record(), world.create("other").await);
    act(&world, "block", &ticket, &record).await.expect("blocked");
    let before = world.dump().await;
    for (name, of) in [("unblock", &ticket), ("approve", &ticket), ("block", &other), ("approve", &other)] {
        assert_eq!(act(&world, name, of, &record).await, Err(Refusal::Taken), "{name} {of}");
    }
    assert_eq!(world.dump().await, before);
}

type Act = fn(&mut dyn Sql, &Actor, &ObjectiveId, &RecordId, &RunId) -> Answer<()>;

/// Each act in the words of [`carry_out`], and then in others.
const IN_OTHER_WORDS: [(&str, &[Act]); 6] = [
    ("approve", &[|sql, who, id, of, _| decide(decisions::approve, sql, who, id, (of, "other"))]),
    (
        "block",
        &[
            |sql, who, id, of, _| block(sql, who, (id, of), None, (BlockerKind::UserInput, "other")),
            |sql, who, id, of, _| block(sql, who, (id, of), None, (BlockerKind::DependencyChange, "why")),
            |sql, who, id, of, _| block(sql, who, (id, of), Some("b-7"), (BlockerKind::UserInput, "why")),
        ],
    ),
    (
        "unblock",
        &[|sql, who, id, of, _| {
            let these = Resolved::These(vec!["b-1".parse().expect("an id")]);
            Ok(blockers::unblock(sql, who, (id, of), &these)?.map(drop))
        }],
    ),
    (
        "confirm",
        &[|sql, who, id, of, _| {
            let (other, record_id) = (RunId::stored("other"), of.clone());
            let deciding = Deciding {
                record_id,
                digest: None,
                note: Some("why".into()),
                premises: None,
                from_scratch: false,
            };
            Ok(decisions::confirm(sql, who, (id, &other), &deciding)?.map(drop))
        }],
    ),
    ("reopen", &[|sql, who, id, of, _| decide(decisions::reopen, sql, who, id, (of, "other"))]),
    ("cancel", &[|sql, who, id, of, _| Ok(blockers::cancel(sql, who, (id, of), Some("other"))?.map(drop))]),
];

type Decides = fn(&mut dyn Sql, &Actor, &ObjectiveId, &Deciding) -> Answer<reading::Decision>;

/// Decides over something that nobody was shown.
fn decide(
    verb: Decides,
    sql: &mut dyn Sql,
    who: &Actor,
    id: &ObjectiveId,
    (of, shown): (&RecordId, &str),
) -> Answer<()> {
    let digest = Some(Digest::of_bytes(shown.as_bytes()));
    let deciding = Deciding {
        record_id: of.clone(),
        digest,
        note: Some("why".into()),
        premises: None,
        from_scratch: false,
    };
    Ok(verb(sql, who, id, &deciding)?.map(drop))
}

fn block(
    sql: &mut dyn Sql,
    who: &Actor,
    of: (&ObjectiveId, &RecordId),
    named: Option<&str>,
    (kind, description): (BlockerKind, &str),
) -> Answer<()> {
    let named = named.map(|id| id.parse().expect("an id"));
    Ok(blockers::block(sql, who, of, named, kind, description)?.map(drop))
}

async fn the_id_of_an_act_is_its_actors_and_of_this_content<B: Backend>() {
    let world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    for (name, _) in ACTS {
        if name == "work" {
            work(&world).await;
            continue;
        }
        let record = record();
        act(&world, name, &ticket, &record).await.expect(name);
        let (before, run) = (world.dump().await, world.last_run(&ticket).await);
        let (id, of, looked_at) = (ticket.clone(), record.clone(), run.clone());
        let other = Actor("somebody else".into());
        let done = world.substrate.transact(move |sql| carry_out_as(sql, &other, name, &id, &of, &looked_at));
        assert_eq!(done.await.expect("stored"), Err(Refusal::Taken), "{name} by somebody else");
        let others = IN_OTHER_WORDS.iter().find(|(of, _)| *of == name).expect("an act").1;
        for (n, other) in others.iter().enumerate() {
            let (id, of, run) = (ticket.clone(), record.clone(), run.clone());
            let done = world.act(move |sql, who| other(sql, who, &id, &of, &run)).await;
            assert_eq!(done, Err(Refusal::Taken), "{name} in other words, {n}");
        }
        assert_eq!(world.dump().await, before, "{name}");
    }
}

async fn the_id_of_one_act_goes_to_one_of_two_at_once<B: Backend>() {
    let world = World::<B>::new("").await;
    for round in 0..20 {
        let (one, two) = (world.create(&format!("a{round}")).await, world.create(&format!("b{round}")).await);
        let name = if round % 2 == 0 { "approve" } else { "cancel" };
        let record = record();
        let (one, two) = tokio::join!(act(&world, name, &one, &record), act(&world, name, &two, &record));
        assert!(one.is_ok() != two.is_ok(), "{name}: {one:?} {two:?}");
        assert!([one, two].contains(&Err(Refusal::Taken)), "{name}");
    }
}

async fn runs_are_listed_in_the_order_of_the_entries_whatever_the_clock_says<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    work(&world).await;
    world.set_back(3_600).await;
    act(&world, "reopen", &ticket, &record()).await.expect("reopened");
    work(&world).await;
    let runs = world.chain(&ticket).await.runs;
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1].record.run_id, world.last_run(&ticket).await);
}

async fn a_confirmation_names_the_run_that_was_looked_at<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    work(&world).await;
    let looked_at = world.last_run(&ticket).await;
    act(&world, "reopen", &ticket, &record()).await.expect("reopened");
    work(&world).await;
    let (of, deciding, stale) =
        (ticket.clone(), crate::pipeline::world::deciding(None, None), looked_at.clone());
    let before = world.dump().await;
    let refused = world.act(move |sql, who| decisions::confirm(sql, who, (&of, &stale), &deciding)).await;
    let Err(Refusal::OtherRun(last)) = refused else { panic!("{refused:?}") };
    assert_eq!(last.run_id, world.last_run(&ticket).await);
    assert_ne!(last.run_id, looked_at);
    assert_eq!(world.dump().await, before);
    let decision = world.confirm(&ticket).await.expect("confirmed");
    assert_eq!(decision.shown["run"]["run_record"]["run_id"], json!(last.run_id));
    assert_eq!(decision.digest, fernery_core::canonical::digest_of(&decision.shown));
}

async fn the_difference_includes_changes_of_the_blueprint<B: Backend>() {
    let world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    let digest = |shown: objectives::Shown| -> Digest { shown.digest };
    let read = digest(objectives::shown(&world.row(&ticket).await.objective, &blueprint("")));
    for title in ["Do something else", "Do a third thing"] {
        let (of, draft) = (ticket.clone(), crate::pipeline::world::draft(title));
        world.act(move |sql, who| objectives::edit(sql, who, &of, &draft)).await.expect("edited");
    }
    world.put_in_force(blueprint("branch_prefix = \"x/\"\n[budget]\nworkorder = \"5m\"\n")).await;
    let (of, stale) = (ticket.clone(), crate::pipeline::world::deciding(Some(read), None));
    let refused = world.act(move |sql, who| decisions::approve(sql, who, &of, &stale)).await;
    let Err(Refusal::Changed { difference, .. }) = refused else { panic!("{refused:?}") };
    let wanted = [
        ("/title".to_string(), json!("Do it"), json!("Do a third thing")),
        ("/blueprint/branch_prefix".to_string(), json!("azolla/"), json!("x/")),
        ("/blueprint/budget_ms".to_string(), json!(1_800_000), json!(300_000)),
    ];
    assert_eq!(difference, wanted);
}

/// A statement that failed has ended its transaction: work that goes on all the same is not answered as done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_with_an_ignored_error_is_not_committed_on_postgres() {
    let (world, ticket) = World::<Postgres>::with_ticket("").await;
    let before = world.dump().await;
    let id = ticket.clone();
    let done = world.substrate.transact(move |sql| {
        let cancelled = blockers::cancel(sql, &Actor("operator".into()), (&id, &record()), None)?;
        let _ = sql.query("SELECT 1 / 0", &[]);
        Ok(cancelled.is_ok())
    });
    assert!(done.await.is_err());
    assert_eq!(world.dump().await, before);
}

/// The commit arrives and its answer does not: the store asks again, and finds it done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_act_whose_commit_reply_was_lost_is_found_to_be_done_on_postgres() {
    let database = fresh_database().await;
    let url = database.url();
    let (front, name) = url.rsplit_once('/').expect("a database");
    let (credentials, host) = front.rsplit_once('@').expect("a user");
    let port = host.rsplit_once(':').expect("a port").1.parse().expect("a number");
    let proxy = Proxy::before(port).await;
    let url = format!("{credentials}@127.0.0.1:{}/{name}?sslmode=disable", proxy.port());
    let (store, signals) = open_store(&url, &settings()).await;
    let azolla = AzollaId::stored("a");
    let hands = Hands { substrate: Substrate::new(store.clone(), signals), store, azolla };
    hands.put_in_force(blueprint("")).await;
    let ticket = hands.create("t").await;
    for (lost, (name, status)) in ACTS.into_iter().filter(|(name, _)| *name != "work").enumerate() {
        if name == "confirm" {
            work(&hands).await;
        }
        let record = record();
        // What it writes names the act, and the commit that holds it is next.
        proxy.lose_reply_to(b"COMMIT");
        let answer = act(&hands, name, &ticket, &record).await;
        assert!(answer.is_ok(), "{name}: {answer:?}");
        assert_eq!(proxy.lost(), lost + 1, "{name}");
        assert_eq!(hands.status(&ticket).await, status, "{name}");
    }
    let chain = hands.chain(&ticket).await;
    let kinds: Vec<&str> = chain.decisions.iter().map(|d| d.kind.as_str()).collect();
    assert_eq!(kinds, ["APPROVE", "CONFIRM", "REOPEN"], "each once");
    assert_eq!(chain.pauses.len(), 3, "block, run, cancel");
    hands.store.close().await;
}
