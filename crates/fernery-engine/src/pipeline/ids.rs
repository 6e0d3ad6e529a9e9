//! Whole ids for parts of ids. Each search is a range of the primary key's index, and looks at no more than
//! [`IdPart::looked_at_max`] of it, however long the history is.

use super::{Sql, Statement};
use crate::error::StoreResult;
use fernery_core::id_part::IdPart;

/// Above every character of an id.
const ABOVE_ALL: &str = "~";

/// A kind of artifact whose ids people type, with the statement that searches its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Objective,
    Candidate,
    Capture,
    Workorder,
    Run,
}

impl Kind {
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

/// What a part of an id means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meant {
    pub ids: Vec<(Kind, String)>,
    /// More ids than are looked at begin like this: there may be others.
    pub beyond: Option<IdPart>,
}

/// Up to `limit` ids of each of these kinds that a text means. Where there is one that it equals, a kind answers with that.
pub fn meant(sql: &mut dyn Sql, kinds: &[Kind], text: &str, limit: i64) -> StoreResult<Meant> {
    let meanings = IdPart::meanings(text);
    let bounds: Vec<(String, String)> = meanings
        .iter()
        .map(|part| (format!("{}{ABOVE_ALL}", part.head()), format!("%{}", part.tail())))
        .collect();
    let mut found = Meant::default();
    for kind in kinds {
        let mut asked: Vec<Statement<'_>> =
            vec![(kind.statement(), vec![text.into(), text.into(), "%".into(), limit.into(), 1.into()])];
        for (part, (above, end)) in meanings.iter().zip(&bounds) {
            let most = part.looked_at_max().into();
            let cells = vec![part.head().into(), above.into(), end.into(), limit.into(), most];
            asked.push((kind.statement(), cells));
        }
        let answers = sql.query_all(&asked)?;
        let (mut ids, mut beyond) = (Vec::new(), None);
        // The first answer is about the text itself.
        let parts = std::iter::once(None).chain(meanings.iter().map(Some));
        for (part, rows) in parts.zip(&answers) {
            let before = ids.len();
            for row in rows {
                ids.extend(row.maybe_text(1)?.map(str::to_string));
            }
            let looked = rows.first().map_or(Ok(0), |row| row.int(0))?;
            let enough = i64::try_from(ids.len() - before).is_ok_and(|found| found >= limit);
            if let Some(part) = part.filter(|part: &&IdPart| looked > part.looked_at_max() && !enough) {
                beyond = Some(part.clone());
            }
        }
        match ids.iter().any(|id| id == text) {
            true => ids = vec![text.to_string()],
            // LIKE means more than that: `_` is any character, and SQLite takes capitals for small letters.
            false => {
                ids.retain(|id| meanings.iter().any(|part| part.means(id)));
                found.beyond = found.beyond.or(beyond);
            }
        }
        ids.sort();
        ids.dedup();
        found.ids.extend(ids.into_iter().map(|id| (*kind, id)));
    }
    Ok(found)
}
