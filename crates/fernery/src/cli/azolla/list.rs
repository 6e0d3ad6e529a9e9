//! `fernery azolla list` and `show`: which azollas there are, by which blueprints.

use crate::cli::failure::Outcome;
use crate::cli::screen::{Cell, Screen, plain};
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{AzollaDetail, AzollaList, AzollaSummary};
use fernery_core::artifact::AzollaId;
use std::time::Duration;

/// What only a server can answer.
#[derive(Debug)]
pub(in crate::cli) enum Hosted {
    List,
    Show { id: AzollaId },
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
                    let hosted = hosted(&a);
                    vec![
                        a.azolla_id.into(),
                        hosted.into(),
                        a.category.into(),
                        a.digest.into(),
                        a.description.into(),
                    ]
                })
                .collect();
            screen.table(&["AZOLLA", "HOSTED", "CATEGORY", "BLUEPRINT…", "DESCRIPTION"], rows)
        }
        Hosted::Show { id } => {
            let reply: Reply<AzollaDetail> =
                client.get(&format!("/v1/azollas/{id}"), &Query::new(), Duration::ZERO).await?;
            if screen.json { screen.json_body(&reply.body) } else { show(screen, &reply.read()?) }
        }
    }
}

/// Whether a process runs its workers, and since when none does.
fn hosted(azolla: &AzollaSummary) -> String {
    match (azolla.hosted, azolla.hosted_at) {
        (true, _) => "yes".to_string(),
        (false, None) => "never".to_string(),
        (false, Some(at)) => format!("not since {at}"),
    }
}

fn show(screen: Screen, azolla: &AzollaDetail) -> Outcome {
    screen.facts(&[
        ("azolla", (&azolla.summary.azolla_id).into()),
        ("hosted", hosted(&azolla.summary).into()),
        ("category", (&azolla.summary.category).into()),
        ("description", (&azolla.summary.description).into()),
        ("blueprint", azolla.summary.digest.into()),
    ])?;
    for pass in &azolla.workers {
        screen.line(&plain(&pass.to_string()))?;
    }
    screen.line("")?;
    let text = serde_json::to_string_pretty(&azolla.blueprint).unwrap_or_default();
    screen.line(&plain(&text))
}
