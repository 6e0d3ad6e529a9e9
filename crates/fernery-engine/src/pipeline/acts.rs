//! Operators' acts and the answers to them. An act has an id that the caller chose: a repeated request gets the same answer,
//! and nothing is done twice (invariant 19).

use super::journal::{Act, Entry};
use super::objectives::Shown;
use super::ticket_state::NotNow;
use super::{Sql, journal};
use crate::error::StoreResult;
use fernery_core::artifact::{AzollaId, RecordId, RunRecord};
use fernery_core::limits;
use fernery_core::pipeline::Violation;
use serde_json::{Map, Value};

/// Why an operator's act is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// There is no such objective.
    Unknown,
    /// There is no such azolla.
    UnknownAzolla {
        /// The one that was named.
        named: AzollaId,
        /// Those that there are.
        known: Vec<AzollaId>,
    },
    /// It stands so that this is not possible.
    Status(Box<NotNow>),
    /// The id is already used for something else.
    Taken,
    /// What was shown is not what is there.
    Changed {
        /// What is there now.
        now: Box<Shown>,
        /// What changed since it was shown: path, before, now.
        difference: Vec<(String, Value, Value)>,
    },
    /// The run that was checked is not the last one; this is the last.
    OtherRun(Box<RunRecord>),
    /// The stored state does not allow it, for this reason.
    Conflict(String),
    /// No azolla here does it; a blueprint may bring one.
    Nobody(String),
    /// Its work would start from a repository, and there is none for it.
    NoRepository(String),
    /// The request has wrong fields.
    Unfit(Vec<Violation>),
}

/// The result, or why the act is refused.
pub type Answer<T> = StoreResult<Result<T, Refusal>>;

/// Who acts.
#[derive(Clone, Debug)]
pub struct Actor(pub String);

pub(super) fn check_note(note: Option<&str>) -> Result<(), Refusal> {
    match note {
        Some(note) if note.len() > limits::CRITERIA_BYTES_MAX || note.contains('\0') => {
            let message = format!("a note has at most {} bytes and no NUL", limits::CRITERIA_BYTES_MAX);
            Err(Refusal::Unfit(vec![Violation { path: "/note".into(), message }]))
        }
        _ => Ok(()),
    }
}

/// An act as it is requested.
pub(super) struct Asked<'a> {
    pub(super) actor: &'a Actor,
    pub(super) act: Act,
    pub(super) id: &'a str,
    pub(super) record_id: &'a RecordId,
    /// The fields of the request; optional fields that were not given are absent.
    pub(super) what: Map<String, Value>,
}

impl Asked<'_> {
    /// Whether this act was carried out before: then the request is a repetition. If its record id was used for anything
    /// else, it is refused as taken.
    pub(super) fn is_repeat(&self, sql: &mut dyn Sql) -> Answer<bool> {
        Ok(self.is_repeat_of(journal::by_id(sql, self.record_id.as_str())?))
    }

    /// As [`Asked::is_repeat`], when the journal entry with its record id has been read.
    pub(super) fn is_repeat_of(&self, entry: Option<Entry>) -> Result<bool, Refusal> {
        let Some(entry) = entry else { return Ok(false) };
        let same = entry.is(self.act)
            && entry.subject == self.id
            && entry.actor == self.actor.0
            && self.what.iter().all(|(field, value)| entry.why.get(field) == Some(value));
        if same { Ok(true) } else { Err(Refusal::Taken) }
    }

    /// Journals that the act was carried out, with its result.
    pub(super) fn done(&self, sql: &mut dyn Sql, came_to: Value) -> StoreResult<()> {
        let mut why = self.what.clone();
        if let Value::Object(came_to) = came_to {
            why.extend(came_to);
        }
        let of = (self.actor.0.as_str(), self.act, self.id);
        journal::note_as(sql, self.record_id.as_str(), of, &Value::Object(why))
    }
}

pub(super) fn fields<const N: usize>(of: [(&str, Value); N]) -> Map<String, Value> {
    of.into_iter().map(|(field, value)| (field.to_string(), value)).collect()
}
