//! Track C: what is overdue is told once for each deadline, in the azolla that watches and in no other.

use crate::pipeline::desk::office;
use crate::pipeline::hands::id;
use crate::pipeline::world::World;
use crate::support::backend::{Backend, START};
use fernery_core::artifact::{AzollaId, Objective, ObjectiveStatus, ObjectiveType, PauseReason, PauseState};
use fernery_engine::pipeline::reading::{self, Below};
use serde_json::json;
use std::time::Duration;

on_both_backends!(
    an_urgency_is_a_time_and_due_at_wins,
    a_deadline_is_told_once_whoever_looks,
    an_edit_of_something_else_does_not_reset_the_clock,
    what_is_done_or_cancelled_is_not_overdue,
);

const DAY: u64 = 24 * 3_600;

fn objective(name: &str, urgency: u8) -> Objective {
    Objective {
        objective_id: id(name),
        azolla_id: AzollaId::stored("mec"),
        title: format!("The {name}"),
        acceptance_criteria: String::new(),
        objective_type: ObjectiveType::Ticket,
        status: ObjectiveStatus::New,
        importance: 2,
        urgency,
        blocked_reason: None,
        blocked_on: Vec::new(),
        metadata: Default::default(),
        created_at: START,
        updated_at: START,
    }
}

async fn pauses<B: Backend>(world: &World<B>) -> Vec<PauseState> {
    let all = world.substrate.read(|sql| reading::pauses(sql, &Below::newest(), 1_000)).await.expect("read");
    all.into_iter().map(|of| of.pause).collect()
}

async fn an_urgency_is_a_time_and_due_at_wins<B: Backend>() {
    let world = office::<B>("").await;
    let mut soon = objective("soon", 4);
    soon.metadata.insert("due_at".into(), json!(START.after(Duration::from_secs(3_600))));
    let all =
        vec![objective("now", 0), objective("day", 1), objective("week", 2), objective("never", 4), soon];
    world.watch(all).await;
    let mut told = Vec::new();
    for (after, expected) in [(1, 1), (3_600, 1), (DAY, 1), (6 * DAY, 1), (400 * DAY, 0)] {
        world.advance(after).await;
        assert_eq!(world.tell_overdue().await, expected, "{after} s later");
        assert_eq!(world.tell_overdue().await, 0, "once");
        told.extend(pauses(&world).await.into_iter().next());
    }
    for pause in pauses(&world).await {
        assert_eq!((pause.azolla_id.as_str(), pause.reason), ("a", PauseReason::RunComplete));
        assert!((1..=3).contains(&pause.prioritized_actions.len()));
    }
    let names: Vec<String> = told.iter().take(4).map(|pause| pause.objective_id.to_string()).collect();
    assert_eq!(names, ["now", "soon", "day", "week"]);
}

async fn a_deadline_is_told_once_whoever_looks<B: Backend>() {
    let world = office::<B>("").await;
    let other = world.elsewhere().await;
    world.watch(vec![objective("t", 1)]).await;
    world.advance(2 * DAY).await;
    tokio::join!(world.tell_overdue(), other.tell_overdue());
    tokio::join!(world.watch(vec![objective("t", 1)]), other.watch(vec![objective("t", 1)]));
    tokio::join!(world.tell_overdue(), other.tell_overdue());
    assert_eq!(pauses(&world).await.len(), 1);
    let mut later = objective("t", 1);
    later.metadata.insert("due_at".into(), json!(START.after(Duration::from_secs(3 * DAY))));
    world.watch(vec![later]).await;
    assert_eq!(world.tell_overdue().await, 0, "a new deadline, which is not over yet");
    world.advance(2 * DAY).await;
    assert_eq!(world.tell_overdue().await, 1);
    assert_eq!(pauses(&world).await.len(), 2, "one for each deadline");
}

async fn an_edit_of_something_else_does_not_reset_the_clock<B: Backend>() {
    let world = office::<B>("").await;
    world.watch(vec![objective("t", 1)]).await;
    world.advance(DAY - 60).await;
    let mut edited = objective("t", 1);
    edited.title = "Another title".into();
    edited.importance = 0;
    edited.updated_at = START.after(Duration::from_secs(DAY - 60));
    world.watch(vec![edited.clone()]).await;
    world.advance(120).await;
    assert_eq!(world.tell_overdue().await, 1, "a day after it was written down");
    edited.urgency = 2;
    world.watch(vec![edited]).await;
    world.advance(6 * DAY).await;
    assert_eq!(world.tell_overdue().await, 0, "another urgency counts from when it was given");
    world.advance(DAY + 60).await;
    assert_eq!(world.tell_overdue().await, 1);
}

async fn what_is_done_or_cancelled_is_not_overdue<B: Backend>() {
    let world = office::<B>("").await;
    let (mut done, mut cancelled) = (objective("done", 1), objective("cancelled", 1));
    world.watch(vec![done.clone(), cancelled.clone()]).await;
    done.status = ObjectiveStatus::Done;
    cancelled.status = ObjectiveStatus::Blocked;
    cancelled.blocked_reason = Some("cancelled".into());
    world.watch(vec![done, cancelled]).await;
    world.advance(2 * DAY).await;
    assert_eq!(world.tell_overdue().await, 0);
}
