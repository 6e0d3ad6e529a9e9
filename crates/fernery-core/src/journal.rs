//! An entry of the journal, and the chain over all of them: each seal is the hash of the one before and of its entry.

use crate::Timestamp;
use crate::canonical::{self, Digest};
use crate::words;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

words!(
    /// What entries of this version tell of.
    Act {
        /// An objective was written down.
        Created = "created",
        /// An objective was changed.
        Edited = "edited",
        /// An operator approved what they were shown.
        Approved = "approve",
        /// An operator looked at what a run came to, and is content.
        Confirmed = "confirm",
        /// An operator wants a judged objective done again.
        Reopened = "reopen",
        /// An operator answered the question of an executor, and lets it go on.
        Answered = "answer",
        /// An operator wants a patch on its base branch.
        Merge = "merge",
        /// A patch is on its base branch.
        Landed = "landed",
        /// A patch did not land.
        NotLanded = "not_landed",
        /// A ticket that an objective waits for was cancelled.
        AfterCancelled = "after_cancelled",
        /// An objective was blocked, by an operator or by the scheduler.
        Blocked = "blocked",
        /// Blockers were resolved.
        Unblocked = "unblocked",
        /// An operator cancelled an objective.
        Cancelled = "cancelled",
        /// An approval covered no longer what was there.
        ApprovalLapsed = "approval_lapsed",
        /// An event was processed.
        EventProcessed = "event_processed",
        /// The gates judged a run.
        Judged = "judged",
        /// A candidate became an objective.
        Promoted = "promoted",
        /// A candidate was changed.
        CandidateEdited = "edited_candidate",
        /// A candidate was discarded.
        Discarded = "discarded",
        /// Candidates were merged into one.
        Merged = "merged",
        /// An operator let held captures go to triage.
        CapturesReleased = "captures_released",
        /// A blueprint came into force.
        BlueprintInForce = "blueprint_in_force",
        /// A folder was imported, or an objective of it became NEW by that.
        Imported = "imported",
        /// A discarded candidate waits again.
        Restored = "restored",
        /// A person does not want to see something before a later time, or wants to see it again.
        Snoozed = "snoozed",
        /// Captures that came again and again come no more.
        RecurrenceStopped = "recurrence_stopped",
        /// A reviewer commented on the patch of a run.
        Commented = "comment",
        /// A reviewer changed a comment of theirs.
        CommentEdited = "edited_comment",
        /// A reviewer took a comment of theirs back.
        CommentDeleted = "deleted_comment",
        /// An operator asked for an act on all jobs that match.
        BulkStarted = "bulk_started",
        /// A bulk act has reached every job that was meant.
        BulkEnded = "bulk_ended",
        /// An operator stopped a bulk act.
        BulkStopped = "bulk_stopped",
        /// An operator set something for a stream.
        StreamSet = "stream_set",
    }
);

/// One entry: who did what, when, why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its id: time-ordered.
    pub entry_id: String,
    pub created_at: Timestamp,
    pub actor: String,
    /// What was done: the word as it was stored, which the seal covers. See [`Entry::act`].
    pub act: String,
    pub subject: String,
    /// Why, and what changed.
    pub why: Value,
}

impl Entry {
    /// What was done; `None` where another version wrote a word that this one does not know.
    pub fn act(&self) -> Option<Act> {
        self.act.parse().ok()
    }

    /// Whether this was done.
    pub fn is(&self, act: Act) -> bool {
        self.act == act.as_str()
    }
}

/// A seal: where in the chain it stands, and its hash. The last one is the end of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// How many entries are sealed up to here.
    pub place: i64,
    pub hash: Digest,
}

/// The seal of an entry after the seal `before`.
pub fn seal_of(before: Option<&Digest>, place: i64, entry: &Entry) -> Digest {
    canonical::digest_of(&json!({"before": before, "place": place, "entry": entry}))
}

/// Seals an entry after the end of a chain.
pub fn sealed(head: Option<&Head>, entry: &Entry) -> Head {
    let place = head.map_or(1, |head| head.place + 1);
    Head { place, hash: seal_of(head.map(|head| &head.hash), place, entry) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Journals that were written before are read by these words, and seals cover them.
    #[test]
    fn the_stored_words_of_acts_never_change() {
        let words: Vec<_> = Act::ALL.iter().map(|act| act.as_str()).collect();
        let stored = "created edited approve confirm reopen answer merge landed not_landed after_cancelled blocked unblocked cancelled approval_lapsed \
                      event_processed judged promoted edited_candidate discarded merged captures_released \
                      blueprint_in_force imported restored snoozed recurrence_stopped comment edited_comment \
                      deleted_comment bulk_started bulk_ended bulk_stopped stream_set";
        assert_eq!(words.join(" "), stored);
    }

    #[test]
    fn an_entry_of_another_version_is_kept_and_tells_of_no_known_act() {
        let entry = |act: &str| Entry {
            entry_id: "e".into(),
            created_at: Timestamp::from_millis(0),
            actor: "a".into(),
            act: act.into(),
            subject: "t".into(),
            why: json!({}),
        };
        assert_eq!(entry("judged").act(), Some(Act::Judged));
        assert!(entry("judged").is(Act::Judged) && !entry("judged").is(Act::Created));
        assert_eq!(entry("painted_green").act(), None);
    }
}
