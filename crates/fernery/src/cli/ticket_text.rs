//! A ticket as people write it: Markdown, with what is not prose in front.
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
//! `title`, `importance`, `urgency`, `azolla` and `id` are themselves; every other key is metadata. The title may also be
//! the first heading; the rest is the acceptance criteria.

use super::failure::{Failure, Outcome};
use fernery_core::artifact::{AzollaId, Metadata, ObjectiveId};
use fernery_engine::door;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What was written down; what is absent was not said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Written {
    pub(super) id: Option<ObjectiveId>,
    pub(super) azolla: Option<AzollaId>,
    pub(super) title: Option<String>,
    pub(super) criteria: Option<String>,
    pub(super) importance: Option<u8>,
    pub(super) urgency: Option<u8>,
    pub(super) metadata: Metadata,
}

/// Reads a ticket.
pub(super) fn parse(text: &str) -> Result<Written, String> {
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
            return Err("the lines after the first --- have no --- at their end".into());
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
        return Err(format!("{line:?} is no `key: value`"));
    };
    let (key, value) = (key.trim(), value.trim());
    let degree = || degree(value).map(Some);
    match key {
        "" => return Err("a key is missing before the colon".into()),
        "title" => written.title = Some(value.to_string()),
        "importance" => written.importance = degree()?,
        "urgency" => written.urgency = degree()?,
        "azolla" => written.azolla = Some(value.parse().map_err(|e| format!("azolla: {e}"))?),
        "id" => written.id = Some(value.parse().map_err(|e| format!("id: {e}"))?),
        key => {
            written.metadata.insert(key.to_string(), value.into());
        }
    }
    Ok(())
}

/// How much it matters, or how soon.
pub(super) fn degree(text: &str) -> Result<u8, String> {
    text.parse().ok().filter(|n| *n <= 4).ok_or_else(|| "a number from 0 (most) to 4 (least)".to_string())
}

/// `key=text`, or `key:=json`.
pub(super) fn meta(text: &str) -> Result<(String, serde_json::Value), String> {
    let expected = || format!("{text:?} is neither key=text nor key:=json");
    let (key, value) = text.split_once('=').ok_or_else(expected)?;
    match key.strip_suffix(':') {
        _ if key.is_empty() || key == ":" => Err(expected()),
        Some(key) => serde_json::from_str(value)
            .map(|value| (key.to_string(), value))
            .map_err(|e| format!("{value:?} is no JSON ({e}); key=text takes it as text")),
        None => Ok((key.to_string(), value.into())),
    }
}

const FORM: &str = "\
---
# How much it matters and how soon: 0 (most) to 4 (least). Other keys are metadata.
importance: 2
urgency: 2
# repo_ref: name of a repository in fernery.toml
---
# 

";

/// Asks for a ticket in the person's editor; `before` is what is there already.
pub(super) fn from_editor(before: Option<&str>) -> Outcome<String> {
    let Some(editor) =
        ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var_os(name).filter(|v| !v.is_empty()))
    else {
        return Err(Failure::usage(
            "say --title, give - and the ticket on stdin, or set EDITOR to write it there",
        ));
    };
    let form = before.unwrap_or(FORM);
    let draft = Draft::write(form)?;
    // As git does: the variable may hold arguments, the file's name is one word whatever is in it.
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{} \"$1\"", editor.to_string_lossy())).arg("sh").arg(&draft.0);
    let status =
        command.status().map_err(|e| Failure::failed("editor", format!("cannot start the editor: {e}")))?;
    let text = std::fs::read_to_string(&draft.0)?;
    if !status.success() || text == form {
        return Err(Failure::failed("not_written", "nothing was written down"));
    }
    Ok(text)
}

/// A file for the editor that is gone afterwards.
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

/// What is shown of a ticket, or of what may become one.
pub(super) struct Text<'a> {
    pub(super) title: &'a str,
    pub(super) criteria: &'a str,
    pub(super) importance: u8,
    pub(super) urgency: u8,
    pub(super) metadata: &'a Metadata,
}

/// It as it would be written down.
pub(super) fn form(shown: &Text<'_>) -> String {
    let mut text = format!("---\nimportance: {}\nurgency: {}\n", shown.importance, shown.urgency);
    // What is not plain text stays as it is: an edit replaces what it names only.
    for (key, value) in shown.metadata {
        if let Some(value) = value.as_str().filter(|value| !value.contains('\n')) {
            text.push_str(&format!("{key}: {value}\n"));
        }
    }
    text + &format!("---\n# {}\n\n{}\n", shown.title, shown.criteria)
}

/// A ticket as it would be written down.
pub(super) fn as_text(objective: &fernery_core::artifact::Objective) -> String {
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
        ] {
            assert!(parse(bad).unwrap_err().contains(said), "{bad:?}");
        }
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
