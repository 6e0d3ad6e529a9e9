//! `fernery export`: every artifact as a file of its own, to be read without Fernery.
//!
//! | folder | a file is |
//! |---|---|
//! | `objectives`, `events`, `context_snapshots`, `workorders`, `output_bundles`, `run_records`, `pause_states` | one artifact, exactly the fields of its schema, as canonical JSON |
//! | `decisions`, `journal` | what an operator decided; who did what |
//! | `blueprints` | a blueprint under which something was made; its name is its SHA-256 |
//! | `beside` | what the control plane keeps beside an artifact, under the artifact's folder and name |
//!
//! Each objective is read in one snapshot with all that came of it. The journal is read last, so that it tells of
//! everything that is there.

use super::failure::{Failure, Outcome};
use super::screen::Screen;
use super::ticket::detail;
use clap::Args;
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{AzollaList, BlueprintDetail, JournalPage, ObjectiveDetail, ObjectivePage};
use fernery_core::artifact::{ContextSnapshot, Event, OutputBundle, RunRecord, Workorder};
use fernery_core::canonical::{self, Digest};
use fernery_core::limits;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Write every artifact to a folder of its own, as JSON.
#[derive(Debug, Args)]
#[command(after_help = "\
One file per artifact, exactly the fields of its schema; what the control plane keeps beside them is in beside/.

Example:
  fernery export ./tickets-2026-11")]
pub(super) struct Export {
    /// A folder that is not there yet, or empty
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(super) async fn run(export: Export, client: &Client, screen: Screen) -> Outcome {
    let mut folder = Folder::open(&export.dir)?;
    let mut blueprints = BTreeSet::new();
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
    journal(&mut folder, client).await?;
    if screen.json {
        return screen.line(&json!({ "dir": export.dir, "files": folder.files }).to_string());
    }
    let counts: Vec<String> = folder.files.iter().map(|(name, count)| format!("{count} {name}")).collect();
    screen.line(&format!("{}: {}", export.dir.display(), counts.join(", ")))
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
        folder.split::<Event>("events", "event_id", event, &["reason", "work_order_id"])?;
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

async fn journal(folder: &mut Folder, client: &Client) -> Outcome {
    let mut cursor = None;
    loop {
        let query = Query::new().with("limit", Some(limits::PAGE_ROWS_MAX)).with("cursor", cursor);
        let reply: Reply<JournalPage> = client.get("/v1/journal", &query, Duration::ZERO).await?;
        let page = reply.read()?;
        for entry in &page.entries {
            folder.json("journal", &entry.entry_id, entry)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

fn unexpected(why: impl std::fmt::Display) -> Failure {
    Failure::failed("unexpected_answer", format!("the server's answer is no artifact: {why}"))
}

fn name<'a>(artifact: &'a Value, key: &str) -> Outcome<&'a str> {
    artifact[key].as_str().ok_or_else(|| unexpected(format!("{key} is missing")))
}

/// Where the files go.
struct Folder {
    root: PathBuf,
    files: BTreeMap<String, u64>,
}

impl Folder {
    /// A folder for its owner alone: tickets may tell more than their author would tell everybody.
    fn open(root: &Path) -> Outcome<Self> {
        let refused = |why: &dyn std::fmt::Display| {
            Failure::usage(format!("cannot export to {}: {why}", root.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(|e| refused(&e))?;
        if std::fs::read_dir(root).map_err(|e| refused(&e))?.next().is_some() {
            return Err(refused(&"it is not empty"));
        }
        Ok(Self { root: root.to_path_buf(), files: BTreeMap::new() })
    }

    fn json(&mut self, folder: &str, name: &str, artifact: &impl Serialize) -> Outcome {
        self.text(folder, name, &(canonical::text_of(artifact) + "\n"))
    }

    /// An artifact with nothing but what its type has; `beside` goes to a file of its own.
    fn split<T: Serialize + DeserializeOwned>(
        &mut self,
        folder: &str,
        key: &str,
        mut artifact: Value,
        beside: &[&str],
    ) -> Outcome {
        let id = name(&artifact, key)?.to_string();
        let mut kept = Map::new();
        for field in beside {
            kept.extend(artifact.as_object_mut().and_then(|fields| fields.remove_entry(*field)));
        }
        let artifact: T = serde_json::from_value(artifact).map_err(unexpected)?;
        self.json(folder, &id, &artifact)?;
        if !beside.is_empty() {
            self.json(&format!("beside/{folder}"), &id, &kept)?;
        }
        Ok(())
    }

    fn text(&mut self, folder: &str, name: &str, text: &str) -> Outcome {
        // Ids have no dots and no slashes; a server that answers with others is not believed.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.starts_with('.') || !name.chars().all(plain) {
            return Err(unexpected(format!("{name:?} is no id")));
        }
        let dir = self.root.join(folder);
        let path = dir.join(format!("{name}.json"));
        let failed =
            |e: std::io::Error| Failure::failed("export", format!("cannot write {}: {e}", path.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(failed)?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        *self.files.entry(folder.to_string()).or_default() += 1;
        Ok(())
    }
}
