//! What a verdict is over, each piece by its digest. The journal's entry about a verdict names them, so that its chain
//! covers what was asked for, what the executor was told, what it handed in and what the gates found.

use super::judging::Evidence;
use crate::artifact::{ContextSnapshot, OutputBundle, Workorder};
use crate::canonical::digest_of;
use serde_json::{Value, json};

/// What a verdict is over.
#[derive(Clone, Copy, Debug)]
pub struct Exhibits<'a> {
    /// What was asked for.
    pub workorder: &'a Workorder,
    /// What its executor was told.
    pub snapshot: Option<&'a ContextSnapshot>,
    /// What was handed in.
    pub bundle: &'a OutputBundle,
    /// What the gates found.
    pub evidence: &'a [Evidence],
}

impl Exhibits<'_> {
    /// The digest of each.
    pub fn digests(&self) -> Value {
        json!({
            "workorder": digest_of(self.workorder),
            "context_snapshot": self.snapshot.map(digest_of),
            "output_bundle": digest_of(self.bundle),
            "evidence": digest_of(self.evidence),
        })
    }
}
