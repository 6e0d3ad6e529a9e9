//! Acts of operators on all jobs that match: each is a row, and goes on step by step until every job that was meant is reached.
//!
//! A step is one transaction: it locks the row, looks at the next jobs from where the walk is, acts on those that are meant, and
//! writes counts and place. So a process that dies in between loses no job and counts none twice, and of several processes one
//! takes the step. What came, began to run, or ended after the act was asked for is never meant; else an act on what keeps coming
//! had no end.

use super::acts::{Actor, Answer, Refusal};
use super::reading::Below;
use super::{Cell, Row, Sql, Stage, answering, journal};
use crate::door;
use crate::error::StoreResult;
use crate::store::{Pass, Store};
use crate::supervise::lock;
use fernery_core::artifact::RecordId;
use fernery_core::job::bulk::{BulkFilter, BulkState, BulkVerb, Counted, Walk};
use fernery_core::journal::Act;
use fernery_core::{JobId, JobStatus, StreamName, Timestamp, limits};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::debug;

/// The name under which the journal tells that an act has come to its end.
const BULK: &str = "bulk";
/// Characters that are kept of why a step failed.
const TROUBLE_CHARS_MAX: usize = 500;

/// A bulk act as it is asked for.
#[derive(Clone, Debug)]
pub struct NewBulk {
    /// Chosen by the caller: asked for again, it is the same act.
    pub act_id: RecordId,
    /// What is done.
    pub verb: BulkVerb,
    /// To jobs that stand so.
    pub status: JobStatus,
    /// Of this stream only.
    pub stream: Option<StreamName>,
    /// DEAD only: with this error code.
    pub code: Option<String>,
    /// Only what came, began to run, or ended before this; what does so after the act was asked for is never meant.
    pub before: Option<Timestamp>,
    /// How many they are, and what that number says.
    pub expected: (u64, Counted),
}

/// A bulk act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkAct {
    /// Its id.
    pub act_id: RecordId,
    /// What is done.
    pub verb: BulkVerb,
    /// To which jobs.
    pub filter: BulkFilter,
    /// Who asked for it.
    pub actor: String,
    /// How many jobs were counted then, and what that number says.
    pub expected: (u64, Counted),
    /// Where it stands.
    pub state: BulkState,
    /// Jobs to which it was done.
    pub done: u64,
    /// Jobs that it could not be done to: another unfinished job has their unique key.
    pub refused: u64,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When its last step was.
    pub updated_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why its last step failed, until one succeeds.
    pub trouble: Option<String>,
    done_walk: u64,
    walk: Walk,
}

impl BulkAct {
    /// Where it stands in a list that goes from the newest down.
    pub fn place(&self) -> Below {
        Below { at: self.created_at, id: self.act_id.to_string() }
    }

    fn told(&self) -> Value {
        let BulkFilter { status, stream, code, before } = &self.filter;
        let mut told = json!({ "verb": self.verb, "status": status, "before": before });
        for (name, value) in [("stream", stream.as_ref().map(StreamName::as_str)), ("code", code.as_deref())]
        {
            if let Some(value) = value {
                told[name] = json!(value);
            }
        }
        told
    }

    fn came_to(&self) -> Value {
        let mut told = self.told();
        told["done"] = json!(self.done);
        told["refused"] = json!(self.refused);
        told
    }
}

/// A job that a walk came by.
#[derive(Clone, Debug)]
pub struct Walked {
    /// The job.
    pub job_id: JobId,
    /// Its stream.
    pub stream: StreamName,
    /// When it was enqueued; of one that runs, when its attempt began; of one that ended, when it ended.
    pub at: Timestamp,
    /// What it died of.
    pub code: Option<String>,
    /// Where the walk is then.
    pub here: Walk,
}

/// What one step did to its jobs. What is missing had gone on meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkActed {
    /// To so many it was done.
    pub done: u64,
    /// To so many it could not be done.
    pub refused: u64,
}

/// A step of a bulk act.
#[derive(Clone, Debug)]
pub struct BulkStep {
    /// The act as it is now.
    pub act: BulkAct,
    /// What the step did.
    pub acted: BulkActed,
}

fn bulk_act(row: &Row) -> StoreResult<BulkAct> {
    Ok(BulkAct {
        act_id: row.word("act_id")?,
        verb: row.word("verb")?,
        filter: BulkFilter {
            status: row.word("job_status")?,
            stream: row.maybe_text("stream")?.map(StreamName::stored),
            code: row.maybe_text("code")?.map(str::to_string),
            before: row.at("before_at")?,
        },
        actor: row.text("actor")?.to_string(),
        expected: (row.count("expected")?, row.word("counted")?),
        state: row.word("state")?,
        done: row.count("done")?,
        refused: row.count("refused")?,
        done_walk: row.count("done_walk")?,
        walk: row.json("walk")?,
        created_at: row.at("created_at")?,
        updated_at: row.at("updated_at")?,
        ended_at: row.maybe_at("ended_at")?,
        trouble: row.maybe_text("trouble")?.map(str::to_string),
    })
}

/// One bulk act.
pub fn by_id(sql: &mut dyn Sql, id: &RecordId) -> StoreResult<Option<BulkAct>> {
    sql.one(include_str!("sql/bulk_act_by_id.sql"), &[id.as_str().into()])?.as_ref().map(bulk_act).transpose()
}

/// Bulk acts below a place, newest first.
pub fn page(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Vec<BulkAct>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into()];
    sql.query(include_str!("sql/bulk_acts_page.sql"), &cells)?.iter().map(bulk_act).collect()
}

/// Whether one is under way.
pub async fn is_under_way(store: &dyn Store) -> StoreResult<bool> {
    Ok(!store.select(include_str!("sql/bulk_acts_running.sql")).await?.is_empty())
}

/// Writes down that this is to be done. Asked for again under its id, it is the act that was made then; `true`: it is new.
pub fn start(sql: &mut dyn Sql, actor: &Actor, new: &NewBulk) -> Answer<(BulkAct, bool)> {
    if let Some(made) = by_id(sql, &new.act_id)? {
        return Ok(same(made, actor, new).map(|made| (made, false)));
    }
    let most = limits::BULK_RUNNING_MAX;
    let under_way = sql.one(include_str!("sql/bulk_acts_under_way.sql"), &[most.into()])?;
    if under_way.map_or(Ok(0), |row| row.int("acts"))? >= most {
        let why = format!("{most} bulk acts are under way; wait until one has ended, or stop one");
        return Ok(Err(Refusal::Conflict(why)));
    }
    let now = sql.now();
    let act = BulkAct {
        act_id: new.act_id.clone(),
        verb: new.verb,
        filter: filter_of(new, now),
        actor: actor.0.clone(),
        expected: new.expected,
        state: BulkState::Running,
        done: 0,
        refused: 0,
        done_walk: 0,
        walk: filter_of(new, now).beginning(),
        created_at: now,
        updated_at: now,
        ended_at: None,
        trouble: None,
    };
    let walk = text_of(&act.walk);
    let cells: [Cell<'_>; 11] = [
        act.act_id.as_str().into(),
        act.verb.as_str().into(),
        act.filter.status.as_str().into(),
        act.filter.stream.as_ref().map(StreamName::as_str).into(),
        act.filter.code.as_deref().into(),
        act.filter.before.into(),
        (&act.actor).into(),
        number(act.expected.0),
        act.expected.1.as_str().into(),
        (&walk).into(),
        now.into(),
    ];
    if sql.touched(include_str!("sql/bulk_act_insert.sql"), &cells)? == 0 {
        // Another process has made it in this moment.
        return match by_id(sql, &new.act_id)? {
            Some(made) => Ok(same(made, actor, new).map(|made| (made, false))),
            None => Ok(Err(Refusal::Taken)),
        };
    }
    journal::note(sql, &act.actor, Act::BulkStarted, act.act_id.as_str(), &act.told())?;
    sql.wakes(Stage::Bulk);
    Ok(Ok((act, true)))
}

/// The bound of an act: an instant up to now, with what came in this very millisecond.
pub fn at_the_latest(before: Timestamp, now: Timestamp) -> Timestamp {
    before.min(now.after(Duration::from_millis(1)))
}

fn filter_of(new: &NewBulk, now: Timestamp) -> BulkFilter {
    BulkFilter {
        status: new.status,
        stream: new.stream.clone(),
        code: new.code.clone(),
        before: new.before.map_or(now, |before| at_the_latest(before, now)),
    }
}

/// The act that was made under this id, where it is the one that is asked for.
fn same(made: BulkAct, actor: &Actor, new: &NewBulk) -> Result<BulkAct, Refusal> {
    let before = new.before.map_or(made.filter.before, |before| at_the_latest(before, made.created_at));
    let asked = BulkFilter { before, ..filter_of(new, made.created_at) };
    match made.verb == new.verb && made.actor == actor.0 && made.filter == asked {
        true => Ok(made),
        false => Err(Refusal::Taken),
    }
}

/// Stops one. What was done stays done; one that has ended stays as it ended.
pub fn stop(sql: &mut dyn Sql, actor: &Actor, id: &RecordId) -> Answer<BulkAct> {
    let found = sql.one(include_str!("sql/bulk_act_lock.sql"), &[id.as_str().into()])?;
    let Some(mut act) = found.as_ref().map(bulk_act).transpose()? else { return Ok(Err(Refusal::Unknown)) };
    if act.state == BulkState::Running {
        ended(sql, &mut act, BulkState::Stopped)?;
        journal::note(sql, &actor.0, Act::BulkStopped, id.as_str(), &act.came_to())?;
    }
    Ok(Ok(act))
}

/// Which act a step took: known also where the step failed, and nothing of it is left.
#[derive(Clone, Debug, Default)]
pub struct ActInHand(Arc<Mutex<Option<RecordId>>>);

/// Takes the next step of the act that has waited longest; `None`: there is none, or others have it in hand. An act whose step
/// failed goes behind the others: it may fail every time, and they are not to wait for it.
pub async fn next_step(store: &dyn Store) -> StoreResult<Option<BulkStep>> {
    let taken = ActInHand::default();
    let step = store.bulk_step(taken.clone()).await;
    let failed = lock(&taken.0).take();
    if let (Err(error), Some(id)) = (&step, failed) {
        let trouble: String = error.to_string().chars().take(TROUBLE_CHARS_MAX).collect();
        let (work, _) = answering(move |sql| {
            let cells = [id.as_str().into(), sql.now().into(), (&trouble).into()];
            sql.touched(include_str!("sql/bulk_act_set_back.sql"), &cells)
        });
        if let Err(error) = store.transact(work).await {
            debug!(%error, "a bulk act whose step failed was not put behind the others");
        }
    }
    step
}

/// Forgets up to so many acts that ended longer ago than this.
pub async fn forget(store: &dyn Store, age: Duration, limit: usize) -> StoreResult<Pass> {
    let (work, answer) = answering(move |sql| {
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let cells = [sql.now().before(age).into(), most.into()];
        let moved = sql.touched(include_str!("sql/bulk_acts_forget.sql"), &cells)?;
        Ok(Pass { moved, full: moved == limit })
    });
    store.transact(work).await?;
    answer.take()
}

/// One step in a transaction of the store.
pub(crate) fn step(sql: &mut dyn Sql, taken: &ActInHand) -> StoreResult<Option<BulkStep>> {
    let Some(row) = sql.one(include_str!("sql/bulk_act_take.sql"), &[])? else { return Ok(None) };
    *lock(&taken.0) = Some(row.word("act_id")?);
    let mut act = bulk_act(&row)?;
    let looked_at = sql.walk(&act.filter, &act.walk, limits::BULK_LOOKED_AT)?;
    let mut through = looked_at.len() < limits::BULK_LOOKED_AT;
    let (mut meant, mut here) = (Vec::new(), None);
    for job in looked_at {
        if meant.len() == limits::BULK_BATCH {
            through = false;
            break;
        }
        if act.filter.means(&job.stream, job.at, job.code.as_deref()) {
            meant.push(job.job_id);
        }
        here = Some(job.here);
    }
    // Of two with one unique key the smaller id goes, whichever the walk came by first.
    meant.sort_unstable();
    let acted = match meant.is_empty() {
        true => BulkActed::default(),
        false => sql.act_on(act.verb, &act.filter, &meant)?,
    };
    act.done += acted.done;
    act.done_walk += acted.done;
    act.refused += acted.refused;
    let next = match through {
        false => here,
        true => act.walk.next().or_else(|| {
            // Jobs that went on while it walked may stand where it had been.
            let again = act.walk.is_walked_again() && act.done_walk > 0;
            act.done_walk = 0;
            again.then(|| act.filter.beginning())
        }),
    };
    match next {
        Some(walk) => {
            act.walk = walk;
            update(sql, &mut act)?;
        }
        None => {
            ended(sql, &mut act, BulkState::Done)?;
            let mut told = act.came_to();
            told["asked_by"] = json!(act.actor);
            journal::note(sql, BULK, Act::BulkEnded, act.act_id.as_str(), &told)?;
        }
    }
    door::failpoint("bulk-stepped");
    Ok(Some(BulkStep { act, acted }))
}

fn ended(sql: &mut dyn Sql, act: &mut BulkAct, state: BulkState) -> StoreResult<()> {
    act.state = state;
    act.ended_at = Some(sql.now());
    update(sql, act)
}

fn update(sql: &mut dyn Sql, act: &mut BulkAct) -> StoreResult<()> {
    act.updated_at = sql.now();
    act.trouble = None;
    let walk = text_of(&act.walk);
    let cells: [Cell<'_>; 8] = [
        act.act_id.as_str().into(),
        act.state.as_str().into(),
        number(act.done),
        number(act.refused),
        number(act.done_walk),
        (&walk).into(),
        act.updated_at.into(),
        act.ended_at.into(),
    ];
    sql.write("the bulk act", include_str!("sql/bulk_act_update.sql"), &cells)
}

fn text_of(walk: &Walk) -> String {
    serde_json::to_string(walk).unwrap_or_default()
}

fn number(count: u64) -> Cell<'static> {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}

/// How many jobs are meant. Looks at a bounded number of ended ones, and takes the rest from the counts of streams, which are
/// kept; they know no instant, so that a time that has passed (`now`: none was given) makes them a bound.
pub async fn matching(
    substrate: &super::Substrate,
    filter: &BulkFilter,
    now: bool,
) -> StoreResult<(u64, Counted)> {
    let kept = match filter.status {
        JobStatus::Dead | JobStatus::Cancelled => {
            let asked = filter.clone();
            let counted = substrate.read(move |sql| ended_matching(sql, &asked)).await?;
            // Cancelled jobs are counted for ever, also those that retention has dropped.
            if counted.1 == Counted::Exact || filter.status == JobStatus::Cancelled || filter.code.is_some() {
                return Ok(counted);
            }
            kept_count(&*substrate.store, filter).await?
        }
        _ => kept_count(&*substrate.store, filter).await?,
    };
    // Those that were asked to end already are counted too.
    let whole = now && filter.status != JobStatus::Running;
    Ok((kept, if whole { Counted::Exact } else { Counted::AtMost }))
}

fn ended_matching(sql: &mut dyn Sql, filter: &BulkFilter) -> StoreResult<(u64, Counted)> {
    let looked_at = sql.walk(filter, &filter.beginning(), limits::BULK_COUNTED_MAX)?;
    let counted = if looked_at.len() == limits::BULK_COUNTED_MAX { Counted::AtLeast } else { Counted::Exact };
    let meant = looked_at.iter().filter(|job| filter.means(&job.stream, job.at, job.code.as_deref()));
    Ok((meant.count() as u64, counted))
}

async fn kept_count(store: &dyn Store, filter: &BulkFilter) -> StoreResult<u64> {
    let of = |counts: &crate::store::StreamCounts| match filter.status {
        JobStatus::Queued => counts.ready + counts.scheduled,
        JobStatus::Dead => counts.dead,
        _ => counts.running,
    };
    let count = match &filter.stream {
        Some(stream) => store.stream(stream.clone()).await?.map_or(0, |found| of(&found.counts)),
        None => {
            let (_, all) = store.streams_beyond(None).await?;
            let prefix = StreamName::stored(fernery_core::names::RESERVED_STREAM_PREFIX);
            let after = store.streams(Some(prefix), limits::STREAMS_MAX).await?;
            let of_tickets = after.iter().take_while(|stream| stream.name.is_workorders());
            of(&all) - of_tickets.map(|stream| of(&stream.counts)).sum::<i64>()
        }
    };
    Ok(u64::try_from(count).unwrap_or(0))
}
