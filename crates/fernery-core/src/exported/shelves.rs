//! Each file for itself: is it JSON, is it spelled as we spell it, does it fit its schema, is it named after its id?

use super::index::{self, Index};
use super::{
    AttemptRecord, BesideOverdue, CandidateRecord, DependencyRecord, Exported, Faults, File, Kept,
    SnoozeRecord, references,
};
use crate::artifact::{
    CaptureBuffer, ContextSnapshot, Event, Objective, OutputBundle, PauseState, RunRecord, SessionManifest,
    SubstrateQuery, SubstrateQueryResponse, Workorder,
};
use crate::blueprint::Blueprint;
use crate::canonical::{self, Digest};
use crate::inbox::recurring::Recurrence;
use crate::journal::{Entry, Head, sealed};
use crate::pipeline::approval::Decision;
use crate::{json_strict, limits, schema::Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Artifacts stand deeper in what tells of them than in the request that brought them.
const DEPTH_MAX: usize = limits::JSON_DEPTH_MAX + 16;

/// Files that nobody has asked for yet.
struct Shelves<'a> {
    left: BTreeMap<&'a str, &'a str>,
    faults: &'a mut Faults,
}

pub(super) fn read(files: &[File], faults: &mut Faults) -> Option<Exported> {
    let mut shelves = Shelves { left: BTreeMap::new(), faults };
    for File { path, text } in files {
        if shelves.left.insert(path, text).is_some() {
            shelves.faults.add(path, "it is listed twice");
        }
        if text.len() > limits::IMPORT_FILE_BYTES_MAX {
            let why = format!("a file may have at most {} bytes", limits::IMPORT_FILE_BYTES_MAX);
            shelves.faults.add(path, why);
        }
    }
    let Some(text) = shelves.left.remove(index::PATH) else {
        shelves.faults.add(index::PATH, "it is missing: this folder was not written by `fernery export`");
        return None;
    };
    let index: Index = shelves.typed(index::PATH, text, None)?;
    index::check(&index, files, shelves.faults);
    let all = shelves.all(index, index::digest(text));
    for path in shelves.left.keys() {
        shelves.faults.add(*path, "this file is not part of an export");
    }
    Some(all)
}

impl<'a> Shelves<'a> {
    /// Takes every folder, in this order.
    fn all(&mut self, index: Index, digest: Digest) -> Exported {
        Exported {
            digest,
            with_inbox: index.with_inbox(),
            blueprints: self.blueprints(),
            objectives: self.pair("objectives", "objective", |o: &Objective| o.objective_id.to_string()),
            decisions: self.shelf("decisions", None, |d: &Decision| d.record_id.to_string()),
            events: self.pair("events", "event", |e: &Event| e.event_id.to_string()),
            snapshots: self.shelf("context_snapshots", Some("context_snapshot"), |s: &ContextSnapshot| {
                s.snapshot_id.to_string()
            }),
            workorders: self.pair("workorders", "workorder", |w: &Workorder| w.work_order_id.to_string()),
            bundles: self
                .shelf("output_bundles", Some("output_bundle"), |b: &OutputBundle| b.output_id.to_string()),
            runs: self.pair("run_records", "run_record", |r: &RunRecord| r.run_id.to_string()),
            pauses: self.pauses(),
            captures: self
                .pair("capture_buffers", "capture_buffer", |c: &CaptureBuffer| c.capture_id.to_string()),
            candidates: self
                .shelf("candidates", Some("candidate"), |c: &CandidateRecord| c.candidate_id.to_string()),
            manifests: self.pair("session_manifests", "session_manifest", |m: &SessionManifest| {
                m.manifest_id.to_string()
            }),
            queries: self
                .pair("substrate_queries", "substrate_query", |q: &SubstrateQuery| q.query_id.to_string()),
            responses: self.shelf(
                "substrate_query_responses",
                Some("substrate_query_response"),
                |r: &SubstrateQueryResponse| r.response_id.to_string(),
            ),
            overdue: self.overdue(),
            attempts: self.shelf("attempts", Some("attempt"), |a: &AttemptRecord| a.attempt_id.to_string()),
            dependencies: self.shelf("dependencies", None, DependencyRecord::name),
            recurrences: self.shelf("recurrences", None, |r: &Recurrence| r.recurrence_id.to_string()),
            snoozes: self.shelf("snoozes", None, SnoozeRecord::name),
            journal: self.journal(index.journal.as_ref()),
            head: index.journal,
        }
    }

    /// Takes all files of one folder: name without its ending, path, text.
    fn take(&mut self, folder: &str) -> Vec<(&'a str, &'a str, &'a str)> {
        let name = |path: &'a str| {
            let name = path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".json")?;
            (!name.contains('/')).then_some(name)
        };
        let found: Vec<_> =
            self.left.iter().filter_map(|(path, text)| Some((name(path)?, *path, *text))).collect();
        for (_, path, _) in &found {
            self.left.remove(path);
        }
        found
    }

    fn typed<T: Serialize + DeserializeOwned>(
        &mut self,
        path: &str,
        text: &str,
        schema: Option<&str>,
    ) -> Option<T> {
        if let Err(bad) = json_strict::scan(text, DEPTH_MAX) {
            self.faults.add(path, bad.to_string());
            return None;
        }
        if let Some(schema) = schema.and_then(Schema::named) {
            let document = serde_json::from_str(text).unwrap_or_default();
            let violations = schema.validate(&document);
            if let Some(first) = violations.first() {
                self.faults.add(path, format!("it is not a valid {}: {first}", schema.name()));
                return None;
            }
        }
        match serde_json::from_str::<T>(text) {
            Err(error) => self.faults.add(path, error.to_string()),
            Ok(read) if canonical::text_of(&read) + "\n" == text => return Some(read),
            Ok(_) => {
                self.faults.add(path, "it is not canonical JSON with one line end, as an export writes it")
            }
        }
        None
    }

    /// Reads one folder; each file is named after its id.
    fn shelf<T: Serialize + DeserializeOwned>(
        &mut self,
        folder: &str,
        schema: Option<&str>,
        id: impl Fn(&T) -> String,
    ) -> BTreeMap<String, T> {
        let mut read = BTreeMap::new();
        for (name, path, text) in self.take(folder) {
            let Some(artifact) = self.typed::<T>(path, text, schema) else { continue };
            let id = id(&artifact);
            self.faults.unless(id == name, path, format!("its id is {id}; a file is named after its id"));
            read.insert(id, artifact);
        }
        read
    }

    /// Reads one folder and what is kept beside it.
    fn pair<T: Serialize + DeserializeOwned, B: Serialize + DeserializeOwned>(
        &mut self,
        folder: &str,
        schema: &str,
        id: impl Fn(&T) -> String,
    ) -> BTreeMap<String, Kept<T, B>> {
        let artifacts = self.shelf(folder, Some(schema), id);
        self.paired(folder, artifacts)
    }

    /// Artifacts, each with what is kept beside it.
    fn paired<T, B: Serialize + DeserializeOwned>(
        &mut self,
        folder: &str,
        artifacts: BTreeMap<String, T>,
    ) -> BTreeMap<String, Kept<T, B>> {
        let mut besides = BTreeMap::new();
        for (name, path, text) in self.take(&format!("beside/{folder}")) {
            let read = self.typed::<B>(path, text, None);
            besides.insert(name.to_string(), (path, read));
        }
        let mut pairs = BTreeMap::new();
        for (id, artifact) in artifacts {
            match besides.remove(&id) {
                Some((_, Some(beside))) => drop(pairs.insert(id, Kept { artifact, beside })),
                Some((_, None)) => {}
                None => self.faults.add(format!("beside/{folder}/{id}.json"), "it is missing"),
            }
        }
        for (name, (path, _)) in besides {
            self.faults.add(path, format!("there is no {folder}/{name}.json"));
        }
        pairs
    }

    /// A blueprint is named after the digest of its text.
    fn blueprints(&mut self) -> BTreeMap<String, Blueprint> {
        let mut read = BTreeMap::new();
        for (name, path, text) in self.take("blueprints") {
            if let Err(bad) = json_strict::scan(text, DEPTH_MAX) {
                self.faults.add(path, bad.to_string());
                continue;
            }
            let digest = Digest::of_bytes(text.as_bytes()).to_string();
            self.faults.unless(digest == name, path, format!("its digest is {digest}: it was changed"));
            match Blueprint::from_json(text) {
                Ok(blueprint) if blueprint.to_json() == text => drop(read.insert(digest, blueprint)),
                Ok(_) => self.faults.add(path, "it is not canonical JSON, as an export writes it"),
                Err(error) => self.faults.add(path, error.to_string()),
            }
        }
        read
    }

    /// Pauses have no id: they are numbered per objective.
    fn pauses(&mut self) -> BTreeMap<(String, u32), PauseState> {
        let mut read = BTreeMap::new();
        for (name, path, text) in self.take("pause_states") {
            let Some(pause) = self.typed::<PauseState>(path, text, Some("pause_state")) else { continue };
            let number = name
                .strip_prefix(pause.objective_id.as_str())
                .and_then(|rest| rest.strip_prefix('.'))
                .and_then(|number| number.parse::<u32>().ok().filter(|n| n.to_string() == number));
            match number {
                Some(number) => drop(read.insert((pause.objective_id.to_string(), number), pause)),
                None => {
                    self.faults.add(path, "a pause is named after its objective and its number: T-1.1.json")
                }
            }
        }
        read
    }

    /// Pauses about objectives elsewhere have no id either: they are named after the digest of their key.
    fn overdue(&mut self) -> BTreeMap<String, Kept<PauseState, BesideOverdue>> {
        const FOLDER: &str = "overdue_pause_states";
        let mut read = BTreeMap::new();
        for (name, path, text) in self.take(FOLDER) {
            if let Some(pause) = self.typed::<PauseState>(path, text, Some("pause_state")) {
                read.insert(name.to_string(), pause);
            }
        }
        let pairs = self.paired::<PauseState, BesideOverdue>(FOLDER, read);
        for (name, Kept { beside, .. }) in &pairs {
            let digest = Digest::of_bytes(beside.pause_key.as_bytes()).to_string();
            let at = references::path(FOLDER, name);
            self.faults.unless(digest == *name, &at, "it is not named after the digest of its pause_key");
        }
        pairs
    }

    /// The journal in the order of its chain, which is walked from its start to the end that the index names.
    fn journal(&mut self, end: Option<&Head>) -> Vec<Entry> {
        let mut seals = BTreeMap::new();
        for (name, path, text) in self.take("beside/journal") {
            let Some(seal) = self.typed::<Head>(path, text, None) else { continue };
            seals.insert(name.to_string(), seal);
        }
        let mut chain = BTreeMap::new();
        for (id, entry) in self.shelf("journal", None, |entry: &Entry| entry.entry_id.clone()) {
            let path = references::of_entry(&entry);
            match seals.remove(&id) {
                None => self.faults.add(path, "its seal, in beside/journal, is missing"),
                Some(seal) => {
                    if let Some((_, other)) = chain.insert(seal.place, (seal.hash, entry)) {
                        let why =
                            format!("it has the same place in the chain as {}", references::of_entry(&other));
                        self.faults.add(path, why);
                    }
                }
            }
        }
        for name in seals.into_keys() {
            self.faults.add(format!("journal/{name}.json"), "it is missing, but its seal is there");
        }
        let (mut head, mut journal) = (None::<Head>, Vec::new());
        for (place, (hash, entry)) in chain {
            let next = sealed(head.as_ref(), &entry);
            if next != (Head { place, hash }) {
                let why = match next.place == place {
                    true => format!(
                        "the chain breaks at this entry, number {place}: it was changed, inserted or moved"
                    ),
                    false => format!("the chain breaks before this entry: number {} was removed", next.place),
                };
                self.faults.add(references::of_entry(&entry), why);
                return Vec::new();
            }
            head = Some(next);
            journal.push(entry);
        }
        if head.as_ref() != end {
            self.faults.add(
                index::PATH,
                "the journal's chain does not end at the entry that it names: entries were cut off or added",
            );
        }
        journal
    }
}
