//! `fernery orient`: what needs you now, over all azollas, at most five things, each with the command to type.

mod show;
mod time;
mod unmanned;

use super::failure::{Failure, Outcome};
use super::screen::{Cell, Screen, json_inert};
use super::{input, ticket, triage};
use clap::Args;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{
    CapturePage, ManifestPage, ManifestRequest, ManifestRequestView, QueryPage, QueryView,
};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{AzollaId, CaptureStatus, TerminalReason};
use fernery_core::limits;
use fernery_engine::door;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use show::Page;
use std::time::Duration;

/// How long one poll of a request waits; the line that says what it waits for is updated as often.
const LOOK_FOR: Duration = Duration::from_secs(1);

/// Show what needs you now: at most five things, each with the command to type
///
/// It asks every azolla that it may read, on this server and others, and sorts their answers. An azolla that cannot be
/// reached is named. Nothing is started and nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery orient
  fernery orient --why      how the order was computed
  fernery orient --last     the newest page, without making a new one
  fernery orient --asked    which azollas were asked, and what they answered
  fernery orient --json | jq -r '.manifest.prioritized_orientation[]'

Exit codes: 0 also if nothing needs you; 1 if the page is not ready in time; 3 if --last finds none.")]
pub(super) struct Orient {
    /// Print the newest page without making a new one
    #[arg(long)]
    last: bool,
    /// Also print how the order of the items was computed
    #[arg(long)]
    why: bool,
    /// List the queries to other azollas and their answers, newest first
    #[arg(long, conflicts_with_all = ["last", "why"])]
    asked: bool,
    /// The azolla that makes the page [default: the only one that does]
    #[arg(long, value_name = "ID")]
    azolla: Option<AzollaId>,
    /// How long to wait for the page
    #[arg(long, value_name = "DURATION", value_parser = input::duration, default_value = "60s")]
    timeout: Duration,
}

pub(super) async fn run(orient: Orient, client: &Client, screen: Screen) -> Outcome {
    let azolla = match orient.azolla {
        Some(azolla) => azolla,
        None => maker(client).await?,
    };
    if orient.asked {
        return asked(client, &azolla, screen).await;
    }
    let (manifest, unchanged) = if orient.last {
        let path = format!("/v1/azollas/{azolla}/manifests");
        let query = Query::new().with("limit", Some(1));
        let page = client.get::<ManifestPage>(&path, &query, Duration::ZERO).await?.read()?;
        let newest = page.manifests.into_iter().next();
        let none = || {
            Failure::not_found(format!("{azolla} has made no manifest yet; `fernery orient` requests one"))
        };
        (newest.ok_or_else(none)?, false)
    } else {
        let state = asked_for(client, &azolla, orient.timeout).await?;
        let unchanged = state.reason == Some(TerminalReason::Unchanged);
        let ended = || {
            let reason = state.reason.map_or("no reason is known", TerminalReason::as_str);
            let why = state.failed.as_deref().unwrap_or(reason);
            Failure::failed("no_manifest", format!("the request ended without a manifest ({why})"))
        };
        (state.manifest.ok_or_else(ended)?, unchanged)
    };
    if screen.json {
        let said = json!({ "unchanged": unchanged, "manifest": manifest });
        return screen.line(&json_inert(&said.to_string()));
    }
    show::show(screen, &Page { manifest: &manifest, unchanged, why: orient.why })?;
    time::show(client, screen).await?;
    unmanned::show(client, screen).await
}

/// The latest questions to other azollas, and their answers.
async fn asked(client: &Client, azolla: &AzollaId, screen: Screen) -> Outcome {
    let path = format!("/v1/azollas/{azolla}/queries");
    let reply = client.get::<QueryPage>(&path, &Query::new(), Duration::ZERO).await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let row = |view: QueryView| -> Vec<Cell> {
        let told = view.results_told.unwrap_or(view.response.results.len() as u64);
        vec![
            view.query.created_at.into(),
            view.query.target_azolla_id.to_string().into(),
            view.query.artifact_type.to_string().into(),
            view.response.status.to_string().into(),
            told.into(),
            view.query.query_id.to_string().into(),
        ]
    };
    let rows: Vec<_> = reply.read()?.queries.into_iter().map(row).collect();
    screen.table(&["ASKED", "AZOLLA…", "FOR", "ANSWER", "RESULTS", "QUERY"], rows)
}

/// The azolla that makes manifests, if there is one.
async fn maker(client: &Client) -> Outcome<AzollaId> {
    let makers = triage::find::azollas(client, |blueprint| blueprint["manifest"].is_object()).await?;
    match &makers[..] {
        [only] => Ok(only.clone()),
        [] => Err(Failure::conflict(
            "no azolla of this server makes manifests; `fernery up` hosts \
                task_management by default",
        )),
        several => {
            let several: Vec<_> = several.iter().map(AzollaId::as_str).collect();
            Err(Failure::usage(format!(
                "several azollas make manifests: choose one with --azolla {}",
                several.join(" or ")
            )))
        }
    }
}

/// Requests a manifest and waits for it.
async fn asked_for(client: &Client, azolla: &AzollaId, timeout: Duration) -> Outcome<ManifestRequestView> {
    let by = door::stop_watch() + timeout;
    let body = ManifestRequest { request_id: ticket::act::record() };
    let path = format!("/v1/azollas/{azolla}/manifests");
    let reply: Reply<ManifestRequestView> = ticket::act::send(client, &path, &body).await?;
    let mut state = reply.read()?;
    // A request that already waits is reused.
    let path = format!("/v1/manifest_requests/{}", state.request_id);
    let progress = ProgressBar::new_spinner();
    progress.set_style(
        ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    loop {
        let going_on =
            matches!(state.reason, None | Some(TerminalReason::Scheduled)) && state.failed.is_none();
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
                    "the manifest is not ready after {} s ({})",
                    timeout.as_secs(),
                    waits_for(client, &state).await
                ),
            )
            .hint("it is still being made: `fernery orient --last` will show it"));
        }
        let wait = left.min(LOOK_FOR).min(limits::JOB_WAIT_MAX);
        let query = Query::new().with("wait_ms", Some(wait.as_millis()));
        let began = door::stop_watch();
        match client.get::<ManifestRequestView>(&path, &query, wait).await {
            Ok(reply) => state = reply.read()?,
            // A lost answer does no harm: ask again.
            Err(ClientError::Broken { .. } | ClientError::TimedOut { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if state.manifest.is_none() {
            progress.set_message(waits_for(client, &state).await);
            progress.tick();
            // A draining server answers at once; without a pause this would flood it.
            if began.elapsed() < wait / 2 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// What a request waits for, in words.
async fn waits_for(client: &Client, state: &ManifestRequestView) -> String {
    if state.work_order_id.is_some() {
        return "their answers are being sorted".into();
    }
    let query = Query::new().with("limit", Some(limits::PAGE_ROWS_DEFAULT));
    let page = client.get::<CapturePage>("/v1/captures", &query, Duration::ZERO).await;
    let captures = page.and_then(|reply| reply.read()).map(|page| page.captures).unwrap_or_default();
    match captures.iter().filter(|view| view.capture.status == CaptureStatus::Pending).count() {
        0 => "the azollas are being asked".into(),
        1 => "one capture goes through triage first".into(),
        n if n == captures.len() && n > 9 => format!("{n} or more captures go through triage first"),
        n => format!("{n} captures go through triage first"),
    }
}
