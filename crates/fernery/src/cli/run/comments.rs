//! `fernery run comments`: what reviewers say about lines of a run's patch.

use super::find;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::ids;
use crate::cli::screen::{Screen, plain, remark};
use crate::cli::ticket::act::send;
use clap::Args;
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{CommentList, CommentRequest, CommentView};
use fernery_core::artifact::{CommentId, ObjectiveId};
use fernery_core::review::Side;
use fernery_engine::door;
use std::str::FromStr;
use std::time::Duration;

/// List the comments on the patch of a run, or add one
///
/// `fernery ticket reopen --with-comments` makes them the note of the next attempt.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery run comments WEB-17           on the last run of a ticket
  fernery run comments WEB-17 --file src/app.css --line 12 --text 'Use the grid'
  fernery run comments WEB-17 --file a.css --line 12-15 --side old --text 'Keep'")]
pub(in crate::cli) struct Comments {
    /// The id of a ticket, a workorder or a run
    #[arg(value_name = "ID", value_parser = ids::ticket_name)]
    id: ObjectiveId,
    /// Comment on this file of the patch
    #[arg(long, value_name = "PATH", requires = "line", requires = "text")]
    file: Option<String>,
    /// The line that the comment is about, or the first and the last
    #[arg(long, value_name = "LINE[-LINE]", requires = "file")]
    line: Option<Lines>,
    /// new: lines after the patch; old: lines before it
    #[arg(long, value_name = "SIDE", requires = "file", default_value = "new")]
    side: Side,
    /// What you say
    #[arg(long, value_name = "TEXT", requires = "file", allow_hyphen_values = true)]
    text: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Lines(u64, u64);

impl FromStr for Lines {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) => Ok(Self(first, last)),
            _ => Err("lines are a number, like 12, or two, like 12-15".to_string()),
        }
    }
}

pub(super) async fn run(comments: Comments, client: &Client, screen: Screen) -> Outcome {
    let Comments { id, file, line, side, text } = comments;
    let work = find::workorder(client, &id).await?;
    let run_id = work.run.as_ref().and_then(|run| run["run_id"].as_str()).ok_or_else(|| {
        Failure::not_found(format!("{id} has no verdict yet"))
            .hint(format_args!("fernery run logs {id} -f shows its progress"))
    })?;
    if let (Some(file), Some(Lines(first_line, last_line)), Some(text)) = (file, line, text) {
        let comment_id = Some(CommentId::stored(&door::artifact_id()));
        let (side, last_line) = (Some(side), Some(last_line));
        let body = CommentRequest { file, side, first_line, last_line, text, comment_id };
        let made: Reply<CommentView> = send(client, &format!("/v1/runs/{run_id}/comments"), &body).await?;
        if screen.json {
            return screen.json_body(&made.body);
        }
        return screen.say(&head(&made.read()?));
    }
    let reply = of_run(client, run_id).await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let list = reply.read()?;
    if list.comments.is_empty() {
        remark(&format!("run {run_id} has no comments"));
    }
    for comment in &list.comments {
        screen.say(&head(comment))?;
        comment.text.trim().lines().try_for_each(|line| screen.say(&format!("  {}", plain(line))))?;
    }
    Ok(())
}

/// The comments on a run.
pub(in crate::cli) async fn of_run(client: &Client, run_id: &str) -> Outcome<Reply<CommentList>> {
    Ok(client.get(&format!("/v1/runs/{run_id}/comments"), &Query::new(), Duration::ZERO).await?)
}

fn head(comment: &CommentView) -> String {
    let CommentView { file, first_line: first, last_line: last, side, author, .. } = comment;
    let lines = if first == last { format!("{first}") } else { format!("{first}-{last}") };
    let before = if *side == Side::Old { " before the patch" } else { "" };
    plain(&format!("{file}:{lines}{before}, {author}"))
}
