//! A ticket as people write it: Markdown with a header.
//!
//! ```text
//! ---
//! importance: 1
//! repo_ref: website
//! ---
//! # Say what is wrong when the date is invalid
//!
//! - the message names the field
//! ```
//!
//! `title`, `importance`, `urgency`, `due`, `azolla` and `id` are fields of the ticket, each line `blocked_on` is a blocker;
//! every other key is metadata. The title may also be the first heading; the rest is the acceptance criteria.

use fernery_client::wire::NewBlockerRequest;
use fernery_core::artifact::{AzollaId, BlockerKind, Metadata, ObjectiveId};
use fernery_core::names::nearest;
use fernery_core::pipeline::Violation;
use std::collections::BTreeMap;
use std::fmt;

/// Something in a text that cannot be taken as it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct Mistake {
    /// Where; 0: in no line.
    pub(in crate::cli) line: usize,
    pub(in crate::cli) why: String,
}

impl Mistake {
    /// Its line in the text of this name.
    pub(in crate::cli) fn told(&self, name: &dyn fmt::Display) -> String {
        match self.line {
            0 => format!("{name}: {}", self.why),
            line => format!("{name}:{line}: {}", self.why),
        }
    }
}

/// What was written down; what is absent was not said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::cli) struct Written {
    pub(in crate::cli) id: Option<ObjectiveId>,
    pub(in crate::cli) azolla: Option<AzollaId>,
    pub(in crate::cli) title: Option<String>,
    pub(in crate::cli) criteria: Option<String>,
    pub(in crate::cli) importance: Option<u8>,
    pub(in crate::cli) urgency: Option<u8>,
    /// When it is due, as it was written.
    pub(in crate::cli) due: Option<String>,
    pub(in crate::cli) metadata: Metadata,
    pub(in crate::cli) blocked_on: Vec<NewBlockerRequest>,
    /// The line of each key, and of title and criteria.
    lines: BTreeMap<String, usize>,
}

impl Written {
    /// Where it says this; 0: nowhere.
    pub(in crate::cli) fn line_of(&self, key: &str) -> usize {
        self.lines.get(key).copied().unwrap_or(0)
    }

    /// A mistake in the value of a key.
    pub(in crate::cli) fn mistake(&self, key: &str, why: impl Into<String>) -> Mistake {
        Mistake { line: self.line_of(key), why: why.into() }
    }

    /// What the rules for a ticket have against it, each with its line.
    pub(in crate::cli) fn mistakes(&self, violations: Vec<Violation>) -> Vec<Mistake> {
        let place = |path: &str| {
            let mut parts = path.trim_start_matches('/').split('/').rev();
            parts.find(|key| self.lines.contains_key(*key)).map_or(0, |key| self.line_of(key))
        };
        let mistake =
            |Violation { path, message }: Violation| match (place(&path), path.trim_start_matches('/')) {
                // What is in no line is named by its field.
                (0, field) if !field.is_empty() => {
                    Mistake { line: 0, why: format!("{}: {message}", field.replace('/', ".")) }
                }
                (line, _) => Mistake { line, why: message },
            };
        violations.into_iter().map(mistake).collect()
    }
}

/// Reads a ticket, and names every mistake in it.
pub(in crate::cli) fn read(text: &str) -> (Written, Vec<Mistake>) {
    let mut written = Written::default();
    let mut mistakes = Vec::new();
    let (mut body, mut above) = (text, 0);
    if let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) {
        let mut front = 0;
        let mut closed = false;
        above = 1;
        for line in rest.split_inclusive('\n') {
            front += line.len();
            above += 1;
            match line.trim() {
                "---" => {
                    closed = true;
                    break;
                }
                "" => {}
                comment if comment.starts_with('#') => {}
                line => {
                    if let Err(why) = field(&mut written, line, above) {
                        mistakes.push(Mistake { line: above, why });
                    }
                }
            }
        }
        if !closed {
            mistakes.push(Mistake {
                line: 1,
                why: "the block that starts with --- has no --- at its end".into(),
            });
        }
        body = &rest[front..];
    }
    let trimmed = body.trim_start_matches(['\n', '\r']);
    above += body[..body.len() - trimmed.len()].matches('\n').count();
    let (first, rest) = trimmed.split_once('\n').unwrap_or((trimmed, ""));
    let mut below = above + 1;
    let criteria =
        match first.trim().strip_prefix('#').filter(|text| text.is_empty() || text.starts_with(' ')) {
            Some(heading) if written.title.is_none() => {
                written.title = Some(heading.trim().to_string());
                written.lines.insert("title".into(), below);
                below += 1;
                rest
            }
            _ => trimmed,
        };
    let start = criteria.len() - criteria.trim_start().len();
    below += criteria[..start].matches('\n').count();
    let criteria = criteria.trim();
    if !criteria.is_empty() {
        written.criteria = Some(criteria.to_string());
        written.lines.insert("acceptance_criteria".into(), below);
    }
    (written, mistakes)
}

fn field(written: &mut Written, line: &str, at: usize) -> Result<(), String> {
    let Some((key, value)) = line.split_once(':') else {
        return Err(format!("{line:?} is not `key: value`"));
    };
    let (key, value) = (key.trim(), value.trim());
    let degree = || degree(value).map(Some).map_err(|why| format!("{key}: expected {why}, not {value:?}"));
    match key {
        "" => return Err("a key is missing before the colon".into()),
        "title" => written.title = Some(value.to_string()),
        "importance" => written.importance = degree()?,
        "urgency" => written.urgency = degree()?,
        "due" => written.due = Some(value.to_string()),
        "azolla" => written.azolla = Some(value.parse().map_err(|e| format!("azolla: {e}"))?),
        "blocked_on" => written.blocked_on.push(blocker(value)?),
        "id" => written.id = Some(value.parse().map_err(|e| format!("id: {e}"))?),
        key => {
            written.metadata.insert(key.to_string(), value.into());
        }
    }
    written.lines.insert(key.to_string(), at);
    Ok(())
}

/// Importance or urgency.
pub(in crate::cli) fn degree(text: &str) -> Result<u8, String> {
    text.parse().ok().filter(|n| *n <= 4).ok_or_else(|| "a number from 0 (most) to 4 (least)".to_string())
}

/// Lower case and hyphens are accepted too.
pub(in crate::cli) fn kind(text: &str) -> Result<BlockerKind, String> {
    text.trim().to_ascii_uppercase().replace('-', "_").parse()
}

/// `[KIND:] description` of a blocker; without a kind it is USER_INPUT.
pub(in crate::cli) fn blocker(text: &str) -> Result<NewBlockerRequest, String> {
    let (kind, description) = match text.split_once(':').map(|(word, rest)| (word, kind(word), rest)) {
        Some((_, Ok(kind), rest)) => (kind, rest.trim()),
        // If a kind is misspelt, it must not become part of the description.
        Some((word, Err(why), _)) if is_meant_as_kind(word) => {
            return Err(format!("{:?} is not a kind of blocker; {why}", word.trim()));
        }
        _ => (BlockerKind::UserInput, text.trim()),
    };
    if description.is_empty() {
        return Err("describe the blocker, as in `DESIGN_DECISION: which colour?`".into());
    }
    Ok(NewBlockerRequest { blocker_id: None, kind, description: description.to_string() })
}

/// A word that is spelled like a kind, or nearly like one.
fn is_meant_as_kind(word: &str) -> bool {
    let word = word.trim();
    let spelled = word.to_ascii_uppercase().replace('-', "_");
    let capitals = word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '-'));
    let nearly = || nearest(&spelled, BlockerKind::ALL.iter().map(|kind| kind.as_str())).is_some();
    capitals || (!word.contains(' ') && nearly())
}

/// `key=text`, or `key:=json`.
pub(in crate::cli) fn meta(text: &str) -> Result<(String, serde_json::Value), String> {
    let expected = || format!("{text:?} is neither key=text nor key:=json");
    let (key, value) = text.split_once('=').ok_or_else(expected)?;
    match key.strip_suffix(':') {
        _ if key.is_empty() || key == ":" => Err(expected()),
        Some(key) => serde_json::from_str(value)
            .map(|value| (key.to_string(), value))
            .map_err(|e| format!("{value:?} is not JSON ({e}); for text, use key=text")),
        None => Ok((key.to_string(), value.into())),
    }
}

/// The form of a new ticket; `known` are the lines that are filled in.
pub(in crate::cli) fn new_form(known: &str) -> String {
    format!(
        "\
---
{known}importance: 2
urgency: 2
# Importance and urgency: 0 (most) to 4 (least). Other keys are metadata.
# due: friday
# blocked_on: DESIGN_DECISION: what has to be decided before the work starts
---
# 

"
    )
}

/// The parts of a ticket or candidate that are shown.
pub(in crate::cli) struct Text<'a> {
    pub(in crate::cli) title: &'a str,
    pub(in crate::cli) criteria: &'a str,
    pub(in crate::cli) importance: u8,
    pub(in crate::cli) urgency: u8,
    pub(in crate::cli) metadata: &'a Metadata,
}

/// Its text form.
pub(in crate::cli) fn form(shown: &Text<'_>) -> String {
    let mut text = format!("---\nimportance: {}\nurgency: {}\n", shown.importance, shown.urgency);
    // Metadata that is not plain text is left out: an edit replaces only what it names.
    for (key, value) in shown.metadata {
        if let Some(value) = value.as_str().filter(|value| !value.contains('\n')) {
            text.push_str(&format!("{key}: {value}\n"));
        }
    }
    text + &format!("---\n# {}\n\n{}\n", shown.title, shown.criteria)
}

/// The text form of a ticket.
pub(in crate::cli) fn as_text(objective: &fernery_core::artifact::Objective) -> String {
    form(&Text {
        title: &objective.title,
        criteria: &objective.acceptance_criteria,
        importance: objective.importance,
        urgency: objective.urgency,
        metadata: &objective.metadata,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(text: &str) -> Result<Written, Vec<Mistake>> {
        let (written, mistakes) = read(text);
        if mistakes.is_empty() { Ok(written) } else { Err(mistakes) }
    }

    #[test]
    fn a_ticket_is_read_as_people_write_it() {
        let text = "---\nimportance: 1\n# a comment\nrepo_ref: web: site\n---\n\n# Say it\n\n- one\n- two\n";
        let written = parse(text).unwrap();
        assert_eq!(written.title.as_deref(), Some("Say it"));
        assert_eq!(written.criteria.as_deref(), Some("- one\n- two"));
        assert_eq!(written.importance, Some(1));
        assert_eq!(json!(written.metadata), json!({ "repo_ref": "web: site" }));
        let plain = parse("# Only this").unwrap();
        assert_eq!((plain.title.as_deref(), plain.criteria), (Some("Only this"), None));
        let front = parse("---\ntitle: T\nid: X-1\nazolla: mec\n---\n# Not the title\n").unwrap();
        assert_eq!((front.title.as_deref(), front.criteria.as_deref()), (Some("T"), Some("# Not the title")));
        let form = parse(&new_form("azolla: app\nrepo_ref: app\n")).unwrap();
        assert_eq!((form.title, form.azolla), (Some(String::new()), Some(AzollaId::stored("app"))));
        for (bad, said) in [
            ("---\nimportance: 9\n---\n", "f:2: importance: expected a number from 0"),
            ("---\nno colon\n---\n", "key: value"),
            ("---\ntitle: x\n", "no ---"),
            ("---\nid: a/b\n---\n", "id:"),
            ("---\nblocked_on: USER_INPUT:\n---\n", "describe the blocker"),
            ("---\nblocked_on: DESGN_DECISION: which colour?\n---\n", "DESIGN_DECISION"),
            ("---\nblocked_on: design_decison: which colour?\n---\n", "DESIGN_DECISION"),
            ("---\nblocked_on: user-inptu: which colour?\n---\n", "USER_INPUT"),
            ("---\nblocked_on: DESIGN: which colour?\n---\n", "DESIGN_DECISION"),
            ("---\nblocked_on: FOO: x\n---\n", "\"FOO\" is not a kind of blocker; "),
        ] {
            let mistakes = parse(bad).unwrap_err();
            assert!(mistakes[0].told(&"f").contains(said), "{bad:?} {mistakes:?}");
        }
    }

    #[test]
    fn every_mistake_of_a_text_has_its_line() {
        let text = "---\nimportance: 9\nrepo_ref: web\nx\nurgency: soon\n---\n\n# T\n";
        let lines: Vec<usize> = parse(text).unwrap_err().iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [2, 4, 5]);
        let written = parse("---\r\nrepo_ref: web\r\n---\r\n\r\n# T\r\n\r\n\r\n- one\r\n").unwrap();
        let at = ["repo_ref", "title", "acceptance_criteria", "azolla"].map(|key| written.line_of(key));
        assert_eq!(at, [2, 5, 8, 0]);
        let path = |path: &str| Violation { path: path.into(), message: "no".into() };
        let placed = written.mistakes(vec![path("/metadata/repo_ref"), path("/title"), path("/importance")]);
        assert_eq!(placed.iter().map(|mistake| mistake.line).collect::<Vec<_>>(), [2, 5, 0]);
        assert_eq!(parse("# Only this").unwrap().line_of("title"), 1);
    }

    #[test]
    fn each_line_blocked_on_is_one_thing_in_the_way() {
        let text =
            "---\nblocked_on: design-decision: Which colour: red?\nblocked_on: note: the key\n---\n# T\n";
        let written = parse(text).unwrap();
        let said: Vec<_> = written.blocked_on.iter().map(|b| (b.kind, b.description.as_str())).collect();
        let wanted =
            [(BlockerKind::DesignDecision, "Which colour: red?"), (BlockerKind::UserInput, "note: the key")];
        assert_eq!((said.as_slice(), written.metadata.len()), (&wanted[..], 0));
    }

    #[test]
    fn metadata_is_text_or_json() {
        assert_eq!(meta("a=1"), Ok(("a".into(), json!("1"))));
        assert_eq!(meta("a:=1"), Ok(("a".into(), json!(1))));
        assert_eq!(meta("a=b=c"), Ok(("a".into(), json!("b=c"))));
        for bad in ["a", "=1", ":=1", "a:={"] {
            assert!(meta(bad).is_err(), "{bad}");
        }
    }
}
