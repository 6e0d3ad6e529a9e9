//! `fernery ticket unblock`: a person says that nothing is in the way any more. A question of an agent is shown first.

use super::{act, detail, path, show};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::screen::{Screen, plain, remark};
use crate::ticket_words::{OpenQuestion, open_question};
use fernery_client::Client;
use fernery_client::client::Reply;
use fernery_client::wire::{ObjectiveDetail, ObjectiveView, UnblockRequest};
use fernery_core::artifact::{BlockerId, BlockerRef, ObjectiveId, ObjectiveStatus};
use fernery_core::pipeline::possible::{SeenStatus, Verb};

/// Resolves these blockers, all of them, or the one that is open.
pub(in crate::cli) async fn unblock(
    id: &ObjectiveId,
    (mut blockers, all): (Vec<BlockerId>, bool),
    yes: bool,
    client: &Client,
    screen: Screen,
) -> Outcome {
    let read = detail(client, id).await?.read()?;
    if blockers.is_empty() && !all {
        blockers.push(only_blocker(&read)?);
    }
    let asked = open_question(&read).filter(|asked| all || blockers.contains(&asked.blocker_id));
    if let Some(asked) = asked.filter(|_| !yes) {
        without_answer(id, &asked, screen)?;
    }
    let body = UnblockRequest { blockers, all, record_id: act::record() };
    let reply: Reply<ObjectiveView> = act::send(client, &path(id, "unblock"), &body).await?;
    act::left_at(&reply, screen)?;
    if !screen.json && reply.read()?.objective.status == ObjectiveStatus::New {
        remark(&format!(
            "no approval covers it: it was never approved, it or the blueprint of its azolla has changed, or its \
            envelope is used up; to continue: fernery ticket approve {id}"
        ));
    }
    Ok(())
}

/// The one open blocker of a ticket.
fn only_blocker(read: &ObjectiveDetail) -> Outcome<BlockerId> {
    let objective = &read.view.objective;
    let id = &objective.objective_id;
    let open: Vec<&BlockerRef> = objective.blocked_on.iter().filter(|blocker| !blocker.resolved).collect();
    match open[..] {
        [only] => Ok(only.blocker_id.clone()),
        [] => {
            let is = SeenStatus::of(objective);
            let failure = Failure::conflict(format!("{id} is {is} and has no open blocker"));
            Err(match read.next.first().filter(|_| read.allows(Verb::Unblock)) {
                Some(next) => failure.hint(plain(next)),
                None => failure,
            })
        }
        _ => {
            let each = open.iter().map(|b| format!("\n  --blocker {}    {}", b.blocker_id, b.description));
            Err(Failure::usage(format!(
                "{id} has {} open blockers; say which are resolved, or --all:{}",
                open.len(),
                each.collect::<String>()
            )))
        }
    }
}

/// Shows the question of an agent, and goes on only if the person wants no answer to it.
fn without_answer(id: &ObjectiveId, asked: &OpenQuestion, screen: Screen) -> Outcome {
    let answer = format!("fernery ticket answer {id} \"…\"");
    if screen.json || !input::can_ask() {
        let question = asked.question.lines().next().unwrap_or_default();
        return Err(Failure::conflict(format!("an agent asked, and nobody has answered: {question}"))
            .hint(format_args!("to answer: {answer}; to go on without an answer: pass --yes")));
    }
    screen.line("an agent asked, and nobody has answered:")?;
    show::quoted(screen, &asked.question)?;
    screen.say(&format!("To answer: {answer}"))?;
    input::confirmed(&format!("let {id} go on without an answer? [y/N] "), "nothing was unblocked")
}
