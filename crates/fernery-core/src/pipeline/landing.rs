//! A patch comes home: whether it still merges with its base branch, what an operator is shown before it lands, and what
//! becomes of a ticket whose patch does not land.

use super::approval::Shown;
use super::envelope::{Spent, exhausted};
use super::scheduling::{first_line, whole_line};
use crate::artifact::{ObjectiveId, RunId};
use crate::blueprint::{Blueprint, Land, MergeAs};
use crate::canonical;
use crate::words;
use serde::{Deserialize, Serialize};
use serde_json::json;

words!(
    /// How a candidate stands to the tip of its base branch.
    Fit {
        /// It merges cleanly.
        Merges = "MERGES",
        /// It does not.
        Conflicts = "CONFLICTS",
        /// The branch has it already.
        Contained = "CONTAINED",
    }
);

words!(
    /// Where a landing stands.
    LandingState {
        /// Nobody has asked for it.
        Open = "OPEN",
        /// An operator wants it, and it waits for its turn or is on its way.
        Wanted = "WANTED",
        /// Everything is checked, and the branch is being moved.
        Moving = "MOVING",
        /// The branch has it.
        Landed = "LANDED",
        /// It conflicted, and the ticket is worked on again by itself.
        Reworked = "REWORKED",
    }
);

impl LandingState {
    /// Whether an operator wants it, and it is on its way.
    pub const fn is_wanted(self) -> bool {
        matches!(self, Self::Wanted | Self::Moving)
    }
}

/// What an operator who merges is shown, besides the output itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merging<'a> {
    pub objective_id: &'a ObjectiveId,
    pub run_id: &'a RunId,
    pub patch_sha256: &'a str,
    pub repo_ref: &'a str,
    pub base_branch: &'a str,
    /// The tip of the base branch when they looked.
    pub tip: &'a str,
    pub merge: MergeAs,
}

impl Merging<'_> {
    /// What the record of the merge is over.
    pub fn shown(&self) -> Shown {
        let Self { objective_id, run_id, patch_sha256, repo_ref, base_branch, tip, merge } = self;
        let content = json!({
            "objective_id": objective_id, "run_id": run_id, "patch_sha256": patch_sha256, "repo_ref": repo_ref,
            "base_branch": base_branch, "tip": tip, "merge": merge,
        });
        Shown { digest: canonical::digest_of(&content), content }
    }
}

/// Why a patch did not land.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    pub why: String,
    /// Whether the work itself has to change.
    pub rework: bool,
}

/// What follows when a patch did not land.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sequel {
    /// A person decides, by these actions.
    Pause(Vec<String>),
    /// It is worked on again by itself: the n-th time of so many.
    Rework(u32, u32),
}

/// Decides what follows. `reworks` is how often it was worked on again by itself since a person said go; `covered`, whether
/// the approval still covers the ticket and its blueprint.
pub fn sequel(
    id: &ObjectiveId,
    stopped: &Stopped,
    blueprint: &Blueprint,
    spent: &Spent,
    (reworks, covered): (u32, bool),
) -> Sequel {
    let most = land(blueprint).rework;
    let within = exhausted(&blueprint.envelope, spent).is_none();
    if stopped.rework && covered && within && reworks < most {
        return Sequel::Rework(reworks + 1, most);
    }
    Sequel::Pause(match stopped.rework {
        true => vec![reopening(id, Some(&stopped.why))],
        false => once_more(id, &stopped.why),
    })
}

/// The command that has a patch made again, with what is against it as its note.
pub fn reopening(id: &ObjectiveId, why: Option<&str>) -> String {
    let why = whole_line(why.unwrap_or("it conflicts with its base branch"));
    format!("fernery ticket reopen {id} --note {}", quoted(&why))
}

/// What a person reads as the next things to do where the patch may be right, and something else was in its way.
pub fn once_more(id: &ObjectiveId, why: &str) -> Vec<String> {
    vec![
        format!("It did not land: {}", first_line(why)),
        format!("When that is mended, merge it: fernery ticket merge {id}"),
        format!("Or let it be worked on again: {}", reopening(id, Some(why))),
    ]
}

/// Why nothing lands on a branch that is not there.
pub fn no_branch(repo_ref: &str, branch: &str) -> String {
    format!("repository {repo_ref} has no branch {branch} any more")
}

/// How every reason begins that says why nobody can look at a branch. Such a reason goes when somebody can; another one stays.
pub const UNSEEN: &str = "its branch cannot be looked at: ";

/// The reason why nobody can look at a branch.
pub fn unseen(why: &str) -> String {
    format!("{UNSEEN}{why}")
}

/// How the patches of a blueprint come home.
pub fn land(blueprint: &Blueprint) -> Land {
    blueprint.land.unwrap_or(Land::UNSAID)
}

/// A candidate, for those who merge by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByHand<'a> {
    /// Its commit.
    pub candidate: &'a str,
    /// The commit that the patch is for.
    pub base_commit: &'a str,
    pub base_branch: &'a str,
    pub merge: MergeAs,
    /// The base branch is where the patch was made for.
    pub straight: bool,
    /// Commits of earlier attempts are below it, which nobody has reviewed.
    pub reworked: bool,
}

/// The commands for those who merge by hand, in a clone of the repository: they bring the reviewed patch and nothing else.
pub fn by_hand(of: ByHand<'_>) -> Vec<String> {
    let ByHand { candidate, base_commit, base_branch, merge, straight, reworked } = of;
    // The same files as one commit on top of the base.
    let what = match reworked {
        true => format!(
            "$(git log -1 --format=%B {candidate} | git commit-tree {candidate}^{{tree}} -p {base_commit})"
        ),
        false => candidate.to_string(),
    };
    let how = match (merge, straight) {
        (MergeAs::FastForward, true) => vec![format!("git merge --ff-only {what}")],
        (MergeAs::FastForward, false) => {
            vec![format!("git merge --squash {what}"), format!("git commit -C {candidate}")]
        }
        (MergeAs::MergeCommit, _) => vec![format!("git merge --no-ff --no-edit {what}")],
    };
    [vec![format!("git switch {base_branch}")], how].concat()
}

/// The remark about working trees that nobody has looked at after their branch moved.
pub fn not_looked_at(branch: &str, (from, to): (&str, &str), why: &str) -> String {
    format!(
        "working trees that have {branch} checked out were not looked at: {why}. To take the merged files over, in each: \
         git read-tree -m -u {from} {to}"
    )
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blueprint(land: &str) -> Blueprint {
        Blueprint::parse(&format!("extends = \"mec\"\nazolla_id = \"x\"\n{land}"), &|_| None).unwrap()
    }

    #[test]
    fn a_conflict_is_worked_on_by_itself_only_as_often_as_the_blueprint_says() {
        let id = ObjectiveId::stored("T-1");
        let conflict = Stopped { why: "main changed it's lines: a.txt".into(), rework: true };
        let (plain, twice) = (blueprint(""), blueprint("[land]\nrework = 2\n"));
        let spent = Spent::default();
        let after =
            |blueprint, reworks, covered| sequel(&id, &conflict, blueprint, &spent, (reworks, covered));
        let pause = Sequel::Pause(vec![
            "fernery ticket reopen T-1 --note 'main changed it'\\''s lines: a.txt'".to_string(),
        ]);
        assert_eq!(after(&plain, 0, true), pause);
        assert_eq!(after(&twice, 0, true), Sequel::Rework(1, 2));
        assert_eq!(after(&twice, 1, true), Sequel::Rework(2, 2));
        assert_eq!(after(&twice, 2, true), pause);
        assert_eq!(after(&twice, 0, false), pause, "what was approved is another thing by now");
        let spent = Spent { attempts: 5, ..Spent::default() };
        assert_eq!(sequel(&id, &conflict, &twice, &spent, (0, true)), pause, "the envelope is used up");
        let trouble = Stopped { why: "no branch main".into(), rework: false };
        let Sequel::Pause(actions) = sequel(&id, &trouble, &twice, &Spent::default(), (0, true)) else {
            panic!()
        };
        // What is wrong, then what to do about it.
        assert_eq!(
            actions,
            [
                "It did not land: no branch main",
                "When that is mended, merge it: fernery ticket merge T-1",
                "Or let it be worked on again: fernery ticket reopen T-1 --note 'no branch main'",
            ]
        );
    }

    #[test]
    fn what_is_not_set_is_no_part_of_what_is_approved() {
        assert_eq!(blueprint("").decisive().get("land"), None);
        let set = blueprint("[land]\non = \"confirm\"\nmerge = \"commit\"\n");
        assert_eq!(set.decisive()["land"], json!({"merge": "commit", "on": "confirm", "rework": 0}));
        assert_eq!(Blueprint::from_json(&set.to_json()).unwrap(), set);
        assert_eq!(land(&blueprint("")), Land::UNSAID);
    }

    #[test]
    fn by_hand_the_candidate_goes_straight_on_where_it_can() {
        let of = |merge, straight, reworked| {
            let (candidate, base_commit, base_branch) = ("c0ffee", "ba5e", "main");
            by_hand(ByHand { candidate, base_commit, base_branch, merge, straight, reworked })[1].clone()
        };
        assert_eq!(of(MergeAs::FastForward, true, false), "git merge --ff-only c0ffee");
        assert_eq!(of(MergeAs::FastForward, false, false), "git merge --squash c0ffee");
        assert_eq!(of(MergeAs::MergeCommit, true, false), "git merge --no-ff --no-edit c0ffee");
        assert!(of(MergeAs::MergeCommit, true, true).ends_with("git commit-tree c0ffee^{tree} -p ba5e)"));
    }
}
