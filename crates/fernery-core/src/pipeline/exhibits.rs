//! The inputs of a verdict, each with its digest. The journal entry about a verdict names them, so that the chain
//! covers the workorder, what the executor was told, its output, and the findings of the gates.

use super::evidence::Evidence;
use crate::artifact::{ContextSnapshot, OutputBundle, Workorder};
use crate::canonical::digest_of;
use serde_json::{Value, json};

/// The inputs of a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Exhibits<'a> {
    /// What was asked for.
    pub workorder: &'a Workorder,
    /// What its executor was told.
    pub snapshot: Option<&'a ContextSnapshot>,
    pub bundle: &'a OutputBundle,
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
