//! `fernery run diff`: the patch of a run, for people.

use super::find;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::ids;
use crate::cli::screen::{Cell, Paint, Screen, json_inert, plain, remark};
use clap::Args;
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::WorkorderDifference;
use fernery_core::artifact::ObjectiveId;
use fernery_core::patch::{self, Body, FileChange};
use serde_json::{Value, json};
use std::time::Duration;

/// Tab width.
const TAB_STOP: usize = 8;

/// Print the patch of a run
///
/// Control characters are made visible, and tabs become spaces: the output is for people. For programs, --json has the
/// patch unchanged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery run diff WEB-17           of the last run of a ticket
  fernery run diff WEB-17 --stat    which files, and how many lines
  fernery run diff WEB-17 --since 1    what changed since its first attempt
  fernery run diff WEB-17 --json | jq -rj .patch | git apply --check")]
pub(in crate::cli) struct Diff {
    /// The id of a ticket, a workorder or a run
    #[arg(value_name = "ID", value_parser = ids::ticket_name)]
    id: ObjectiveId,
    /// Only the files, with added and deleted lines
    #[arg(long)]
    stat: bool,
    /// What changed since this attempt at the ticket: its number, or the id of its workorder or run
    #[arg(long, value_name = "ATTEMPT")]
    since: Option<ObjectiveId>,
}

pub(super) async fn run(diff: Diff, client: &Client, screen: Screen) -> Outcome {
    let id = &diff.id;
    let work = find::workorder(client, id).await?;
    if let Some(since) = &diff.since {
        return since_attempt(&work.workorder, since, diff.stat, client, screen).await;
    }
    let Some(bundle) = work.output_bundle else {
        return Err(Failure::not_found(format!("{id} has no output yet"))
            .hint(format_args!("fernery run logs {id} -f shows its progress")));
    };
    let patch = bundle["content"].as_str().unwrap_or_default();
    let outcome = bundle["metadata"]["outcome"].as_str().unwrap_or("OUTPUT");
    if !patch.is_empty() && !patch.starts_with("diff --git ") {
        return Err(Failure::failed(
            "no_patch",
            format!("the outcome of {id} is {outcome}; it has no patch"),
        )
        .hint(format_args!("fernery run show {id} shows its output")));
    }
    let about = json!({ "work_order_id": work.workorder["work_order_id"], "output_id": bundle["output_id"],
        "outcome": outcome });
    if diff.stat {
        return stat(about, patch, screen);
    }
    if screen.json {
        return tell(screen, about, [("patch", patch.into())]);
    }
    if patch.is_empty() {
        remark(&format!("{id} changed nothing ({outcome})"));
        return Ok(());
    }
    screen.line(&painted(patch, screen))
}

/// What changed since an earlier attempt: the difference of the two results, not of the two patches.
async fn since_attempt(
    work: &Value,
    since: &ObjectiveId,
    stat_only: bool,
    client: &Client,
    screen: Screen,
) -> Outcome {
    let id = work["work_order_id"].as_str().unwrap_or_default();
    let earlier = find::attempt(client, work, since).await?;
    let query = Query::new().with("since", Some(&earlier));
    let reply: Reply<WorkorderDifference> =
        client.get(&format!("/v1/workorders/{id}/diff"), &query, Duration::ZERO).await?;
    let WorkorderDifference { base_sha, since_base_sha, patch, .. } = reply.read()?;
    let about = json!({ "work_order_id": id, "since": earlier, "base_sha": base_sha, "since_base_sha": since_base_sha });
    if base_sha != since_base_sha {
        remark(&format!(
            "the base moved from {since_base_sha} to {base_sha} in between; its changes are in here too"
        ));
    }
    if stat_only {
        return stat(about, &patch, screen);
    }
    if screen.json {
        return tell(screen, about, [("patch", patch.into())]);
    }
    if patch.is_empty() {
        remark("nothing changed since that attempt");
        return Ok(());
    }
    screen.line(&painted(&patch, screen))
}

/// One object that says what it is about.
fn tell<const N: usize>(screen: Screen, mut about: Value, more: [(&str, Value); N]) -> Outcome {
    for (name, value) in more {
        about[name] = value;
    }
    screen.line(&json_inert(&about.to_string()))
}

/// A patch in colours, one line for each of its lines.
pub(in crate::cli) fn painted(patch: &str, screen: Screen) -> String {
    let mut in_hunk = false;
    let lines = patch.strip_suffix('\n').unwrap_or(patch).split('\n').map(|line| {
        in_hunk = !line.starts_with("diff --git ") && (in_hunk || line.starts_with("@@ "));
        let paint = match line.as_bytes().first() {
            _ if !in_hunk => Paint::Dim,
            Some(b'+') => Paint::Good,
            Some(b'-') => Paint::Bad,
            Some(b'@') => Paint::Busy,
            _ => Paint::Plain,
        };
        screen.painted(&visible(line), paint)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A line as a terminal would show it, with control characters made visible.
fn visible(line: &str) -> String {
    let mut shown = String::new();
    for (nth, piece) in line.split('\t').enumerate() {
        if nth > 0 {
            let width = shown.chars().count();
            shown.extend(std::iter::repeat_n(' ', TAB_STOP - width % TAB_STOP));
        }
        shown.push_str(&plain(piece));
    }
    shown
}

/// Inserted and deleted lines; for binary content the bytes.
pub(in crate::cli) fn counts(file: &FileChange) -> (u64, u64, Option<u64>) {
    match &file.body {
        Body::Same => (0, 0, None),
        Body::Text { insertions, deletions, .. } => (*insertions, *deletions, None),
        Body::Binary { bytes } => (0, 0, Some(*bytes)),
    }
}

fn stat(about: Value, patch: &str, screen: Screen) -> Outcome {
    let unread = |flaw: patch::Flaw| Failure::failed("no_patch", format!("the patch cannot be read: {flaw}"));
    let files = patch::read(patch).map_err(unread)?.files;
    let total = files.iter().map(counts).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    if screen.json {
        let each = |file: &FileChange| {
            let (insertions, deletions, binary_bytes) = counts(file);
            json!({ "path": file.path, "insertions": insertions, "deletions": deletions, "binary_bytes": binary_bytes })
        };
        let files: Vec<Value> = files.iter().map(each).collect();
        let (insertions, deletions) = (total.0.into(), total.1.into());
        let more = [("files", files.into()), ("insertions", insertions), ("deletions", deletions)];
        return tell(screen, about, more);
    }
    let row = |file: &FileChange| -> Vec<Cell> {
        let change = match (&file.before, &file.after, counts(file)) {
            (_, _, (_, _, Some(bytes))) => format!("binary, {bytes} bytes"),
            (None, _, _) => "new".to_string(),
            (_, None, _) => "deleted".to_string(),
            (before, after, _) if before != after => "another mode".to_string(),
            _ => String::new(),
        };
        let (insertions, deletions, _) = counts(file);
        vec![
            format!("+{insertions}").into(),
            format!("−{deletions}").into(),
            (&file.path).into(),
            change.into(),
        ]
    };
    screen.table(&["COME", "GO", "FILE…", "CHANGE"], files.iter().map(row).collect())?;
    let count = if files.len() == 1 { "1 file".to_string() } else { format!("{} files", files.len()) };
    screen.line(&format!("{count}, +{} −{}", total.0, total.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_as_on_a_terminal_without_control_characters() {
        assert_eq!(visible("+\tif x {\t// why"), "+       if x {  // why");
        assert_eq!(visible("-a\u{1b}[2J\r"), "-a\\u{1b}[2J\\u{d}");
    }
}
