//! `fernery worker --diazotroph`: an agent on this machine, for tickets of a server elsewhere.

use super::{EndSignals, LAST_WORDS, WorkerArgs, find_server, place, summed_up, worker};
use crate::cli::Global;
use crate::cli::config::in_force;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::worker::show::Show;
use crate::command_worker::remote_patches::RemotePatches;
use crate::config::Settings;
use crate::serve::data_dir;
use fernery_client::wire::ItemOutcome;
use fernery_client::worker::WorkerEvent;
use fernery_core::artifact::DiazotrophType;
use fernery_core::profile::Profile;
use fernery_exec::agent::leftover;
use fernery_exec::agent::trash::Trash;
use fernery_exec::profiles;
use fernery_exec::sandbox::Probe;
use fernery_exec::sandbox::modes::Private;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::watch;

/// The only type that is supported here.
const PATCHES: &str = "PATCH_DIAZOTROPH";

pub(super) async fn work(args: WorkerArgs, of: DiazotrophType, global: &Global, show: Arc<Show>) -> Outcome {
    let (_, settings) = in_force(global, Vec::new())?;
    // Clones, prompts and logs are for its owner alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    data_dir::prepare(&settings.data).map_err(Failure::usage)?;
    let patches = patches(&args, &of, &settings).await?;
    rescue(&patches).await;
    let mut signals = EndSignals::new()?;
    let server = tokio::select! {
        server = find_server(global, &show) => server?,
        () = signals.next() => return Ok(()),
    };
    let place = place(&args, &server, &show)?;
    let streams = patches.streams(&of);
    let names: Vec<&str> = streams.iter().map(|stream| stream.as_str()).collect();
    let (url, profile, tier) = (server.client.url(), &patches.profile.name, patches.tier);
    show.start(
        format!("worker {} at {url}: {} by {profile}, sandbox {tier}", place.id, names.join(", ")),
        json!({"event": "started", "worker_id": place.id, "url": url, "streams": names, "profile": profile,
               "sandbox": tier, "concurrency": args.concurrency, "spool": place.spool.display().to_string()}),
    );
    let (told, answered) = (show.clone(), patches.clone());
    let run = move |job| {
        let patches = patches.clone();
        async move { patches.run(job).await }
    };
    let worker = worker(&args, (&server, &place), &streams, run, move |event| {
        if let WorkerEvent::Reported { answer } = &event {
            let taken = matches!(answer.outcome, ItemOutcome::Accepted | ItemOutcome::Duplicate);
            answered.answered(answer.job_id, taken);
        }
        told.event(event);
    });
    let (drained, mut draining) = watch::channel(false);
    let run = worker.run_until(async move {
        let _ = draining.wait_for(|draining| *draining).await;
    });
    let until_nobody_waits = async {
        signals.next().await;
        let _ = drained.send(true);
        // A second signal means: do not wait.
        signals.next().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        outcome = run => summed_up(outcome, None, &server, &show),
        () = until_nobody_waits => {
            Err(Failure::failed("ended_at_once", "ended at once; unsent reports are in the spool"))
        }
    }
}

async fn patches(args: &WorkerArgs, of: &DiazotrophType, settings: &Settings) -> Outcome<RemotePatches> {
    if of.as_str() != PATCHES {
        return Err(Failure::usage(format!(
            "--diazotroph: this program can only be an executor of {PATCHES}, not of {of}"
        )));
    }
    if settings.repos.is_empty() {
        let why = "no repository is configured: name one in [repos] of fernery.toml, or as FERNERY_REPOS=web=../web#main";
        return Err(Failure::usage(why));
    }
    let profile = profile(args)?;
    let wanted = args.sandbox.or(profile.sandbox);
    let tier = Probe::look().await.choose(wanted).map_err(|why| Failure::failed("sandbox", why))?;
    let data = std::path::absolute(&settings.data).unwrap_or_else(|_| settings.data.clone());
    let work = data.join("work").join("elsewhere");
    let (trash, private) = (Trash::of(&data), Private::of(&data));
    let (repos, unanswered) = (settings.repos.clone(), Arc::default());
    Ok(RemotePatches { profile, tier, repos, work, trash, private, unanswered })
}

fn profile(args: &WorkerArgs) -> Outcome<Profile> {
    let Some(name) = &args.profile else {
        return Err(Failure::usage("--profile names the agent; `fernery agent list` lists all profiles"));
    };
    let own = profiles::beside(std::path::Path::new(""), name).map_err(Failure::usage)?;
    let profile = match own {
        Some(text) => Profile::parse(&text).map_err(|flaws| {
            let each: Vec<String> =
                flaws.iter().map(|flaw| flaw.in_file(&format_args!("profiles/{name}.toml"))).collect();
            Failure::usage(each.join("\n"))
        })?,
        None => Profile::builtin(name).ok_or_else(|| {
            let known: Vec<&str> = Profile::names().collect();
            Failure::usage(format!("there is no profile {name}; there are {}", known.join(", ")))
        })?,
    };
    profile.with_args(&args.agent_args).map_err(|refused| Failure::usage(refused.why))
}

/// Cleans up after a killed worker: its agents are killed, and their work is kept.
async fn rescue(patches: &RemotePatches) {
    let entries = std::fs::read_dir(&patches.work).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(ids) = name.strip_prefix("run-") else { continue };
        // Two ids of 36 characters.
        let (Some(work), Some(attempt)) = (ids.get(..36), ids.get(37..)) else { continue };
        if !leftover::in_use(&entry.path()) {
            leftover::end_survivors(&[attempt.to_string()]).await;
            leftover::rescue(&entry.path(), &patches.trash, (work, attempt)).await;
        }
    }
}
