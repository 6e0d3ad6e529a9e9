//! The unit of intent.

use super::{AzollaId, BlockerId, Metadata, ObjectiveId};
use crate::Timestamp;
use crate::inbox::label::is_same;
use crate::words;
use serde::{Deserialize, Serialize};

words!(
    /// What an objective is for.
    ObjectiveType {
        /// Done once.
        Ticket = "TICKET",
        /// Never done: it stands for an ongoing duty and never moves.
        Standing = "STANDING",
    }
);

words!(
    /// The status of an objective. `lifecycle` has the only transitions there are.
    ObjectiveStatus {
        /// Written down, not approved.
        New = "NEW",
        /// Approved as it is.
        Todo = "TODO",
        /// A workorder of it is under way.
        InProgress = "IN_PROGRESS",
        /// It waits for a person.
        Blocked = "BLOCKED",
        /// Its last run passed the gates.
        Done = "DONE",
    }
);

words!(
    /// What kind of thing is in the way.
    BlockerKind {
        /// A person must answer.
        UserInput = "USER_INPUT",
        /// Another system must act.
        ExternalSystem = "EXTERNAL_SYSTEM",
        /// Something it depends on must change.
        DependencyChange = "DEPENDENCY_CHANGE",
        /// A decision is open.
        DesignDecision = "DESIGN_DECISION",
        /// Access to something is missing.
        EnvironmentAccess = "ENVIRONMENT_ACCESS",
    }
);

/// Something that keeps an objective from going on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockerRef {
    /// Its id, within the objective.
    pub blocker_id: BlockerId,
    pub kind: BlockerKind,
    /// What it is, in words.
    pub description: String,
    /// Whether it is out of the way.
    pub resolved: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    pub objective_id: ObjectiveId,
    pub azolla_id: AzollaId,
    /// What is wanted, in a line.
    pub title: String,
    /// How to tell that it is done.
    pub acceptance_criteria: String,
    /// Done once, or an ongoing duty.
    pub objective_type: ObjectiveType,
    pub status: ObjectiveStatus,
    /// 0 to 4; 0 is the most.
    pub importance: u8,
    /// 0 to 4; 0 is now.
    pub urgency: u8,
    /// Why it is BLOCKED, in words.
    pub blocked_reason: Option<String>,
    /// What is in the way, or was.
    pub blocked_on: Vec<BlockerRef>,
    /// What the operator wrote down beside it. The control plane writes nothing here.
    pub metadata: Metadata,
    /// When it was written down.
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Objective {
    /// Its labels: what was marked with `+` or `#`, each once.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        let lists = ["projects", "labels"].into_iter().filter_map(|key| self.metadata.get(key)?.as_array());
        let mut each: Vec<&str> = Vec::new();
        for label in lists.flatten().filter_map(serde_json::Value::as_str) {
            if !each.iter().any(|known| is_same(known, label)) {
                each.push(label);
            }
        }
        each.into_iter()
    }

    /// Whether anything is in the way.
    pub fn has_open_blockers(&self) -> bool {
        self.blocked_on.iter().any(|blocker| !blocker.resolved)
    }
}
