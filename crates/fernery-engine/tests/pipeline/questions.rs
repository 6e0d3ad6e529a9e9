//! What an executor asked, and what it was answered, reaches the next attempt whatever is decided in between.

use crate::pipeline::acts::block;
use crate::pipeline::hands::{Hands, deciding, draft};
use crate::pipeline::world::World;
use crate::support::backend::Backend;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_engine::pipeline::{answering, decisions, objectives};
use serde_json::{Value, json};

on_both_backends!(
    an_answer_outlives_the_approvals_that_follow_it,
    an_answer_is_told_until_the_ticket_is_reopened,
    an_answer_outlives_a_rework_that_happens_by_itself,
);

/// The ticket's next attempt asks; it is BLOCKED then.
pub(crate) async fn ask(hands: &Hands, ticket: &ObjectiveId, question: &str) {
    hands.pass().await;
    let job = hands.claim().await.expect("its job");
    let asks = json!({"title": "asks", "content": "", "notes": "",
                      "metadata": {"outcome": "BLOCKED", "question": question}});
    hands.hand_in(&job, asks).await;
    hands.judge().await;
    assert_eq!(hands.status(ticket).await, ObjectiveStatus::Blocked);
}

pub(crate) async fn answer(hands: &Hands, ticket: &ObjectiveId, text: &str) {
    let (of, run, deciding) = (ticket.clone(), hands.last_run(ticket).await, deciding(None, Some(text)));
    hands.act(move |sql, who| answering::answer(sql, who, (&of, &run), &deciding)).await.expect("answered");
}

pub(crate) async fn edit(hands: &Hands, ticket: &ObjectiveId, title: &str) {
    let (of, draft) = (ticket.clone(), draft(title));
    hands.act(move |sql, who| objectives::edit(sql, who, &of, &draft)).await.expect("edited");
}

/// The prompt of the next attempt, which ends like this.
async fn told(hands: &Hands, result: Value) -> String {
    hands.pass().await;
    let job = hands.claim().await.expect("its job");
    let payload: Value = serde_json::from_str(job.payload.get()).expect("JSON");
    hands.hand_in(&job, result).await;
    hands.judge().await;
    payload["context_snapshot"]["full_prompt_text"].as_str().expect("a prompt").to_string()
}

fn has_both(prompt: &str, question: &str, answer: &str) -> bool {
    let both = format!("one\n```text\n{question}\n```\n\n## Answer of the operator\n```text\n{answer}\n```");
    prompt.contains(&both) && prompt.matches(question).count() == 1
}

async fn an_answer_outlives_the_approvals_that_follow_it<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    ask(&world, &ticket, "Which colour?").await;
    answer(&world, &ticket, "red").await;
    // The ticket is changed before the next attempt begins, and approved once more.
    edit(&world, &ticket, "Paint it").await;
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::New);
    let (of, again) = (ticket.clone(), deciding(None, Some("with a brush")));
    world.act(move |sql, who| decisions::approve(sql, who, &of, &again)).await.expect("approved");
    let prompt = told(&world, crate::pipeline::world::bad()).await;
    assert!(has_both(&prompt, "Which colour?", "red"), "{prompt}");
    assert!(prompt.contains("## Note of the operator\n```text\nwith a brush\n```"), "{prompt}");
    // That attempt failed for another reason; the one after it still needs the answer.
    edit(&world, &ticket, "Paint it well").await;
    world.approve(&ticket).await.expect("approved");
    let prompt = told(&world, crate::pipeline::world::good()).await;
    assert!(has_both(&prompt, "Which colour?", "red"), "{prompt}");

    // The same where another blocker is resolved between the answer and the next attempt.
    let other = world.create("u").await;
    world.approve(&other).await.expect("approved");
    ask(&world, &other, "Which file?").await;
    block(&world, &other, Some("b9")).await.expect("blocked");
    answer(&world, &other, "both").await;
    assert_eq!(world.status(&other).await, ObjectiveStatus::Blocked, "something else is in the way");
    edit(&world, &other, "Fix them").await;
    world.unblock(&other).await.expect("unblocked");
    world.approve(&other).await.expect("approved");
    let prompt = told(&world, crate::pipeline::world::good()).await;
    assert!(has_both(&prompt, "Which file?", "both"), "{prompt}");
}

async fn an_answer_is_told_until_the_ticket_is_reopened<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    ask(&world, &ticket, "Which colour?").await;
    answer(&world, &ticket, "red").await;
    ask(&world, &ticket, "Which red?").await;
    answer(&world, &ticket, "dark").await;
    let prompt = told(&world, crate::pipeline::world::good()).await;
    assert!(has_both(&prompt, "Which red?", "dark"), "{prompt}");
    let (of, again) = (ticket.clone(), deciding(None, Some("make it blue")));
    world.act(move |sql, who| decisions::reopen(sql, who, &of, &again)).await.expect("reopened");
    let prompt = told(&world, crate::pipeline::world::good()).await;
    assert!(prompt.contains("make it blue") && !prompt.contains("Answer of the operator"), "{prompt}");
}

async fn an_answer_outlives_a_rework_that_happens_by_itself<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    ask(&world, &ticket, "Which colour?").await;
    answer(&world, &ticket, "red").await;
    // As a rework writes it.
    let rework = "INSERT INTO decisions (record_id, objective_id, kind, digest, shown, who, note, created_at)
                  SELECT 'rework', objective_id, 'REOPEN', digest, shown, 'fernery', NULL, created_at FROM decisions
                  WHERE kind = 'ANSWER';";
    world.sql(rework, &[]).await;
    let prompt = told(&world, crate::pipeline::world::good()).await;
    assert!(has_both(&prompt, "Which colour?", "red"), "{prompt}");
}
