//! The one file that names all others with their digests. Its own digest stands for the whole folder.

use super::{Faults, File};
use crate::canonical::{self, Digest};
use crate::journal::Head;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const PATH: &str = "manifest.json";
/// Which layout a folder has.
const FORMAT: &str = "fernery-export-2";
/// The layout before: tickets only, while the journal may tell of an inbox.
const FORMAT_TICKETS: &str = "fernery-export-1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    format: String,
    /// The end of the journal's chain.
    pub(super) journal: Option<Head>,
    files: BTreeMap<String, Digest>,
}

impl Index {
    /// The index of a folder whose journal ends so; no file is in it yet.
    pub fn new(journal: Option<Head>) -> Self {
        Self { format: FORMAT.to_string(), journal, files: BTreeMap::new() }
    }

    /// Whether the inbox is in the folder, too.
    pub(super) fn with_inbox(&self) -> bool {
        self.format != FORMAT_TICKETS
    }

    /// Names one more file.
    pub fn name(&mut self, path: &str, digest: Digest) {
        self.files.insert(path.to_string(), digest);
    }

    pub fn text(&self) -> String {
        canonical::text_of(self) + "\n"
    }
}

/// The digest of a folder: that of its index.
pub fn digest(text: &str) -> Digest {
    Digest::of_bytes(text.as_bytes())
}

/// Every file is named with its digest, and every file that is named is there.
pub(super) fn check(index: &Index, files: &[File], faults: &mut Faults) {
    let known = [FORMAT, FORMAT_TICKETS].contains(&index.format.as_str());
    faults.unless(known, PATH, format!("its format is neither {FORMAT} nor {FORMAT_TICKETS}"));
    let mut named = index.files.clone();
    for file in files.iter().filter(|file| file.path != PATH) {
        match named.remove(&file.path) {
            None => faults.add(&file.path, "manifest.json does not name it: it was added later"),
            Some(digest) if digest == Digest::of_bytes(file.text.as_bytes()) => {}
            Some(_) => faults.add(&file.path, "it was changed: its digest is not the one in manifest.json"),
        }
    }
    for path in named.into_keys() {
        faults.add(path, "manifest.json names it, but it is missing");
    }
}
