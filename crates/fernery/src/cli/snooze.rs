//! `fernery snooze`: a ticket or a candidate that a person does not want to see before a later time.

use super::failure::{Failure, Outcome};
use super::ids;
use super::screen::Screen;
use super::screen::when::minute;
use super::ticket::{act, path};
use super::triage::find;
use clap::Args;
use fernery_client::client::Reply;
use fernery_client::wire::{CandidateView, IdKind, ObjectiveView, SnoozeRequest};
use fernery_client::{Client, ClientError};
use fernery_core::Timestamp;

/// Hide a ticket or a candidate from lists and from `orient` until a later time
///
/// Nothing else changes: what runs goes on, and a deadline stays. Days begin at midnight in the inbox's time zone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery snooze tasks-h3kq7vza tomorrow
  fernery snooze 019a8c5e-07398f next monday
  fernery snooze tasks-h3kq7vza in 3 days
  fernery snooze tasks-h3kq7vza 2026-12-01
  fernery snooze tasks-h3kq7vza --off           show it again now
  fernery ticket list --all                     also what is snoozed")]
pub(super) struct Snooze {
    /// The ticket or the candidate
    #[arg(value_name = "ID")]
    id: String,
    /// Until when: tomorrow, friday 17:00, in 2 weeks, 2026-12-01, 2h
    #[arg(value_name = "WHEN", required_unless_present = "off", conflicts_with = "off")]
    until: Vec<String>,
    /// Show it again now
    #[arg(long)]
    off: bool,
}

pub(super) async fn run(snooze: Snooze, client: &Client, screen: Screen) -> Outcome {
    let until = (!snooze.off).then(|| snooze.until.join(" "));
    let body = SnoozeRequest { until, record_id: act::record() };
    let kinds = [IdKind::Ticket, IdKind::Candidate];
    let named = ids::meant(client, &kinds, &snooze.id).await?.unwrap_or_else(|| snooze.id.clone());
    let (name, json, until) = match named.parse() {
        Ok(id) => match act::send::<ObjectiveView>(client, &path(&id, "snooze"), &body).await {
            Err(ClientError::Refused { problem, .. }) if problem.status == 404 => {
                candidate(client, &named, &body).await?
            }
            reply => {
                let reply = reply?;
                let view = reply.read()?;
                (view.objective.objective_id.to_string(), reply.body.to_vec(), view.snoozed_until)
            }
        },
        Err(_) => {
            return Err(Failure::usage(format!("{:?} is not the id of a ticket or candidate", snooze.id)));
        }
    };
    if screen.json {
        return screen.json_body(&json);
    }
    match until {
        Some(until) => screen.say(&format!("{name} is out of sight until {}", minute(until))),
        None => screen.say(&format!("{name} is in sight again")),
    }
}

/// Snoozes a candidate; where there is none either, both are named as missing.
async fn candidate(
    client: &Client,
    named: &str,
    body: &SnoozeRequest,
) -> Outcome<(String, Vec<u8>, Option<Timestamp>)> {
    let id = find::candidate(client, named).await.map_err(|failure| match failure.is_not_found() {
        true => Failure::not_found(format!("there is no ticket and no candidate {named}")),
        false => failure,
    })?;
    let reply: Reply<CandidateView> = act::send(client, &format!("/v1/candidates/{id}/snooze"), body).await?;
    let view = reply.read()?;
    Ok((named.to_string(), reply.body.to_vec(), view.snoozed_until))
}
