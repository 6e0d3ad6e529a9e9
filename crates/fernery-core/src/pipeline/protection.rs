//! The part of a gate's evidence about protected files that the patch touches: which files, which run decided, and the
//! findings of the other run.

use super::is_showable;
use crate::artifact::GateResult;
use crate::limits;
use crate::patch::protects::Touched;
use serde::{Deserialize, Serialize};

/// Which version of the protected files the verdict is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Version {
    /// The base commit's.
    Base,
    /// The patch's: the approved ticket allows each of these files.
    Patch,
}

/// Protected files that a patch touches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protected {
    /// Which version decided; the result beside this belongs to that run.
    pub decided_by: Version,
    /// Files that were as in the base in the deciding run; files that the patch adds were absent.
    pub kept: Vec<String>,
    /// Files that were as in the patch, because the approved ticket allows them.
    pub allowed: Vec<String>,
    /// How many more files there are than the two lists can hold.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// The run with all files as in the patch, for information only; `None` if that run decided.
    pub patched: Option<Informing>,
}

/// A run for information only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Informing {
    /// How it exited; `None`: by a signal, or not at all.
    pub exit: Option<i32>,
    pub ms: u64,
    /// The end of its output.
    pub log_tail: String,
    /// `None`: it did not run, or could not.
    pub result: Option<GateResult>,
    /// Why it could not run.
    pub trouble: Option<String>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Protected {
    /// From the files that a patch touches, and the second run if there was one; `None`: it touches nothing protected.
    pub fn of(touched: &Touched, patched: Option<Informing>) -> Option<Self> {
        let (kept, allowed) = (&touched.kept, &touched.allowed);
        if kept.is_empty() && allowed.is_empty() {
            return None;
        }
        let decided_by = if kept.is_empty() { Version::Patch } else { Version::Base };
        let short = |list: &[String]| list.iter().take(limits::PROTECTED_LISTED_MAX).cloned().collect();
        let (kept, allowed): (Vec<String>, Vec<String>) = (short(kept), short(allowed));
        let more = touched.kept.len() + touched.allowed.len() - kept.len() - allowed.len();
        Some(Self { decided_by, kept, allowed, more, patched })
    }

    /// The files for which the base's version decided, in a few words; `None` if the patch's did.
    pub fn kept_in_words(&self) -> Option<String> {
        let first = self.kept.first()?;
        let others = self.kept.len() - 1 + self.more;
        Some(if others == 0 { first.clone() } else { format!("{first} and {others} more") })
    }

    /// Whether a gate can have written this, so that it may be shown.
    pub fn is_plausible(&self) -> bool {
        let lists = [&self.kept, &self.allowed];
        let patched = self.patched.iter().flat_map(|run| run.trouble.iter().chain([&run.log_tail]));
        let texts = lists.into_iter().flatten().chain(patched);
        lists.iter().all(|list| list.len() <= limits::PROTECTED_LISTED_MAX)
            && texts.into_iter().all(|text| text.len() <= limits::EVIDENCE_BYTES_MAX && is_showable(text))
            && (self.decided_by == Version::Base) != self.kept.is_empty()
            && (self.decided_by == Version::Base || self.patched.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(n: usize) -> Vec<String> {
        (0..n).map(|n| format!("tests/{n}.rs")).collect()
    }

    #[test]
    fn evidence_names_whose_version_decided_and_has_a_bound() {
        let none = Touched::default();
        assert_eq!(Protected::of(&none, None), None);
        let allowed = Touched { allowed: named(1), ..Touched::default() };
        let by_patch = Protected::of(&allowed, None).expect("it is touched");
        assert_eq!((by_patch.decided_by, by_patch.kept_in_words()), (Version::Patch, None));
        let many = Touched { kept: named(limits::PROTECTED_LISTED_MAX + 7), allowed: named(3) };
        let by_base = Protected::of(&many, Some(Informing::default())).expect("it is touched");
        assert_eq!(by_base.decided_by, Version::Base);
        assert_eq!((by_base.kept.len(), by_base.more), (limits::PROTECTED_LISTED_MAX, 7));
        let words = format!("tests/0.rs and {} more", limits::PROTECTED_LISTED_MAX - 1 + 7);
        assert_eq!(by_base.kept_in_words(), Some(words));
        assert!(by_patch.is_plausible() && by_base.is_plausible());
        let lies = [
            Protected { decided_by: Version::Patch, ..by_base.clone() },
            Protected { patched: Some(Informing::default()), ..by_patch.clone() },
            Protected { kept: vec!["\u{1b}[2J".into()], ..by_base.clone() },
            Protected { kept: named(limits::PROTECTED_LISTED_MAX + 1), ..by_base },
            Protected { decided_by: Version::Base, ..by_patch },
        ];
        for lie in lies {
            assert!(!lie.is_plausible(), "{lie:?}");
        }
    }
}
