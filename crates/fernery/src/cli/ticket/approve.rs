//! `fernery ticket approve`: a person reads what would run, and says yes to exactly that.

use super::{act, show, unmanned};
use super::{brief, path};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::screen::{Paint, Screen, plain, remark};
use crate::ticket_words::{approved_before, cautions};
use fernery_client::client::Reply;
use fernery_client::wire::{ApproveRequest, DecisionResponse};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::canonical::Digest;
use fernery_core::pipeline::possible::{SeenStatus, Verb};

/// The message if the person does not agree.
pub(in crate::cli) const UNAPPROVED: &str = "nothing was approved";

/// Shows what is approved, asks if there is a terminal, and sends the digest of what it showed.
pub(in crate::cli) async fn approve(
    id: &ObjectiveId,
    yes: bool,
    digest: Option<Digest>,
    (note, from_scratch): (Option<String>, bool),
    client: &Client,
    screen: Screen,
) -> Outcome {
    let digest = match digest {
        Some(digest) => digest,
        None => {
            let asked = !yes;
            let read = brief(client, id).await?;
            if asked && !input::can_ask() {
                return Err(Failure::usage(
                    "an approval covers exactly what was read, and there is no terminal to ask on: pass \
                    --digest or --yes",
                ));
            }
            if read.view.objective.status == ObjectiveStatus::Done {
                let next = read.next.first().map(|next| plain(next)).unwrap_or_default();
                return Err(Failure::conflict(format!("{id} is DONE: it was approved before")).hint(next));
            }
            let Some(approval) = &read.approval else {
                return Err(Failure::conflict(format!("the azolla of {id} does not exist any more")));
            };
            // Do not show a person what cannot be approved or cannot start. With --yes, the server refuses by itself, and says all
            // that can be done.
            // A server of an earlier version names nothing.
            let allowed = read.possible.is_empty() || read.allows(Verb::Approve);
            match &approval.refused {
                _ if !allowed && asked => {
                    let seen = SeenStatus::of(&read.view.objective);
                    let next = read.next.first().map(|next| plain(next)).unwrap_or_default();
                    return Err(
                        Failure::conflict(format!("{id} is {seen} and cannot be approved now")).hint(next)
                    );
                }
                Some(why) if asked => return Err(Failure::conflict(why.clone())),
                None if allowed && !screen.json => {
                    show::approval(screen, approval, approved_before(&read))?;
                    unmanned::warn(screen, approval)?;
                    cautions(&read)
                        .iter()
                        .try_for_each(|why| screen.say_painted(&plain(why), Paint::Busy))?;
                }
                _ => {}
            }
            if asked {
                let question = format!("approve {} as shown? [y/N] ", screen.id(id));
                input::confirmed(&question, UNAPPROVED)?;
            }
            approval.digest
        }
    };
    let request = ApproveRequest { digest, note, record_id: act::record(), from_scratch };
    let reply: Reply<DecisionResponse> = match act::send(client, &path(id, "approve"), &request).await {
        Err(ClientError::Refused { problem, body, retry_after }) => {
            if !screen.json {
                for change in &problem.difference {
                    remark(&format!("changed {}: {} → {}", change.path, change.before, change.now));
                }
            }
            return Err(ClientError::Refused { problem, body, retry_after }.into());
        }
        reply => reply?,
    };
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let view = reply.read()?.view;
    let objective = &view.objective;
    screen.line(&format!("{} is approved and {}", screen.id(id), objective.status))?;
    act::still_blocked(objective, &view.waits_for, client).await
}
