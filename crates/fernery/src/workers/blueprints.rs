//! The blueprints of this process: read from their files with the built-in ones, and checked together with those that
//! other processes host.

use crate::config::Registry;
use fernery_core::blueprint::{Blueprint, ExecutorKind, Gate, Neighbours};
use fernery_engine::pipeline::azollas;
use fernery_engine::{Engine, StoreError};
use fernery_exec::profiles;
use fernery_exec::sandbox::Probing;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// Reads the given files. Adds the embedded `mec`, unless a given file has that id or runs the executor here that
/// `mec` leaves to remote workers; and the embedded `task_management` and `tasks`, unless a given file has that id.
pub fn read(files: &[PathBuf]) -> Result<Vec<Blueprint>, String> {
    let (mut from_files, mut mistakes) = (Vec::new(), Vec::new());
    for file in files {
        match read_one(file) {
            Ok(blueprint) => from_files.push(blueprint),
            Err(found) => mistakes.extend(found),
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes.join("\n"));
    }
    let mec = Blueprint::mec();
    let instead = |own: &Blueprint| {
        let same_type = own.diazotroph_type == mec.diazotroph_type;
        own.azolla_id == mec.azolla_id
            || same_type && own.executor().map(|of| of.kind) != mec.executor().map(|of| of.kind)
    };
    let mut all = Vec::new();
    if !from_files.iter().any(instead) {
        all.push(mec);
    }
    for embedded in [Blueprint::task_management(), Blueprint::tasks()] {
        if !from_files.iter().any(|own| own.azolla_id == embedded.azolla_id) {
            all.push(embedded);
        }
    }
    all.append(&mut from_files);
    match &check_together(&all)[..] {
        [] => Ok(all),
        mistakes => Err(mistakes.join("\n")),
    }
}

/// One blueprint, or all its mistakes with their places.
fn read_one(file: &Path) -> Result<Blueprint, Vec<String>> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|e| vec![format!("{shown}: {e}")])?;
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    let others = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.toml"))).ok();
    let beside = Neighbours { blueprint: &others, profile: &|name| profiles::beside(&folder, name) };
    Blueprint::parse_beside(&text, &beside)
        .map_err(|flaws| flaws.iter().map(|flaw| flaw.in_file(&shown)).collect())
}

/// Rules over all blueprints together, and where they are broken.
fn check_together(blueprints: &[Blueprint]) -> Vec<String> {
    let mut mistakes = Vec::new();
    let mut seen = HashSet::new();
    let mut kinds = BTreeMap::new();
    for blueprint in blueprints {
        let id = &blueprint.azolla_id;
        if !seen.insert(id) {
            mistakes.push(format!("two blueprints define azolla {id}"));
        }
        for of in blueprint.workorders_for() {
            let Some(executor) = blueprint.executor_of(&of) else {
                mistakes.push(format!("azolla {id} has no executor for {of}"));
                continue;
            };
            let by = match executor.kind {
                ExecutorKind::Remote => "a remote executor",
                ExecutorKind::Person => "a person",
                _ => "one in this process",
            };
            let other = kinds.entry(of.clone()).or_insert((by, id));
            if other.0 != by {
                mistakes.push(format!(
                    "azollas {} and {id} both use {of}, one with {} and one with {by}: choose another type for \
                    one of them",
                    other.1, other.0
                ));
            }
        }
    }
    mistakes
}

/// Where the programs of these blueprints cannot be contained here as they demand. Probes nothing if no program needs it.
async fn check_contained(blueprints: &[Blueprint], probing: &Probing) -> Vec<String> {
    let mut mistakes = Vec::new();
    for blueprint in blueprints {
        let id = &blueprint.azolla_id;
        let used = blueprint.used_executors().into_iter();
        let started = used.filter(|(_, executor)| executor.kind.starts_program());
        let executors = started.map(|(of, found)| (format!("[executors.{of}]"), found.sandbox));
        let gates = blueprint.gates.iter().filter_map(|gate| match gate {
            Gate::Command { name, sandbox, .. } => Some((format!("gate {name}"), *sandbox)),
            _ => None,
        });
        for (program, wanted) in executors.chain(gates) {
            if let Err(why) = probing.choose(wanted).await {
                mistakes.push(format!(
                    "azolla {id}: {program} needs a sandbox, and {why}. To run it without one, set sandbox \
                    = \"none\" there"
                ));
            }
        }
    }
    mistakes
}

/// Everything that keeps these blueprints from being hosted here.
pub(super) async fn check_here(
    engine: &Engine,
    blueprints: &[Blueprint],
    probing: &Probing,
    registry: &Registry,
) -> Result<Vec<String>, StoreError> {
    // Azollas of other processes claim from the same streams. With SQLite there are no other processes.
    let (known, hosting) =
        engine.substrate().read(|sql| Ok((azollas::all(sql)?, azollas::hosting(sql)?))).await?;
    let is_others = |known: &Blueprint| {
        let ours = blueprints.iter().any(|own| own.azolla_id == known.azolla_id);
        !ours && hosting.is_hosted(&known.azolla_id) && engine.store().backend() != "sqlite"
    };
    let known = known.iter().map(|known| (*known.blueprint).clone());
    let all: Vec<Blueprint> = blueprints.iter().cloned().chain(known.filter(is_others)).collect();
    let mut mistakes = check_together(&all);
    let unguarded =
        blueprints.iter().filter_map(|of| Some(format!("azolla {}: {}", of.azolla_id, of.unguarded()?)));
    mistakes.extend(unguarded);
    mistakes.extend(check_contained(blueprints, probing).await);
    mistakes.extend(blueprints.iter().filter(|own| registry.contains_key(&own.azolla_id)).map(|own| {
        format!(
            "azolla {} is hosted here and also named in registry: choose another name in registry",
            own.azolla_id
        )
    }));
    Ok(mistakes)
}
