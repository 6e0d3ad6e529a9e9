//! The pipeline's statements in a transaction of PostgreSQL.
//!
//! Its rules are plain functions that ask and write as they go, so they run on a thread of their own, which waits for each
//! answer; there are as many at once as connections.

use super::after_commit::AfterCommit;
use super::bulk;
use super::connection::pool::Session;
use super::connection::retry::{Tries, Trouble};
use super::grouper::Verb;
use super::rows::{At, Param, cell};
use super::{PostgresStore, Shared};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::bulk::{BulkActed, Walked};
use crate::pipeline::execution::{self, Ending};
use crate::pipeline::{Cell, Names, Row, Sql, Stage, Statement, Value, Work, check_written};
use crate::store::{NewJob, Transactions};
use crate::supervise::lock;
use async_trait::async_trait;
use bytes::{BufMut, BytesMut};
use fernery_core::artifact::ObjectiveId;
use fernery_core::job::bulk::{BulkFilter, BulkVerb, Walk};
use fernery_core::job::stats::Happening;
use fernery_core::pipeline::membrane::Parts;
use fernery_core::{JobId, Timestamp};
use std::collections::HashSet;
use std::error::Error;
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

impl ToSql for Cell<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => return Ok(IsNull::Yes),
            Self::Text(text) => out.put_slice(text.as_bytes()),
            Self::At(at) => return At(*at).to_sql(ty, out),
            Self::Flag(flag) => return flag.to_sql(ty, out),
            Self::Bytes(bytes) => out.put_slice(bytes),
            Self::Texts(texts) => return texts.to_sql(ty, out),
            Self::Int(number) => match *ty {
                Type::INT4 => return i32::try_from(*number)?.to_sql(ty, out),
                _ => out.put_i64(*number),
            },
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn as_params<'a>(cells: &'a [Cell<'a>]) -> Vec<Param<'a>> {
    cells.iter().map(|cell| cell as Param<'_>).collect()
}

/// The rows that one statement answered with.
fn rows(rows: &[tokio_postgres::Row]) -> StoreResult<Vec<Row>> {
    let Some(first) = rows.first() else { return Ok(Vec::new()) };
    let names: Names = first.columns().iter().map(|column| Box::from(column.name())).collect();
    let row = |row: &tokio_postgres::Row| {
        let values = (0..row.len()).map(|column| value(row, column)).collect::<StoreResult<_>>()?;
        Ok(Row::new(&names, values))
    };
    rows.iter().map(row).collect()
}

fn value(row: &tokio_postgres::Row, column: usize) -> StoreResult<Value> {
    let int = |number: Option<i64>| number.map_or(Value::Null, Value::Int);
    Ok(match *row.columns()[column].type_() {
        Type::INT8 => int(cell(row, column)?),
        Type::INT4 => int(cell::<Option<i32>>(row, column)?.map(i64::from)),
        Type::BOOL => int(cell::<Option<bool>>(row, column)?.map(i64::from)),
        Type::TIMESTAMPTZ => int(cell::<Option<At>>(row, column)?.map(|at| at.0.as_millis())),
        Type::JSON => super::rows::maybe_json(row, column)?
            .map_or(Value::Null, |raw| Value::Text(raw.get().to_string())),
        Type::BYTEA => cell::<Option<Vec<u8>>>(row, column)?.map_or(Value::Null, Value::Bytes),
        Type::TEXT_ARRAY => cell::<Option<Vec<String>>>(row, column)?
            .map_or(Value::Null, |texts| Value::Text(serde_json::json!(texts).to_string())),
        _ => cell::<Option<String>>(row, column)?.map_or(Value::Null, Value::Text),
    })
}

/// Writes that wait to be sent together; they must be answered within the time of one.
const UNSENT_MAX: usize = 256;

/// A write that is sent with whatever comes next.
struct Unsent {
    statement: &'static str,
    cells: Vec<OwnedCell>,
    /// What must be written; `None`: it may be there already.
    what: Option<String>,
}

/// A parameter that outlives its call.
enum OwnedCell {
    Text(String),
    Bytes(Vec<u8>),
    Texts(Vec<String>),
    Other(Cell<'static>),
}

impl OwnedCell {
    fn new(cell: &Cell<'_>) -> Self {
        match *cell {
            Cell::Text(text) => Self::Text(text.to_string()),
            Cell::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Cell::Texts(texts) => Self::Texts(texts.to_vec()),
            Cell::Null => Self::Other(Cell::Null),
            Cell::Int(number) => Self::Other(Cell::Int(number)),
            Cell::At(at) => Self::Other(Cell::At(at)),
            Cell::Flag(flag) => Self::Other(Cell::Flag(flag)),
        }
    }

    fn cell(&self) -> Cell<'_> {
        match self {
            Self::Text(text) => Cell::Text(text),
            Self::Bytes(bytes) => Cell::Bytes(bytes),
            Self::Texts(texts) => Cell::Texts(texts),
            Self::Other(cell) => *cell,
        }
    }
}

struct Transaction<'a> {
    runtime: &'a Handle,
    session: &'a Session<'a>,
    shared: &'a Shared,
    now: Timestamp,
    after: AfterCommit,
    unsent: Vec<Unsent>,
    /// Jobs that are stored at the end, in one statement.
    jobs: Vec<NewJob>,
    /// What a statement ran into; the work itself only sees that it failed.
    trouble: Option<Trouble>,
}

impl Transaction<'_> {
    /// Sends what is unsent and what is asked, in one go, and answers for the latter.
    fn send(&mut self, asked: &[(&'static str, &[Cell<'_>])]) -> StoreResult<Vec<Vec<Row>>> {
        let unsent = std::mem::take(&mut self.unsent);
        let cells: Vec<Vec<Cell<'_>>> =
            unsent.iter().map(|write| write.cells.iter().map(OwnedCell::cell).collect()).collect();
        let params = |cells| -> Vec<Param<'_>> { as_params(cells) };
        let writes = unsent.iter().zip(&cells).map(|(write, cells)| (write.statement, params(cells)));
        let asked = asked.iter().map(|(statement, cells)| (*statement, params(cells)));
        let statements: Vec<_> = writes.chain(asked).collect();
        if statements.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.runtime.block_on(self.session.query_all(&statements));
        let mut answers = self.noted(answer)?.into_iter();
        for write in &unsent {
            let written = answers.next().map_or(0, |rows| rows.len());
            if let Some(what) = &write.what {
                let checked = check_written(what, written, 1).map_err(Trouble::Final);
                self.noted(checked)?;
            }
        }
        answers.map(|answer| rows(&answer)).collect()
    }

    fn defer(
        &mut self,
        statement: &'static str,
        cells: &[Cell<'_>],
        what: Option<String>,
    ) -> StoreResult<()> {
        self.unsent.push(Unsent { statement, cells: cells.iter().map(OwnedCell::new).collect(), what });
        if self.unsent.len() < UNSENT_MAX { Ok(()) } else { self.send(&[]).map(drop) }
    }

    /// Sends whatever is left.
    fn finish(&mut self) -> StoreResult<()> {
        self.send(&[])?;
        let jobs = std::mem::take(&mut self.jobs);
        if jobs.is_empty() {
            return Ok(());
        }
        let answer = self.runtime.block_on(super::enqueue::store_within(self.session, self.shared, jobs));
        for stream in self.noted(answer)? {
            self.after.came(&stream, self.now, None);
        }
        Ok(())
    }

    fn noted<T>(&mut self, answer: Result<T, Trouble>) -> StoreResult<T> {
        answer.map_err(|trouble| {
            let error = match &trouble {
                Trouble::Final(error) => error.clone(),
                other => StoreError::Unavailable(format!("{other:?}")),
            };
            self.trouble = Some(trouble);
            error
        })
    }
}

impl Sql for Transaction<'_> {
    fn query(&mut self, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<Vec<Row>> {
        Ok(self.send(&[(statement, cells)])?.pop().unwrap_or_default())
    }

    fn query_all(&mut self, asked: &[Statement<'_>]) -> StoreResult<Vec<Vec<Row>>> {
        let asked: Vec<_> = asked.iter().map(|(statement, cells)| (*statement, cells.as_slice())).collect();
        self.send(&asked)
    }

    fn write(&mut self, what: &str, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<()> {
        self.defer(statement, cells, Some(what.to_string()))
    }

    fn write_new(&mut self, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<()> {
        self.defer(statement, cells, None)
    }

    fn now(&self) -> Timestamp {
        self.now
    }

    fn enqueue(&mut self, job: NewJob) -> StoreResult<()> {
        self.jobs.push(job);
        Ok(())
    }

    fn hand_in(&mut self, job_id: JobId, by: &str, output: &Parts) -> StoreResult<bool> {
        // The job may be one that this transaction made.
        self.finish()?;
        let chance = self.shared.settings.chance;
        let (attempt, token) = (chance.attempt_id().uuid(), chance.lease_token().hash());
        let result = output.result();
        let (by, result): (Cell<'_>, Cell<'_>) = (by.into(), (&result).into());
        let (uuid, token): (_, Cell<'_>) = (job_id.uuid(), Cell::Bytes(&token.0));
        let session = self.session;
        let answer = self.runtime.block_on(async {
            let params: [Param<'_>; 5] = [&uuid, &attempt, &token, &by, &result];
            let rows = session.query(include_str!("sql/hand_in.sql"), &params).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let (now, stream) = (cell::<At>(row, 1)?.0, super::rows::stream(row, 2)?);
            let ending = Ending::handed_in(job_id, cell(row, 0)?, now, output);
            Ok(Some((end_workorders(session, &[ending]).await?, stream, now)))
        });
        let Some((stages, stream, now)) = self.noted(answer)? else { return Ok(false) };
        self.after.happened.push((stream, now, Happening::HANDED_IN));
        self.after.stages.extend(stages);
        self.after.ended.push(job_id);
        Ok(true)
    }

    fn walk(&mut self, filter: &BulkFilter, from: &Walk, limit: usize) -> StoreResult<Vec<Walked>> {
        self.finish()?;
        let answer = self.runtime.block_on(bulk::walk(self.session, filter, from, limit));
        self.noted(answer)
    }

    fn act_on(&mut self, verb: BulkVerb, filter: &BulkFilter, jobs: &[JobId]) -> StoreResult<BulkActed> {
        self.finish()?;
        let session = self.session;
        let acting = bulk::act_on(session, (verb, filter), jobs, &mut self.after);
        let answer = self.runtime.block_on(acting);
        self.noted(answer)
    }

    fn wakes(&mut self, stage: Stage) {
        self.after.stages.insert(stage);
    }
}

/// What the ends of attempts, or of jobs that waited, mean for their workorders; in the transaction that ends them.
pub(super) async fn end_workorders(
    session: &Session<'_>,
    endings: &[Ending],
) -> Result<HashSet<Stage>, Trouble> {
    // Batches lock in the order of ids.
    let mut endings: Vec<&Ending> = endings.iter().collect();
    endings.sort_by_key(|ending| &ending.work_order_id);
    let ids: Vec<Cell<'_>> = endings.iter().map(|ending| ending.work_order_id.as_str().into()).collect();
    let asked: Vec<_> = ids.iter().map(|id| (execution::FIND, vec![id as Param<'_>])).collect();
    let found = session.query_all(&asked).await?;
    let mut bundles = Vec::with_capacity(endings.len());
    for (ending, rows) in endings.iter().zip(&found) {
        // Without a workorder there is nothing to end: the job was not the scheduler's.
        let Some(row) = rows.first() else { continue };
        let (objective_id, of): (String, String) = (cell(row, 1)?, cell(row, 2)?);
        let snapshot = match ending.needs_snapshot(&of) {
            true => snapshot_of(session, row).await?,
            false => None,
        };
        match ending.bundle(ObjectiveId::stored(&objective_id), snapshot.as_deref()) {
            Some(bundle) => bundles.push((*ending, execution::document(&bundle), bundle)),
            None => requeue_workorder(session, ending).await?,
        }
    }
    let mut writes = Vec::with_capacity(bundles.len() * 2);
    for (ending, document, bundle) in &bundles {
        writes.push((execution::BUNDLE, execution::bundle_cells(ending, bundle, document)));
        writes.push((execution::EXECUTED, execution::executed_cells(ending, bundle)));
    }
    let writes: Vec<_> = writes.iter().map(|(statement, cells)| (*statement, as_params(cells))).collect();
    session.query_all(&writes).await?;
    if bundles.is_empty() {
        return Ok(HashSet::new());
    }
    crate::door::failpoint("bundle-written");
    Ok(HashSet::from([Stage::Gate]))
}

/// The document of the snapshot that a workorder's row names.
async fn snapshot_of(session: &Session<'_>, work: &tokio_postgres::Row) -> Result<Option<String>, Trouble> {
    let id: String = cell(work, 3)?;
    let id: Cell<'_> = (&id).into();
    let found = session.query(execution::SNAPSHOT, &[&id]).await?;
    Ok(rows(&found)?.first().map(|row| row.text(0).map(str::to_string)).transpose()?)
}

async fn requeue_workorder(session: &Session<'_>, ending: &Ending) -> Result<(), Trouble> {
    let id: Cell<'_> = ending.work_order_id.as_str().into();
    let (spent, version) = (Cell::Int(ending.spent_ms), Cell::Int(ending.claim_version));
    let left = session.query(execution::REQUEUED, &[&id, &spent, &version]).await?;
    if let (Some(left), Some(job_id)) = (left.first(), ending.work_order_id.job_id()) {
        let left = cell::<i64>(left, 0)?.max(1);
        session.query(include_str!("sql/job_budget.sql"), &[&job_id.uuid(), &left]).await?;
    }
    Ok(())
}

#[async_trait]
impl Transactions for PostgresStore {
    async fn transact(&self, work: Work) -> StoreResult<()> {
        self.transact_work("BEGIN", work).await
    }

    async fn act(&self, subject: String, work: Work) -> StoreResult<()> {
        self.acts.call(Act::new(subject, work)).await
    }

    async fn read(&self, work: Work) -> StoreResult<()> {
        self.transact_work("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work).await
    }

    async fn select(&self, statement: &'static str) -> StoreResult<Vec<Row>> {
        rows(&self.read(statement, &[]).await?)
    }
}

impl PostgresStore {
    pub(super) async fn transact_work(&self, begin: &'static str, work: Work) -> StoreResult<()> {
        transact(self.shared.clone(), begin, vec![Arc::new(Mutex::new(work))]).await
    }
}

/// An act on one objective.
pub(super) struct Act {
    subject: String,
    work: Arc<Mutex<Work>>,
}

impl Act {
    pub(super) fn new(subject: String, work: Work) -> Self {
        Self { subject, work: Arc::new(Mutex::new(work)) }
    }
}

/// Acts share transactions: each is a few short statements, and alone most of its cost is BEGIN and COMMIT.
pub(super) struct ActBatch(pub(super) Arc<Shared>);

impl Verb for ActBatch {
    type Call = Act;
    type Reply = ();

    /// What a whole act counts for, in items of a plain call.
    fn items(_: &Act) -> usize {
        16
    }

    async fn run(&self, calls: &[Act]) -> StoreResult<Vec<()>> {
        // Batches lock in the order of ids; of two acts on one objective the first comes first.
        let mut sorted: Vec<&Act> = calls.iter().collect();
        sorted.sort_by_key(|act| &act.subject);
        let works = sorted.iter().map(|act| act.work.clone()).collect();
        transact(self.0.clone(), "BEGIN", works).await?;
        Ok(vec![(); calls.len()])
    }
}

/// Runs these one after the other in one transaction: all of them are durable when this answers, or none.
async fn transact(shared: Arc<Shared>, begin: &'static str, works: Vec<Arc<Mutex<Work>>>) -> StoreResult<()> {
    let runtime = Handle::current();
    let done = tokio::task::spawn_blocking(move || {
        let mut tries = Tries::new(shared.settings.chance);
        loop {
            match once(&shared, &runtime, begin, &works) {
                Ok(()) => return Ok(()),
                Err(trouble) => runtime.block_on(tries.again(trouble))?,
            }
        }
    });
    done.await.unwrap_or_else(|given_up| match given_up.is_panic() {
        true => Err(StoreError::Corrupt("the work panicked".into())),
        false => Err(StoreError::Unavailable("the work was abandoned".into())),
    })
}

fn once(
    shared: &Shared,
    runtime: &Handle,
    begin: &'static str,
    works: &[Arc<Mutex<Work>>],
) -> Result<(), Trouble> {
    let session = runtime.block_on(shared.pool.session())?;
    let rows = runtime.block_on(session.begin_with(begin, include_str!("sql/now.sql"), &[]))?;
    let row = rows.first().ok_or_else(|| StoreError::Corrupt("the database returned no time".into()))?;
    let now = cell::<At>(row, 0)?.0;
    let (after, unsent, jobs) = (AfterCommit::default(), Vec::new(), Vec::new());
    let mut within =
        Transaction { runtime, session: &session, shared, now, after, unsent, jobs, trouble: None };
    let mut works = works.iter().map(|work| lock(work));
    let worked = works.try_for_each(|mut work| work(&mut within)).and_then(|()| within.finish());
    // A statement that failed has ended the transaction, whatever the work made of it: its commit would roll back and
    // say nothing.
    let trouble = within.trouble.take().or_else(|| worked.err().map(Trouble::Final));
    if let Some(trouble) = trouble {
        // A connection that does not answer is dropped, and the server rolls back.
        let _ = runtime.block_on(session.rollback());
        return Err(trouble);
    }
    let after = std::mem::take(&mut within.after);
    runtime.block_on(session.commit())?;
    drop(session);
    let _within_runtime = runtime.enter();
    shared.announce(after);
    Ok(())
}
