//! Whole ids for parts of ids. Each search is a short range of the primary key's index, however long the history is.

use super::{Sql, Statement};
use crate::error::StoreResult;
use fernery_core::id_part::IdPart;

/// Above every character of an id.
const ABOVE_ALL: &str = "~";

/// A kind of artifact whose ids people type, with the statement that searches its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An objective.
    Objective,
    /// A candidate.
    Candidate,
    /// A capture.
    Capture,
    /// A workorder.
    Workorder,
    /// A run record.
    Run,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Objective, Self::Candidate, Self::Capture, Self::Workorder, Self::Run];

    fn statement(self) -> &'static str {
        match self {
            Self::Objective => include_str!("sql/ids_of_objectives.sql"),
            Self::Candidate => include_str!("sql/ids_of_candidates.sql"),
            Self::Capture => include_str!("sql/ids_of_captures.sql"),
            Self::Workorder => include_str!("sql/ids_of_workorders.sql"),
            Self::Run => include_str!("sql/ids_of_runs.sql"),
        }
    }
}

/// Up to `limit` ids of each of these kinds that a text means. Where there is one that it equals, a kind answers with that.
pub fn meant(sql: &mut dyn Sql, kinds: &[Kind], text: &str, limit: i64) -> StoreResult<Vec<(Kind, String)>> {
    let meanings = IdPart::meanings(text);
    let bounds: Vec<(String, String)> = meanings
        .iter()
        .map(|part| (format!("{}{ABOVE_ALL}", part.head()), format!("%{}", part.tail())))
        .collect();
    let mut found = Vec::new();
    for kind in kinds {
        let mut asked: Vec<Statement<'_>> =
            vec![(kind.statement(), vec![text.into(), text.into(), "%".into(), limit.into()])];
        for (part, (above, end)) in meanings.iter().zip(&bounds) {
            asked.push((kind.statement(), vec![part.head().into(), above.into(), end.into(), limit.into()]));
        }
        let answers = sql.query_all(&asked)?;
        let mut ids = Vec::new();
        for row in answers.iter().flatten() {
            ids.push(row.text(0)?.to_string());
        }
        match ids.iter().any(|id| id == text) {
            true => ids = vec![text.to_string()],
            // LIKE means more than that: `_` is any character, and SQLite takes capitals for small letters.
            false => ids.retain(|id| meanings.iter().any(|part| part.means(id))),
        }
        ids.sort();
        ids.dedup();
        found.extend(ids.into_iter().map(|id| (*kind, id)));
    }
    Ok(found)
}
