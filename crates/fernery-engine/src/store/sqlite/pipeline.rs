//! The pipeline's statements on the writer's transaction, or on a reader's snapshot.

use super::SqliteStore;
use super::bulk;
use super::rows;
use super::tx::Tx;
use crate::error::{StoreError, StoreResult};
use crate::pipeline::bulk::{BulkActed, Walked};
use crate::pipeline::execution::{self, Ending};
use crate::pipeline::{Cell, Names, Row, Sql, Stage, Value, Work};
use crate::store::{NewJob, Transactions};
use async_trait::async_trait;
use fernery_core::job::AttemptOutcome;
use fernery_core::job::bulk::{BulkFilter, BulkVerb, Walk};
use fernery_core::job::stats::Happening;
use fernery_core::pipeline::membrane::Parts;
use fernery_core::{JobId, JobStatus, StreamName, Timestamp};
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            Self::Null => ValueRef::Null,
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Int(number) => ValueRef::Integer(*number),
            Self::At(at) => ValueRef::Integer(at.as_millis()),
            Self::Flag(flag) => ValueRef::Integer((*flag).into()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Texts(texts) => return Ok(serde_json::json!(texts).to_string().into()),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

/// A statement as SQLite takes it, and the names of its columns.
#[derive(Clone)]
struct Translated {
    text: Arc<str>,
    names: Names,
}

thread_local! {
    /// By where the statement is in the program: making them anew for every call allocates more than a small query does.
    static TRANSLATED: RefCell<HashMap<(usize, usize), Translated>> = RefCell::default();
}

fn translated(db: &Connection, statement: &'static str) -> StoreResult<Translated> {
    let key = (statement.as_ptr().addr(), statement.len());
    if let Some(known) = TRANSLATED.with_borrow(|all| all.get(&key).cloned()) {
        return Ok(known);
    }
    let text: Arc<str> =
        statement.replace('$', "?").replace(" FOR UPDATE", "").replace(" SKIP LOCKED", "").into();
    let names = db.prepare_cached(&text)?.column_names().map(Box::from).collect();
    let translated = Translated { text, names };
    TRANSLATED.with_borrow_mut(|all| all.insert(key, translated.clone()));
    Ok(translated)
}

fn query(db: &Connection, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<Vec<Row>> {
    let Translated { text, names } = translated(db, statement)?;
    let mut statement = db.prepare_cached(&text)?;
    let width = names.len();
    let mut found = statement.query(params_from_iter(cells))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let mut values = Vec::with_capacity(width);
        for column in 0..width {
            values.push(match row.get_ref(column)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => Value::Int(number),
                ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
                ValueRef::Real(_) => {
                    return Err(StoreError::Corrupt(format!("column {column} is a fraction")));
                }
            });
        }
        rows.push(Row::new(&names, values));
    }
    Ok(rows)
}

impl Sql for Tx<'_> {
    fn query(&mut self, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<Vec<Row>> {
        query(self.db, statement, cells)
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn calendar(&self) -> Timestamp {
        self.clock.calendar()
    }

    fn enqueue(&mut self, job: NewJob) -> StoreResult<()> {
        Tx::enqueue(self, std::slice::from_ref(&job)).map(drop)
    }

    fn hand_in(&mut self, job_id: JobId, by: &str, output: &Parts) -> StoreResult<bool> {
        let id = job_id.uuid();
        let taken: Option<(StreamName, i64, u32)> = self
            .db
            .prepare_cached(include_str!("sql/waiting_take.sql"))?
            .query_row([id.as_bytes()], |row| Ok((rows::stream(row, 0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((stream, waited, attempt_no)) = taken else { return Ok(false) };
        let chance = self.settings.chance;
        let (attempt, token) = (chance.attempt_id().uuid(), chance.lease_token().hash());
        let (now, succeeded) = (self.now.as_millis(), AttemptOutcome::Succeeded.as_str());
        // As after a claim and a report.
        let claim_version = waited + 2;
        self.hot.attempt_insert.execute(params![
            id.as_bytes(),
            attempt_no + 1,
            attempt.as_bytes(),
            token.0,
            by,
            now,
            now,
            succeeded,
            JobStatus::Succeeded.as_str(),
            claim_version,
            output.result(),
            None::<&str>
        ])?;
        self.count(&stream).ready -= 1;
        self.after.happened.push((stream.clone(), Happening::HANDED_IN));
        self.end_workorder(&Ending::handed_in(job_id, claim_version, self.now, output))?;
        self.finish(job_id, &stream, JobStatus::Succeeded, claim_version, None)?;
        Ok(true)
    }

    fn walk(&mut self, filter: &BulkFilter, from: &Walk, limit: usize) -> StoreResult<Vec<Walked>> {
        bulk::walk(self.db, filter, from, limit)
    }

    fn act_on(&mut self, verb: BulkVerb, _: &BulkFilter, jobs: &[JobId]) -> StoreResult<BulkActed> {
        self.bulk(verb, jobs)
    }

    fn wakes(&mut self, stage: Stage) {
        self.after.stages.insert(stage);
    }
}

impl Tx<'_> {
    /// What the end of an attempt, or of a job that waited, means for its workorder.
    pub(super) fn end_workorder(&mut self, ending: &Ending) -> StoreResult<()> {
        let id = ending.work_order_id.as_str();
        // Without a workorder there is nothing to end: the job was not the scheduler's.
        let Some(row) = self.one(execution::FIND, &[id.into()])? else { return Ok(()) };
        let snapshot = match ending.needs_snapshot(row.text(2)?) {
            true => self.one(execution::SNAPSHOT, &[row.text(3)?.into()])?,
            false => None,
        };
        let snapshot = snapshot.as_ref().map(|row| row.text(0)).transpose()?;
        let Some(bundle) = ending.bundle(row.word(1)?, snapshot) else {
            let cells = [id.into(), ending.spent_ms.into(), ending.claim_version.into()];
            if let Some(left) = self.one(execution::REQUEUED, &cells)? {
                let job_id = ending.work_order_id.job_id().map(|id| id.uuid().into_bytes());
                let mut statement = self.db.prepare_cached(include_str!("sql/job_budget.sql"))?;
                statement.execute(rusqlite::params![job_id, left.int(0)?.max(1)])?;
            }
            return Ok(());
        };
        let document = execution::document(&bundle);
        self.touched(execution::BUNDLE, &execution::bundle_cells(ending, &bundle, &document))?;
        self.touched(execution::EXECUTED, &execution::executed_cells(ending, &bundle))?;
        crate::door::failpoint("bundle-written");
        self.wakes(Stage::Gate);
        Ok(())
    }
}

#[async_trait]
impl Transactions for SqliteStore {
    async fn transact(&self, mut work: Work) -> StoreResult<()> {
        self.write(move |tx| work(tx)).await
    }

    async fn read(&self, mut work: Work) -> StoreResult<()> {
        let now = self.clock.now();
        self.read(move |db| work(&mut Snapshot { db, now })).await
    }

    async fn select(&self, statement: &'static str) -> StoreResult<Vec<Row>> {
        self.read(move |db| query(db, statement, &[])).await
    }
}

/// A reader's snapshot: what writes is refused by SQLite itself.
pub(super) struct Snapshot<'c> {
    pub(super) db: &'c Connection,
    pub(super) now: Timestamp,
}

impl Sql for Snapshot<'_> {
    fn query(&mut self, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<Vec<Row>> {
        query(self.db, statement, cells)
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn enqueue(&mut self, _: NewJob) -> StoreResult<()> {
        Err(StoreError::Refused("a reader does not write".into()))
    }

    fn hand_in(&mut self, _: JobId, _: &str, _: &Parts) -> StoreResult<bool> {
        Err(StoreError::Refused("a reader does not write".into()))
    }

    fn walk(&mut self, filter: &BulkFilter, from: &Walk, limit: usize) -> StoreResult<Vec<Walked>> {
        bulk::walk(self.db, filter, from, limit)
    }

    fn wakes(&mut self, _: Stage) {}
}
