//! What the journal says of candidates and manifests. Of captures it says nothing: a capture is held against the question of
//! its triage, which the verdict's entry names by its digest.

use super::references::{of_entry, path};
use super::{Exported, Faults};
use crate::Timestamp;
use crate::inbox::CandidateStatus;
use crate::journal::{Act, Entry};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(all: &Exported, faults: &mut Faults) {
    if !all.with_inbox {
        return;
    }
    let restored: BTreeMap<&str, Timestamp> = all
        .journal
        .iter()
        .filter(|entry| entry.is(Act::Restored))
        .map(|entry| (entry.subject.as_str(), entry.created_at))
        .collect();
    let mut decided: BTreeMap<&str, CandidateStatus> = BTreeMap::new();
    let mut made = BTreeSet::new();
    for entry in &all.journal {
        match entry.act() {
            Some(Act::Promoted) => {
                let same = all.candidates.get(&entry.subject).is_some_and(|candidate| {
                    entry.why["objective_id"] == json!(candidate.objective_id)
                        && candidate.updated_at == entry.created_at
                });
                is_as_told(same, entry, &entry.subject, faults);
                decided.insert(&entry.subject, CandidateStatus::Promoted);
            }
            Some(Act::Discarded) => {
                let taken_back =
                    restored.get(entry.subject.as_str()).is_some_and(|at| *at >= entry.created_at);
                let same = all
                    .candidates
                    .get(&entry.subject)
                    .is_some_and(|candidate| candidate.updated_at == entry.created_at || taken_back);
                is_as_told(same, entry, &entry.subject, faults);
                decided.insert(&entry.subject, CandidateStatus::Discarded);
            }
            Some(Act::Restored) => {
                is_as_told(all.candidates.contains_key(&entry.subject), entry, &entry.subject, faults);
                decided.remove(entry.subject.as_str());
            }
            Some(Act::Merged) => {
                let others = entry.why["merged"].as_array().into_iter().flatten();
                for other in others.filter_map(|id| id.as_str()) {
                    let into = all.candidates.get(other).and_then(|c| c.merged_into.as_ref());
                    let same = into.is_some_and(|into| into.as_str() == entry.subject);
                    is_as_told(same, entry, other, faults);
                    decided.insert(other, CandidateStatus::Merged);
                }
            }
            Some(Act::CandidateEdited) => {
                is_as_told(all.candidates.contains_key(&entry.subject), entry, &entry.subject, faults);
            }
            Some(Act::Judged) => {
                let Some(id) = entry.why["came_to"]["manifest_id"].as_str() else { continue };
                let same = all.manifests.get(id).is_some_and(|manifest| {
                    entry.why["work_order_id"] == json!(manifest.beside.work_order_id)
                        && entry.why["came_to"]["built_by"] == json!(manifest.beside.built_by)
                        && manifest.artifact.created_at == entry.created_at
                });
                let why = format!("it is missing or changed: it does not match {}", of_entry(entry));
                faults.unless(same && made.insert(id), &path("session_manifests", id), why);
            }
            _ => {}
        }
    }
    let untold = "the journal has no record of it: it was inserted or changed";
    for (id, candidate) in &all.candidates {
        let told = decided.get(id.as_str()).copied().unwrap_or(CandidateStatus::Waiting);
        let why = format!("it is {}, but the journal says {told}", candidate.status);
        faults.unless(told == candidate.status, &path("candidates", id), why);
    }
    for id in all.manifests.keys() {
        faults.unless(made.contains(id.as_str()), &path("session_manifests", id), untold);
    }
}

fn is_as_told(same: bool, entry: &Entry, candidate: &str, faults: &mut Faults) {
    let why = format!("it is missing or changed: it does not match {}", of_entry(entry));
    faults.unless(same, &path("candidates", candidate), why);
}
