//! The folder that an export writes, and its manifest.

use super::failure::{Failure, Outcome};
use fernery_core::canonical::{self, Digest};
use fernery_core::exported::manifest::{self, Manifest};
use fernery_core::journal::Head;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Where the files go.
pub(super) struct Folder {
    root: PathBuf,
    /// What is there, with its digest.
    written: BTreeMap<String, Digest>,
}

pub(super) fn unexpected(why: impl std::fmt::Display) -> Failure {
    Failure::failed("unexpected_answer", format!("the server's answer is no artifact: {why}"))
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

    /// Writes a file, again if it was written before and says something else now.
    pub(super) fn text(&mut self, folder: &str, name: &str, text: &str) -> Outcome {
        // Ids have no dots and no slashes; a server that answers with others is not believed.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            return Err(unexpected(format!("{name:?} is no id")));
        }
        let (path, digest) = (format!("{folder}/{name}.json"), Digest::of_bytes(text.as_bytes()));
        match self.written.insert(path.clone(), digest) {
            Some(before) if before == digest => Ok(()),
            before => self.write(&path, text, before.is_none()),
        }
    }

    /// Takes a file back.
    pub(super) fn remove(&mut self, folder: &str, name: &str) -> Outcome {
        let path = format!("{folder}/{name}.json");
        if self.written.remove(&path).is_some() {
            std::fs::remove_file(self.root.join(&path)).map_err(|e| self.failed(&path, e))?;
        }
        Ok(())
    }

    /// Writes the manifest, which makes the folder whole; answers the digest of all of it.
    pub(super) fn close(&self, journal: Option<Head>) -> Outcome<Digest> {
        let mut manifest = Manifest::new(journal);
        self.written.iter().for_each(|(path, digest)| manifest.name(path, *digest));
        let text = manifest.text();
        self.write(manifest::PATH, &text, true)?;
        Ok(manifest::digest(&text))
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
