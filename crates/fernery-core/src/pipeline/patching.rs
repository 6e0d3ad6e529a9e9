//! The outcome of an agent's run, from the evidence: neither an exit code nor a claim of success is enough.

use super::membrane::{self, Outcome};
use crate::artifact::{Metadata, OutputBundle};
use crate::profile::{AgentReport, Dialect, Finish};
use crate::words;
use serde_json::Value;

words!(
    /// Why an agent could not begin, found before it cost anything; in metadata under `preflight`.
    Unready {
        /// The workorder names no commit or no branch that could be worked on.
        Workorder = "workorder",
        /// The repository is not there, or cannot be read.
        Repository = "repository",
        /// The commit that work starts from is not in it.
        Commit = "commit",
        /// The agent has no login.
        Login = "login",
        /// The agent's program is not installed, or cannot be called.
        Program = "program",
        /// There is no room for a clone.
        Disk = "disk",
        /// The sandbox that it needs is not available.
        Sandbox = "sandbox",
    }
);

impl Unready {
    /// Why the agent of this bundle could not begin; `None`: it began, or this is unknown.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let known: Option<Self> = metadata.get("preflight")?.as_str()?.parse().ok();
        known.filter(|_| membrane::outcome(metadata) == Outcome::Infra)
    }
}

/// What the bundle of a patch lacks besides the patch: its branch, or the draft of a pull request description. `None`:
/// nothing.
pub fn unproposed(bundle: &OutputBundle, branch_prefix: &str) -> Option<String> {
    let said = |name: &str| {
        let text = bundle.metadata.get(name).and_then(Value::as_str)?;
        Some(text.trim()).filter(|text| !text.is_empty())
    };
    let wanted = format!("{branch_prefix}{}", bundle.objective_id);
    match said("branch_name") {
        None => Some(format!("metadata.branch_name is missing; this patch is for the branch {wanted}")),
        Some(other) if other != wanted => {
            Some(format!("metadata.branch_name is not {wanted}, the branch of its workorder"))
        }
        Some(_) if said("pr_description_draft").is_none() => Some(
            "metadata.pr_description_draft is missing or empty: describe the patch for its reviewer".into(),
        ),
        Some(_) => None,
    }
}

/// Why an agent was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Budget,
    /// An operator cancelled it.
    Cancelled,
    /// It wrote more than its profile allows.
    Flood,
    /// It wrote nothing for longer than its profile allows.
    Silence,
}

/// What it left in its clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left<'a> {
    Nothing,
    Change,
    /// The patch that it started from, which had passed: nothing of what was asked for since.
    Same,
    /// Something that cannot be a patch.
    Unfit(&'a str),
    /// It could not be examined.
    Unknown(&'a str),
}

/// The evidence of a run.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The format of its output.
    pub dialect: Dialect,
    /// How it exited; `None`: by a signal.
    pub exit: Option<i32>,
    /// Why it was ended, if it was.
    pub cut: Option<Cut>,
    /// What its output said.
    pub told: &'a AgentReport,
    pub left: Left<'a>,
}

/// The outcome, and a line about it.
pub fn outcome(seen: &Seen<'_>) -> (Outcome, String) {
    let of = |outcome, title: &str| (outcome, title.to_string());
    match seen.left {
        Left::Unknown(why) => {
            return (Outcome::Infra, format!("No patch could be taken of what the agent left: {why}"));
        }
        Left::Unfit(why) => return (Outcome::Protocol, format!("What the agent left is no patch: {why}")),
        Left::Nothing | Left::Change | Left::Same => {}
    }
    match seen.cut {
        Some(Cut::Cancelled) => return of(Outcome::Cancelled, "Cancelled"),
        Some(Cut::Budget) => return of(Outcome::Budget, "The budget is spent"),
        Some(Cut::Flood) => return of(Outcome::Protocol, "The agent wrote more than its profile allows"),
        Some(Cut::Silence) => {
            return of(Outcome::Protocol, "The agent fell silent for longer than its profile allows");
        }
        None => {}
    }
    if seen.told.question {
        return of(Outcome::Blocked, "The agent asks a question");
    }
    if let Some(Finish::Error(why)) = &seen.told.finished {
        return (Outcome::Failed, format!("The agent says that it failed: {why}"));
    }
    match seen.exit {
        Some(0) => {}
        Some(code) => return (Outcome::Failed, format!("The agent exited with {code}")),
        None => return of(Outcome::Failed, "The agent was killed"),
    }
    if seen.told.finished.is_none() && seen.dialect != Dialect::Text {
        return of(Outcome::Protocol, "The agent ended without the last word of its protocol");
    }
    match (seen.left, &seen.told.no_change) {
        (Left::Change, _) => of(Outcome::Patch, "A patch"),
        (_, Some(why)) => (Outcome::NoChange, format!("The agent says that nothing has to change: {why}")),
        (Left::Same, _) => of(Outcome::NoChange, "The agent left the patch as it was"),
        _ => of(Outcome::NoChange, "The agent changed nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::artifact::{ObjectiveId, OutputId};
    use serde_json::json;

    #[test]
    fn a_patch_names_its_branch_and_is_described() {
        let fault = |metadata: Value| {
            let bundle = OutputBundle {
                output_id: OutputId::stored("o"),
                objective_id: ObjectiveId::stored("T-1"),
                title: "t".into(),
                metadata: serde_json::from_value(metadata).unwrap(),
                content: String::new(),
                notes: String::new(),
                created_at: Timestamp::from_millis(0),
            };
            unproposed(&bundle, "azolla/").unwrap_or_default()
        };
        let ours = "azolla/T-1";
        assert_eq!(fault(json!({"branch_name": ours, "pr_description_draft": "Why"})), "");
        for branch in [Value::Null, json!(""), json!("  "), json!(7)] {
            let said = fault(json!({"branch_name": branch, "pr_description_draft": "Why"}));
            assert!(said.contains("branch_name is missing") && said.contains(ours), "{said}");
        }
        assert!(
            fault(json!({"branch_name": "main", "pr_description_draft": "Why"}))
                .contains("is not azolla/T-1")
        );
        for draft in [Value::Null, json!(""), json!("\n\t "), json!(["Why"])] {
            let said = fault(json!({"branch_name": ours, "pr_description_draft": draft}));
            assert!(said.contains("pr_description_draft is missing or empty"), "{said}");
        }
    }

    #[test]
    fn success_needs_the_last_word_and_something_to_show() {
        let told = |finished| AgentReport { finished, ..AgentReport::default() };
        let good = told(Some(Finish::Success));
        let seen =
            Seen { dialect: Dialect::Claude, exit: Some(0), cut: None, told: &good, left: Left::Change };
        let of = |seen: Seen<'_>| outcome(&seen).0;
        assert_eq!(of(seen), Outcome::Patch);
        assert_eq!(of(Seen { left: Left::Nothing, ..seen }), Outcome::NoChange);
        assert_eq!(of(Seen { left: Left::Same, ..seen }), Outcome::NoChange);
        assert_eq!(of(Seen { told: &told(None), ..seen }), Outcome::Protocol);
        assert_eq!(of(Seen { told: &told(None), dialect: Dialect::Text, ..seen }), Outcome::Patch);
        assert_eq!(of(Seen { told: &told(Some(Finish::Error("x".into()))), ..seen }), Outcome::Failed);
        assert_eq!(of(Seen { exit: Some(1), ..seen }), Outcome::Failed);
        assert_eq!(of(Seen { exit: None, ..seen }), Outcome::Failed);
        assert_eq!(
            of(Seen { told: &AgentReport { question: true, ..good.clone() }, ..seen }),
            Outcome::Blocked
        );
        assert_eq!(of(Seen { cut: Some(Cut::Budget), ..seen }), Outcome::Budget);
        assert_eq!(of(Seen { cut: Some(Cut::Cancelled), ..seen }), Outcome::Cancelled);
        assert_eq!(of(Seen { cut: Some(Cut::Flood), ..seen }), Outcome::Protocol);
        assert_eq!(of(Seen { left: Left::Unfit("x"), ..seen }), Outcome::Protocol);
        assert_eq!(of(Seen { left: Left::Unknown("x"), cut: Some(Cut::Budget), ..seen }), Outcome::Infra);
    }
}
