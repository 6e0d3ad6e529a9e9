//! What the run of an agent came to, from what was seen of it: an exit code alone says nothing, and neither does a word of
//! success without anything to show.

use super::membrane::{self, Outcome};
use crate::artifact::Metadata;
use crate::profile::{Dialect, Finish, Told};

/// What kept an agent from beginning, found out before it cost anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unready {
    /// The workorder names no commit or no branch that could be worked on.
    Workorder,
    /// The repository is not there, or cannot be read.
    Repository,
    /// The commit that work starts from is not in it.
    Commit,
    /// The agent has no login.
    Login,
    /// The agent's program is not installed, or cannot be called.
    Program,
    /// There is no room for a clone.
    Disk,
    /// Nothing here contains it as it has to be.
    Sandbox,
}

impl Unready {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Workorder,
        Self::Repository,
        Self::Commit,
        Self::Login,
        Self::Program,
        Self::Disk,
        Self::Sandbox,
    ];

    /// As metadata has it, under `preflight`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workorder => "workorder",
            Self::Repository => "repository",
            Self::Commit => "commit",
            Self::Login => "login",
            Self::Program => "program",
            Self::Disk => "disk",
            Self::Sandbox => "sandbox",
        }
    }

    /// What kept the agent of this bundle from beginning; `None`: it began, or nobody knows.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let word = metadata.get("preflight")?.as_str()?;
        let known = Self::ALL.into_iter().find(|unready| unready.as_str() == word);
        known.filter(|_| membrane::outcome(metadata) == Outcome::Infra)
    }
}

/// Why an agent was ended before it ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Its budget is spent.
    Budget,
    /// An operator does not want it any more.
    Cancelled,
    /// It wrote more than its profile allows.
    Flood,
    /// It wrote nothing for longer than its profile allows.
    Silence,
}

/// What it left in its clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left<'a> {
    /// What was there before.
    Nothing,
    /// A change.
    Change,
    /// Something that cannot be a patch.
    Unfit(&'a str),
    /// Nobody knows: it could not be looked at.
    Unknown(&'a str),
}

/// What was seen of a run.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// What its output is written in.
    pub dialect: Dialect,
    /// How it exited; `None`: by a signal.
    pub exit: Option<i32>,
    /// Why it was ended, if it was.
    pub cut: Option<Cut>,
    /// What its output said.
    pub told: &'a Told,
    /// What it left.
    pub left: Left<'a>,
}

/// What it came to, and that in a line.
pub fn outcome(seen: &Seen<'_>) -> (Outcome, String) {
    let of = |outcome, title: &str| (outcome, title.to_string());
    match seen.left {
        Left::Unknown(why) => {
            return (Outcome::Infra, format!("What the agent left could not be captured: {why}"));
        }
        Left::Unfit(why) => return (Outcome::Protocol, format!("What the agent left is no patch: {why}")),
        Left::Nothing | Left::Change => {}
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
        _ => of(Outcome::NoChange, "The agent changed nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn success_needs_the_last_word_and_something_to_show() {
        let told = |finished| Told { finished, ..Told::default() };
        let good = told(Some(Finish::Success));
        let seen =
            Seen { dialect: Dialect::Claude, exit: Some(0), cut: None, told: &good, left: Left::Change };
        let of = |seen: Seen<'_>| outcome(&seen).0;
        assert_eq!(of(seen), Outcome::Patch);
        assert_eq!(of(Seen { left: Left::Nothing, ..seen }), Outcome::NoChange);
        assert_eq!(of(Seen { told: &told(None), ..seen }), Outcome::Protocol);
        assert_eq!(of(Seen { told: &told(None), dialect: Dialect::Text, ..seen }), Outcome::Patch);
        assert_eq!(of(Seen { told: &told(Some(Finish::Error("x".into()))), ..seen }), Outcome::Failed);
        assert_eq!(of(Seen { exit: Some(1), ..seen }), Outcome::Failed);
        assert_eq!(of(Seen { exit: None, ..seen }), Outcome::Failed);
        assert_eq!(of(Seen { told: &Told { question: true, ..good.clone() }, ..seen }), Outcome::Blocked);
        assert_eq!(of(Seen { cut: Some(Cut::Budget), ..seen }), Outcome::Budget);
        assert_eq!(of(Seen { cut: Some(Cut::Cancelled), ..seen }), Outcome::Cancelled);
        assert_eq!(of(Seen { cut: Some(Cut::Flood), ..seen }), Outcome::Protocol);
        assert_eq!(of(Seen { left: Left::Unfit("x"), ..seen }), Outcome::Protocol);
        assert_eq!(of(Seen { left: Left::Unknown("x"), cut: Some(Cut::Budget), ..seen }), Outcome::Infra);
    }
}
