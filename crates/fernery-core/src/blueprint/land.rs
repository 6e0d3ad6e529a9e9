//! How patches that passed come home: the table `[land]`.

use crate::limits;
use crate::toml_file::{Fields, Reader};
use crate::words;
use serde::{Deserialize, Serialize};

words!(
    /// What lands on the base branch.
    MergeAs {
        /// One commit on top of the tip: the branch goes straight on.
        FastForward = "ff",
        /// A merge commit of the tip and the candidate.
        MergeCommit = "commit",
    }
);

words!(
    /// What lets a ticket land.
    LandOn {
        /// An operator merges it.
        Merge = "merge",
        /// An operator confirms it; the tickets of a branch then land one at a time, in the order of confirmation.
        Confirm = "confirm",
    }
);

/// How patches that passed come home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Land {
    pub merge: MergeAs,
    pub on: LandOn,
    /// How often a ticket that conflicts is worked on again by itself, within its envelope.
    pub rework: u32,
}

impl Land {
    /// Where the file says nothing.
    pub const UNSAID: Self = Self { merge: MergeAs::FastForward, on: LandOn::Merge, rework: 0 };
}

impl Reader {
    /// The table; `None`: it is not there.
    pub(super) fn land(&mut self, file: &mut Fields, is_standing: bool) -> Option<Land> {
        let at = file.place("land")?;
        if is_standing {
            self.flaw(at, "land", "is only for an azolla of tickets");
        }
        let mut table = self.table(file, "land")?;
        let merge = self.text(&mut table, "merge");
        let merge = merge.and_then(|found| self.word(found, MergeAs::ALL, MergeAs::as_str));
        let on = self.text(&mut table, "on");
        let on = on.and_then(|found| self.word(found, LandOn::ALL, LandOn::as_str));
        let rework = self.small(&mut table, "rework", 0..=limits::MAX_ATTEMPTS_MAX);
        self.end(table);
        Some(Land {
            merge: merge.map_or(Land::UNSAID.merge, |found| found.value),
            on: on.map_or(Land::UNSAID.on, |found| found.value),
            rework: rework.unwrap_or(Land::UNSAID.rework),
        })
    }
}
