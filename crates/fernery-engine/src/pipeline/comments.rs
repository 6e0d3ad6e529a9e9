//! Comments of reviewers on the patch of a run, up to the note that becomes of them.
//!
//! Every write locks the ticket, as a reopening does. So a comment is either there when the ticket is reopened, and the reopening
//! says which comments it knew; or it comes later, and is refused: nobody would read it.

use super::acts::{Actor, Answer, Asked, Refusal, fields};
use super::objectives::{self, ObjectiveRow};
use super::{Cell, Row, Sql, reading};
use crate::error::StoreResult;
use fernery_core::artifact::{CommentId, ObjectiveId, ObjectiveStatus, RecordId, RunId};
use fernery_core::canonical::Digest;
use fernery_core::journal::Act;
use fernery_core::limits;
use fernery_core::review::{self, Comment, Place, Placed};
use serde_json::{Value, json};

/// A comment as it is requested.
#[derive(Clone, Debug)]
pub struct NewComment {
    /// Chosen by the caller, so that a repeated request makes one comment.
    pub comment_id: CommentId,
    /// The run whose patch it is about.
    pub run_id: RunId,
    pub placed: Placed,
    pub text: String,
}

/// The comments that a note was made of, as they were read.
#[derive(Clone, Debug)]
pub struct ReadComments {
    /// The run that they are about.
    pub run_id: RunId,
    /// The digest of all of them.
    pub digest: Digest,
}

struct Stored {
    comment: Comment,
    deleted: bool,
}

fn stored(row: &Row) -> StoreResult<Stored> {
    let place = Place {
        path: row.text("path")?.to_string(),
        first_line: row.count("first_line")?,
        last_line: row.count("last_line")?,
        side: row.word("side")?,
    };
    let comment = Comment {
        comment_id: row.word("comment_id")?,
        run_id: row.word("run_id")?,
        place,
        text: row.text("text")?.to_string(),
        author: row.text("author")?.to_string(),
        created_at: row.at("created_at")?,
        updated_at: row.at("updated_at")?,
    };
    Ok(Stored { comment, deleted: row.maybe_at("deleted_at")?.is_some() })
}

fn by_id(sql: &mut dyn Sql, id: &CommentId) -> StoreResult<Option<Stored>> {
    sql.one(include_str!("sql/comment_by_id.sql"), &[id.as_str().into()])?.as_ref().map(stored).transpose()
}

/// The comments that stand on a run, by file and line.
pub fn of_run(sql: &mut dyn Sql, id: &RunId) -> StoreResult<Vec<Comment>> {
    let rows = sql.query(include_str!("sql/comments_of_run.sql"), &[id.as_str().into()])?;
    rows.iter().map(|row| Ok(stored(row)?.comment)).collect()
}

pub fn add(sql: &mut dyn Sql, actor: &Actor, new: &NewComment) -> Answer<Comment> {
    if let Some(violation) = review::text_violation(&new.text) {
        return Ok(Err(Refusal::Unfit(vec![violation])));
    }
    let Place { path, first_line, last_line, side } = new.placed.place();
    let record_id = RecordId::stored(new.comment_id.as_str());
    let place = json!({ "file": path, "side": side, "first_line": first_line, "last_line": last_line });
    let asked = Asked {
        actor,
        act: Act::Commented,
        id: new.run_id.as_str(),
        record_id: &record_id,
        what: fields([("place", place), ("text_sha256", text_digest(&new.text))]),
    };
    let (row, run_id) = accepted!(ticket_of(sql, &new.run_id)?);
    if accepted!(asked.is_repeat(sql)?) {
        return still_there(sql, &new.comment_id);
    }
    accepted!(can_be_reviewed(sql, &row, &run_id)?);
    let count = sql.one(include_str!("sql/comments_count.sql"), &[run_id.as_str().into()])?;
    if count.map_or(Ok(0), |row| row.int(0))? >= limits::COMMENTS_MAX {
        let most = limits::COMMENTS_MAX;
        let why = format!("run {run_id} has {most} comments, which is the most; delete one of yours first");
        return Ok(Err(Refusal::Conflict(why)));
    }
    asked.done(sql, json!({}))?;
    let (first, last) = (number(*first_line), number(*last_line));
    let cells: [Cell<'_>; 9] = [
        new.comment_id.as_str().into(),
        run_id.as_str().into(),
        path.into(),
        side.as_str().into(),
        first.into(),
        last.into(),
        (&new.text).into(),
        (&actor.0).into(),
        sql.now().into(),
    ];
    sql.write("the comment", include_str!("sql/comment_insert.sql"), &cells)?;
    still_there(sql, &new.comment_id)
}

/// Gives a comment another text. Only its author can.
pub fn edit(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&CommentId, &RecordId),
    text: &str,
) -> Answer<Comment> {
    if let Some(violation) = review::text_violation(text) {
        return Ok(Err(Refusal::Unfit(vec![violation])));
    }
    let (before, row) = accepted!(own(sql, actor, id)?);
    let asked = Asked {
        actor,
        act: Act::CommentEdited,
        id: before.comment.run_id.as_str(),
        record_id,
        what: fields([("comment_id", json!(id)), ("text_sha256", text_digest(text))]),
    };
    if accepted!(asked.is_repeat(sql)?) || before.deleted || before.comment.text == text {
        return still_there(sql, id);
    }
    accepted!(can_be_reviewed(sql, &row, &before.comment.run_id)?);
    asked.done(sql, json!({}))?;
    let cells = [id.as_str().into(), text.into(), sql.now().into()];
    sql.write("the comment", include_str!("sql/comment_edit.sql"), &cells)?;
    still_there(sql, id)
}

/// Takes a comment back; answers what it was. Only its author can. Taking it back again changes nothing.
pub fn delete(sql: &mut dyn Sql, actor: &Actor, (id, record_id): (&CommentId, &RecordId)) -> Answer<Comment> {
    let (before, row) = accepted!(own(sql, actor, id)?);
    if before.deleted {
        return Ok(Ok(before.comment));
    }
    accepted!(can_be_reviewed(sql, &row, &before.comment.run_id)?);
    let asked = Asked {
        actor,
        act: Act::CommentDeleted,
        id: before.comment.run_id.as_str(),
        record_id,
        what: fields([("comment_id", json!(id))]),
    };
    asked.done(sql, json!({}))?;
    let cells = [id.as_str().into(), sql.now().into()];
    sql.write("the comment", include_str!("sql/comment_delete.sql"), &cells)?;
    Ok(Ok(before.comment))
}

/// Whether the comments of a run of this locked ticket are those that were read; how many there are.
pub(super) fn unchanged(sql: &mut dyn Sql, id: &ObjectiveId, read: &ReadComments) -> Answer<usize> {
    let of_it = reading::run_by_id(sql, &read.run_id)?.is_some_and(|run| run.record.objective_id == *id);
    if !of_it {
        return Ok(Err(Refusal::Conflict(format!("{} is no run of {id}", read.run_id))));
    }
    let now = of_run(sql, &read.run_id)?;
    if review::digest_of(&now) != read.digest {
        let why =
            format!("the comments on run {} changed after they were read; read them again", read.run_id);
        return Ok(Err(Refusal::Conflict(why)));
    }
    Ok(Ok(now.len()))
}

fn number(line: u64) -> i64 {
    i64::try_from(line).unwrap_or(i64::MAX)
}

fn text_digest(text: &str) -> Value {
    json!(Digest::of_bytes(text.as_bytes()))
}

/// The comment as it is now. A request that comes again after the comment was taken back does not bring it back.
fn still_there(sql: &mut dyn Sql, id: &CommentId) -> Answer<Comment> {
    Ok(match by_id(sql, id)? {
        Some(Stored { comment, deleted: false }) => Ok(comment),
        Some(_) => Err(Refusal::Conflict(format!("comment {id} was deleted"))),
        None => Err(Refusal::Unknown),
    })
}

/// The ticket of a run, locked.
fn ticket_of(sql: &mut dyn Sql, id: &RunId) -> Answer<(ObjectiveRow, RunId)> {
    let Some(run) = reading::run_by_id(sql, id)? else { return Ok(Err(Refusal::Unknown)) };
    let row = accepted!(objectives::locked(sql, &run.record.objective_id)?);
    Ok(Ok((row, run.record.run_id)))
}

/// A comment of this reviewer, read under the lock of its ticket.
fn own(sql: &mut dyn Sql, actor: &Actor, id: &CommentId) -> Answer<(Stored, ObjectiveRow)> {
    let Some(Stored { comment, .. }) = by_id(sql, id)? else { return Ok(Err(Refusal::Unknown)) };
    let (row, _) = accepted!(ticket_of(sql, &comment.run_id)?);
    let Some(now) = by_id(sql, id)? else { return Ok(Err(Refusal::Unknown)) };
    if now.comment.author != actor.0 {
        let why =
            format!("comment {id} is by {}; only its author can change or delete it", now.comment.author);
        return Ok(Err(Refusal::Conflict(why)));
    }
    Ok(Ok((now, row)))
}

fn can_be_reviewed(sql: &mut dyn Sql, row: &ObjectiveRow, run_id: &RunId) -> Answer<()> {
    Ok(closed_because(sql, row, run_id)?.map_or(Ok(()), |why| Err(Refusal::Conflict(why))))
}

/// Why nobody would read a further comment on this run; `None`: somebody would.
pub fn closed_because(sql: &mut dyn Sql, row: &ObjectiveRow, run_id: &RunId) -> StoreResult<Option<String>> {
    let id = &row.objective.objective_id;
    let last = reading::last_run(sql, id)?.map(|run| run.record.run_id);
    if let Some(last) = last.filter(|last| last != run_id) {
        return Ok(Some(format!("run {run_id} is not the last one of {id}; comment on run {last}")));
    }
    Ok(match row.objective.status {
        ObjectiveStatus::Done | ObjectiveStatus::Blocked => None,
        status => Some(format!(
            "{id} is {status}: the next attempt has been told already what is missing; comment on its run"
        )),
    })
}
