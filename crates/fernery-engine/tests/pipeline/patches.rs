//! Azollas that make patches: what starts nowhere is not approved, and what is no patch never passes.

use crate::pipeline::hands::{id, patching};
use crate::pipeline::world::{World, deciding, draft};
use crate::support::backend::Backend;
use fernery_core::StreamName;
use fernery_core::artifact::{GateResult, ObjectiveId, ObjectiveStatus, SnapshotId, WorkorderId};
use fernery_core::blueprint::Gate;
use fernery_core::names::WorkerId;
use fernery_core::pipeline::ground::{Ground, Premises};
use fernery_engine::door;
use fernery_engine::pipeline::acts::Refusal;
use fernery_engine::pipeline::decisions;
use fernery_engine::pipeline::gate_input::{self, Evaluated};
use fernery_engine::pipeline::judging::{self, Judged};
use fernery_engine::pipeline::objectives::{self, NewObjective};
use fernery_engine::pipeline::scheduling::{self, ClaimedEvent, Ids, Scheduled};
use fernery_engine::store::{Ask, Claimed as Job};
use serde_json::{Value, json};

const COMMIT: &str = "1111111111111111111111111111111111111111";
const PATCH: &str = "diff --git a/a.txt b/a.txt\n\
    index ce013625030ba8dba906f756967f9e9ca394464a..cc628ccd10742baea8241c5924df992b5c019f71 100644\n\
    --- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-hello\n+world\n";

on_both_backends!(
    work_that_would_start_nowhere_is_not_approved,
    what_is_no_patch_never_becomes_done,
    work_under_a_blueprint_of_an_earlier_version_is_judged_as_a_patch,
);

/// A ticket with metadata of its own.
pub(crate) async fn named<B: Backend>(world: &World<B>, name: &str, metadata: Value) -> ObjectiveId {
    let (ticket, azolla) = (id(name), world.azolla.clone());
    let (of, mut draft) = (ticket.clone(), draft("Do it"));
    draft.metadata = serde_json::from_value(metadata).expect("metadata");
    let new = NewObjective::new(&of, &azolla, draft);
    world.act(move |sql, who| objectives::create(sql, who, &new)).await.expect("created");
    ticket
}

async fn work_that_would_start_nowhere_is_not_approved<B: Backend>() {
    let world = World::<B>::empty().await;
    world.put_in_force(patching("")).await;
    let ticket = named(&world, "t", json!({})).await;
    let asked = async |repos: &[&str], note| {
        let mut deciding = deciding(None, note);
        let repos = repos.iter().map(ToString::to_string).collect();
        deciding.premises = Some(Premises { hosted: vec![world.azolla.clone()], repos });
        let of = ticket.clone();
        world.act(move |sql, who| decisions::approve(sql, who, &of, &deciding)).await
    };
    let before = world.dump().await;
    let Err(Refusal::NoRepository(why)) = asked(&[], None).await else { panic!("it was approved") };
    assert!(why.contains("`fernery init`"), "{why}");
    let Err(Refusal::NoRepository(why)) = asked(&["app", "web"], None).await else {
        panic!("it was approved")
    };
    assert!(why.contains("This server has: app, web"), "{why}");
    assert_eq!(world.dump().await, before, "not a word was written");

    let mut edited = draft("Do it");
    edited.metadata.insert("repo_ref".into(), "app".into());
    let of = ticket.clone();
    world.act(move |sql, who| objectives::edit(sql, who, &of, &edited)).await.expect("edited");
    asked(&["app"], None).await.expect("approved");
    // The same again is answered as it was, be it that the repository is gone by now.
    asked(&["app"], Some("again")).await.expect("the same record");
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Todo);
}

/// The workorder of a pass of the scheduler, which has found this commit in the repository `app`.
pub(crate) async fn scheduled<B: Backend>(world: &World<B>, commit: &str) -> Job {
    world.emit().await;
    let (event, held) = world.take_events("scheduler").await.pop().expect("an event");
    let chance = door::Chance::default();
    let ids = Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) };
    let base = Ok(("main".to_string(), commit.to_string()));
    let ground = Some(Ground { repo_ref: Some("app".into()), base });
    let (azolla, claimed) = (world.azolla.clone(), [ClaimedEvent { event, held, ids, ground }]);
    let done = world.substrate.transact(move |sql| scheduling::schedule_all(sql, &azolla, &claimed)).await;
    assert!(matches!(done.expect("scheduled")[..], [Scheduled::Workorder(_)]));
    let streams =
        ["diazotroph:PATCH_DIAZOTROPH:app", "diazotroph:TEXT_DIAZOTROPH:app", "diazotroph:PATCH_DIAZOTROPH"];
    let streams = streams.map(StreamName::stored).to_vec().into();
    let ask = Ask { worker_id: WorkerId::stored("executor"), streams, max: 1 };
    world.store.claim(ask).await.expect("a claim").pop().expect("a workorder")
}

async fn what_is_no_patch_never_becomes_done<B: Backend>() {
    let world = World::<B>::empty().await;
    world.put_in_force(patching("[retry]\ngate_failures = 0\n")).await;
    let cases = [
        ("text", "this is no patch", json!("azolla/text"), "Says world", "gate patch: line 1"),
        ("empty", "", json!("azolla/empty"), "Says world", "gate patch: "),
        (
            "nowhere",
            PATCH,
            Value::Null,
            "Says world",
            "branch_name is missing; this patch is for the branch azolla/nowhere",
        ),
        ("other", PATCH, json!("main"), "Says world", "branch_name is not azolla/other"),
        ("silent", PATCH, json!("azolla/silent"), " ", "pr_description_draft is missing or empty"),
        ("good", PATCH, json!("azolla/good"), "Says world", ""),
    ];
    for (name, content, branch, description, reason) in cases {
        let ticket = named(&world, name, json!({"repo_ref": "app"})).await;
        world.approve(&ticket).await.expect("approved");
        let job = scheduled(&world, COMMIT).await;
        let chain = world.chain(&ticket).await;
        let told = &chain.context_snapshots[0].metadata;
        assert_eq!((&told["commit_sha"], &told["base_branch"]), (&json!(COMMIT), &json!("main")));
        let metadata =
            json!({"outcome": "PATCH", "branch_name": branch, "pr_description_draft": description});
        let result = json!({"title": "done", "content": content, "notes": "", "metadata": metadata});
        world.hand_in(&job, result).await;
        let held = world.take_executed("gate").await.pop().expect("executed");
        let of = WorkorderId::stored(&held.resource_id);
        let gate_input =
            world.substrate.read(move |sql| gate_input::gate_input(sql, &of)).await.expect("read");
        let evaluated = Evaluated::plainly(&held, gate_input.expect("a gate_input"));
        if reason.is_empty() {
            // Nothing is wrong with it by itself: whether it applies is found out in a clone.
            assert!(evaluated.is_none());
            continue;
        }
        let evaluated = evaluated.expect("it fails before anything has to run");
        let judged = world
            .substrate
            .transact(move |sql| judging::conclude_all(sql, std::slice::from_ref(&evaluated)))
            .await;
        let [Judged::Recorded(run)] = &judged.expect("judged")[..] else { panic!("{name} was not judged") };
        assert_eq!(run.gate_result, GateResult::Fail, "{name}");
        assert!(run.gate_reason.contains(reason), "{name}: {}", run.gate_reason);
        assert_eq!(world.status(&ticket).await, ObjectiveStatus::Blocked, "{name}");
    }
}

async fn work_under_a_blueprint_of_an_earlier_version_is_judged_as_a_patch<B: Backend>() {
    let world = World::<B>::empty().await;
    let mut stored = patching("[retry]\ngate_failures = 0\n");
    stored.gates.retain(|gate| !matches!(gate, Gate::Patch(_) | Gate::Applies));
    let own = stored.gates.clone();
    world.put_in_force(stored).await;
    let ticket = named(&world, "t", json!({})).await;
    world.approve(&ticket).await.expect("approved");
    let job = scheduled(&world, COMMIT).await;
    let metadata = json!({"outcome": "OUTPUT"});
    world.hand_in(&job, json!({"title": "done", "content": "text", "notes": "", "metadata": metadata})).await;
    let [Judged::Recorded(run)] = &world.judge().await[..] else { panic!("it was not judged") };
    assert!(run.gate_reason.contains("gate patch: line 1"), "{}", run.gate_reason);
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Blocked);
    // Judged again it is the same; and so is a run that an earlier version let pass by the gates of then.
    let judged = world.chain(&ticket).await.runs.pop().expect("a run");
    let mut then = judged.clone();
    then.evidence.truncate(own.len());
    for (run, wanted) in [(judged, GateResult::Fail), (then, GateResult::Pass)] {
        let again = world.substrate.read(move |sql| judging::replay(sql, &run)).await.expect("read");
        assert_eq!(again.expect("there").1.recorded().0, wanted);
    }
}
