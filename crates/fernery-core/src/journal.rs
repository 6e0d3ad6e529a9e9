//! An entry of the journal, and the chain over all of them: each seal is the hash of the one before and of its entry.

use crate::Timestamp;
use crate::canonical::{self, Digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One entry: who did what, when, why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its id: time-ordered.
    pub entry_id: String,
    /// When.
    pub created_at: Timestamp,
    /// Who.
    pub actor: String,
    /// What was done.
    pub act: String,
    /// To what.
    pub subject: String,
    /// Why, and what changed.
    pub why: Value,
}

/// A seal: where in the chain it stands, and its hash. The last one is the end of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// How many entries are sealed up to here.
    pub place: i64,
    /// The seal.
    pub hash: Digest,
}

/// The seal of an entry after the seal `before`.
pub fn seal_of(before: Option<&Digest>, place: i64, entry: &Entry) -> Digest {
    canonical::digest_of(&json!({"before": before, "place": place, "entry": entry}))
}

/// Seals an entry after the end of a chain.
pub fn sealed(head: Option<&Head>, entry: &Entry) -> Head {
    let place = head.map_or(1, |head| head.place + 1);
    Head { place, hash: seal_of(head.map(|head| &head.hash), place, entry) }
}
