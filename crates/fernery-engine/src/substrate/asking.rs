//! An act that an operator asks for, under an id of theirs: asked for again it is answered as it was, and nothing is done
//! twice (invariant 19).

use super::journal::Entry;
use super::operating::{Actor, Answer, Refusal};
use super::{Sql, journal};
use crate::error::StoreResult;
use fernery_core::artifact::RecordId;
use serde_json::{Map, Value};

/// Who asks for what, in their own words.
pub(super) struct Asked<'a> {
    pub(super) actor: &'a Actor,
    pub(super) act: &'a str,
    pub(super) id: &'a str,
    pub(super) record_id: &'a RecordId,
    /// What was asked for, field by field; what was left open is not in it.
    pub(super) what: Map<String, Value>,
}

impl Asked<'_> {
    /// Whether this very act was carried out before: its answer was lost, and it is asked for again. An id that was given
    /// to anything else, be it by somebody else, is taken.
    pub(super) fn is_repeat(&self, sql: &mut dyn Sql) -> Answer<bool> {
        Ok(self.is_repeat_of(journal::by_id(sql, self.record_id.as_str())?))
    }

    /// As [`Asked::is_repeat`], where the entry under its id has been read.
    pub(super) fn is_repeat_of(&self, entry: Option<Entry>) -> Result<bool, Refusal> {
        let Some(entry) = entry else { return Ok(false) };
        let same = entry.act == self.act
            && entry.subject == self.id
            && entry.actor == self.actor.0
            && self.what.iter().all(|(field, value)| entry.why.get(field) == Some(value));
        if same { Ok(true) } else { Err(Refusal::Taken) }
    }

    /// Writes down that it was carried out, with what it came to.
    pub(super) fn done(&self, sql: &mut dyn Sql, came_to: Value) -> StoreResult<()> {
        let mut why = self.what.clone();
        if let Value::Object(came_to) = came_to {
            why.extend(came_to);
        }
        let of = (self.actor.0.as_str(), self.act, self.id);
        journal::note_as(sql, self.record_id.as_str(), of, &Value::Object(why))
    }
}

/// The fields of a request.
pub(super) fn fields<const N: usize>(of: [(&str, Value); N]) -> Map<String, Value> {
    of.into_iter().map(|(field, value)| (field.to_string(), value)).collect()
}
