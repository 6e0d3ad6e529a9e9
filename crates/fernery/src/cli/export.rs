//! `fernery export`: every artifact as a file of its own, to be read without Fernery, and to be brought in elsewhere.
//!
//! | folder | a file is |
//! |---|---|
//! | `objectives`, `events`, `context_snapshots`, `workorders`, `output_bundles`, `run_records`, `pause_states` | one artifact, exactly the fields of its schema, as canonical JSON |
//! | `decisions`, `journal` | what an operator decided; who did what |
//! | `blueprints` | a blueprint that is or was in force; its name is its SHA-256 |
//! | `beside` | what the control plane keeps beside an artifact, under the artifact's folder and name; a journal entry's seal |
//! | `manifest.json` | the SHA-256 of every file; its own SHA-256 is the folder's digest |
//!
//! Each objective is read in one snapshot with all that came of it, and again while the journal tells of something newer.

use super::export_folder::{Folder, name};
use super::export_journal::{self, Journal};
use super::failure::{Failure, Outcome};
use super::screen::Screen;
use super::ticket::detail;
use clap::Args;
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{AzollaList, BlueprintDetail, ObjectiveDetail, ObjectivePage};
use fernery_core::artifact::{
    ContextSnapshot, Event, ObjectiveId, ObjectiveType, OutputBundle, RunRecord, Workorder,
};
use fernery_core::canonical::Digest;
use fernery_core::journal::Head;
use fernery_core::limits;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often what has changed is read again before giving up. It ends with the first round, of some milliseconds, in which
/// no ticket moves.
const ROUNDS: u32 = 1_000;

/// Write every artifact of tickets to a folder of its own, as JSON.
#[derive(Debug, Args)]
#[command(after_help = "\
One file per artifact, exactly the fields of its schema; what the control plane keeps beside them is in beside/.
manifest.json has the SHA-256 of every file. The digest that is printed is that of the whole folder: keep it elsewhere,
and `fernery import --digest` finds out whatever was changed. Captures, candidates and manifests are not in it: they
move with a backup (`fernery backup`).

Examples:
  fernery export ./tickets-2026-11
  fernery export ./tickets-2026-11 --json")]
pub(super) struct Export {
    /// A folder that is not there yet, or empty
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(super) async fn run(export: Export, client: &Client, screen: Screen) -> Outcome {
    let exported = write(&export.dir, client).await?;
    if screen.json {
        return screen.line(&exported.to_json().to_string());
    }
    screen.line(&format!("{}: {}", export.dir.display(), exported.counted()))?;
    screen.line(&format!("digest {}", exported.digest))
}

/// What was written.
pub(super) struct Exported {
    dir: PathBuf,
    /// How many files there are in each folder.
    files: BTreeMap<String, u64>,
    /// Of the whole folder.
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
    let since = export_journal::reached(client).await?;
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
    let end = settled(&mut folder, client, &mut blueprints, since).await?;
    let reply: Reply<AzollaList> = client.get("/v1/azollas", &Query::new(), Duration::ZERO).await?;
    blueprints.extend(reply.read()?.azollas.into_iter().map(|azolla| azolla.digest));
    for digest in blueprints {
        let path = format!("/v1/blueprints/{digest}");
        let reply: Reply<BlueprintDetail> = client.get(&path, &Query::new(), Duration::ZERO).await?;
        let text = reply.read()?.blueprint.get().to_string();
        if Digest::of_bytes(text.as_bytes()) != digest {
            return Err(Failure::failed("unexpected_answer", format!("blueprint {digest} is another one")));
        }
        folder.text("blueprints", &digest.to_string(), &text)?;
    }
    let digest = folder.close(end)?;
    let files = folder.counts().into_iter().map(|(name, count)| (name.to_string(), count)).collect();
    Ok(Exported { dir: dir.to_path_buf(), files, digest })
}

/// Reads the journal, and what it tells of once more, until both show the same; answers the end of the journal's chain.
async fn settled(
    folder: &mut Folder,
    client: &Client,
    blueprints: &mut BTreeSet<Digest>,
    mut since: i64,
) -> Outcome<Option<Head>> {
    let mut journal = Journal::default();
    for _ in 0..ROUNDS {
        let end = journal.read(client, folder).await?;
        let mut changed = false;
        for subject in journal.subjects_after(since) {
            // Azollas and imports are subjects too.
            let Ok(id) = subject.parse::<ObjectiveId>() else { continue };
            let whole = match detail(client, &id).await {
                // What stands for an inbox is not a ticket's; it moves with a backup.
                Ok(reply) if is_standing(&reply.read()?) => continue,
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
    let why = "tickets change faster than they can be read; export again when less is going on";
    Err(Failure::failed("unsettled", why))
}

fn is_standing(whole: &ObjectiveDetail) -> bool {
    whole.standing.objective.objective_type == ObjectiveType::Standing
}

fn one(folder: &mut Folder, whole: ObjectiveDetail, blueprints: &mut BTreeSet<Digest>) -> Outcome {
    let objective = &whole.standing.objective;
    let id = objective.objective_id.as_str();
    folder.json("objectives", id, objective)?;
    let approval = whole.decision.as_ref().map(|decision| &decision["record_id"]);
    let standing = json!({ "approval": approval, "unconfirmed": whole.standing.unconfirmed,
        "failures": whole.standing.failures, "spent": whole.standing.spent });
    folder.json("beside/objectives", id, &standing)?;
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
        folder.json("pause_states", &format!("{id}.{}", n + 1), pause)?;
    }
    Ok(())
}
