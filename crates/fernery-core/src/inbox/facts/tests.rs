use super::*;
use crate::artifact::{BlockerId, BlockerKind, CandidateId};
use serde_json::json;

const HOUR: Duration = Duration::from_secs(3600);
/// What the blueprint says if nobody changes it.
pub(in crate::inbox) const URGENCY: [Option<Duration>; 5] = [
    Some(Duration::ZERO),
    Some(Duration::from_secs(86_400)),
    Some(Duration::from_secs(7 * 86_400)),
    None,
    None,
];

pub(in crate::inbox) fn now() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().unwrap()
}

pub(in crate::inbox) fn own(candidates: u64) -> Own {
    let azolla_id = AzollaId::stored("task_management");
    let oldest_candidate = Some(now().before(HOUR));
    Own {
        azolla_id,
        candidates,
        oldest_candidate,
        pending_captures: 3,
        held_captures: 0,
        held_recurrences: 0,
        pressing: Vec::new(),
        unmerged: None,
        repos: None,
    }
}

pub(in crate::inbox) fn objective(id: &str, status: ObjectiveStatus) -> Objective {
    Objective {
        objective_id: ObjectiveId::stored(id),
        azolla_id: AzollaId::stored("mec"),
        title: format!("Title of {id}"),
        acceptance_criteria: "it works".into(),
        objective_type: ObjectiveType::Ticket,
        status,
        importance: 2,
        urgency: 3,
        blocked_reason: None,
        blocked_on: Vec::new(),
        metadata: Default::default(),
        created_at: now().before(2 * HOUR),
        updated_at: now().before(HOUR),
    }
}

fn blocker(id: &str, resolved: bool) -> BlockerRef {
    BlockerRef {
        blocker_id: BlockerId::stored(id),
        kind: BlockerKind::UserInput,
        description: "which colour?\nred or blue".into(),
        resolved,
    }
}

pub(in crate::inbox) fn told(objectives: Vec<Objective>, pauses: Vec<PauseState>) -> AzollaAnswer {
    let asked = Asked {
        azolla_id: AzollaId::stored("mec"),
        status: QueryStatus::Ok,
        server: None,
        as_of: Some(now()),
        unread: 0,
        full: false,
    };
    let (clocks, foreign, waits_for) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let patches = BTreeMap::new();
    AzollaAnswer { asked, objectives, pauses, clocks, foreign, waits_for, patches, blueprint: None }
}

fn pause(id: &str, reason: PauseReason) -> PauseState {
    PauseState {
        objective_id: ObjectiveId::stored(id),
        azolla_id: AzollaId::stored("mec"),
        reason,
        prioritized_actions: vec!["look".into()],
        created_at: now(),
    }
}

#[test]
fn each_state_that_needs_a_person_has_its_command_and_the_others_have_no_item() {
    use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};
    let blocked = |blocked_on| Objective { blocked_on, ..objective("T-1", Blocked) };
    let dated = |status| Objective {
        metadata: [("due_at".to_string(), json!("2026-11-15"))].into(),
        ..objective("T-1", status)
    };
    let cancelled = Objective { blocked_reason: Some("cancelled".into()), ..dated(Blocked) };
    let standing = Objective { objective_type: ObjectiveType::Standing, ..dated(New) };
    for (objective, command, why) in [
        (
            objective("T-1", New),
            "fernery ticket approve T-1",
            "waits for approval since 2026-11-16 10:00 UTC",
        ),
        (
            objective("T-1", Done),
            "fernery ticket confirm T-1",
            "passed its gates and waits to be confirmed since 2026-11-16 11:00 UTC",
        ),
        (
            blocked(vec![blocker("a", true), blocker("b", false)]),
            "fernery ticket unblock T-1 --blocker b",
            "waits on which colour? red or blue",
        ),
        (
            blocked(vec![blocker("a", false), blocker("b", false)]),
            "fernery ticket unblock T-1 --all",
            "blocked on 2 things: nobody said why",
        ),
        (blocked(vec![]), "fernery ticket unblock T-1 --all", "blocked: nobody said why"),
        (
            dated(Todo),
            "fernery snooze T-1 tomorrow",
            "overdue since 2026-11-15 23:59 UTC | nobody works on it yet",
        ),
        (
            dated(InProgress),
            "fernery snooze T-1 tomorrow",
            "overdue since 2026-11-15 23:59 UTC | still under way",
        ),
        (
            Objective { urgency: 1, ..objective("T-1", New) },
            "fernery ticket approve T-1",
            "waits for approval since 2026-11-16 10:00 UTC",
        ),
        (
            Objective { urgency: 0, ..objective("T-1", New) },
            "fernery ticket approve T-1",
            "waits longer than urgency 0 allows | waits for approval since 2026-11-16 10:00 UTC",
        ),
        (objective("T-1", Todo), "", ""),
        (objective("T-1", InProgress), "", ""),
        (cancelled, "", ""),
        (standing, "", ""),
    ] {
        let found = facts(&[told(vec![objective], vec![])], &own(0), &URGENCY, now()).items;
        let first = found.first().map(|item| (item.command.clone(), item.why.join(" | ")));
        assert_eq!(first.unwrap_or_default(), (command.to_string(), why.to_string()));
    }
}

#[test]
fn a_ticket_whose_text_must_change_is_to_be_edited_before_it_is_unblocked() {
    let command = |blocker: BlockerRef, first: &str, changed_at: Timestamp| {
        let objective = objective("T-1", ObjectiveStatus::Blocked);
        let blocked = Objective { blocked_on: vec![blocker], updated_at: changed_at, ..objective };
        let stop =
            PauseState { prioritized_actions: vec![first.into()], ..pause("T-1", PauseReason::GateFailed) };
        facts(&[told(vec![blocked], vec![stop])], &own(0), &URGENCY, now()).items[0].command.clone()
    };
    let named = BlockerRef {
        description: "no such repository. Name one: fernery ticket edit T-1 --meta repo_ref=NAME".into(),
        ..blocker("b", false)
    };
    let asks = "Say more in the ticket (fernery ticket edit T-1)";
    assert_eq!(command(named.clone(), "Fix this", now()), "fernery ticket edit T-1");
    assert_eq!(command(blocker("b", false), asks, now()), "fernery ticket edit T-1");
    let asked = "Answer it: fernery ticket answer T-1 \"…\"   (which colour?)";
    assert_eq!(command(blocker("b", false), asked, now()), "fernery ticket answer T-1 \"…\"");
    let unblock = "fernery ticket unblock T-1 --blocker b";
    assert_eq!(command(blocker("b", false), "look", now()), unblock);
    assert_eq!(command(named, "Fix this", now().after(HOUR)), unblock, "it was edited since");
}

#[test]
fn candidates_are_one_item_and_captures_that_wait_for_triage_are_none() {
    assert_eq!(facts(&[], &own(0), &URGENCY, now()).items, []);
    let found = facts(&[], &own(2), &URGENCY, now());
    assert_eq!(found.items[0].item_id, "task_management/triage");
    assert_eq!((found.items[0].command.as_str(), found.items.len()), ("fernery triage", 1));
    assert_eq!(found.items[0].title, "2 candidates wait in the inbox");
}

#[test]
fn an_azolla_elsewhere_has_its_server_in_the_command_and_one_that_did_not_answer_has_no_item() {
    let mut there = told(vec![objective("T-1", ObjectiveStatus::New)], vec![]);
    for (server, command) in [
        ("https://x.org:8443/a", "fernery ticket approve T-1 --url https://x.org:8443/a"),
        ("http://x/$(id)'", "fernery ticket approve T-1 --url 'http://x/$(id)'\\'''"),
    ] {
        there.asked.server = Some(server.to_string());
        assert_eq!(facts(std::slice::from_ref(&there), &own(0), &URGENCY, now()).items[0].command, command);
    }
    for status in [QueryStatus::Denied, QueryStatus::TargetUnavailable] {
        there.asked.status = status;
        let found = facts(std::slice::from_ref(&there), &own(0), &URGENCY, now());
        assert_eq!((found.items.len(), found.asked.len()), (0, 1));
    }
}

#[test]
fn the_most_pressing_comes_first_and_what_is_over_the_limit_is_counted() {
    use ObjectiveStatus::{Blocked, Done, New};
    let all = vec![
        objective("new", New),
        Objective { importance: 0, ..objective("important", New) },
        objective("done", Done),
        Objective { blocked_on: vec![blocker("b", false)], ..objective("question", Blocked) },
        objective("spent", Blocked),
        objective("stuck", Blocked),
        Objective { urgency: 0, ..objective("late", New) },
        objective("new", New),
        objective("triage", New),
    ];
    let pauses = vec![pause("spent", PauseReason::BudgetExhausted), pause("done", PauseReason::RunComplete)];
    let found = facts(&[told(all, pauses)], &own(1), &URGENCY, now());
    let order: Vec<_> = found.items.iter().map(|item| item.item_id.as_str()).collect();
    assert_eq!(
        order,
        [
            "mec/late",
            "mec/question",
            "mec/spent",
            "mec/important",
            "mec/done",
            "mec/stuck",
            "mec/new",
            "mec/ticket/triage",
            "task_management/triage"
        ]
    );
    assert_eq!(found.pauses().len(), 2);
    let many = (0..60).map(|n| objective(&format!("T-{n}"), New)).collect();
    let found = facts(&[told(many, vec![])], &own(0), &URGENCY, now());
    assert_eq!((found.items.len(), found.more), (ITEMS_MAX, 10));
}

#[test]
fn the_digest_changes_with_what_matters_and_not_with_the_time() {
    let one = || told(vec![objective("T-1", ObjectiveStatus::New)], vec![]);
    let digest = |told: AzollaAnswer, own: Own, now| facts(&[told], &own, &URGENCY, now).digest();
    let first = digest(one(), own(1), now());
    let mut later = one();
    later.asked.as_of = Some(now().after(HOUR));
    assert_eq!(digest(later, Own { pending_captures: 9, ..own(1) }, now().after(HOUR)), first);
    assert_ne!(digest(one(), own(2), now()), first);
    let mut changed = one();
    changed.objectives[0].importance = 0;
    assert_ne!(digest(changed, own(1), now()), first);
    let mut gone = one();
    gone.asked.status = QueryStatus::Denied;
    assert_ne!(digest(gone, own(1), now()), first);
    let mut soon = one();
    soon.objectives[0].urgency = 1;
    let before = digest(soon.clone(), own(1), now());
    assert_ne!(digest(soon, own(1), now().after(30 * HOUR)), before, "it is overdue now");
}

#[test]
fn a_pause_that_tells_no_action_gets_the_command() {
    let mut silent = pause("T-1", PauseReason::GateFailed);
    silent.prioritized_actions = vec![" \n".into()];
    let found = facts(
        &[told(vec![objective("T-1", ObjectiveStatus::Blocked)], vec![silent])],
        &own(0),
        &URGENCY,
        now(),
    );
    assert_eq!(found.pauses()[0].prioritized_actions, ["fernery ticket unblock T-1 --all"]);
    assert_eq!(found.items[0].why, ["blocked: nobody said why"], "no run is known");
}

/// Of an objective that its azolla does not tell, a pause is what is known.
#[test]
fn pauses_are_shown_where_objectives_are_denied_or_left_out() {
    let mut there = told(vec![], vec![pause("T-1", PauseReason::BudgetExhausted)]);
    there.asked.status = QueryStatus::Denied;
    let found = facts(std::slice::from_ref(&there), &own(0), &URGENCY, now());
    let [item] = &found.items[..] else { panic!("{found:?}") };
    assert_eq!((item.item_id.as_str(), item.command.as_str()), ("mec/T-1", "fernery ticket show T-1"));
    assert_eq!(item.why, ["its budget is spent since 2026-11-16 12:00 UTC; mec tells no more"]);
    assert_eq!(found.pauses().len(), 1);
    (there.asked.status, there.asked.full) = (QueryStatus::Ok, true);
    let cut = facts(std::slice::from_ref(&there), &own(0), &URGENCY, now());
    assert_eq!(cut.items, found.items, "it was not among as many as one answer takes");
    assert!(!cut.asked[0].is_seen());
    let cancelled =
        Objective { blocked_reason: Some("cancelled".into()), ..objective("T-1", ObjectiveStatus::Blocked) };
    there.objectives.push(cancelled);
    assert!(facts(&[there], &own(0), &URGENCY, now()).items.is_empty(), "it was told, and is not open");
}

#[test]
fn what_has_an_id_of_another_form_is_shown_and_stands_in_no_command() {
    let own_id = "PROJ.12/3; rm -rf ~";
    let mut value = json!(objective("T-1", ObjectiveStatus::New));
    value["objective_id"] = json!(own_id);
    let read = foreign::objective(&value).expect("it is shown");
    assert_eq!(read, foreign::objective(&value).unwrap(), "always under the same id");
    assert_eq!(foreign::own_id(&read), own_id);
    assert!(ObjectiveId::new(read.objective_id.as_str()).is_ok(), "{read:?}");
    let mut stopped = json!(pause("T-1", PauseReason::GateFailed));
    stopped["objective_id"] = json!(own_id);
    let (stopped, own_of_pause) = foreign::pause(&stopped).expect("it is shown");
    assert_eq!((&stopped.objective_id, own_of_pause.as_deref()), (&read.objective_id, Some(own_id)));
    let found = facts(&[told(vec![read.clone()], vec![stopped.clone()])], &own(0), &URGENCY, now());
    assert_eq!(found.items[0].command, "look at \"PROJ.12/3; rm -rf ~\" in mec");
    assert!(found.items[0].title.starts_with("PROJ.12/3; rm -rf ~: Title"), "{found:?}");
    assert_eq!(found.items[0].pause.as_ref().map(|pause| &pause.objective_id), Some(&read.objective_id));
    let mut alone = told(vec![], vec![stopped]);
    alone.foreign.insert(read.objective_id.clone(), own_id.to_string());
    let found = facts(&[alone], &own(0), &URGENCY, now());
    assert_eq!(found.items[0].command, "look at \"PROJ.12/3; rm -rf ~\" in mec");
    let overdue = deadline::overdue_pause(&read, &AzollaId::stored("a"), Some("https://x"), now(), now());
    assert_eq!(overdue.prioritized_actions.len(), 1);
    assert!(overdue.prioritized_actions[0].ends_with("in mec at https://x"), "{overdue:?}");

    let mut blocked = json!(Objective {
        blocked_on: vec![blocker("b", false)],
        ..objective("T-1", ObjectiveStatus::Blocked)
    });
    blocked["blocked_on"][0]["blocker_id"] = json!("b.1");
    let read = foreign::objective(&blocked).expect("it is shown");
    let found = facts(&[told(vec![read], vec![])], &own(0), &URGENCY, now());
    assert_eq!(found.items[0].command, "fernery ticket show T-1");
    assert_eq!(foreign::objective(&json!({ "objective_id": "x" })), None);
}

#[test]
fn facts_that_were_kept_before_unread_artifacts_were_counted_have_the_digest_they_had() {
    let kept = json!({
        "asked": [
            { "azolla_id": "mec", "status": "OK", "server": null, "as_of": "2026-11-16T12:00:00Z" },
            { "azolla_id": "far", "status": "TARGET_UNAVAILABLE", "server": "http://far:7878", "as_of": null },
        ],
        "items": [{
            "item_id": "mec/T-1",
            "azolla_id": "mec",
            "objective_id": "T-1",
            "title": "Title of T-1",
            "why": ["waits for approval since 2026-11-16 10:00 UTC"],
            "command": "fernery ticket approve T-1",
            "importance": 2,
            "urgency": 3,
            "due_at": null,
            "overdue": false,
            "status": "NEW",
            "pause": null,
            "score_terms": [["status", 10]],
        }],
        "more": 1,
        "pending_captures": 2,
    });
    let mut facts: Facts = serde_json::from_value(kept.clone()).unwrap();
    let three = json!([["mec", "OK", null], ["far", "TARGET_UNAVAILABLE", "http://far:7878"]]);
    assert_eq!(facts.digest(), digest_of(&(three, &kept["items"], 1)));
    let before = facts.digest();
    facts.asked[0].unread = 1;
    assert_ne!(facts.digest(), before, "what nobody could read matters");
    (facts.asked[0].unread, facts.asked[0].full) = (0, true);
    assert_ne!(facts.digest(), before, "that there may be more matters");
}

#[test]
fn captures_that_are_held_have_an_item_with_the_command_that_releases_them() {
    let named_so = told(vec![objective("held", ObjectiveStatus::New)], vec![]);
    let found = facts(&[named_so], &Own { held_captures: 2, ..own(0) }, &URGENCY, now());
    let ids: BTreeSet<_> = found.items.iter().map(|item| item.item_id.as_str()).collect();
    assert_eq!(ids, ["mec/ticket/held", "task_management/held"].into());
    let held = found.items.iter().find(|item| item.objective_id.is_none()).unwrap();
    assert_eq!(held.command, "fernery triage release");
    assert_eq!(held.title, "2 captures came with an import and are held");
    assert_eq!(found.pending_captures, 3, "they are counted apart");
    for (captures, lines, title) in [
        (0, 1, "1 recurring line came with an import and is held"),
        (1, 2, "1 capture and 2 recurring lines came with an import and are held"),
    ] {
        let own = Own { held_captures: captures, held_recurrences: lines, ..own(0) };
        let found = facts(&[], &own, &URGENCY, now());
        assert_eq!(found.items.iter().map(|item| item.title.as_str()).collect::<Vec<_>>(), [title]);
    }
}

#[test]
fn the_urgent_and_the_due_of_the_inbox_have_lines_of_their_own() {
    let candidate = |id: &str, urgency, due_at| Pressing {
        candidate_id: CandidateId::stored(id),
        title: format!("Title of {id}"),
        importance: 2,
        urgency,
        due_at,
        created_at: now().before(HOUR),
    };
    let pressing = vec![
        candidate("019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f", 0, None),
        candidate("due", 1, Some(now().after(HOUR))),
        candidate("late", 1, Some(now().before(HOUR))),
    ];
    let found = facts(&[], &Own { pressing, ..own(5) }, &URGENCY, now());
    let said: Vec<_> = found
        .items
        .iter()
        .map(|item| (item.command.as_str(), item.title.as_str(), item.why.join(" | ")))
        .collect();
    let since = "captured, and no ticket yet, since 2026-11-16 11:00 UTC";
    assert_eq!(
        said,
        [
            (
                "fernery triage promote late",
                "Title of late",
                format!("overdue since 2026-11-16 11:00 UTC | {since}")
            ),
            ("fernery triage promote due", "Title of due", format!("{since} | due 2026-11-16 13:00 UTC")),
            (
                "fernery triage promote 019a8c5e-07398f",
                "Title of 019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f",
                format!("urgent: now | {since}")
            ),
            (
                "fernery triage",
                "2 more candidates wait in the inbox",
                "nothing becomes a ticket before somebody promotes it; the oldest since 2026-11-16 11:00 UTC"
                    .to_string()
            ),
        ]
    );
}

#[test]
fn an_approval_that_would_be_refused_is_not_suggested() {
    let new = |metadata: serde_json::Value| Objective {
        metadata: serde_json::from_value(metadata).unwrap(),
        ..objective("T-1", ObjectiveStatus::New)
    };
    let command = |objective: Objective, repos: &[&str]| {
        let there =
            AzollaAnswer { blueprint: Some(Arc::new(Blueprint::mec())), ..told(vec![objective], vec![]) };
        let repos = Some(repos.iter().map(ToString::to_string).collect());
        facts(&[there], &Own { repos, ..own(0) }, &URGENCY, now()).items[0].command.clone()
    };
    let named = json!({"repo_ref": "web"});
    assert_eq!(command(new(named.clone()), &["web"]), "fernery ticket approve T-1");
    assert_eq!(command(new(named.clone()), &["app"]), "fernery ticket edit T-1 --meta repo_ref=app");
    assert_eq!(command(new(json!({})), &["app", "web"]), "fernery ticket edit T-1 --meta repo_ref=app");
    assert_eq!(command(new(named), &[]), "fernery ticket cancel T-1");
}

#[test]
fn what_a_person_does_is_theirs_from_the_start_and_until_it_is_done() {
    for status in [ObjectiveStatus::New, ObjectiveStatus::Todo, ObjectiveStatus::InProgress] {
        let there = AzollaAnswer {
            blueprint: Some(Arc::new(Blueprint::tasks())),
            ..told(vec![objective("T-1", status)], vec![])
        };
        let found = facts(&[there], &own(0), &URGENCY, now());
        assert_eq!(found.items[0].command, "fernery done T-1");
        assert_eq!(found.items[0].why, ["yours to do since 2026-11-16 10:00 UTC"]);
    }
}

#[test]
fn a_ticket_that_waits_for_another_one_asks_nobody_and_the_other_one_says_who_waits() {
    use crate::pipeline::dependency::Stands;
    let waiting = |stands, due: &str| {
        let waits = Objective {
            blocked_on: vec![BlockerRef { kind: BlockerKind::DependencyChange, ..blocker("b1", false) }],
            metadata: [("due_at".to_string(), json!(due))].into(),
            ..objective("T-2", ObjectiveStatus::Blocked)
        };
        let of = Dependency { blocker_id: BlockerId::stored("b1"), on: ObjectiveId::stored("T-1"), stands };
        AzollaAnswer {
            waits_for: [(waits.objective_id.clone(), vec![of])].into(),
            ..told(vec![objective("T-1", ObjectiveStatus::New), waits], vec![])
        }
    };
    let page = |told: AzollaAnswer| -> Vec<(String, String)> {
        let items = facts(&[told], &own(0), &URGENCY, now()).items;
        items.into_iter().map(|item| (item.command, item.why.join(" | "))).collect()
    };
    let approve = "fernery ticket approve T-1".to_string();
    let first =
        (approve.clone(), "waits for approval since 2026-11-16 10:00 UTC | T-2 waits for it".to_string());
    assert_eq!(page(waiting(Stands::NotApproved, "2026-12-24")), [first]);
    let late = page(waiting(Stands::NotApproved, "2026-11-15"));
    let why = "overdue since 2026-11-15 23:59 UTC | waits for T-1, which nobody has approved yet".to_string();
    assert!(late.contains(&(approve, why)), "{late:?}");
    let late = page(waiting(Stands::UnderWay, "2026-11-15"));
    assert!(late.iter().any(|(command, _)| command == "fernery snooze T-2 tomorrow"), "{late:?}");
    let given_up = page(waiting(Stands::Cancelled, "2026-12-24"));
    let unblock = "fernery ticket unblock T-2 --blocker b1";
    let said = |(command, why): &&(String, String)| {
        command == unblock && why.starts_with("waits for T-1, which was cancelled")
    };
    assert!(given_up.iter().find(said).is_some(), "{given_up:?}");
}

#[test]
fn a_question_is_told_without_the_gate_that_noted_it() {
    let asks = Objective {
        blocked_on: vec![blocker("b1", false)],
        blocked_reason: Some("gate outcome: the outcome is BLOCKED: which colour?".into()),
        ..objective("T-1", ObjectiveStatus::Blocked)
    };
    let mut pause = pause("T-1", PauseReason::GateFailed);
    pause.prioritized_actions = vec!["Answer it: fernery ticket answer T-1 \"…\"".into()];
    let item = facts(&[told(vec![asks], vec![pause])], &own(0), &URGENCY, now()).items.remove(0);
    assert_eq!(item.why, ["waits on which colour? red or blue"]);
    assert_eq!(item.command, "fernery ticket answer T-1 \"…\"");
}
