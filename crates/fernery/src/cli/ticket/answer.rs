//! `fernery ticket answer`: a person answers what an agent asked, and lets it go on with exactly that.

use super::{act, detail, path, show};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::screen::{Screen, remark};
use crate::ticket_words::{approved_before, open_question};
use fernery_client::client::Reply;
use fernery_client::wire::{AnswerRequest, DecisionResponse};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::ObjectiveId;
use fernery_core::limits;
use fernery_core::pipeline::possible::SeenStatus;
use std::path::Path;

/// Shows the ticket with question and answer, asks if there is a terminal, and sends what it showed.
pub(in crate::cli) async fn answer(
    id: &ObjectiveId,
    text: String,
    yes: bool,
    client: &Client,
    screen: Screen,
) -> Outcome {
    let text = match text.as_str() {
        "-" => input::read_text(Path::new("-"), limits::CRITERIA_BYTES_MAX)?,
        _ => text,
    };
    // The next actions show the command with this in the place of the answer.
    if matches!(text.trim(), "" | "…" | "...") {
        return Err(Failure::usage("the answer is empty: the next executor reads it"));
    }
    let read = detail(client, id).await?.read()?;
    if !yes && !input::can_ask() {
        return Err(Failure::usage(
            "an answer approves the ticket together with it, and there is no terminal to ask on: pass --yes",
        ));
    }
    let Some(approval) = &read.approval else {
        return Err(Failure::conflict(format!("the azolla of {id} does not exist any more")));
    };
    let Some(asked) = open_question(&read) else {
        let status = SeenStatus::of(&read.view.objective);
        return Err(Failure::conflict(format!("{id} is {status} and has no open question"))
            .hint(format_args!("fernery ticket show {id} says what it waits for")));
    };
    if !screen.json {
        show::approval(screen, approval, approved_before(&read))?;
        for (head, text) in [("question:", &asked.question), ("answer:", &text)] {
            screen.line("")?;
            screen.line(head)?;
            show::quoted(screen, text)?;
        }
    }
    if let Some(why) = approval.refused.as_ref().filter(|_| !yes) {
        return Err(Failure::conflict(why.clone()));
    }
    if !yes {
        screen.line("")?;
        input::confirmed(
            &format!("let {id} go on as shown, with this answer? [y/N] "),
            "nothing was answered",
        )?;
    }
    let request = AnswerRequest {
        digest: approval.digest,
        run_id: asked.run_id,
        answer: text,
        record_id: act::record(),
    };
    let reply: Reply<DecisionResponse> = match act::send(client, &path(id, "answer"), &request).await {
        Err(ClientError::Refused { problem, body, retry_after }) => {
            for change in problem.difference.iter().filter(|_| !screen.json) {
                remark(&format!("changed {}: {} → {}", change.path, change.before, change.now));
            }
            return Err(ClientError::Refused { problem, body, retry_after }.into());
        }
        reply => reply?,
    };
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let objective = reply.read()?.view.objective;
    screen.line(&format!("{id} is answered and {}", SeenStatus::of(&objective)))?;
    act::still_blocked(&objective, &[], client).await
}
