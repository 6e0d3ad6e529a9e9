//! `fernery export`: every artifact as a file of its own, to be read without Fernery, and to be brought in elsewhere.
//!
//! | folder | a file is |
//! |---|---|
//! | `objectives`, `events`, `context_snapshots`, `workorders`, `output_bundles`, `run_records`, `pause_states`, `capture_buffers`, `session_manifests`, `substrate_queries`, `substrate_query_responses` | one artifact, exactly the fields of its schema, as canonical JSON |
//! | `overdue_pause_states` | a pause that one azolla wrote about an objective of another; its name is the SHA-256 of what it is about |
//! | `candidates`, `attempts` | a record of ours, with a schema: what triage made of captures; an ended attempt of a workorder's job |
//! | `dependencies`, `recurrences`, `snoozes` | which ticket waits for which; a line that comes again; what is out of sight, and until when |
//! | `decisions`, `journal` | what an operator decided; who did what |
//! | `blueprints` | a blueprint that is or was in force; its name is its SHA-256 |
//! | `beside` | what the control plane keeps beside an artifact, under the artifact's folder and name; a journal entry's seal |
//! | `manifest.json` | the SHA-256 of every file; its own SHA-256 is the folder's digest |
//!
//! Each ticket is read in one snapshot with everything that belongs to it, the rest in pages, and again while the
//! journal shows something newer. Attempts come last; those that ended after their workorder was read are left out.

mod folder;
mod inbox;
mod journal;

use super::failure::{Failure, Outcome};
use super::screen::Screen;
use super::ticket::detail;
use clap::Args;
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{AzollaList, BlueprintDetail, ObjectiveDetail, ObjectivePage};
use fernery_core::artifact::{ContextSnapshot, Event, ObjectiveId, OutputBundle, RunRecord, Workorder};
use fernery_core::canonical::Digest;
use fernery_core::journal::Head;
use fernery_core::limits;
use folder::{Folder, name};
use journal::Journal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often changes are read again before giving up. The first round without a change, which takes some milliseconds,
/// ends it.
const ROUNDS: u32 = 1_000;

/// Write all artifacts of tickets and of the inbox to a folder, as JSON
#[derive(Debug, Args)]
#[command(after_help = "\
One file per artifact, with exactly the fields of its schema; additional data of the control plane is in beside/. \
manifest.json has the SHA-256 of every file. The printed digest covers the whole folder: keep it somewhere else, and \
`fernery import --digest` detects every change. The folder has tickets, captures, candidates, manifests, queries \
between azollas and their answers, standing objectives, overdue pauses, the attempts of workorders, lines that come \
again, snoozes, and which ticket waits for which. It does not \
have plain jobs, tokens, logs and comments on patches: use a backup for them (`fernery backup`).

Examples:
  fernery export ./tickets-2026-11
  fernery export ./tickets-2026-11 --json")]
pub(super) struct Export {
    /// A folder that is empty or does not exist yet
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(super) async fn run(export: Export, client: &Client, screen: Screen) -> Outcome {
    let exported = write(&export.dir, client).await?;
    if screen.json {
        return screen.line(&exported.to_json().to_string());
    }
    screen.say(&format!("{}: {}", export.dir.display(), exported.counted()))?;
    screen.line(&format!("digest {}", exported.digest))
}

/// What was written.
pub(super) struct Exported {
    dir: PathBuf,
    /// How many files there are in each folder.
    files: BTreeMap<String, u64>,
    /// The digest of the whole folder.
    pub(super) digest: Digest,
}

impl Exported {
    pub(super) fn to_json(&self) -> Value {
        json!({ "dir": self.dir, "files": self.files, "digest": self.digest })
    }

    /// How many files there are, but for the manifest.
    pub(super) fn count(&self) -> u64 {
        self.files.values().sum()
    }

    fn counted(&self) -> String {
        let counts: Vec<String> = self.files.iter().map(|(name, count)| format!("{count} {name}")).collect();
        counts.join(", ")
    }
}

/// Writes everything that the server has into a folder.
pub(super) async fn write(dir: &Path, client: &Client) -> Outcome<Exported> {
    let mut folder = Folder::open(dir)?;
    let mut blueprints = BTreeSet::new();
    let since = journal::reached(client).await?;
    let mut cursor = None;
    loop {
        let query = Query::new().with("limit", Some(limits::PAGE_ROWS_MAX)).with("cursor", cursor);
        let reply: Reply<ObjectivePage> = client.get("/v1/objectives", &query, Duration::ZERO).await?;
        let page = reply.read()?;
        for view in &page.objectives {
            let whole = detail(client, &view.objective.objective_id).await?.read()?;
            one(&mut folder, whole, &mut blueprints)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    inbox::read(client, &mut folder).await?;
    let end = settled(&mut folder, client, &mut blueprints, since).await?;
    inbox::attempts(client, &mut folder).await?;
    let reply: Reply<AzollaList> = client.get("/v1/azollas", &Query::new(), Duration::ZERO).await?;
    blueprints.extend(reply.read()?.azollas.into_iter().map(|azolla| azolla.digest));
    for digest in blueprints {
        let path = format!("/v1/blueprints/{digest}");
        let reply: Reply<BlueprintDetail> = client.get(&path, &Query::new(), Duration::ZERO).await?;
        let text = reply.read()?.blueprint.get().to_string();
        if Digest::of_bytes(text.as_bytes()) != digest {
            return Err(Failure::failed(
                "unexpected_answer",
                format!("the server returned another blueprint for {digest}"),
            ));
        }
        folder.text("blueprints", &digest.to_string(), &text)?;
    }
    let digest = folder.close(end)?;
    let files = folder.counts().into_iter().map(|(name, count)| (name.to_string(), count)).collect();
    Ok(Exported { dir: dir.to_path_buf(), files, digest })
}

/// Reads the journal, and again what it shows as changed, until both match; answers the end of the chain.
async fn settled(
    folder: &mut Folder,
    client: &Client,
    blueprints: &mut BTreeSet<Digest>,
    mut since: i64,
) -> Outcome<Option<Head>> {
    let mut journal = Journal::default();
    for _ in 0..ROUNDS {
        let end = journal.read(client, folder).await?;
        let (subjects, mut changed) = journal.told_after(since);
        if changed {
            inbox::read(client, folder).await?;
        } else if !subjects.is_empty() {
            inbox::read_passing(client, folder).await?;
        }
        for subject in subjects {
            // Azollas and imports are subjects too.
            let Ok(id) = subject.parse::<ObjectiveId>() else { continue };
            let whole = match detail(client, &id).await {
                Ok(reply) => reply.read()?,
                Err(fernery_client::ClientError::Refused { problem, .. }) if problem.status == 404 => {
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            changed = true;
            one(folder, whole, blueprints)?;
        }
        if !changed {
            journal.cut(folder, end.as_ref())?;
            blueprints.append(&mut journal.blueprints);
            return Ok(end);
        }
        since = end.map_or(since, |end| end.place);
    }
    let why = "tickets change faster than they can be read; export again when fewer runs are in progress";
    Err(Failure::failed("unsettled", why))
}

fn one(folder: &mut Folder, whole: ObjectiveDetail, blueprints: &mut BTreeSet<Digest>) -> Outcome {
    let objective = &whole.view.objective;
    let id = objective.objective_id.as_str();
    folder.json("objectives", id, objective)?;
    let approval = whole.decision.as_ref().map(|decision| &decision["record_id"]);
    let beside = json!({ "approval": approval, "unconfirmed": whole.view.unconfirmed,
        "failures": whole.view.failures, "spent": whole.view.spent });
    folder.json("beside/objectives", id, &beside)?;
    for decision in &whole.decisions {
        folder.json("decisions", name(decision, "record_id")?, decision)?;
    }
    for event in whole.events {
        folder.split::<Event>("events", "event_id", event, &["reason", "work_order_id", "entry"])?;
    }
    for workorder in whole.workorders {
        let digest = workorder["blueprint"].as_str().and_then(|digest| digest.parse::<Digest>().ok());
        blueprints.extend(digest);
        let beside = [
            "azolla_id",
            "event_id",
            "blueprint",
            "spent_ms",
            "executed_at",
            "output_id",
            "judged",
            "gate_tries",
            "cancelled",
            "claim_version",
        ];
        folder.split::<Workorder>("workorders", "work_order_id", workorder, &beside)?;
    }
    for snapshot in whole.context_snapshots {
        folder.split::<ContextSnapshot>("context_snapshots", "snapshot_id", snapshot, &[])?;
    }
    for bundle in whole.output_bundles {
        folder.split::<OutputBundle>("output_bundles", "output_id", bundle, &[])?;
    }
    for run in whole.runs {
        folder.split::<RunRecord>("run_records", "run_id", run, &["evidence"])?;
    }
    for (n, pause) in whole.pauses.iter().enumerate() {
        folder.json("pause_states", &format!("{id}.{}", n + 1), &pause.pause)?;
    }
    Ok(())
}
