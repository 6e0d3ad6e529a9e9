//! Typed ids. All have one form, checked at every door.

use crate::names::{BadName, text_name};
use crate::parsed::parsed;
use crate::{JobId, limits};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Whether this can be an id, or what one looks like.
pub fn check_id(text: &str) -> Result<(), BadName> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && text.len() <= limits::ARTIFACT_ID_CHARS_MAX && text.chars().all(allowed) {
        Ok(())
    } else {
        Err(BadName(format!(
            "an id has 1 to {} characters of A-Z a-z 0-9 _ - and starts with a letter or digit",
            limits::ARTIFACT_ID_CHARS_MAX
        )))
    }
}

fn check_diazotroph(text: &str) -> Result<(), BadName> {
    let stem = text.strip_suffix("_DIAZOTROPH").unwrap_or("");
    let allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let starts = stem.starts_with(|c: char| c.is_ascii_uppercase());
    if starts && text.len() <= limits::ARTIFACT_ID_CHARS_MAX && stem.chars().all(allowed) {
        Ok(())
    } else {
        Err(BadName(
            "a diazotroph_type is in capitals and ends in _DIAZOTROPH, like PATCH_DIAZOTROPH".to_string(),
        ))
    }
}

text_name!(
    /// An azolla: one deployment unit.
    AzollaId,
    check_id
);
text_name!(
    /// An objective.
    ObjectiveId,
    check_id
);
text_name!(
    /// Something that keeps an objective from going on.
    BlockerId,
    check_id
);
text_name!(
    /// An event.
    EventId,
    check_id
);
text_name!(
    /// A context snapshot.
    SnapshotId,
    check_id
);
text_name!(
    /// A workorder. It is also the id of the job that carries it.
    WorkorderId,
    check_id
);
text_name!(
    /// An output bundle.
    OutputId,
    check_id
);
text_name!(
    /// A run record.
    RunId,
    check_id
);
text_name!(
    /// A comment of a reviewer on the patch of a run.
    CommentId,
    check_id
);
text_name!(
    /// What an operator decided: an approval, a confirmation.
    RecordId,
    check_id
);
text_name!(
    /// A line in the inbox.
    CaptureId,
    check_id
);
text_name!(
    /// What triage made of captures: an objective that a person may want.
    CandidateId,
    check_id
);
text_name!(
    /// A session manifest.
    ManifestId,
    check_id
);
text_name!(
    /// A question of one azolla to another.
    QueryId,
    check_id
);
text_name!(
    /// The answer to such a question.
    ResponseId,
    check_id
);
text_name!(
    /// Which kind of executor a workorder is for.
    DiazotrophType,
    check_diazotroph
);

impl WorkorderId {
    /// The job that carries it. An imported workorder may have none.
    pub fn job_id(&self) -> Option<JobId> {
        self.as_str().parse().ok()
    }
}

impl From<JobId> for WorkorderId {
    fn from(job_id: JobId) -> Self {
        Self::stored(&job_id.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_as_file_names_and_branch_names() {
        for good in ["a", "T-17", "0", &"x".repeat(64), "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f"] {
            assert!(ObjectiveId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "_a", "a.b", "a/b", "..", "ä", "a b", "a\n", &"x".repeat(65)] {
            assert!(ObjectiveId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_diazotroph_type_tells_that_it_is_one() {
        for good in ["PATCH_DIAZOTROPH", "MANIFEST_BUILDER_DIAZOTROPH", "X2_DIAZOTROPH"] {
            assert!(DiazotrophType::new(good).is_ok(), "{good}");
        }
        for bad in ["", "_DIAZOTROPH", "PATCH", "patch_DIAZOTROPH", "PATCH_DIAZOTROPH ", "A:B_DIAZOTROPH"] {
            assert!(DiazotrophType::new(bad).is_err(), "{bad:?}");
        }
    }
}
