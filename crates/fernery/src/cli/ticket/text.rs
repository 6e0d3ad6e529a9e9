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
//! `title`, `importance`, `urgency`, `azolla` and `id` are fields of the ticket, each line `blocked_on` is a blocker;
//! every other key is metadata. The title may also be the first heading; the rest is the acceptance criteria.

use crate::cli::failure::{Failure, Outcome};
use fernery_client::wire::NewBlockerRequest;
use fernery_core::artifact::{AzollaId, BlockerKind, Metadata, ObjectiveId};
use fernery_engine::door;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was written down; what is absent was not said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::cli) struct Written {
    pub(in crate::cli) id: Option<ObjectiveId>,
    pub(in crate::cli) azolla: Option<AzollaId>,
    pub(in crate::cli) title: Option<String>,
    pub(in crate::cli) criteria: Option<String>,
    pub(in crate::cli) importance: Option<u8>,
    pub(in crate::cli) urgency: Option<u8>,
    pub(in crate::cli) metadata: Metadata,
    pub(in crate::cli) blocked_on: Vec<NewBlockerRequest>,
}

/// Reads a ticket.
pub(in crate::cli) fn parse(text: &str) -> Result<Written, String> {
    let mut written = Written::default();
    let mut body = text;
    if let Some(rest) = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n")) {
        let mut front = 0;
        let mut closed = false;
        for (n, line) in rest.split_inclusive('\n').enumerate() {
            front += line.len();
            match line.trim() {
                "---" => {
                    closed = true;
                    break;
                }
                "" => {}
                comment if comment.starts_with('#') => {}
                line => field(&mut written, line).map_err(|why| format!("line {}: {why}", n + 2))?,
            }
        }
        if !closed {
            return Err("the block that starts with --- has no --- at its end".into());
        }
        body = &rest[front..];
    }
    let body = body.trim_start_matches(['\n', '\r']);
    let (first, rest) = body.split_once('\n').unwrap_or((body, ""));
    let criteria =
        match first.trim().strip_prefix('#').filter(|text| text.is_empty() || text.starts_with(' ')) {
            Some(heading) if written.title.is_none() => {
                written.title = Some(heading.trim().to_string());
                rest
            }
            _ => body,
        };
    let criteria = criteria.trim();
    written.criteria = (!criteria.is_empty()).then(|| criteria.to_string());
    Ok(written)
}

fn field(written: &mut Written, line: &str) -> Result<(), String> {
    let Some((key, value)) = line.split_once(':') else {
        return Err(format!("{line:?} is not `key: value`"));
    };
    let (key, value) = (key.trim(), value.trim());
    let degree = || degree(value).map(Some);
    match key {
        "" => return Err("a key is missing before the colon".into()),
        "title" => written.title = Some(value.to_string()),
        "importance" => written.importance = degree()?,
        "urgency" => written.urgency = degree()?,
        "azolla" => written.azolla = Some(value.parse().map_err(|e| format!("azolla: {e}"))?),
        "blocked_on" => written.blocked_on.push(blocker(value)?),
        "id" => written.id = Some(value.parse().map_err(|e| format!("id: {e}"))?),
        key => {
            written.metadata.insert(key.to_string(), value.into());
        }
    }
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
    // A word in capitals is meant as a kind: if it is misspelt, it must not become part of the description.
    let in_capitals =
        |word: &str| word.contains('_') && !word.contains(|c: char| c.is_lowercase() || c == ' ');
    let (kind, description) = match text.split_once(':').map(|(word, rest)| (word, kind(word), rest)) {
        Some((_, Ok(kind), rest)) => (kind, rest.trim()),
        Some((word, Err(why), _)) if in_capitals(word) => return Err(why),
        _ => (BlockerKind::UserInput, text.trim()),
    };
    if description.is_empty() {
        return Err("describe the blocker, as in `DESIGN_DECISION: which colour?`".into());
    }
    Ok(NewBlockerRequest { blocker_id: None, kind, description: description.to_string() })
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

const FORM: &str = "\
---
# Importance and urgency: 0 (most) to 4 (least). Other keys are metadata.
importance: 2
urgency: 2
# repo_ref: name of a repository in fernery.toml
# blocked_on: DESIGN_DECISION: what has to be decided before the work starts
---
# 

";

/// Opens a ticket in the person's editor; `before` is its current text.
pub(in crate::cli) fn from_editor(before: Option<&str>) -> Outcome<String> {
    let Some(editor) =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var_os(name).filter(|v| !v.is_empty()))
    else {
        return Err(Failure::usage("pass --title, give - and the ticket on stdin, or set EDITOR"));
    };
    let form = before.unwrap_or(FORM);
    let draft = Draft::write(form)?;
    // Like git: the variable may hold arguments, and the file name is one word.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{} \"$1\"", editor.to_string_lossy())).arg("sh").arg(&draft.0);
    let status =
        command.status().map_err(|e| Failure::failed("editor", format!("cannot start the editor: {e}")))?;
    let text = std::fs::read_to_string(&draft.0)?;
    if !status.success() || text == form {
        return Err(Failure::failed("not_written", "nothing was saved"));
    }
    Ok(text)
}

/// A file for the editor, deleted on drop.
struct Draft(PathBuf);

impl Draft {
    fn write(text: &str) -> Outcome<Self> {
        let name = format!("fernery-{:016x}.md", u64::from_ne_bytes(door::random_bytes()));
        let path = std::env::temp_dir().join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let draft = Self(path);
        file.write_all(text.as_bytes())?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(Path::new(&self.0));
    }
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
        assert_eq!(parse(FORM).unwrap().title, Some(String::new()));
        for (bad, said) in [
            ("---\nimportance: 9\n---\n", "line 2"),
            ("---\nno colon\n---\n", "key: value"),
            ("---\ntitle: x\n", "no ---"),
            ("---\nid: a/b\n---\n", "id:"),
            ("---\nblocked_on: USER_INPUT:\n---\n", "describe the blocker"),
            ("---\nblocked_on: DESGN_DECISION: which colour?\n---\n", "DESIGN_DECISION"),
        ] {
            assert!(parse(bad).unwrap_err().contains(said), "{bad:?}");
        }
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
