//! How far the lists of the pipeline have come: what a page that follows them asks once a second.

use crate::error::StoreResult;
use crate::store::Store;

/// The newest row of each list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// The journal: its newest entry, and how many entries are sealed. Whatever is done to tickets and candidates is there.
    pub journal: (Option<String>, Option<i64>),
    pub capture: Option<String>,
    /// Whether a run is under way: then its executor may say how far it is.
    pub active: bool,
}

/// Reads them in one statement.
pub async fn heads(store: &dyn Store) -> StoreResult<Heads> {
    let rows = store.select(include_str!("sql/heads.sql")).await?;
    let Some(row) = rows.first() else { return Ok(Heads::default()) };
    let text = |column: &'static str| row.maybe_text(column).map(|text| text.map(str::to_string));
    Ok(Heads {
        journal: (text("entry_id")?, row.maybe_count("sealed")?),
        capture: text("capture_id")?,
        active: row.maybe_text("active")?.is_some(),
    })
}
