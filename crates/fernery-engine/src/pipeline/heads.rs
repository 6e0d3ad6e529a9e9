//! How far the lists have come that pages show: what a page that follows them asks once a second.

use crate::error::StoreResult;
use crate::store::Store;

/// How far each list has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    /// The journal: its newest entry, and how many entries are sealed. Whatever is done to tickets and candidates is there.
    pub journal: (Option<String>, Option<i64>),
    pub capture: Option<String>,
    /// The newest manifest.
    pub manifest: Option<String>,
    /// Whether a run is under way: then its executor may say how far it is.
    pub active: bool,
    /// The streams that are paused.
    pub paused: Option<String>,
    /// What runs: how many leases there are, and the sum of their places. Another job under lease is another sum.
    pub held: (i64, i64),
    /// The sum of the versions of what runs: a heartbeat, progress and a wish to cancel each make one more.
    pub versions: i64,
    /// Acts on all jobs that match that are under way, each with what it has done and what it was refused.
    pub acts: Option<String>,
    /// The token that was made last, and the one that was revoked last.
    pub tokens: (Option<String>, Option<String>),
    /// The browsers that are signed in.
    pub sessions: Option<String>,
}

/// Reads them in one statement.
pub async fn heads(store: &dyn Store) -> StoreResult<Heads> {
    let rows = store.select(include_str!("sql/heads.sql")).await?;
    let Some(row) = rows.first() else { return Ok(Heads::default()) };
    let text = |column: &'static str| row.maybe_text(column).map(|text| text.map(str::to_string));
    Ok(Heads {
        journal: (text("entry_id")?, row.maybe_count("sealed")?),
        capture: text("capture_id")?,
        manifest: text("manifest_id")?,
        active: row.maybe_text("active")?.is_some(),
        paused: text("paused")?,
        held: (row.count("leases")?, row.count("places")?),
        versions: row.count("versions")?,
        acts: text("acts")?,
        tokens: (text("made")?, text("revoked")?),
        sessions: text("sessions")?,
    })
}
