//! The folder that an export writes, and its index.

use crate::cli::failure::{Failure, Outcome};
use fernery_core::canonical::{self, Digest};
use fernery_core::exported::index::{self, Index};
use fernery_core::journal::Head;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Folders whose files the server writes.
const FROM_SERVER: [&str; 17] = [
    "attempts",
    "candidates",
    "capture_buffers",
    "context_snapshots",
    "dependencies",
    "events",
    "objectives",
    "output_bundles",
    "overdue_pause_states",
    "pause_states",
    "recurrences",
    "run_records",
    "session_manifests",
    "snoozes",
    "substrate_queries",
    "substrate_query_responses",
    "workorders",
];

/// Where the files go.
pub(super) struct Folder {
    root: PathBuf,
    /// What is there, with its digest.
    written: BTreeMap<String, Digest>,
}

pub(super) fn unexpected(why: impl std::fmt::Display) -> Failure {
    Failure::failed("unexpected_answer", format!("the server's answer is not an artifact: {why}"))
}

pub(super) fn name<'a>(artifact: &'a Value, key: &str) -> Outcome<&'a str> {
    artifact[key].as_str().ok_or_else(|| unexpected(format!("{key} is missing")))
}

impl Folder {
    /// A folder for its owner alone: tickets may tell more than their author would tell everybody.
    pub(super) fn open(root: &Path) -> Outcome<Self> {
        let refused = |why: &dyn std::fmt::Display| {
            Failure::usage(format!("cannot export to {}: {why}", root.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(|e| refused(&e))?;
        if std::fs::read_dir(root).map_err(|e| refused(&e))?.next().is_some() {
            return Err(refused(&"it is not empty"));
        }
        Ok(Self { root: root.to_path_buf(), written: BTreeMap::new() })
    }

    /// How many files there are in each folder.
    pub(super) fn counts(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for folder in self.written.keys().filter_map(|path| path.rsplit_once('/')).map(|(folder, _)| folder) {
            *counts.entry(folder).or_default() += 1;
        }
        counts
    }

    /// An artifact as canonical JSON.
    pub(super) fn json(&mut self, folder: &str, name: &str, artifact: &impl Serialize) -> Outcome {
        self.text(folder, name, &(canonical::text_of(artifact) + "\n"))
    }

    /// An artifact with nothing but what its type has; `beside` goes to a file of its own.
    pub(super) fn split<T: Serialize + DeserializeOwned>(
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

    /// A file as the server tells it. One that is not believed to be of an export is refused.
    pub(super) fn file(&mut self, path: &str, text: &str) -> Outcome {
        let (folder, name) = path.rsplit_once('/').unwrap_or_default();
        let kind = folder.strip_prefix("beside/").unwrap_or(folder);
        match name.strip_suffix(".json") {
            Some(name) if FROM_SERVER.contains(&kind) => self.text(folder, name, text),
            _ => Err(unexpected(format!("{path:?} does not belong to an export"))),
        }
    }

    /// Writes a file, again if it was written before and says something else now.
    pub(super) fn text(&mut self, folder: &str, name: &str, text: &str) -> Outcome {
        // Ids have no dots and no slashes; other answers of a server are refused.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(unexpected(format!("{name:?} is not a valid id")));
        }
        let (path, digest) = (format!("{folder}/{name}.json"), Digest::of_bytes(text.as_bytes()));
        match self.written.insert(path.clone(), digest) {
            Some(before) if before == digest => Ok(()),
            before => self.write(&path, text, before.is_none()),
        }
    }

    /// What was written to a file; `None` if it was not written.
    pub(super) fn read(&self, folder: &str, name: &str) -> Outcome<Option<String>> {
        let path = format!("{folder}/{name}.json");
        if !self.written.contains_key(&path) {
            return Ok(None);
        }
        let text = std::fs::read_to_string(self.root.join(&path));
        let failed = |e| format!("cannot read {}: {e}", self.root.join(&path).display());
        text.map(Some).map_err(|e| Failure::failed("export", failed(e)))
    }

    /// Takes a file back.
    pub(super) fn remove(&mut self, folder: &str, name: &str) -> Outcome {
        let path = format!("{folder}/{name}.json");
        if self.written.remove(&path).is_some() {
            std::fs::remove_file(self.root.join(&path)).map_err(|e| self.failed(&path, e))?;
        }
        Ok(())
    }

    /// Takes all files of one kind back.
    pub(super) fn clear(&mut self, folder: &str) -> Outcome {
        let within = |path: &String| {
            Some(path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".json")?.to_string())
        };
        let names: Vec<String> = self.written.keys().filter_map(within).collect();
        names.iter().try_for_each(|name| self.remove(folder, name))
    }

    /// Writes the index, which makes the folder whole; answers the digest of all of it.
    pub(super) fn close(&self, journal: Option<Head>) -> Outcome<Digest> {
        let mut index = Index::new(journal);
        self.written.iter().for_each(|(path, digest)| index.name(path, *digest));
        let text = index.text();
        self.write(index::PATH, &text, true)?;
        Ok(index::digest(&text))
    }

    fn write(&self, path: &str, text: &str, new: bool) -> Outcome {
        let failed = |e| self.failed(path, e);
        let place = self.root.join(path);
        if let Some(dir) = place.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        }
        let mut how = OpenOptions::new();
        how.write(true).mode(0o600).create_new(new).truncate(!new);
        let mut file: File = how.open(&place).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)
    }

    fn failed(&self, path: &str, error: std::io::Error) -> Failure {
        Failure::failed("export", format!("cannot write {}: {error}", self.root.join(path).display()))
    }
}
