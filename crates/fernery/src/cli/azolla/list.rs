//! `fernery azolla list` and `show`: which azollas there are, by which blueprints.

use crate::cli::failure::Outcome;
use crate::cli::screen::{Cell, Screen, plain, remark};
use crate::workers::reload::told;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{
    AzollaChange, AzollaDetail, AzollaList, AzollaSummary, ReloadRequest, ReloadResponse,
};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{AzollaId, ObjectiveId};
use serde_json::Value;
use std::time::Duration;

/// How long a reload may take beyond the usual time: it may try sandboxes.
const RELOAD_WITHIN: Duration = Duration::from_secs(20);

/// What only a server can answer.
#[derive(Debug)]
pub(in crate::cli) enum Hosted {
    List,
    Show { id: AzollaId },
    Reload { dry_run: bool },
}

pub(in crate::cli) async fn run(azolla: Hosted, client: &Client, screen: Screen) -> Outcome {
    match azolla {
        Hosted::List => {
            let reply: Reply<AzollaList> = client.get("/v1/azollas", &Query::new(), Duration::ZERO).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            let rows: Vec<Vec<Cell>> = reply
                .read()?
                .azollas
                .into_iter()
                .map(|a| {
                    let hosted = hosted(&a, screen);
                    // Where there is little room, the beginning tells two apart.
                    let digest = a.digest.to_string();
                    let digest = if screen.width().is_some() { digest[..12].to_string() } else { digest };
                    vec![
                        a.azolla_id.into(),
                        hosted.into(),
                        a.category.into(),
                        digest.into(),
                        a.description.into(),
                    ]
                })
                .collect();
            screen.table(&["AZOLLA…", "HOSTED", "CATEGORY", "BLUEPRINT", "DESCRIPTION…"], rows)
        }
        Hosted::Show { id } => {
            let reply: Reply<AzollaDetail> =
                client.get(&format!("/v1/azollas/{id}"), &Query::new(), Duration::ZERO).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            show(screen, &reply.read()?)?;
            pending(client, &id).await;
            Ok(())
        }
        Hosted::Reload { dry_run } => {
            let reply = reload(client, dry_run).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            let answer = reply.read()?;
            if let Some(file) = &answer.changed_config {
                let told = format!(
                    "{file} has changed since the server started. A reload reads only the blueprints that were named in it then: for \
                     the rest, restart the server (fernery down, then fernery up)"
                );
                remark(&told);
            }
            if answer.azollas.is_empty() {
                let what = if answer.changed_config.is_some() { "no blueprint" } else { "nothing" };
                return screen.line(&format!("{what} has changed"));
            }
            for change in &answer.azollas {
                screen.line(&plain(&format!("{}: {}", change.azolla_id, told(change))))?;
                for part in &change.difference {
                    let path = part.path.trim_start_matches('/').replace('/', ".");
                    let line = format!("  {path}: {} → {}", short(&part.before), short(&part.now));
                    screen.line(&plain(&line).replace('\n', " "))?;
                }
                if let Some(line) = voided(change, answer.applied) {
                    screen.say(&plain(&line))?;
                }
            }
            screen.line(if answer.applied { "applied" } else { "to apply it: fernery azolla reload" })
        }
    }
}

/// Whose approvals the change voids, and what to do about it.
fn voided(change: &AzollaChange, applied: bool) -> Option<String> {
    const NAMED_MAX: usize = 10;
    let Some(first) = change.voided.first() else {
        let told =
            "  there may be older tickets whose approval it voids: fernery ticket show ID says so of each";
        return change.voided_more.then(|| told.to_string());
    };
    let named =
        change.voided.iter().take(NAMED_MAX).map(ObjectiveId::to_string).collect::<Vec<_>>().join(", ");
    let more = change.voided.len().saturating_sub(NAMED_MAX);
    let more = match (more, change.voided_more) {
        (0, false) => String::new(),
        (0, true) => ", and there may be more".to_string(),
        (more, false) => format!(" and {more} more"),
        (more, true) => format!(" and at least {more} more"),
    };
    let what = if applied { "approvals that are void now" } else { "approvals that it would void" };
    Some(format!(
        "  {what}: {named}{more}. Each has to be approved again, a BLOCKED one once it is unblocked: fernery ticket show {first}"
    ))
}

/// A value, cut to what a line can show.
fn short(value: &Value) -> String {
    const CHARS_MAX: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

async fn reload(client: &Client, dry_run: bool) -> Result<Reply<ReloadResponse>, ClientError> {
    client.post("/v1/reload", &ReloadRequest { dry_run }, RELOAD_WITHIN).await
}

/// Says on stderr if the file of an azolla was edited since it was read. Who may not reload is told nothing.
async fn pending(client: &Client, id: &AzollaId) {
    let reply = reload(client, true).await;
    let said = match reply.and_then(|reply| reply.read()) {
        Ok(answer) => {
            let change = answer.azollas.into_iter().find(|change| change.azolla_id == *id);
            change.map(|change| {
                format!("its file was edited ({}); to apply it: fernery azolla reload", told(&change))
            })
        }
        Err(error) if error.status() == Some(422) => Some(error.lines().join("\n")),
        Err(_) => None,
    };
    if let Some(said) = said {
        remark(&plain(&said));
    }
}

/// Whether a process runs its workers, and since when none does.
fn hosted(azolla: &AzollaSummary, screen: Screen) -> String {
    match (azolla.hosted, azolla.hosted_at) {
        (true, _) => "yes".to_string(),
        (false, None) => "never".to_string(),
        (false, Some(at)) => match screen.at(at) {
            told if told == at.to_string() => format!("not since {told}"),
            told => format!("last {told}"),
        },
    }
}

fn show(screen: Screen, azolla: &AzollaDetail) -> Outcome {
    screen.facts(&[
        ("azolla", (&azolla.summary.azolla_id).into()),
        ("hosted", hosted(&azolla.summary, screen).into()),
        ("category", (&azolla.summary.category).into()),
        ("description", (&azolla.summary.description).into()),
        ("blueprint", azolla.summary.digest.into()),
    ])?;
    for pass in &azolla.workers {
        screen.say(&plain(&pass.to_string()))?;
    }
    screen.line("")?;
    let text = serde_json::to_string_pretty(&azolla.blueprint).unwrap_or_default();
    screen.line(&plain(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvals_that_nobody_counted_are_not_left_out() {
        let said = |count: usize, voided_more: bool| {
            let voided = (0..count).map(|n| ObjectiveId::stored(&format!("T-{n}"))).collect();
            let azolla_id = AzollaId::stored("a");
            let difference = Vec::new();
            let change =
                AzollaChange { azolla_id, before: None, after: None, difference, voided, voided_more };
            super::voided(&change, true)
        };
        assert_eq!(said(0, false), None);
        assert!(said(0, true).is_some_and(|said| said.contains("there may be older tickets")));
        assert!(said(2, false).is_some_and(|said| said.contains(": T-0, T-1. Each")));
        assert!(said(2, true).is_some_and(|said| said.contains(": T-0, T-1, and there may be more. Each")));
        assert!(said(12, false).is_some_and(|said| said.contains("T-9 and 2 more. Each")));
        assert!(said(12, true).is_some_and(|said| said.contains("T-9 and at least 2 more. Each")));
    }
}
