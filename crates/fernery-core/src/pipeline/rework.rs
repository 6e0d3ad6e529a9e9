//! Rework: an attempt starts from what the attempt before it left. The snapshot carries that patch, so that an executor
//! anywhere starts from the same files; the patch that it hands in is still the whole one, against the base.

use super::membrane::{Outcome, outcome};
use crate::Digest;
use crate::artifact::{ContextSnapshot, GateResult, Metadata, OutputBundle, RunRecord};
use crate::limits;
use crate::names::showable;
use crate::patch::{self, Body};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The key in the metadata of a snapshot. A ticket's own key of this name is left out of its snapshots.
const KEY: &str = "rework";

/// What an earlier attempt left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierPatch {
    pub work_order_id: String,
    pub output_id: String,
    /// The commit that its patch is against.
    pub base_sha: String,
    pub patch_sha256: String,
    /// Whether it passed every gate: then the same patch again would do nothing of what is asked for now.
    pub passed: bool,
    pub patch: String,
}

/// The last judged attempt at an objective.
#[derive(Clone, Copy, Debug)]
pub struct LastAttempt<'a> {
    pub run: &'a RunRecord,
    pub bundle: &'a OutputBundle,
    pub snapshot: &'a ContextSnapshot,
}

impl EarlierPatch {
    /// The candidate that the executor of this snapshot starts from; `None`: from its base commit.
    pub fn of_snapshot(snapshot: &ContextSnapshot) -> Option<Self> {
        let candidate: Self = serde_json::from_value(snapshot.metadata.get(KEY)?.clone()).ok()?;
        let is_whole = Digest::of_bytes(candidate.patch.as_bytes()).to_string() == candidate.patch_sha256;
        is_whole.then_some(candidate)
    }

    /// What the attempt after this one starts from; `None`: there is nothing, or it is too large to be passed on.
    pub fn after(last: &LastAttempt<'_>) -> Option<Self> {
        let LastAttempt { run, bundle, snapshot } = *last;
        // An attempt whose work was never looked at (it could not begin, or was lost) leaves what it started from. So does
        // one that changed nothing of it.
        let captured = bundle.metadata.get("tree").is_some_and(Value::is_string);
        let unchanged = outcome(&bundle.metadata) == Outcome::NoChange && !bundle.content.is_empty();
        if unchanged || bundle.content.is_empty() && !captured {
            return Self::of_snapshot(snapshot);
        }
        let base_sha = snapshot.metadata.get("commit_sha")?.as_str()?.to_string();
        let is_patch = !bundle.content.is_empty() && patch::read(&bundle.content).is_ok();
        (is_patch && bundle.content.len() <= limits::REWORK_PATCH_BYTES_MAX).then(|| Self {
            work_order_id: run.work_order_id.to_string(),
            output_id: bundle.output_id.to_string(),
            base_sha,
            patch_sha256: Digest::of_bytes(bundle.content.as_bytes()).to_string(),
            passed: run.gate_result == GateResult::Pass,
            patch: bundle.content.clone(),
        })
    }

    /// Writes into the metadata of a snapshot what its executor starts from.
    pub fn tell(candidate: Option<&Self>, metadata: &mut Metadata) {
        match candidate {
            Some(candidate) => metadata.insert(KEY.into(), json!(candidate)),
            None => metadata.remove(KEY),
        };
    }

    /// The files that it changes, for the next attempt to read.
    pub fn summary(&self) -> String {
        let files = patch::read(&self.patch).map(|patch| patch.files).unwrap_or_default();
        let (mut lines, mut plus, mut minus) = (Vec::new(), 0, 0);
        for file in &files {
            let how = match (&file.before, &file.after, &file.body) {
                (_, None, _) => "deleted".to_string(),
                (_, _, Body::Binary { bytes }) => format!("binary, {bytes} bytes"),
                (before, _, Body::Text { insertions, deletions, .. }) => {
                    let new = if before.is_none() { "new, " } else { "" };
                    format!("{new}+{insertions} −{deletions}")
                }
                (None, ..) => "new, empty".to_string(),
                (_, _, Body::Same) => "another mode".to_string(),
            };
            if let Body::Text { insertions, deletions, .. } = &file.body {
                (plus, minus) = (plus + insertions, minus + deletions);
            }
            lines.push(format!("{} ({how})", showable(&file.path)));
        }
        let more = lines.len().saturating_sub(limits::REWORK_FILES_TOLD_MAX);
        lines.truncate(limits::REWORK_FILES_TOLD_MAX);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        let count = if files.len() == 1 { "1 file".to_string() } else { format!("{} files", files.len()) };
        format!("{count}, +{plus} −{minus}\n{}", lines.join("\n"))
    }
}

/// How the folder of an agent was made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the files of its base commit.
    Base,
    /// With the candidate's files.
    Candidate,
    /// The base has moved: with the candidate's changes on top of the new one.
    Merged,
    /// The base has moved, and these files have conflict markers.
    Conflicts(Vec<String>),
    /// With the files of its base commit, because the candidate could not be brought in.
    Without(String),
}

impl Start {
    /// The word for it in the metadata of a bundle.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Candidate => "candidate",
            Self::Merged => "merged",
            Self::Conflicts(_) => "conflicts",
            Self::Without(_) => "without",
        }
    }

    /// The files with conflicts.
    pub fn conflicts(&self) -> &[String] {
        match self {
            Self::Conflicts(files) => files,
            _ => &[],
        }
    }

    /// What the agent is told at the end of its prompt; it cannot be known before its folder is made.
    pub fn instruction(&self) -> String {
        const THERE: &str = "uncommitted: `git diff` shows what they change, `git status` which files are new. Build on them: keep \
            what is right and change what is not. The whole difference to HEAD is judged, not only what you change now; \
            `git checkout HEAD -- FILE` takes a file back to where it was.";
        let text = match self {
            Self::Base => return String::new(),
            Self::Candidate => {
                format!("The changes of the attempt before this one are in your folder already, {THERE}")
            }
            Self::Merged => format!(
                "The base branch has moved since. The changes of the attempt before this one are in your folder already, on \
                 top of the new base, {THERE}"
            ),
            Self::Conflicts(files) => {
                let named = files.iter().take(limits::REWORK_FILES_TOLD_MAX);
                let mut list: String = named.map(|file| format!("\n- `{}`", plain_name(file))).collect();
                if files.len() > limits::REWORK_FILES_TOLD_MAX {
                    list.push_str(&format!("\n- and {} more", files.len() - limits::REWORK_FILES_TOLD_MAX));
                }
                format!(
                    "The base branch has moved since, and changed the same places. The changes of the attempt before this one \
                     are in your folder already, on top of the new base, {THERE}\n\nThese files are in conflict. Resolve each \
                     of them first: between `<<<<<<< {TIP}` and `=======` is the new base, between `=======` and \
                     `>>>>>>> {EARLIER}` the earlier attempt; leave none of these lines. A file without them was deleted on one \
                     side, or is not text: decide what it shall be.\n{list}"
                )
            }
            Self::Without(why) => format!(
                "The changes of the attempt before this one could not be brought into your folder ({}). You start from the \
                 base commit.",
                plain_name(why)
            ),
        };
        format!("\n## Where you start\n\n{text}\n")
    }
}

fn plain_name(text: &str) -> String {
    showable(text).replace(['\n', '\t', '`'], " ")
}

/// The name of the new base in the conflict markers that Fernery leaves.
pub const TIP: &str = "fernery-base";
/// The name of the earlier attempt in them.
pub const EARLIER: &str = "fernery-earlier-attempt";

/// What is wrong with a patch that leaves conflict markers of ours; `None`: it leaves none.
pub fn leftover_markers(patch: &str) -> Option<String> {
    if !patch.contains(TIP) && !patch.contains(EARLIER) {
        return None;
    }
    let (mut file, mut found) = ("", BTreeSet::new());
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = name;
        } else if is_marker(line, '<', TIP) || is_marker(line, '>', EARLIER) {
            found.insert(showable(file));
        }
    }
    let files: Vec<String> = found.into_iter().take(limits::REWORK_FILES_TOLD_MAX).collect();
    (!files.is_empty()).then(|| {
        format!(
            "it leaves conflict markers (<<<<<<< {TIP}) in {}: resolve the conflict there",
            files.join(", ")
        )
    })
}

/// Whether this line of a patch adds a marker: at least seven of its sign (a repository may want longer ones), and its name.
fn is_marker(line: &str, sign: char, name: &str) -> bool {
    let Some(added) = line.strip_prefix('+') else { return false };
    let rest = added.trim_start_matches(sign);
    let named = rest.strip_prefix(' ').and_then(|rest| rest.strip_prefix(name));
    added.len() - rest.len() >= 7
        && named.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '\r']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::artifact::{ObjectiveId, OutputId, RunId, SnapshotId, WorkorderId};

    const PATCH: &str = "diff --git a/a.txt b/a.txt\nindex 5626abf0f72e58d7a153368ba57db4c673c0e171..\
        814f4a422927b82f5f8a43f8fab6d3839e3983f2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+two\n";

    fn of(
        outcome: &str,
        content: &str,
        more: Value,
        snapshot: Metadata,
        result: GateResult,
    ) -> Option<EarlierPatch> {
        let mut metadata: Metadata = serde_json::from_value(more).unwrap();
        metadata.insert("outcome".into(), json!(outcome));
        let created_at = Timestamp::from_millis(0);
        let objective_id = ObjectiveId::stored("t");
        let run = RunRecord {
            run_id: RunId::stored("r"),
            work_order_id: WorkorderId::stored("w"),
            objective_id: objective_id.clone(),
            output_id: OutputId::stored("o"),
            gate_result: result,
            gate_reason: String::new(),
            created_at,
        };
        let bundle = OutputBundle {
            output_id: OutputId::stored("o"),
            objective_id: objective_id.clone(),
            title: "t".into(),
            metadata,
            content: content.into(),
            notes: String::new(),
            created_at,
        };
        let snapshot = snapshot_with(snapshot);
        EarlierPatch::after(&LastAttempt { run: &run, bundle: &bundle, snapshot: &snapshot })
    }

    fn snapshot_with(metadata: Metadata) -> ContextSnapshot {
        ContextSnapshot {
            snapshot_id: SnapshotId::stored("s"),
            objective_id: ObjectiveId::stored("t"),
            metadata,
            related_yield_refs: Vec::new(),
            full_prompt_text: String::new(),
            created_at: Timestamp::from_millis(0),
        }
    }

    fn at(commit: &str) -> Metadata {
        [("commit_sha".to_string(), json!(commit))].into()
    }

    #[test]
    fn the_next_attempt_starts_from_what_the_last_one_left() {
        let (pass, fail) = (GateResult::Pass, GateResult::Fail);
        let left = of("PATCH", PATCH, json!({"tree": "t"}), at("c1"), fail).expect("a patch");
        assert_eq!((left.base_sha.as_str(), left.output_id.as_str(), left.passed), ("c1", "o", false));
        assert!(of("PATCH", PATCH, json!({}), at("c1"), pass).unwrap().passed);
        for outcome in ["BLOCKED", "BUDGET", "FAILED"] {
            assert!(of(outcome, PATCH, json!({}), at("c1"), fail).is_some(), "{outcome} leaves its work");
        }
        assert_eq!(of("OUTPUT", "a report\n", json!({}), at("c1"), fail), None, "this is no patch");
        let large = format!("{PATCH}+{}\n", "x".repeat(limits::REWORK_PATCH_BYTES_MAX));
        assert_eq!(of("PATCH", &large, json!({}), at("c1"), fail), None, "too large to be passed on");
        // What it started from is passed on by one that never began, and by one that changed nothing of it.
        let mut begun = at("c2");
        EarlierPatch::tell(Some(&left), &mut begun);
        assert_eq!(of("INFRA", "", json!({}), begun.clone(), fail).as_ref(), Some(&left));
        assert_eq!(of("NO_CHANGE", PATCH, json!({"tree": "t"}), begun.clone(), fail).as_ref(), Some(&left));
        assert_eq!(of("NO_CHANGE", "", json!({"tree": "t"}), begun, fail), None, "it took everything back");
        assert_eq!(of("INFRA", "", json!({}), at("c2"), fail), None);
    }

    #[test]
    fn a_ticket_cannot_name_a_candidate() {
        let mut metadata: Metadata = [(KEY.to_string(), json!({"patch": PATCH}))].into();
        EarlierPatch::tell(None, &mut metadata);
        assert!(metadata.is_empty());
        let left = of("PATCH", PATCH, json!({}), at("c1"), GateResult::Fail).unwrap();
        let mut changed = at("c");
        EarlierPatch::tell(Some(&EarlierPatch { patch: "other".into(), ..left.clone() }), &mut changed);
        assert_eq!(EarlierPatch::of_snapshot(&snapshot_with(changed)), None, "its digest does not fit");
        assert_eq!(left.summary(), "1 file, +1 −0\na.txt (+1 −0)");
    }

    #[test]
    fn conflict_markers_of_ours_are_found_and_no_others() {
        let of = |line: &str| leftover_markers(&PATCH.replace("+two", line));
        assert_eq!(of("+two"), None);
        assert_eq!(of("+<<<<<<< HEAD"), None, "a file may talk about conflicts");
        assert_eq!(of(&format!(" <<<<<<< {TIP}")), None, "it was there before");
        for line in
            [format!("+<<<<<<< {TIP}"), format!("+>>>>>>> {EARLIER}"), format!("+<<<<<<< {TIP}:a.txt")]
        {
            let fault = of(&line).unwrap_or_default();
            assert!(fault.contains("a.txt"), "{line}: {fault}");
        }
    }

    #[test]
    fn an_agent_is_told_where_it_starts() {
        assert_eq!(Start::Base.instruction(), "");
        assert!(Start::Candidate.instruction().contains("in your folder already"));
        let many: Vec<String> = (0..99).map(|n| format!("f`{n}")).collect();
        let told = Start::Conflicts(many).instruction();
        assert!(told.contains("- `f 0`") && told.contains("- and 49 more") && told.contains(TIP), "{told}");
        assert!(Start::Without("gone\nnow".into()).instruction().contains("(gone now)"));
    }
}
