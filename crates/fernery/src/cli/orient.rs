//! `fernery orient`: what needs you now, over all azollas, at most five things, each with the command to type.

use super::failure::{Failure, Outcome};
use super::orient_show::{self, Page};
use super::screen::{Screen, json_inert};
use super::{input, ticket_act, triage_find};
use clap::Args;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{CapturePage, ManifestPage, ManifestRequest, ManifestRequestView};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{AzollaId, CaptureStatus, TerminalReason};
use fernery_core::limits;
use fernery_engine::door;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::time::Duration;

/// How long one look at a request waits: as often the line that says what it waits for is written anew.
const LOOK_FOR: Duration = Duration::from_secs(1);

/// Say what needs you now: at most five things, each with the command to type
///
/// It asks every azolla that it may read, here and elsewhere, and orders what they tell. One that cannot be reached is named.
/// Nothing is started and nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery orient
  fernery orient --why               what each place in the order is the sum of
  fernery orient --last              the newest there is, without asking anybody
  fernery orient --json | jq -r '.manifest.prioritized_orientation[]'

Exit codes: 0 also where nothing needs you; 1 if it is not there in time; 3 if --last finds none.")]
pub(super) struct Orient {
    /// Print the newest there is without asking for another
    #[arg(long)]
    last: bool,
    /// Print what each item's place in the order is the sum of
    #[arg(long)]
    why: bool,
    /// The azolla that makes it [default: the only one that does]
    #[arg(long, value_name = "ID")]
    azolla: Option<AzollaId>,
    /// How long to wait for it
    #[arg(long, value_name = "DURATION", value_parser = input::duration, default_value = "60s")]
    timeout: Duration,
}

pub(super) async fn run(orient: Orient, client: &Client, screen: Screen) -> Outcome {
    let azolla = match orient.azolla {
        Some(azolla) => azolla,
        None => maker(client).await?,
    };
    let (manifest, unchanged) = if orient.last {
        let path = format!("/v1/azollas/{azolla}/manifests");
        let query = Query::new().with("limit", Some(1));
        let page = client.get::<ManifestPage>(&path, &query, Duration::ZERO).await?.read()?;
        let newest = page.manifests.into_iter().next();
        let none = || {
            Failure::not_found(format!("{azolla} has made no manifest yet; `fernery orient` asks for one"))
        };
        (newest.ok_or_else(none)?, false)
    } else {
        let state = asked_for(client, &azolla, orient.timeout).await?;
        let unchanged = state.reason == Some(TerminalReason::Unchanged);
        let ended = || {
            let why = state.reason.map_or("nobody says why", TerminalReason::as_str);
            Failure::failed("no_manifest", format!("the request ended without a manifest ({why})"))
        };
        (state.manifest.ok_or_else(ended)?, unchanged)
    };
    if screen.json {
        let said = json!({ "unchanged": unchanged, "manifest": manifest });
        return screen.line(&json_inert(&said.to_string()));
    }
    orient_show::show(screen, &Page { manifest: &manifest, unchanged, why: orient.why })
}

/// The azolla that makes manifests, if one does.
async fn maker(client: &Client) -> Outcome<AzollaId> {
    let makers = triage_find::azollas(client, |blueprint| blueprint["manifest"].is_object()).await?;
    match &makers[..] {
        [only] => Ok(only.clone()),
        [] => {
            Err(Failure::conflict("no azolla here says what needs you: `fernery up` hosts task_management"))
        }
        several => {
            let several: Vec<_> = several.iter().map(AzollaId::as_str).collect();
            Err(Failure::usage(format!(
                "several azollas say what needs you: --azolla {}",
                several.join(" or ")
            )))
        }
    }
}

/// Asks for one and waits until it is there.
async fn asked_for(client: &Client, azolla: &AzollaId, timeout: Duration) -> Outcome<ManifestRequestView> {
    let by = door::stop_watch() + timeout;
    let body = ManifestRequest { request_id: ticket_act::record() };
    let path = format!("/v1/azollas/{azolla}/manifests");
    let reply: Reply<ManifestRequestView> = ticket_act::send(client, &path, &body).await?;
    let mut state = reply.read()?;
    // One that waits already is this one, too.
    let path = format!("/v1/manifest_requests/{}", state.event.resource_id);
    let progress = ProgressBar::new_spinner();
    progress.set_style(
        ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    loop {
        let going_on = matches!(state.reason, None | Some(TerminalReason::Scheduled));
        if state.manifest.is_some() || !going_on {
            progress.finish_and_clear();
            return Ok(state);
        }
        let left = by.saturating_duration_since(door::stop_watch());
        if left.is_zero() {
            progress.finish_and_clear();
            return Err(Failure::failed(
                "still_waiting",
                format!(
                    "it is not there after {} s ({})",
                    timeout.as_secs(),
                    waits_for(client, &state).await
                ),
            )
            .hint("it is made all the same: `fernery orient --last` shows it then"));
        }
        let wait = left.min(LOOK_FOR).min(limits::JOB_WAIT_MAX);
        let query = Query::new().with("wait_ms", Some(wait.as_millis()));
        let began = door::stop_watch();
        match client.get::<ManifestRequestView>(&path, &query, wait).await {
            Ok(reply) => state = reply.read()?,
            // Nothing is lost with an answer: it is asked for again.
            Err(ClientError::Broken { .. } | ClientError::TimedOut { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if state.manifest.is_none() {
            progress.set_message(waits_for(client, &state).await);
            progress.tick();
            // A server that is draining answers at once; asking it without a pause would be a flood.
            if began.elapsed() < wait / 2 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// What a request waits for, in words.
async fn waits_for(client: &Client, state: &ManifestRequestView) -> String {
    if state.work_order_id.is_some() {
        return "what they told is put into order".into();
    }
    let query = Query::new().with("limit", Some(limits::PAGE_ROWS_DEFAULT));
    let page = client.get::<CapturePage>("/v1/captures", &query, Duration::ZERO).await;
    let captures = page.and_then(|reply| reply.read()).map(|page| page.captures).unwrap_or_default();
    match captures.iter().filter(|view| view.capture.status == CaptureStatus::Pending).count() {
        0 => "the azollas are asked".into(),
        1 => "one capture is looked through first".into(),
        n if n == captures.len() && n > 9 => format!("{n} or more captures are looked through first"),
        n => format!("{n} captures are looked through first"),
    }
}
