//! Review of a run's patch: comments, files that were viewed, and which run a reviewer looked at last. What a place is and the note
//! are decided by `fernery_core::review`; patches never change, so they are read before the transaction that writes.

use super::acting::{actor, fields, record, refused_on};
use super::named::{missing, named, unknown};
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::aside::aside;
use crate::http::wire::json;
use fernery_client::wire::{
    CommentList, CommentRequest, CommentView, EditCommentRequest, ReviewTime, ReviewView, ViewedRequest,
};
use fernery_core::artifact::{CommentId, RunId, RunRecord, WorkorderId};
use fernery_core::canonical::Digest;
use fernery_core::pipeline::Violation;
use fernery_core::review::{self, Comment, PatchIndex, Place, ReviewNote, Side};
use fernery_engine::StoreError;
use fernery_engine::door;
use fernery_engine::pipeline::acts::{Actor, Answer};
use fernery_engine::pipeline::comments::{self, NewComment};
use fernery_engine::pipeline::{Sql, objectives, reading, reviewing, viewing};
use std::collections::BTreeMap;

/// `GET /v1/review_time`
pub async fn time(call: Call) -> Replied {
    let (waits, at_least) = call.server.engine().substrate().read(reviewing::waits).await?;
    Reply::json(
        200,
        &ReviewTime {
            minutes: waits.minutes(),
            at_least,
            runs: waits.runs.len() as u64,
            files: waits.files(),
            lines: waits.lines(),
            approvals: waits.approvals,
            candidates: waits.candidates,
            rule: review::time::rule(),
        },
    )
}

/// A run with what it made.
struct Made {
    run: RunRecord,
    content: String,
}

/// `GET /v1/runs/{id}/comments`
pub async fn list(call: Call) -> Replied {
    let found = call.server.engine().substrate().read(of_run(&call)?).await?;
    let (made, comments) = found.ok_or_else(unknown(&call, "run"))?;
    let who = actor(&call);
    Reply::json(200, &aside(move || Ok(listed(&who, comments, index(&made).ok().as_ref()))).await?)
}

/// `POST /v1/runs/{id}/comments`
pub async fn comment(call: Call) -> Replied {
    let run_id: RunId = named(&call)?;
    let CommentRequest { file, side, first_line, last_line, text, comment_id } = json::read(&call.body)?;
    let made = made(&call, &run_id).await?;
    let place = Place {
        path: file,
        side: side.unwrap_or(Side::New),
        first_line,
        last_line: last_line.unwrap_or(first_line),
    };
    let placed = aside(move || index(&made)?.placed(place).map_err(unfit)).await?;
    let comment_id = comment_id.unwrap_or_else(|| CommentId::stored(&door::artifact_id()));
    let new = NewComment { comment_id, run_id: run_id.clone(), placed, text };
    let made = act(&call, move |sql, who| comments::add(sql, who, &new)).await?;
    let made = made.map_err(|refusal| refused_on("run", &run_id, refusal))?;
    Reply::json(200, &view(made, &actor(&call)))
}

/// `PATCH /v1/comments/{id}`
pub async fn edit(call: Call) -> Replied {
    let id: CommentId = named(&call)?;
    let EditCommentRequest { text, record_id } = json::read(&call.body)?;
    let (of, record_id) = (id.clone(), record(record_id));
    let done = act(&call, move |sql, who| comments::edit(sql, who, (&of, &record_id), &text)).await?;
    let done = done.map_err(|refusal| refused_on("comment", &id, refusal))?;
    Reply::json(200, &view(done, &actor(&call)))
}

/// `DELETE /v1/comments/{id}`
pub async fn delete(call: Call) -> Replied {
    let id: CommentId = named(&call)?;
    let (of, record_id) = (id.clone(), record(None));
    let done = act(&call, move |sql, who| comments::delete(sql, who, (&of, &record_id))).await?;
    let done = done.map_err(|refusal| refused_on("comment", &id, refusal))?;
    Reply::json(200, &view(done, &actor(&call)))
}

/// `POST /v1/runs/{id}/viewed`
pub async fn viewed(call: Call) -> Replied {
    let run_id: RunId = named(&call)?;
    let asked: ViewedRequest = json::read(&call.body)?;
    let made = made(&call, &run_id).await?;
    let (id, file) = (made.run.objective_id.clone(), asked.file.clone());
    let content = aside(move || index(&made)?.content(&file).map_err(unfit)).await?;
    let (of, file, is_viewed) = (id.clone(), asked.file.clone(), asked.viewed);
    let done = act(&call, move |sql, who| viewing::view(sql, who, (&of, &file, &content), is_viewed)).await?;
    done.map_err(|refusal| refused_on("ticket", &id, refusal))?;
    Reply::json(200, &asked)
}

/// `POST /v1/runs/{id}/looked`
pub async fn looked(call: Call) -> Replied {
    call.no_fields()?;
    let run_id: RunId = named(&call)?;
    let run = made(&call, &run_id).await?.run;
    let done = act(&call, move |sql, who| Ok(Ok(viewing::look(sql, who, &run)?))).await?;
    done.map_err(|refusal| refused_on("run", &run_id, refusal))?;
    read(call).await
}

/// `GET /v1/runs/{id}/review`
pub async fn read(call: Call) -> Replied {
    let (who, mut of_run) = (actor(&call), of_run(&call)?);
    let asks = who.clone();
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        let Some((made, comments)) = of_run(sql)? else { return Ok(None) };
        let id = &made.run.objective_id;
        let seen = Seen {
            viewed: viewing::viewed(sql, &asks, id)?,
            open: is_open(sql, &made.run)?,
            looked: looked_before(sql, &asks, &made.run)?,
        };
        Ok(Some((made, comments, seen)))
    });
    let (made, comments, seen) = found.await?.ok_or_else(unknown(&call, "run"))?;
    let review = aside(move || {
        let index = index(&made).ok();
        let contents = index.as_ref().map(PatchIndex::contents).unwrap_or_default();
        let same = |(path, content): &(String, Digest)| contents.get(path.as_str()) == Some(content);
        let viewed = seen.viewed.into_iter().filter(same).map(|(path, _)| path).collect();
        let (looked, since) = seen.looked;
        Ok(ReviewView {
            comments: listed(&who, comments, index.as_ref()),
            open: seen.open && index.is_some(),
            files: contents.len(),
            viewed,
            looked,
            since,
        })
    });
    Reply::json(200, &review.await?)
}

/// What the database knows of a reviewer and a run.
struct Seen {
    viewed: BTreeMap<String, Digest>,
    open: bool,
    looked: (bool, Option<WorkorderId>),
}

/// Whether this reviewer has looked at the run, and the workorder of the run that they had looked at before it.
fn looked_before(
    sql: &mut dyn Sql,
    who: &Actor,
    run: &RunRecord,
) -> Result<(bool, Option<WorkorderId>), StoreError> {
    let Some(look) = viewing::look_of(sql, who, &run.objective_id)? else { return Ok((false, None)) };
    let runs = reading::runs_of(sql, &run.objective_id)?;
    let place = |id: &RunId| runs.iter().position(|run| run.record.run_id == *id);
    let here = place(&run.run_id);
    let mut earlier = [Some(look.run_id.clone()), look.before].into_iter().flatten();
    let since = earlier.find_map(|id| place(&id).filter(|place| Some(*place) < here));
    let since = since.map(|place| runs[place].record.work_order_id.clone());
    Ok((here <= place(&look.run_id), since))
}

fn is_open(sql: &mut dyn Sql, run: &RunRecord) -> Result<bool, StoreError> {
    let Some(row) = objectives::load(sql, &run.objective_id)? else { return Ok(false) };
    Ok(comments::closed_because(sql, &row, &run.run_id)?.is_none())
}

type Commented = Result<Option<(Made, Vec<Comment>)>, StoreError>;

/// Reads the run that the path names, with its comments.
fn of_run(call: &Call) -> Result<impl FnMut(&mut dyn Sql) -> Commented + Send + use<>, Refused> {
    let id: RunId = named(call)?;
    Ok(move |sql: &mut dyn Sql| {
        let Some(made) = made_by(sql, &id)? else { return Ok(None) };
        Ok(Some((made, comments::of_run(sql, &id)?)))
    })
}

async fn made(call: &Call, id: &RunId) -> Result<Made, Refused> {
    let of = id.clone();
    let found = call.server.engine().substrate().read(move |sql| made_by(sql, &of)).await?;
    found.ok_or_else(|| missing("run", id))
}

fn made_by(sql: &mut dyn Sql, id: &RunId) -> Result<Option<Made>, StoreError> {
    let Some(run) = reading::run_by_id(sql, id)? else { return Ok(None) };
    let bundle = reading::bundle(sql, &run.record.work_order_id)?;
    Ok(Some(Made { run: run.record, content: bundle.map(|bundle| bundle.content).unwrap_or_default() }))
}

fn index(made: &Made) -> Result<PatchIndex<'_>, Refused> {
    PatchIndex::of(&made.content).map_err(|why| Refusal::new(Code::Conflict, why))
}

fn unfit(violation: Violation) -> Refused {
    Refusal::fields(fields(vec![violation]))
}

async fn act<T: Send + 'static>(
    call: &Call,
    mut verb: impl FnMut(&mut dyn Sql, &Actor) -> Answer<T> + Send + 'static,
) -> Result<Result<T, fernery_engine::pipeline::acts::Refusal>, Refused> {
    let _writing = call.writing()?;
    let who = actor(call);
    let substrate = call.server.engine().substrate();
    let done = substrate.transact(move |sql| {
        let done = verb(sql, &who)?;
        door::failpoint("act-written");
        Ok(done)
    });
    let done = done.await?;
    door::failpoint("act-durable");
    Ok(done)
}

fn listed(who: &Actor, comments: Vec<Comment>, index: Option<&PatchIndex<'_>>) -> CommentList {
    let ReviewNote { text, left_out } =
        index.map(|index| review::note_of(&comments, index)).unwrap_or_default();
    let digest = review::digest_of(&comments);
    let comments = comments.into_iter().map(|comment| view(comment, who)).collect();
    CommentList { comments, digest, note: text, left_out }
}

fn view(comment: Comment, who: &Actor) -> CommentView {
    let Comment { comment_id, run_id, place, text, author, created_at, updated_at } = comment;
    let Place { path: file, first_line, last_line, side } = place;
    let own = author == who.0;
    CommentView {
        comment_id,
        run_id,
        file,
        side,
        first_line,
        last_line,
        text,
        author,
        own,
        created_at,
        updated_at,
    }
}
