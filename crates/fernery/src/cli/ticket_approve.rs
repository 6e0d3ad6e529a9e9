//! `fernery ticket approve`: a person reads what would run, and says yes to exactly that.

use super::failure::{Failure, Outcome};
use super::screen::{Screen, remark};
use super::ticket::{brief, path};
use super::{ticket_act, ticket_show};
use fernery_client::client::Reply;
use fernery_client::wire::{ApproveRequest, DecisionResponse};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::ObjectiveId;
use fernery_core::canonical::Digest;
use std::io::{BufRead, IsTerminal, Write};

/// Shows what is approved, asks where a person can be asked, and sends the digest of what it showed.
pub(super) async fn approve(
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
            if asked && !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
                return Err(Failure::usage(
                    "an approval covers exactly what was read and nobody is there to be asked: say --digest, or --yes",
                ));
            }
            let read = brief(client, id).await?;
            let Some(approval) = &read.approval else {
                return Err(Failure::conflict(format!("the azolla of {id} is not there any more")));
            };
            if !screen.json {
                ticket_show::approval(screen, approval)?;
            }
            if asked {
                confirmed(&format!("approve {id} as shown? [y/N] "))?;
            }
            approval.digest
        }
    };
    let request = ApproveRequest { digest, note, record_id: ticket_act::record() };
    let reply: Reply<DecisionResponse> = match ticket_act::send(client, &path(id, "approve"), &request).await
    {
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
    let status = reply.read()?.standing.objective.status;
    screen.line(&format!("{id} is approved and {status}"))
}

/// Waits for a yes.
pub(super) fn confirmed(question: &str) -> Outcome {
    write!(std::io::stderr(), "{question}")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::failed("not_confirmed", "nothing was approved")),
    }
}
