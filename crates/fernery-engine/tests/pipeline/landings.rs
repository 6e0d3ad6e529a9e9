//! Patches on their way to a branch: which are tried, who could land them, and a run that is kept although a later one failed.

use crate::pipeline::hands::patching;
use crate::pipeline::world::{LEASE, World, bad, deciding, draft, good, record};
use crate::support::backend::{Backend, Postgres};
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, ObjectiveId, ObjectiveStatus, RunId};
use fernery_core::limits::LANDINGS_TRIED;
use fernery_core::pipeline::waiting::HOSTED_FOR;
use fernery_engine::StoreResult;
use fernery_engine::pipeline::acts::{Actor, Refusal};
use fernery_engine::pipeline::claims::Claimer;
use fernery_engine::pipeline::decisions;
use fernery_engine::pipeline::gate_input::{Evaluated, gate_input};
use fernery_engine::pipeline::judging::{self, Judged};
use fernery_engine::pipeline::landing::{self, LandBranch, Landing};
use fernery_engine::pipeline::objectives::{self, NewObjective};
use fernery_engine::pipeline::{Sql, hosts, journal, reading};
use std::sync::mpsc;

on_both_backends!(
    only_the_newest_patches_of_a_branch_are_tried_on_a_new_tip,
    patches_that_wait_for_a_person_are_found_however_many_have_landed_since,
    a_branch_that_cannot_be_looked_at_is_told_once_and_not_where_it_may_have_moved,
    a_reason_why_a_patch_did_not_land_outlasts_a_branch_that_cannot_be_looked_at,
    a_branch_that_another_process_has_too_is_left_to_that_one,
    who_could_land_a_patch_is_known_by_what_processes_say,
    a_run_that_passed_can_be_kept_when_what_came_after_it_did_not,
    a_landing_that_nobody_can_finish_any_more_can_be_given_up,
    a_repository_that_no_host_has_is_refused_with_those_that_there_are,
);

/// A landing of a patch that passed so long after the first instant.
fn put(sql: &mut dyn Sql, branch: &str, n: i64) {
    let id = format!("{branch}-{n:04}");
    put_for(sql, &id, &id, branch, n);
}

fn put_for(sql: &mut dyn Sql, id: &str, work: &str, branch: &str, n: i64) {
    let at = Timestamp::from_millis(n);
    let cells = [
        id.into(),
        "a".into(),
        id.into(),
        work.into(),
        "app".into(),
        branch.into(),
        "base".into(),
        None::<&str>.into(),
        None::<&str>.into(),
        "sha".into(),
        at.into(),
        false.into(),
    ];
    sql.query(include_str!("../../src/pipeline/sql/landing_put.sql"), &cells).expect("written");
}

/// Writes how a landing stands.
fn write(sql: &mut dyn Sql, id: &str, how: &str) -> StoreResult<()> {
    let statement = format!("UPDATE landings SET {how} WHERE objective_id = $1 RETURNING objective_id;");
    // Statements live as long as the program.
    assert_eq!(sql.query(statement.leak(), &[id.into()])?.len(), 1);
    Ok(())
}

fn branch(name: &str) -> LandBranch {
    let (azolla_id, repo_ref) = (AzollaId::stored("a"), "app".to_string());
    LandBranch { azolla_id, repo_ref, base_branch: name.into() }
}

fn untried(sql: &mut dyn Sql, on: &str, tip: &str) -> Vec<Landing> {
    landing::untried(sql, &branch(on), tip, 1_000).expect("read")
}

async fn only_the_newest_patches_of_a_branch_are_tried_on_a_new_tip<B: Backend>() {
    let world = World::<B>::new("").await;
    let look = |sql: &mut dyn Sql| {
        for n in 0..LANDINGS_TRIED + 2 {
            put(sql, "main", n);
        }
        put(sql, "old", 0);
        let branches = landing::branches(sql, &AzollaId::stored("a"))?;
        let names: Vec<&str> = branches.iter().map(|on| on.base_branch.as_str()).collect();
        assert_eq!(names, ["main", "old"]);
        let first = untried(sql, "main", "tip");
        let oldest = landing::of(sql, &ObjectiveId::stored("main-0001"))?.expect("a landing");
        assert_eq!((first.len() as i64, first.contains(&oldest)), (LANDINGS_TRIED, false));
        assert_eq!(first[0].objective_id.as_str(), format!("main-{:04}", LANDINGS_TRIED + 1));
        assert_eq!(untried(sql, "old", "tip").len(), 1, "each branch by itself");
        let told = landing::left_out(sql, &[oldest, first[0].clone()])?;
        assert_eq!(told, [true, false], "who is left out is told");
        // One that lands makes room for one that is older.
        let landed =
            "UPDATE landings SET open = false WHERE objective_id = 'main-0050' RETURNING objective_id;";
        assert_eq!(sql.query(landed, &[])?.len(), 1);
        let next = untried(sql, "main", "tip");
        assert!(next.iter().any(|of| of.objective_id.as_str() == "main-0001"));
        assert!(!next.iter().any(|of| of.objective_id.as_str() == "main-0000"));
        assert_eq!(untried(sql, "main", ""), [], "none that was tried on this tip");
        Ok(())
    };
    world.substrate.transact(look).await.expect("looked at");
}

async fn patches_that_wait_for_a_person_are_found_however_many_have_landed_since<B: Backend>() {
    let world = World::<B>::new("").await;
    let look = |sql: &mut dyn Sql| {
        let a = AzollaId::stored("a");
        let who = Actor("operator".into());
        // (ticket, unconfirmed, what is written on its landing)
        let mut all: Vec<(String, bool, String)> = vec![
            ("conflicts".into(), true, "fit = 'CONFLICTS', why = 'the same lines'".into()),
            ("stopped".into(), false, "fit = 'MERGES', why = 'gate tests'".into()),
            ("unmerged".into(), false, "fit = 'MERGES'".into()),
            ("untried".into(), false, "fit = NULL".into()),
            ("unconfirmed".into(), true, "fit = 'MERGES'".into()),
            ("wanted".into(), false, "state = 'WANTED', wanted = true, why = 'once more'".into()),
        ];
        all.extend((0..60).map(|n| (format!("landed-{n}"), false, "state = 'LANDED', open = false".into())));
        for (n, (id, unconfirmed, written)) in all.iter().enumerate() {
            let objective_id = ObjectiveId::stored(id);
            let new = NewObjective::new(&objective_id, &a, draft("Do it"));
            assert!(objectives::create(sql, &who, &new)?.is_ok());
            let done = "UPDATE objectives SET status = 'DONE', unconfirmed = $2 WHERE objective_id = $1 RETURNING objective_id;";
            assert_eq!(sql.query(done, &[id.as_str().into(), (*unconfirmed).into()])?.len(), 1);
            put_for(sql, id, id, "main", n as i64);
            write(sql, id, written)?;
        }
        let stopped = landing::stopped(sql, &a, 10)?;
        let named: Vec<(&str, bool, Option<&str>)> = stopped
            .iter()
            .map(|(row, of)| (row.objective.objective_id.as_str(), of.confirmed, of.patch.why.as_deref()))
            .collect();
        assert_eq!(
            named,
            [("conflicts", false, Some("the same lines")), ("stopped", true, Some("gate tests"))]
        );
        assert_eq!(landing::stopped(sql, &a, 1)?.len(), 1);
        let unmerged = landing::unmerged(sql, [&a], 1)?.expect("some");
        assert_eq!((unmerged.first, unmerged.count), (vec![ObjectiveId::stored("unmerged")], 2));
        assert_eq!(unmerged.since, Timestamp::from_millis(2));
        assert_eq!(landing::unmerged(sql, [&AzollaId::stored("b")], 3)?, None);
        // Whoever put it off does not want to see it.
        let until = sql.calendar().after(LEASE);
        let put = include_str!("../../src/pipeline/sql/snooze_put.sql");
        assert_eq!(sql.query(put, &["objective".into(), "conflicts".into(), until.into()])?.len(), 1);
        assert_eq!(landing::stopped(sql, &a, 10)?.len(), 1);
        Ok(())
    };
    world.substrate.transact(look).await.expect("looked at");
}

async fn a_branch_that_cannot_be_looked_at_is_told_once_and_not_where_it_may_have_moved<B: Backend>() {
    let world = World::<B>::with_ticket("").await.0;
    let look = |sql: &mut dyn Sql| {
        put_for(sql, "t", "t", "main", 1);
        let found = untold(sql, "gone")?;
        assert_eq!(found.len(), 1);
        assert!(landing::unreachable(sql, &found[0], "gone")?);
        let told = landing::of(sql, &ObjectiveId::stored("t"))?.expect("a landing");
        let why = Some("its branch cannot be looked at: gone");
        assert_eq!((told.why.as_deref(), told.fit, told.tip.as_str()), (why, None, ""));
        assert_eq!(untold(sql, "gone")?, [], "once");
        let found = untold(sql, "another reason")?;
        assert_eq!(found.len(), 1);
        assert!(landing::unreachable(sql, &found[0], "another reason")?);
        // It is there again: it is tried, and says so no longer.
        let again = untried(sql, "main", "tip");
        assert_eq!(again.len(), 1);
        assert!(landing::tried(sql, &again[0], "tip", &landing::Tried::default())?);
        assert_eq!(landing::of(sql, &ObjectiveId::stored("t"))?.and_then(|of| of.why), None);
        for (stands, left) in
            [("state = 'WANTED'", "state = 'OPEN'"), ("moved_to = 'after'", "moved_to = NULL")]
        {
            let seen = landing::of(sql, &ObjectiveId::stored("t"))?.expect("a landing");
            write(sql, "t", stands)?;
            assert_eq!(untold(sql, "gone")?, [], "{stands}");
            assert!(!landing::unreachable(sql, &seen, "gone")?, "{stands}");
            write(sql, "t", left)?;
        }
        Ok(())
    };
    world.substrate.transact(look).await.expect("looked at");
}

/// What process `one` would write on landings.
fn untold(sql: &mut dyn Sql, why: &str) -> StoreResult<Vec<Landing>> {
    landing::untold(sql, &branch("main"), ("one", why), 10)
}

async fn a_reason_why_a_patch_did_not_land_outlasts_a_branch_that_cannot_be_looked_at<B: Backend>() {
    let world = World::<B>::with_ticket("").await.0;
    let look = |sql: &mut dyn Sql| {
        put_for(sql, "t", "t", "main", 1);
        let seen = landing::of(sql, &ObjectiveId::stored("t"))?.expect("a landing");
        // Gates that failed on the merged files, lines that conflict, and trouble.
        for own in [
            "tip = 'tip', fit = 'MERGES', why = 'gate tests'",
            "fit = 'CONFLICTS'",
            "tip = '', fit = NULL, tries = 3",
        ] {
            write(sql, "t", own)?;
            let before = landing::of(sql, &ObjectiveId::stored("t"))?;
            assert_eq!(untold(sql, "gone")?, [], "{own}");
            assert!(!landing::unreachable(sql, &seen, "gone")?, "{own}");
            assert_eq!(landing::of(sql, &ObjectiveId::stored("t"))?, before, "{own}");
        }
        Ok(())
    };
    world.substrate.transact(look).await.expect("looked at");
}

async fn a_branch_that_another_process_has_too_is_left_to_that_one<B: Backend>() {
    let world = World::<B>::with_ticket("").await.0;
    let told = async || {
        let look = |sql: &mut dyn Sql| untold(sql, "gone");
        world.substrate.read(look).await.expect("read").len()
    };
    let say = async |owner: &'static str, repo: &'static str| {
        let hosted = [AzollaId::stored("a")];
        let said = world.substrate.transact(move |sql| hosts::say(sql, owner, &hosted, &[repo.to_string()]));
        said.await.expect("said");
    };
    let put = |sql: &mut dyn Sql| {
        put_for(sql, "t", "t", "main", 1);
        Ok(())
    };
    world.substrate.transact(put).await.expect("written");
    say("one", "app").await;
    assert_eq!(told().await, 1, "alone");
    say("two", "web").await;
    assert_eq!(told().await, 1, "the other has another repository");
    say("two", "app").await;
    assert_eq!(told().await, 0, "the other looks");
    world.advance(HOSTED_FOR.as_secs() + 1).await;
    say("one", "app").await;
    assert_eq!(told().await, 1, "the other has been silent for long");
}

async fn who_could_land_a_patch_is_known_by_what_processes_say<B: Backend>() {
    let world = World::<B>::new("").await;
    let azolla = AzollaId::stored("a");
    let lacks = || {
        let azolla = azolla.clone();
        let look = move |sql: &mut dyn Sql| hosts::lacks(sql, &azolla, ("app", "main"));
        world.substrate.transact(look)
    };
    let said = async || lacks().await.expect("read").map(|waiting| waiting.sentence());
    let say = |owner: &'static str, repos: &'static [&'static str]| {
        let azolla = azolla.clone();
        let repos: Vec<String> = repos.iter().map(|name| name.to_string()).collect();
        world.substrate.transact(move |sql| hosts::say(sql, owner, std::slice::from_ref(&azolla), &repos))
    };
    let leave =
        |owner: &'static str, alone| world.substrate.transact(move |sql| hosts::leave(sql, owner, alone));
    assert!(said().await.is_some_and(|why| why.contains("no process hosts azolla a")));
    say("one", &["web"]).await.expect("said");
    let why = said().await.expect("nobody has it");
    assert!(why.contains("no process that hosts azolla a has repository app"), "{why}");
    assert!(why.contains("--repos app=PATH#main"), "it names what helps: {why}");
    say("two", &["app", "web"]).await.expect("said");
    assert_eq!(said().await, None);
    leave("two", false).await.expect("left");
    assert!(said().await.is_some_and(|why| why.contains("has repository app")));
    say("two", &["app"]).await.expect("said");
    world.advance(HOSTED_FOR.as_secs() + 1).await;
    assert!(said().await.is_some_and(|why| why.contains("no process hosts")), "who is silent is gone");
    say("two", &["app"]).await.expect("said");
    leave("one", true).await.expect("left");
    assert!(said().await.is_some_and(|why| why.contains("no process hosts")), "all are");
}

async fn kept<B: Backend>(
    world: &World<B>,
    ticket: &ObjectiveId,
    run: &RunId,
    by: &decisions::Deciding,
) -> Result<decisions::Deciding, Refusal> {
    let (of, run, plain) = (ticket.clone(), run.clone(), by.clone());
    let kept = world.act(move |sql, who| decisions::confirm(sql, who, (&of, &run), &plain)).await;
    kept.map(|_| by.clone())
}

/// Works on a ticket once more.
async fn attempt<B: Backend>(world: &World<B>, result: serde_json::Value) -> Vec<Judged> {
    world.pass().await;
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, result).await;
    world.judge().await
}

async fn a_run_that_passed_can_be_kept_when_what_came_after_it_did_not<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("[retry]\ngate_failures = 0\n").await;
    attempt(&world, good()).await;
    let good_run = world.last_run(&ticket).await;
    let (of, again) = (ticket.clone(), deciding(None, Some("once more")));
    world.act(move |sql, who| decisions::reopen(sql, who, &of, &again)).await.expect("reopened");
    let early = kept(&world, &ticket, &good_run, &deciding(None, None)).await;
    assert!(
        matches!(&early, Err(Refusal::Status(now)) if now.status == ObjectiveStatus::Todo),
        "while it goes on: {early:?}"
    );
    attempt(&world, bad()).await;
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Blocked);
    let actions =
        world.chain(&ticket).await.pauses.last().expect("a pause").pause.prioritized_actions.clone();
    let keep = format!("fernery ticket confirm t --run {good_run}");
    assert!(actions.iter().any(|action| action.ends_with(&keep)), "{actions:?}");
    assert!(actions.len() <= 3, "{actions:?}");
    // Only the run that passed.
    let bad_run = world.last_run(&ticket).await;
    let other = kept(&world, &ticket, &bad_run, &deciding(None, None)).await;
    assert!(matches!(other, Err(Refusal::OtherRun(_))), "{other:?}");
    let by = decisions::Deciding { record_id: record(), ..deciding(None, None) };
    kept(&world, &ticket, &good_run, &by).await.expect("kept");
    let row = world.row(&ticket).await;
    assert_eq!((row.objective.status, row.unconfirmed), (ObjectiveStatus::Done, false));
    assert!(!row.objective.has_open_blockers() && row.objective.blocked_reason.is_none());
    // The answer was lost: the same again is the same.
    let before = world.dump().await;
    kept(&world, &ticket, &good_run, &by).await.expect("the same");
    assert_eq!(world.dump().await, before);
    assert_eq!(world.pass().await, [], "nothing more is worked on");
    // Who was cancelled is taken up again first.
    let (of, again) = (ticket.clone(), deciding(None, Some("once more")));
    world.act(move |sql, who| decisions::reopen(sql, who, &of, &again)).await.expect("reopened");
    world.cancel(&ticket).await.expect("cancelled");
    let cancelled = kept(&world, &ticket, &good_run, &deciding(None, None)).await;
    assert!(
        matches!(&cancelled, Err(Refusal::Status(now)) if now.why.contains("t is cancelled;")),
        "{cancelled:?}"
    );
}

/// A process was killed while it moved the branch, and the repository is not configured any more.
async fn a_landing_that_nobody_can_finish_any_more_can_be_given_up<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    attempt(&world, good()).await;
    world.confirm(&ticket).await.expect("confirmed");
    let moving = |sql: &mut dyn Sql| {
        let of = ObjectiveId::stored("t");
        let work = reading::passed_run(sql, &of)?.expect("a run").record.work_order_id;
        put_for(sql, "t", work.as_str(), "main", 1);
        let wanted =
            "UPDATE landings SET state = 'WANTED', wanted = true, wanted_at = $1 RETURNING objective_id;";
        let now = sql.now();
        sql.query(wanted, &[now.into()])?;
        let by = Claimer { owner_id: "dead".into(), ttl: LEASE };
        let next = landing::take_next(sql, &branch("main"), &by)?.expect("its turn");
        landing::moving(sql, &next, LEASE, ("before", "after"))
    };
    assert!(world.substrate.transact(moving).await.expect("written").is_some());
    let say = |repos: &'static [&'static str]| {
        let repos: Vec<String> = repos.iter().map(|name| name.to_string()).collect();
        let hosted = [AzollaId::stored("a")];
        world.substrate.transact(move |sql| hosts::say(sql, "other", &hosted, &repos))
    };
    let refused = async || match world.cancel(&ticket).await {
        Err(Refusal::Conflict(why)) => why,
        other => panic!("{other:?}"),
    };
    say(&["web"]).await.expect("said");
    assert!(refused().await.contains("is being moved"), "somebody may still be at it");
    world.advance(LEASE.as_secs() + 1).await;
    say(&["app"]).await.expect("said");
    assert!(refused().await.contains("is being moved"), "somebody can look, and will");
    say(&["web"]).await.expect("said");
    world.cancel(&ticket).await.expect("given up");
    let look = |sql: &mut dyn Sql| {
        assert_eq!(landing::of(sql, &ObjectiveId::stored("t"))?, None);
        journal::of_subject(sql, "t")
    };
    let entries = world.substrate.read(look).await.expect("read");
    let told = entries.iter().find(|entry| entry.act == "not_landed").expect("it is on record");
    let why = told.why["why"].as_str().expect("a reason");
    assert!(why.contains("main may have moved to commit after") && why.contains("app"), "{why}");
}

async fn a_repository_that_no_host_has_is_refused_with_those_that_there_are<B: Backend>() {
    let world = World::<B>::empty().await;
    world.put_in_force(patching("")).await;
    let new = |name: &str, repo: &str| {
        let mut draft = draft("Do it");
        draft.metadata.insert("repo_ref".into(), repo.into());
        NewObjective::new(&ObjectiveId::stored(name), &AzollaId::stored("a"), draft)
    };
    let create = async |name: &str, repo: &str| {
        let new = new(name, repo);
        world.act(move |sql, who| objectives::create(sql, who, &new)).await.map(drop)
    };
    create("early", "wbe").await.expect("nobody knows better");
    for (owner, repo) in [("one", "app"), ("two", "web")] {
        let hosted = [AzollaId::stored("a")];
        let said = world.substrate.transact(move |sql| hosts::say(sql, owner, &hosted, &[repo.to_string()]));
        said.await.expect("said");
    }
    create("good", "web").await.expect("one of them has it");
    let told = |refused: Result<(), Refusal>| match refused {
        Err(Refusal::Unfit(flaws)) => format!("{}: {}", flaws[0].path, flaws[0].message),
        other => panic!("{other:?}"),
    };
    let why = told(create("bad", "wbe").await);
    assert!(why.starts_with("/metadata/repo_ref: ") && why.ends_with("name one of: app, web"), "{why}");
    let edit = async |repo: &str| {
        let draft = new("good", repo).draft;
        let of = ObjectiveId::stored("good");
        world.act(move |sql, who| objectives::edit(sql, who, &of, &draft)).await.map(drop)
    };
    assert!(told(edit("wbe").await).contains("app, web"));
    edit("app").await.expect("edited");
    create("early", "wbe").await.expect("the same again is answered as it was");
}

/// A gate that read a workorder as unjudged, and comes to take it when another has just written its verdict, gets nothing. SQLite has
/// one writer, where nobody can come between.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_judged_workorder_is_not_taken_by_a_stale_reader_on_postgres() {
    let (world, _) = World::<Postgres>::with_ticket("").await;
    world.pass().await;
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, good()).await;
    let held = world.take_executed("slow").await.pop().expect("an executed workorder");
    world.advance(LEASE.as_secs() + 1).await;
    let ((written, is_written), (goes_on, go_on)) = (mpsc::channel(), mpsc::channel());
    let go_on = std::sync::Mutex::new(go_on);
    let slow = world.substrate.clone();
    let judging = tokio::spawn(async move {
        let judged = slow.transact(move |sql| {
            let id = fernery_core::artifact::WorkorderId::stored(&held.resource_id);
            let input = gate_input(sql, &id)?.expect("an input");
            let evaluated = Evaluated::plainly(&held, input).expect("plain gates");
            let judged = judging::conclude_all(sql, &[evaluated])?.pop();
            written.send(()).expect("somebody waits");
            go_on.lock().expect("no panic").recv().expect("somebody says so");
            Ok(judged)
        });
        judged.await.expect("judged")
    });
    tokio::task::spawn_blocking(move || is_written.recv()).await.expect("joined").expect("written");
    let other = world.elsewhere().await;
    let taking = tokio::spawn(async move { other.take_executed("other").await });
    // Until it has read the workorder, and waits for the row.
    let waits =
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock';";
    while world.sql(waits, &[]).await == 0 {
        tokio::task::yield_now().await;
    }
    goes_on.send(()).expect("it waits");
    assert!(matches!(judging.await.expect("joined"), Some(Judged::Recorded(_))));
    assert_eq!(taking.await.expect("joined"), [], "it was judged meanwhile");
}
