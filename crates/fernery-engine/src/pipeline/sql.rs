//! One set of statements for both databases.
//!
//! The pipeline writes a few rows a second where the job engine writes thousands, so here one text serves both: parameters
//! are `$1`, `$2`, …; flags are booleans; `FOR UPDATE` is at the end of a line, perhaps with `SKIP LOCKED`, and is left out where there is one writer. Both
//! databases then mean the same by a statement, because it is the same statement (invariant 18).

use super::bulk::{BulkActed, Walked};
use crate::error::{StoreError, StoreResult};
use crate::store::NewJob;
use fernery_core::job::bulk::{BulkFilter, BulkVerb, Walk};
use fernery_core::pipeline::membrane::Parts;
use fernery_core::{JobId, Timestamp};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Null,
    /// A word, a text, or a JSON document.
    Text(&'a str),
    Int(i64),
    At(Timestamp),
    Flag(bool),
    Bytes(&'a [u8]),
    /// A list of texts: an array on PostgreSQL, a JSON document on SQLite. It is read as a JSON document.
    Texts(&'a [String]),
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<Timestamp> for Cell<'_> {
    fn from(at: Timestamp) -> Self {
        Self::At(at)
    }
}

impl From<Option<Timestamp>> for Cell<'_> {
    fn from(at: Option<Timestamp>) -> Self {
        at.map_or(Self::Null, Self::At)
    }
}

impl From<bool> for Cell<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

/// A value that a statement answered with: instants in milliseconds, flags as 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row that a statement answered with.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    names: Names,
    values: Vec<Value>,
}

/// The names of a statement's columns, one list for all of its rows.
pub(crate) type Names = Arc<[Box<str>]>;

/// A column of a row: by its name, or by its place in statements that are short or run often.
pub trait Column: Copy + fmt::Display {
    /// Its place in the row; `None`: the statement does not read it.
    fn place(self, row: &Row) -> Option<usize>;
}

impl Column for usize {
    fn place(self, row: &Row) -> Option<usize> {
        (self < row.values.len()).then_some(self)
    }
}

impl Column for &str {
    fn place(self, row: &Row) -> Option<usize> {
        row.names.iter().position(|name| **name == *self)
    }
}

fn damaged(column: impl Column, expected: impl fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("column {column} of a row: {expected}"))
}

impl Row {
    pub(crate) fn new(names: &Names, values: Vec<Value>) -> Self {
        Self { names: names.clone(), values }
    }

    fn value(&self, column: impl Column) -> StoreResult<&Value> {
        let place = column.place(self);
        place
            .and_then(|place| self.values.get(place))
            .ok_or_else(|| damaged(column, "the statement does not read it"))
    }

    pub fn text(&self, column: impl Column) -> StoreResult<&str> {
        self.maybe_text(column)?.ok_or_else(|| damaged(column, "no text"))
    }

    /// A text, or nothing.
    pub fn maybe_text(&self, column: impl Column) -> StoreResult<Option<&str>> {
        match self.value(column)? {
            Value::Text(text) => Ok(Some(text)),
            Value::Null => Ok(None),
            Value::Int(_) | Value::Bytes(_) => Err(damaged(column, "must be a text")),
        }
    }

    pub fn int(&self, column: impl Column) -> StoreResult<i64> {
        match self.value(column)? {
            Value::Int(number) => Ok(*number),
            _ => Err(damaged(column, "no number")),
        }
    }

    /// A number that is not below zero.
    pub fn count<T: TryFrom<i64>>(&self, column: impl Column) -> StoreResult<T> {
        T::try_from(self.int(column)?).map_err(|_| damaged(column, "a number out of range"))
    }

    /// A number that is not below zero, or nothing.
    pub fn maybe_count<T: TryFrom<i64>>(&self, column: impl Column) -> StoreResult<Option<T>> {
        if *self.value(column)? == Value::Null { Ok(None) } else { self.count(column).map(Some) }
    }

    pub fn flag(&self, column: impl Column) -> StoreResult<bool> {
        Ok(self.int(column)? != 0)
    }

    pub fn at(&self, column: impl Column) -> StoreResult<Timestamp> {
        self.int(column).map(Timestamp::from_millis)
    }

    /// An instant, or nothing.
    pub fn maybe_at(&self, column: impl Column) -> StoreResult<Option<Timestamp>> {
        match self.value(column)? {
            Value::Null => Ok(None),
            _ => self.at(column).map(Some),
        }
    }

    /// A word of a closed set, or an id.
    pub fn word<T: FromStr<Err: fmt::Display>>(&self, column: impl Column) -> StoreResult<T> {
        self.text(column)?.parse().map_err(|e| damaged(column, e))
    }

    /// A word, or nothing.
    pub fn maybe_word<T: FromStr<Err: fmt::Display>>(&self, column: impl Column) -> StoreResult<Option<T>> {
        self.maybe_text(column)?.map(|text| text.parse().map_err(|e| damaged(column, e))).transpose()
    }

    pub fn bytes<const N: usize>(&self, column: impl Column) -> StoreResult<[u8; N]> {
        match self.value(column)? {
            Value::Bytes(bytes) => bytes.as_slice().try_into().map_err(|e| damaged(column, e)),
            _ => Err(damaged(column, "no bytes")),
        }
    }

    pub fn json<T: serde::de::DeserializeOwned>(&self, column: impl Column) -> StoreResult<T> {
        serde_json::from_str(self.text(column)?).map_err(|e| damaged(column, e))
    }
}

/// A statement with its parameters.
pub type Statement<'a> = (&'static str, Vec<Cell<'a>>);

/// A transaction in which statements run. What is written is durable once the work returns and the commit succeeds.
pub trait Sql {
    /// Runs one statement; a write answers with its RETURNING rows.
    fn query(&mut self, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<Vec<Row>>;
    /// The instant of the transaction by the clock that decides expiry.
    fn now(&self) -> Timestamp;
    /// The instant by the calendar: people's times (`due_at`, schedules, "tomorrow") go by it.
    fn calendar(&self) -> Timestamp {
        self.now()
    }
    /// Enqueues the job of a workorder.
    fn enqueue(&mut self, job: NewJob) -> StoreResult<()>;
    /// Hands in the output of a workorder whose job waits: claim and completion in one, with bundle and EXECUTED. `false`: its
    /// job does not wait.
    fn hand_in(&mut self, job_id: JobId, by: &str, output: &Parts) -> StoreResult<bool>;
    /// The next jobs that the walk of a bulk act comes by, at most so many; fewer: it has come to its end. They need not be meant.
    fn walk(&mut self, _: &BulkFilter, _: &Walk, _: usize) -> StoreResult<Vec<Walked>> {
        Err(StoreError::Refused("there are no jobs to walk over here".into()))
    }
    /// Does to these jobs what an operator asked for, as far as they still stand as it was meant.
    fn act_on(&mut self, _: BulkVerb, _: &BulkFilter, _: &[JobId]) -> StoreResult<BulkActed> {
        Err(StoreError::Refused("a reader does not write".into()))
    }
    /// Wakes these workers after the commit.
    fn wakes(&mut self, stage: super::Stage);

    /// Runs statements that do not need each other's answers, in order, and answers for each. A statement sees the rows that an
    /// earlier one has locked as they are now.
    fn query_all(&mut self, asked: &[Statement<'_>]) -> StoreResult<Vec<Vec<Row>>> {
        asked.iter().map(|(statement, cells)| self.query(statement, cells)).collect()
    }

    /// Runs a write that must touch exactly one row of `what`; otherwise the transaction fails. The write may be sent later:
    /// with the next query, but before it, or at the end. The statement ends in RETURNING.
    fn write(&mut self, what: &str, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<()> {
        check_written(what, self.touched(statement, cells)?, 1)
    }

    /// As [`Sql::write`], for a row that may be there already and is then left unchanged.
    fn write_new(&mut self, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<()> {
        self.query(statement, cells).map(drop)
    }

    /// Runs a write and answers how many rows it touched. The statement ends in RETURNING.
    fn touched(&mut self, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<usize> {
        Ok(self.query(statement, cells)?.len())
    }

    /// Runs a statement that answers with one row or none.
    fn one(&mut self, statement: &'static str, cells: &[Cell<'_>]) -> StoreResult<Option<Row>> {
        Ok(self.query(statement, cells)?.into_iter().next())
    }
}

/// Whether a write touched as many rows as it must.
pub(crate) fn check_written(what: &str, rows: usize, expected: usize) -> StoreResult<()> {
    if rows == expected {
        return Ok(());
    }
    Err(StoreError::Corrupt(format!(
        "{what} changed while it was locked: {rows} rows were written, expected {expected}"
    )))
}

/// Work to be done in one transaction. It may run more than once (after a conflict, or after a commit whose answer was lost).
/// So generated ids come from outside, and a second run finds what the first one wrote.
pub type Work = Box<dyn FnMut(&mut dyn Sql) -> StoreResult<()> + Send>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_found_by_name_and_one_that_is_not_read_is_damage_and_not_null() {
        let names: Names = ["status", "entry"].map(Box::from).into();
        let row = Row::new(&names, vec![Value::Null, Value::Int(7)]);
        assert_eq!((row.int("entry").unwrap(), row.int(1).unwrap()), (7, 7));
        assert_eq!(row.maybe_text("status").unwrap(), None);
        for missing in [row.maybe_text("title"), row.maybe_text(2)] {
            assert!(matches!(missing, Err(StoreError::Corrupt(_))), "{missing:?}");
        }
    }
}
