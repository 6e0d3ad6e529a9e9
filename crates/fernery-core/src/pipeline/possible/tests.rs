use super::*;
use crate::Timestamp;
use crate::artifact::{AzollaId, ObjectiveId, PauseReason};
use crate::pipeline::dependency::Stands;
use serde_json::json;

fn ticket(status: ObjectiveStatus, blockers: &[(&str, bool)]) -> Objective {
    let blocked_on: Vec<_> = blockers
        .iter()
        .map(|(id, resolved)| {
            json!({"blocker_id": id, "kind": "USER_INPUT", "description": format!("what of {id}?"), "resolved": resolved})
        })
        .collect();
    let document = json!({"objective_id": "T-1", "azolla_id": "mec", "title": "x", "acceptance_criteria": "",
        "objective_type": "TICKET", "status": status, "importance": 2, "urgency": 2, "blocked_on": blocked_on,
        "blocked_reason": null, "metadata": {}, "created_at": Timestamp::from_millis(0),
        "updated_at": Timestamp::from_millis(5)});
    serde_json::from_value(document).expect("an objective")
}

fn cancelled(blockers: &[(&str, bool)]) -> Objective {
    Objective { blocked_reason: Some(CANCELLED.into()), ..ticket(ObjectiveStatus::Blocked, blockers) }
}

fn patch(state: LandingState, fit: Option<Fit>) -> Option<PatchState> {
    Some(PatchState { state, fit, why: None, waiting: None })
}

fn paused(at: i64, actions: &[&str]) -> Option<PauseState> {
    let (id, azolla) = (ObjectiveId::stored("T-1"), AzollaId::stored("mec"));
    let actions = actions.iter().map(ToString::to_string);
    Some(PauseState::new(id, azolla, PauseReason::GateFailed, actions, Timestamp::from_millis(at)))
}

/// What is possible and what is suggested, in a line.
fn told(state: &TicketState<'_>) -> String {
    let possible: Vec<&str> = state.possible().iter().map(|verb| verb.as_str()).collect();
    let command = state.suggested().map_or("nothing".to_string(), |(verb, command)| {
        assert!(state.allows(verb), "{command} is suggested and not possible: {possible:?}");
        command
    });
    format!("{} → {command}", possible.join(" "))
}

#[test]
fn what_is_possible_and_suggested_in_every_standing() {
    use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};
    let q = || Some(BlockerId::stored("q"));
    let run = || Some(RunId::stored("r1"));
    let (new, todo, busy, done) =
        (ticket(New, &[]), ticket(Todo, &[]), ticket(InProgress, &[]), ticket(Done, &[]));
    let one = ticket(Blocked, &[("a", true), ("q", false)]);
    let two = ticket(Blocked, &[("a", false), ("q", false)]);
    let (gone, gone_asking) = (cancelled(&[]), cancelled(&[("q", false)]));
    let of = TicketState::of;
    let unconfirmed = || TicketState { unconfirmed: true, ..of(&done) };
    let table = [
        (of(&new), "approve edit block cancel → fernery ticket approve T-1"),
        (TicketState { for_person: true, ..of(&new) }, "approve done edit block cancel → fernery done T-1"),
        (of(&todo), "edit block cancel → nothing"),
        (of(&busy), "cancel → nothing"),
        (TicketState { for_person: true, ..of(&busy) }, "done cancel → fernery done T-1"),
        (of(&one), "edit block unblock cancel → fernery ticket unblock T-1 --blocker q"),
        (of(&two), "edit block unblock cancel → fernery ticket unblock T-1 --all"),
        (
            TicketState { question: q(), ..of(&two) },
            "answer edit block unblock cancel → fernery ticket answer T-1 \"…\"",
        ),
        (
            TicketState { passed: run(), ..of(&one) },
            "edit block unblock keep cancel → fernery ticket unblock T-1 --blocker q",
        ),
        (
            TicketState { passed: run(), approved: Approved::Void, ..of(&one) },
            "edit block unblock cancel → fernery ticket unblock T-1 --blocker q",
        ),
        (of(&gone), "edit block unblock → fernery ticket unblock T-1 --all"),
        (TicketState { passed: run(), ..of(&gone) }, "edit block unblock → fernery ticket unblock T-1 --all"),
        (
            TicketState { question: q(), ..of(&gone_asking) },
            "answer edit block unblock → fernery ticket answer T-1 \"…\"",
        ),
        (unconfirmed(), "confirm reopen cancel → fernery ticket confirm T-1"),
        (
            TicketState { patch: patch(LandingState::Open, Some(Fit::Merges)), ..unconfirmed() },
            "confirm merge reopen cancel → fernery ticket confirm T-1",
        ),
        (
            TicketState { patch: patch(LandingState::Open, Some(Fit::Conflicts)), ..unconfirmed() },
            "confirm reopen cancel → fernery ticket reopen T-1 --note 'it conflicts with its base branch'",
        ),
        (of(&done), "reopen → nothing"),
        (
            TicketState { patch: patch(LandingState::Open, None), ..of(&done) },
            "merge reopen cancel → fernery ticket merge T-1",
        ),
        (
            TicketState { patch: patch(LandingState::Open, Some(Fit::Conflicts)), ..of(&done) },
            "reopen cancel → fernery ticket reopen T-1 --note 'it conflicts with its base branch'",
        ),
        (TicketState { patch: patch(LandingState::Wanted, None), ..of(&done) }, "reopen cancel → nothing"),
        (TicketState { patch: patch(LandingState::Moving, None), ..of(&done) }, " → nothing"),
        (TicketState { patch: patch(LandingState::Landed, None), ..of(&done) }, "reopen → nothing"),
    ];
    for (state, wanted) in table {
        assert_eq!(told(&state), wanted, "{state:?}");
    }
    // Before its last run has ended, a cancelled ticket is not taken up again.
    let ending = TicketState { running: true, ..of(&gone) };
    assert_eq!(ending.possible(), [Verb::Edit, Verb::Block]);
}

#[test]
fn a_pause_is_believed_as_long_as_nothing_has_changed_since() {
    let two = ticket(ObjectiveStatus::Blocked, &[("a", true), ("b", false)]);
    let next = |at| TicketState { pause: paused(at, &["Resolve a"]), ..TicketState::of(&two) }.next();
    assert_eq!(next(5), ["Resolve a"]);
    assert_eq!(next(4), ["Resolve b (what of b?), then: fernery ticket unblock T-1 --blocker b"]);
}

#[test]
fn what_goes_on_only_with_a_new_approval_is_not_said_to_go_on_by_itself() {
    let mut waits = ticket(ObjectiveStatus::Blocked, &[("a", false)]);
    let on = Dependency {
        blocker_id: BlockerId::stored("a"),
        on: ObjectiveId::stored("T-0"),
        stands: Stands::UnderWay,
    };
    let of =
        |approved| TicketState { approved, waits_for: vec![on.clone()], ..TicketState::of(&waits) }.next();
    assert!(of(Approved::Valid)[0].ends_with("Then it goes on by itself"), "{:?}", of(Approved::Valid));
    for approved in [Approved::Void, Approved::Never] {
        let said = of(approved);
        assert!(said.len() == 1 && said[0].ends_with("fernery ticket approve T-1"), "{said:?}");
    }
    waits.blocked_on[0].blocker_id = BlockerId::stored("b");
    let stopped =
        TicketState { approved: Approved::Void, pause: paused(9, &["Do b"]), ..TicketState::of(&waits) };
    let said = stopped.next();
    assert_eq!(said[0], "Do b");
    assert!(said[1].ends_with("after that it is NEW, then: fernery ticket approve T-1"), "{said:?}");
}

#[test]
fn a_patch_that_conflicts_or_did_not_land_says_so_before_anything_else() {
    let done = ticket(ObjectiveStatus::Done, &[]);
    let of = |unconfirmed, fit, why: &str| {
        let patch = PatchState { why: Some(why.into()), ..patch(LandingState::Open, fit).expect("one") };
        // The last pause is of its run, where nobody has asked for the merge.
        let pause = paused(5, &["Look at the output and confirm it"]);
        TicketState { unconfirmed, patch: Some(patch), pause, ..TicketState::of(&done) }.next()
    };
    let conflicts = of(true, Some(Fit::Conflicts), "main changed it's line");
    assert_eq!(
        conflicts,
        [
            "It conflicts with its base branch. Let it be worked on again: \
             fernery ticket reopen T-1 --note 'main changed it'\\''s line'",
            "Or confirm the result as it is: fernery ticket confirm T-1",
        ]
    );
    assert_eq!(of(false, Some(Fit::Conflicts), "main changed it's line"), conflicts[..1]);
    let unconfirmed = of(true, None, "no branch main");
    assert_eq!(
        unconfirmed[..2],
        [
            "Check the result, and confirm it: fernery ticket confirm T-1",
            "It does not land now: no branch main"
        ]
    );
    for fit in [None, Some(Fit::Merges)] {
        let said = of(false, fit, "no branch main");
        assert_eq!(said, once_more(&done.objective_id, "no branch main"), "{fit:?}");
    }
}

#[test]
fn a_refusal_names_a_cancelled_ticket_so_and_says_what_to_do() {
    let gone = cancelled(&[]);
    let said = TicketState::of(&gone).refusal();
    assert_eq!(
        said,
        "T-1 is cancelled; possible actions: edit, block, unblock. To take it up again: fernery ticket unblock T-1 --all"
    );
    for seen in SeenStatus::ALL {
        let stored = ticket(seen.stored(), &[]);
        assert_eq!(SeenStatus::of(if *seen == SeenStatus::Cancelled { &gone } else { &stored }), *seen);
    }
    let stopped = ticket(ObjectiveStatus::Blocked, &[("q", false)]);
    let state = TicketState {
        question: Some(BlockerId::stored("q")),
        passed: Some(RunId::stored("r")),
        ..TicketState::of(&stopped)
    };
    let said = state.refusal();
    assert!(
        said.starts_with(
            "T-1 is BLOCKED; possible actions: answer, edit, block, unblock, confirm --run, cancel. Answer it"
        ),
        "{said}"
    );
    assert!(state.next().iter().any(|action| action.contains("confirm T-1 --run r")));
}
