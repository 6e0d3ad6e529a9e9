//! What a gate found. Gates that need only the bundle judge here; the others run a program.

use super::membrane::outcome;
use super::patching::unproposed;
use super::protection::Protected;
use super::rework::leftover_markers;
use super::scheduling::first_line;
use crate::artifact::{ContextSnapshot, GateResult, OutputBundle};
use crate::blueprint::{Gate, Sandbox};
use crate::inbox::Question;
use crate::limits;
use crate::names::showable;
use crate::patch;
use crate::schema::Schema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Its name in the blueprint.
    pub gate: String,
    /// What it ran, if it ran a program.
    pub command: Option<Vec<String>>,
    /// The sandbox of that program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// The exit code; `None`: by a signal, or not at all.
    pub exit: Option<i32>,
    pub ms: u64,
    /// The end of its output.
    pub log_tail: String,
    /// `None`: it did not run, or could not.
    pub result: Option<GateResult>,
    /// Why it could not run.
    pub trouble: Option<String>,
    /// The protected files of its command that the patch touches; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected: Option<Protected>,
}

impl Evidence {
    /// The evidence of a gate that needs only the bundle.
    pub(super) fn plain(gate: &Gate, fault: Option<String>) -> Self {
        Self {
            gate: gate.name().to_string(),
            result: Some(if fault.is_some() { GateResult::Fail } else { GateResult::Pass }),
            log_tail: fault.map(|fault| said(&fault)).unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// The name of the step after the gates: leaving the branch.
pub const BRANCH: &str = "branch";
/// What the evidence of that step says where the commit is on top of one of an earlier attempt.
pub const STACKED: &str = "note: on top of commit ";

/// A gate's text as it is stored: printable and bounded.
pub fn said(text: &str) -> String {
    let mut shown = showable(text);
    let mut end = shown.len().min(limits::EVIDENCE_BYTES_MAX);
    while !shown.is_char_boundary(end) {
        end -= 1;
    }
    shown.truncate(end);
    shown
}

/// Judges a bundle by a gate that needs only the bundle and its snapshot; `None`: this gate runs a program.
pub fn plain_evidence(
    gate: &Gate,
    bundle: &OutputBundle,
    snapshot: Option<&ContextSnapshot>,
) -> Option<Evidence> {
    let fault = match gate {
        Gate::Schema => {
            let value = serde_json::to_value(bundle).unwrap_or_default();
            let found =
                Schema::named("output_bundle").map(|schema| schema.validate(&value)).unwrap_or_default();
            let all: Vec<String> = found.iter().map(ToString::to_string).collect();
            (!all.is_empty()).then(|| all.join("; "))
        }
        Gate::Outcome => {
            let outcome = outcome(&bundle.metadata);
            (!outcome.is_success())
                .then(|| format!("the outcome is {outcome}: {}", first_line(&bundle.title)))
        }
        Gate::Size { max_content_bytes } => (bundle.content.len() as u64 > *max_content_bytes)
            .then(|| format!("{} bytes of content; {max_content_bytes} are allowed", bundle.content.len())),
        Gate::Patch(policy) => patch::policy::fault(&bundle.content, policy)
            .or_else(|| leftover_markers(&bundle.content))
            .or_else(|| unproposed(bundle, policy.branch_prefix.as_deref()?)),
        Gate::Answers => answers_fault(snapshot, bundle),
        Gate::Applies | Gate::Command { .. } => return None,
    };
    Some(Evidence::plain(gate, fault))
}

fn answers_fault(snapshot: Option<&ContextSnapshot>, bundle: &OutputBundle) -> Option<String> {
    match snapshot.and_then(Question::of) {
        Some(question) => question.fault_of(bundle),
        None => Some("its snapshot asks for neither a triage nor a manifest".to_string()),
    }
}

/// Judges a bundle by gates without a program, up to the first that does not pass; `None`: a program is needed.
pub fn plain_evidence_of_all(
    gates: &[Gate],
    bundle: &OutputBundle,
    snapshot: Option<&ContextSnapshot>,
) -> Option<Vec<Evidence>> {
    let mut all = Vec::new();
    for gate in gates {
        let evidence = plain_evidence(gate, bundle, snapshot)?;
        let passed = evidence.result == Some(GateResult::Pass);
        all.push(evidence);
        if !passed {
            break;
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_gate_says_can_be_shown_and_has_a_bound() {
        assert_eq!(said("a\u{1b}[2Jb\n"), "a\u{fffd}[2Jb\n");
        assert_eq!(said(&"ä".repeat(limits::EVIDENCE_BYTES_MAX)).len(), limits::EVIDENCE_BYTES_MAX);
    }
}
