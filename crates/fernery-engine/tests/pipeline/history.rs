//! What has happened stays as it was, whoever asks.

use crate::pipeline::world::{World, bad, good};
use crate::support::backend::Backend;
use fernery_core::artifact::ObjectiveId;
use fernery_core::names::WorkerId;
use fernery_core::{JobStatus, StreamName};
use fernery_engine::pipeline::{journal, judging, reading};
use fernery_engine::store::{Ask, Completion, DeadFilter, NewJob, Retention};
use serde_json::value::RawValue;
use std::time::Duration;

on_both_backends!(
    the_database_itself_refuses_to_change_history,
    what_is_there_is_not_replaced,
    processed_events_and_executed_workorders_never_go_back,
    retention_drops_plain_jobs_and_never_those_of_workorders,
    many_workorders_do_not_keep_plain_jobs_from_retention,
    redrive_and_purge_leave_dead_workorders_alone,
    a_stored_run_judged_again_gives_the_same_verdict,
    the_fence_invalidates_claims_from_before_a_restore,
);

/// A world with one row of history of each kind, at least.
async fn with_history<B: Backend>() -> (World<B>, ObjectiveId) {
    let (world, ticket) = World::<B>::with_ticket("").await;
    for result in [bad(), good()] {
        world.pass().await;
        let job = world.claim().await.expect("its job");
        world.hand_in(&job, result).await;
        world.judge().await;
    }
    world.substrate.transact(|sql| journal::seal(sql, 100)).await.expect("sealed");
    (world, ticket)
}

/// Invariant 14.
async fn the_database_itself_refuses_to_change_history<B: Backend>() {
    let (world, _) = with_history::<B>().await;
    let columns = [
        ("blueprints", "document"),
        ("decisions", "shown"),
        ("decisions", "note"),
        ("snapshots", "document"),
        ("bundles", "document"),
        ("runs", "document"),
        ("runs", "evidence"),
        ("pauses", "document"),
        ("journal", "why"),
        ("journal", "actor"),
        ("seals", "hash"),
    ];
    let before = world.dump().await;
    for (table, column) in columns {
        assert!(
            !world.backend.rows(&[&format!("SELECT * FROM {table}")]).await.is_empty(),
            "{table} has rows"
        );
        for sql in [
            format!("UPDATE {table} SET {column} = '{{}}'"),
            format!("UPDATE {table} SET {column} = {column}"),
            format!("DELETE FROM {table}"),
        ] {
            let refused = world.backend.raw(&sql).await.expect_err(&sql);
            assert!(refused.contains("history never changes"), "{sql}: {refused}");
        }
    }
    assert_eq!(world.dump().await, before);
}

/// Invariant 14. SQLite's REPLACE deletes what is in its way past a trigger on DELETE; PostgreSQL has no such statement.
async fn what_is_there_is_not_replaced<B: Backend>() {
    let (world, _) = with_history::<B>().await;
    let before = world.dump().await;
    for (table, others) in [
        ("blueprints", "blueprint, azolla_id, '{}', created_at"),
        ("decisions", "record_id, objective_id, kind, digest, '{}', who, note, created_at"),
        ("snapshots", "snapshot_id, objective_id, created_at, '{}'"),
        ("bundles", "output_id, work_order_id, objective_id, created_at, '{}'"),
        ("bundles", "'x' || output_id, work_order_id, objective_id, created_at, document"),
        (
            "runs",
            "run_id, work_order_id, objective_id, azolla_id, created_at, '{}', evidence, outcome, files, insertions, deletions",
        ),
        (
            "runs",
            "'x' || run_id, work_order_id, objective_id, azolla_id, created_at, document, evidence, outcome, files, insertions, deletions",
        ),
        ("pauses", "pause_key, objective_id, azolla_id, created_at, '{}'"),
        ("journal", "entry_id, created_at, 'somebody else', act, subject, why"),
        ("seals", "place, entry_id, 'x'"),
        ("seals", "place + 100, entry_id, hash"),
    ] {
        let sql = format!("INSERT OR REPLACE INTO {table} SELECT {others} FROM {table}");
        let done = world.backend.raw(&sql).await;
        assert!(done.is_ok() || world.store.backend() != "sqlite", "{sql}: {done:?}");
        assert_eq!(world.dump().await, before, "{sql}");
    }
    for sql in [
        "INSERT OR REPLACE INTO events (event_id, azolla_id, type, resource_id, entry, created_at)
         SELECT 'x' || event_id, azolla_id, type, resource_id, entry, created_at FROM events",
        "INSERT OR REPLACE INTO workorders (work_order_id, objective_id, azolla_id, event_id, diazotroph_type, snapshot_id,
                                            budget_ms, created_at, status, blueprint)
         SELECT 'x' || work_order_id, objective_id, azolla_id, event_id, diazotroph_type, snapshot_id, budget_ms, created_at,
                'CREATED', blueprint FROM workorders",
    ] {
        let _ = world.backend.raw(sql).await;
        assert_eq!(world.dump().await, before, "{sql}");
    }
}

/// Invariants 1 and 2.
async fn processed_events_and_executed_workorders_never_go_back<B: Backend>() {
    let (world, _) = with_history::<B>().await;
    let before = world.dump().await;
    for sql in [
        "UPDATE events SET processed = false",
        "UPDATE events SET reason = 'BLOCKED'",
        "UPDATE events SET work_order_id = NULL",
        "UPDATE workorders SET status = 'CREATED'",
        "UPDATE workorders SET output_id = 'another'",
        "UPDATE workorders SET judged = false",
        "DELETE FROM events",
        "DELETE FROM workorders",
    ] {
        world.backend.raw(sql).await.expect_err(sql);
    }
    assert_eq!(world.dump().await, before);
}

async fn plain_job<B: Backend>(world: &World<B>) {
    let stream = StreamName::stored("plain");
    let payload = RawValue::from_string("{}".into()).expect("JSON");
    world.store.enqueue(vec![NewJob::new(stream.clone(), payload.clone())]).await.expect("stored");
    let ask = Ask { worker_id: WorkerId::stored("w"), streams: vec![stream].into(), max: 1 };
    let job = world.store.claim(ask).await.expect("claimed").pop().expect("a job");
    let proof = crate::pipeline::hands::proof(&job);
    world.store.complete(vec![Completion { proof, result: payload }]).await.expect("completed");
}

async fn jobs<B: Backend>(world: &World<B>) -> [usize; 2] {
    let all = crate::support::dump::all_jobs(&*world.store, Default::default()).await;
    let workorders = all.iter().filter(|job| job.stream.is_workorders()).count();
    [all.len() - workorders, workorders]
}

async fn retention_drops_plain_jobs_and_never_those_of_workorders<B: Backend>() {
    let (world, ticket) = with_history::<B>().await;
    plain_job(&world).await;
    assert_eq!(jobs(&world).await, [1, 2]);
    world.advance(1).await;
    let before = world.chain(&ticket).await;
    while world.store.retain(Retention::all(Duration::ZERO), 100).await.expect("a pass").moved > 0 {}
    assert_eq!(jobs(&world).await, [0, 2]);
    assert_eq!(world.chain(&ticket).await, before);
}

/// Those that are kept for good must not be all that is ever looked at.
async fn many_workorders_do_not_keep_plain_jobs_from_retention<B: Backend>() {
    let (world, ticket) = with_history::<B>().await;
    for _ in 0..3 {
        world
            .backend
            .raw("UPDATE objectives SET unconfirmed = false, status = 'BLOCKED'")
            .await
            .expect("set");
        world.unblock(&ticket).await.expect("unblocked");
        world.pass().await;
        let job = world.claim().await.expect("its job");
        world.hand_in(&job, good()).await;
        world.judge().await;
    }
    world.advance(1).await;
    plain_job(&world).await;
    world.advance(1).await;
    for _ in 0..10 {
        world.store.retain(Retention::all(Duration::ZERO), 2).await.expect("a pass");
    }
    assert_eq!(jobs(&world).await, [0, 5]);
}

async fn redrive_and_purge_leave_dead_workorders_alone<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    world.pass().await;
    for _ in 0..3 {
        let job = world.claim().await.expect("its job");
        world.fail(&job).await;
        world.advance(30).await;
        world.store.promote(10).await.expect("promoted");
    }
    let id = world.chain(&ticket).await.workorders[0].workorder.work_order_id.job_id().expect("a job");
    let before = world.dump().await;
    for filter in [DeadFilter::default(), DeadFilter { job_ids: vec![id], ..DeadFilter::default() }] {
        assert_eq!(world.store.count_dead(filter.clone()).await.expect("a count"), 0, "none is meant");
        assert_eq!(world.store.redrive(filter.clone(), 10).await.expect("a pass").moved, 0);
        assert_eq!(world.store.purge(filter, 10).await.expect("a pass").moved, 0);
    }
    assert_eq!(world.dump().await, before);
    let job = world.store.job(id).await.expect("read").expect("it is there");
    assert_eq!(job.brief.status, JobStatus::Dead);
}

async fn a_stored_run_judged_again_gives_the_same_verdict<B: Backend>() {
    let (world, ticket) = with_history::<B>().await;
    let runs = world.chain(&ticket).await.runs;
    assert_eq!(runs.len(), 2);
    for run in runs {
        replays(&world, run).await;
    }
}

/// Judges a stored run again.
pub(crate) async fn replays(hands: &crate::pipeline::hands::Hands, run: reading::Run) {
    use fernery_core::artifact::GateResult;
    use fernery_core::pipeline::judging::Verdict;
    let stored = run.record.clone();
    let again = hands.substrate.read(move |sql| judging::replay(sql, &run)).await.expect("read");
    let (_, verdict) = again.expect("its artifacts are there");
    let (result, reason) = match verdict {
        Verdict::Pass => (GateResult::Pass, "every gate passed".to_string()),
        Verdict::Fail(why) => (GateResult::Fail, why),
        Verdict::Trouble(why) => (GateResult::Fail, format!("not judged: {why}")),
    };
    assert_eq!((result, reason), (stored.gate_result, stored.gate_reason));
}

/// Invariants 3 and 9.
async fn the_fence_invalidates_claims_from_before_a_restore<B: Backend>() {
    use fernery_engine::pipeline::judging::Judged;
    use fernery_engine::pipeline::scheduling::Scheduled;
    let (world, _) = World::<B>::with_ticket("").await;
    world.emit().await;
    let (event, held) = world.take_events("one").await.pop().expect("an event");
    world.store.fence().await.expect("fenced");
    assert_eq!(world.schedule(event, held.clone()).await, Scheduled::ClaimLost);
    let (event, new) = world.take_events("one").await.pop().expect("free at once");
    assert!(new.claim_version > held.claim_version + 1);
    world.schedule(event, new).await;
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, good()).await;
    let held = world.take_executed("gate").await.pop().expect("executed");
    world.store.fence().await.expect("fenced");
    assert_eq!(world.judge_one(held).await, Judged::ClaimLost);
    assert_eq!(world.judge().await.len(), 1);
}
