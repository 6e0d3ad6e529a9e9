//! What an operator writes: the part of an objective that an approval covers, and its importance and urgency.

use super::{Violation, is_showable};
use crate::artifact::{BlockerId, BlockerKind, BlockerRef, Metadata, Objective};
use crate::inbox::deadline::due_of;
use crate::limits;
use crate::names::unprintable_in;
use crate::patch::protects;
use serde::{Deserialize, Serialize};

/// An objective as its author writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// What is wanted, in a line.
    pub title: String,
    /// How to tell that it is done.
    #[serde(default)]
    pub acceptance_criteria: String,
    /// 0 to 4; 0 is the most.
    #[serde(default = "middle")]
    pub importance: u8,
    /// 0 to 4; 0 is now.
    #[serde(default = "middle")]
    pub urgency: u8,
    /// Anything else that an executor or a gate should know.
    #[serde(default)]
    pub metadata: Metadata,
}

const fn middle() -> u8 {
    2
}

impl Draft {
    /// Everything that keeps it from being stored.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let title = self.title.trim();
        if title.is_empty()
            || title.chars().count() > limits::TITLE_CHARS_MAX
            || unprintable_in(title).next().is_some()
        {
            let expected =
                format!("a title must be one line of 1 to {} printable characters", limits::TITLE_CHARS_MAX);
            found.push(Violation::new("/title", expected));
        }
        if self.acceptance_criteria.len() > limits::CRITERIA_BYTES_MAX
            || !is_showable(&self.acceptance_criteria)
        {
            let expected = format!(
                "acceptance criteria may have at most {} bytes, without control characters",
                limits::CRITERIA_BYTES_MAX
            );
            found.push(Violation::new("/acceptance_criteria", expected));
        }
        for (path, value) in [("/importance", self.importance), ("/urgency", self.urgency)] {
            if value > 4 {
                found.push(Violation::new(path, "a number from 0 (most) to 4 (least)"));
            }
        }
        let bytes = serde_json::to_string(&self.metadata).map_or(usize::MAX, |text| text.len());
        if bytes > limits::METADATA_BYTES_MAX {
            found.push(Violation::new(
                "/metadata",
                format!("metadata must be an object of at most {} bytes as JSON", limits::METADATA_BYTES_MAX),
            ));
        }
        if let Err(why) = protects::allowed_by(&self.metadata) {
            found.push(Violation::new("/metadata/allow", why));
        }
        found
    }

    /// Everything that keeps it from being written in the place of `before`: as [`Self::violations`], and a `due_at` that is no
    /// date, which nobody would ever be told of. One that was stored when that was allowed stays as it is, and is imported.
    pub fn violations_after(&self, before: &Metadata) -> Vec<Violation> {
        let mut found = self.violations();
        let due = self.metadata.get("due_at").filter(|due| !due.is_null());
        if due.is_some() && due != before.get("due_at") && due_of(&self.metadata).is_none() {
            let expected = "a date like 2026-12-01, or an instant like 2026-12-01T17:00:00Z";
            found.push(Violation::new("/metadata/due_at", expected));
        }
        found
    }
}

impl From<&Objective> for Draft {
    fn from(objective: &Objective) -> Self {
        Self {
            title: objective.title.clone(),
            acceptance_criteria: objective.acceptance_criteria.clone(),
            importance: objective.importance,
            urgency: objective.urgency,
            metadata: objective.metadata.clone(),
        }
    }
}

/// A change of a draft; absent fields stay. The journal stores it in this form.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DraftEdit {
    /// What is wanted, in a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How to tell that it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance_criteria: Option<String>,
    /// 0 to 4; 0 is the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<u8>,
    /// 0 to 4; 0 is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urgency: Option<u8>,
    /// All metadata; replaces the old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl DraftEdit {
    /// The draft with these changes.
    pub fn apply(&self, was: Draft) -> Draft {
        let title = self.title.clone().unwrap_or(was.title);
        Draft {
            title: title.trim().to_string(),
            acceptance_criteria: self.acceptance_criteria.clone().unwrap_or(was.acceptance_criteria),
            importance: self.importance.unwrap_or(was.importance),
            urgency: self.urgency.unwrap_or(was.urgency),
            metadata: self.metadata.clone().unwrap_or(was.metadata),
        }
    }
}

/// A blocker that an objective has from the start, as its author writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBlocker {
    /// Its id within the objective; `None`: generated.
    pub blocker_id: Option<BlockerId>,
    pub kind: BlockerKind,
    /// What it is, in words.
    pub description: String,
}

/// What is wrong with the description of a blocker.
pub fn blocker_fault(description: &str) -> Option<String> {
    let fits = !description.trim().is_empty() && description.len() <= limits::CRITERIA_BYTES_MAX;
    (!fits || !is_showable(description)).then(|| {
        format!(
            "say what is in the way: 1 to {} bytes of text without control characters",
            limits::CRITERIA_BYTES_MAX
        )
    })
}

/// The blockers that an objective starts with, each with an id: the same list always gets the same ids.
pub fn first_blockers(new: &[NewBlocker]) -> Result<Vec<BlockerRef>, Vec<Violation>> {
    let mut found = Vec::new();
    if new.len() > limits::BLOCKERS_MAX {
        found.push(Violation::new("/blocked_on", format!("at most {} blockers", limits::BLOCKERS_MAX)));
    }
    let is_given =
        |id: &str| new.iter().filter(|b| b.blocker_id.as_ref().is_some_and(|of| of.as_str() == id)).count();
    let mut free = (1..).map(|n| format!("b{n}")).filter(|id| is_given(id) == 0);
    let mut blockers = Vec::new();
    for (n, blocker) in new.iter().enumerate() {
        if let Some(fault) = blocker_fault(&blocker.description) {
            found.push(Violation::new(&format!("/blocked_on/{n}/description"), fault));
        }
        let blocker_id = match &blocker.blocker_id {
            Some(id) if is_given(id.as_str()) > 1 => {
                found.push(Violation::new(
                    &format!("/blocked_on/{n}/blocker_id"),
                    "two blockers have this id",
                ));
                continue;
            }
            Some(id) => id.clone(),
            None => BlockerId::stored(&free.next().unwrap_or_default()),
        };
        let (kind, description) = (blocker.kind, blocker.description.clone());
        blockers.push(BlockerRef { blocker_id, kind, description, resolved: false });
    }
    if found.is_empty() { Ok(blockers) } else { Err(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blockers_from_the_start_have_ids_of_their_own() {
        let of = |id: Option<&str>, description: &str| NewBlocker {
            blocker_id: id.map(BlockerId::stored),
            kind: BlockerKind::UserInput,
            description: description.into(),
        };
        let ids = |new: &[NewBlocker]| {
            first_blockers(new).map(|all| all.iter().map(|b| b.blocker_id.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(ids(&[]), Ok(vec![]));
        let mixed = [of(None, "x"), of(Some("b1"), "y"), of(None, "z"), of(Some("key"), "k")];
        assert_eq!(ids(&mixed), Ok(["b2", "b1", "b3", "key"].map(String::from).to_vec()));
        let paths = |new: &[NewBlocker]| -> Vec<String> {
            first_blockers(new).unwrap_err().into_iter().map(|v| v.path).collect()
        };
        let bad = [of(Some("a"), "x"), of(Some("a"), ""), of(None, "\u{1b}[2J")];
        let wanted = ["/0/blocker_id", "/1/description", "/1/blocker_id", "/2/description"];
        assert_eq!(paths(&bad), wanted.map(|at| format!("/blocked_on{at}")));
        assert_eq!(paths(&vec![of(None, "x"); limits::BLOCKERS_MAX + 1]), ["/blocked_on"]);
    }

    fn draft() -> Draft {
        Draft {
            title: "Fix it".into(),
            acceptance_criteria: "It\n\tworks".into(),
            importance: 2,
            urgency: 4,
            metadata: Metadata::new(),
        }
    }

    #[test]
    fn an_edit_changes_what_it_names_and_nothing_else() {
        assert_eq!(DraftEdit::default().apply(draft()), draft());
        let title = DraftEdit { title: Some(" Mend it ".into()), ..DraftEdit::default() };
        assert_eq!(title.apply(draft()), Draft { title: "Mend it".into(), ..draft() });
        let metadata: Metadata = [("x".to_string(), 1.into())].into();
        let all = DraftEdit {
            title: Some("T".into()),
            acceptance_criteria: Some(String::new()),
            importance: Some(0),
            urgency: Some(1),
            metadata: Some(metadata.clone()),
        };
        let changed = all.apply(draft());
        assert_eq!((changed.title.as_str(), changed.acceptance_criteria.as_str()), ("T", ""));
        assert_eq!((changed.importance, changed.urgency, changed.metadata), (0, 1, metadata));
    }

    #[test]
    fn what_is_due_is_a_date_unless_it_was_something_else_before() {
        let due = |value: serde_json::Value| Metadata::from([("due_at".to_string(), value)]);
        let paths = |value: serde_json::Value, before: &Metadata| -> Vec<String> {
            let draft = Draft { metadata: due(value), ..draft() };
            assert_eq!(draft.violations(), [], "it can be imported");
            draft.violations_after(before).into_iter().map(|v| v.path).collect()
        };
        let none = Metadata::new();
        for date in ["2026-12-01", "2026-12-01T17:00:00Z", "2026-12-01T17:00:00+01:00"] {
            assert_eq!(paths(date.into(), &none), [""; 0], "{date}");
        }
        assert_eq!(paths(serde_json::Value::Null, &none), [""; 0]);
        for bad in ["friday".into(), "2026-13-01".into(), "".into(), 5.into()] {
            assert_eq!(paths(bad, &none), ["/metadata/due_at"]);
        }
        assert_eq!(paths("friday".into(), &due("friday".into())), [""; 0]);
        assert_eq!(paths("friday".into(), &due("2026-12-01".into())), ["/metadata/due_at"]);
    }

    #[test]
    fn every_part_of_a_draft_is_checked_at_once() {
        assert_eq!(draft().violations(), []);
        let bad = Draft {
            title: "two\nlines".into(),
            acceptance_criteria: "\u{1b}[2J".into(),
            importance: 5,
            urgency: 9,
            metadata: [
                ("x".to_string(), "y".repeat(limits::METADATA_BYTES_MAX).into()),
                (protects::ALLOW.to_string(), true.into()),
            ]
            .into(),
        };
        let paths: Vec<_> = bad.violations().into_iter().map(|v| v.path).collect();
        let wanted =
            ["/title", "/acceptance_criteria", "/importance", "/urgency", "/metadata", "/metadata/allow"];
        assert_eq!(paths, wanted);
        for title in ["", "   ", "a\u{202e}b", &"x".repeat(limits::TITLE_CHARS_MAX + 1)] {
            assert_eq!(Draft { title: title.into(), ..draft() }.violations().len(), 1, "{title:?}");
        }
    }
}
