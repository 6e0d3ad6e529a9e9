//! `fernery ticket approve`: a person reads what would run, and says yes to exactly that.

use super::{act, show};
use super::{brief, path};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::screen::{Screen, remark};
use fernery_client::client::Reply;
use fernery_client::wire::{ApproveRequest, DecisionResponse};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::ObjectiveId;
use fernery_core::canonical::Digest;

/// The message if the person does not agree.
pub(in crate::cli) const UNAPPROVED: &str = "nothing was approved";

/// Shows what is approved, asks if there is a terminal, and sends the digest of what it showed.
pub(in crate::cli) async fn approve(
    id: &ObjectiveId,
    yes: bool,
    digest: Option<Digest>,
    note: Option<String>,
    client: &Client,
    screen: Screen,
) -> Outcome {
    let digest = match digest {
        Some(digest) => digest,
        None => {
            let asked = !yes;
            if asked && !input::can_ask() {
                return Err(Failure::usage(
                    "an approval covers exactly what was read, and there is no terminal to ask on: pass \
                    --digest or --yes",
                ));
            }
            let read = brief(client, id).await?;
            let Some(approval) = &read.approval else {
                return Err(Failure::conflict(format!("the azolla of {id} does not exist any more")));
            };
            if !screen.json {
                show::approval(screen, approval)?;
            }
            // Do not ask a person to approve what cannot start. With --yes, the server refuses by itself.
            if let Some(why) = approval.refused.as_ref().filter(|_| asked) {
                return Err(Failure::conflict(why.clone()));
            }
            if asked {
                input::confirmed(&format!("approve {id} as shown? [y/N] "), UNAPPROVED)?;
            }
            approval.digest
        }
    };
    let request = ApproveRequest { digest, note, record_id: act::record() };
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
    let objective = reply.read()?.view.objective;
    screen.line(&format!("{id} is approved and {}", objective.status))?;
    let open: Vec<&str> =
        objective.blocked_on.iter().filter(|b| !b.resolved).map(|b| b.blocker_id.as_str()).collect();
    if !open.is_empty() {
        let open = open.join(", ");
        remark(&format!(
            "still blocked by: {open}. It continues after `fernery ticket unblock {id} --blocker …`"
        ));
    }
    Ok(())
}
