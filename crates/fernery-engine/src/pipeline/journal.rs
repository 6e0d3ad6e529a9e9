//! The journal: who did what, when and why. An entry is written in the transaction of its act; a sealer chains the
//! entries afterwards, so that no act waits for another's entry.
//!
//! The chain: each seal is the hash of the one before and of its entry. A row that is changed, removed, inserted,
//! reordered or cut off afterwards breaks it, and [`verify`] names the first.

use super::reading::Below;
use super::{Cell, Row, Sql, Stage, check_written};
use crate::door;
use crate::error::{StoreError, StoreResult};
use fernery_core::Timestamp;
use fernery_core::canonical::{self, Digest};
pub use fernery_core::journal::{Act, Entry, Head};
use fernery_core::journal::{seal_of, sealed};
use serde::Serialize;
use serde_json::Value;

/// Writes an entry with whatever else the transaction does.
pub fn note(sql: &mut dyn Sql, actor: &str, act: Act, subject: &str, why: &Value) -> StoreResult<()> {
    note_as(sql, &door::artifact_id(), (actor, act, subject), why)
}

/// As [`note`] (who, what, to what), under an id from outside: the same act asked for again finds that it is done.
pub(super) fn note_as(
    sql: &mut dyn Sql,
    entry_id: &str,
    (actor, act, subject): (&str, Act, &str),
    why: &Value,
) -> StoreResult<()> {
    let (why, now) = (canonical::text_of(why), sql.now());
    let cells: [Cell<'_>; 6] =
        [entry_id.into(), now.into(), actor.into(), act.as_str().into(), subject.into(), (&why).into()];
    sql.write("the journal", include_str!("sql/journal_insert.sql"), &cells)?;
    sql.write("the journal", include_str!("sql/unsealed_insert.sql"), &[entry_id.into()])?;
    sql.wakes(Stage::Sealer);
    Ok(())
}

pub fn by_id(sql: &mut dyn Sql, entry_id: &str) -> StoreResult<Option<Entry>> {
    let row = sql.one(include_str!("sql/journal_by_id.sql"), &[entry_id.into()])?;
    row.map(|row| entry(&row)).transpose()
}

/// The newest edits of an objective, the last one first.
pub(super) fn edits(sql: &mut dyn Sql, objective_id: &str, limit: i64) -> StoreResult<Vec<Entry>> {
    sql.query(include_str!("sql/journal_edits_of_subject.sql"), &[objective_id.into(), limit.into()])?
        .iter()
        .map(entry)
        .collect()
}

/// What was done to an objective besides decisions, the newest 200, oldest first: edited, blocked, unblocked, cancelled, landed, not
/// landed.
pub fn handled(sql: &mut dyn Sql, objective_id: &str) -> StoreResult<Vec<Entry>> {
    let rows = sql.query(include_str!("sql/journal_handled_of_subject.sql"), &[objective_id.into()])?;
    rows.iter().map(entry).collect()
}

/// The newest cancellings of an objective, the last one first.
pub(super) fn cancels(sql: &mut dyn Sql, objective_id: &str, limit: i64) -> StoreResult<Vec<Entry>> {
    sql.query(include_str!("sql/journal_cancels_of_subject.sql"), &[objective_id.into(), limit.into()])?
        .iter()
        .map(entry)
        .collect()
}

pub(super) fn entry(row: &Row) -> StoreResult<Entry> {
    Ok(Entry {
        entry_id: row.text("entry_id")?.to_string(),
        created_at: row.at("created_at")?,
        actor: row.text("actor")?.to_string(),
        act: row.text("act")?.to_string(),
        subject: row.text("subject")?.to_string(),
        why: row.json("why")?,
    })
}

/// Which entries a list has; all that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub subject: Option<String>,
    pub act: Option<String>,
    /// Only by those whose name has this part, whatever its case.
    pub actor: Option<String>,
    /// Only from this instant on.
    pub since: Option<Timestamp>,
}

impl Wanted {
    fn has(&self, entry: &Entry) -> bool {
        let by = |part: &String| entry.actor.to_lowercase().contains(&part.to_lowercase());
        self.act.as_ref().is_none_or(|act| *act == entry.act) && self.actor.as_ref().is_none_or(by)
    }
}

/// An entry with its seal; none yet where the sealer has not come by.
pub type Sealed = (Entry, Option<Head>);

/// Entries that one call looks at, and how many are read at once.
pub const LOOKED_AT_MAX: i64 = 5_000;
const CHUNK: i64 = 500;

/// So many entries below a place, newest first, and where the list goes on, if it does. However long the journal is, and however
/// few entries are wanted, a call looks at a bounded number of them: a page may have few rows, or none, and go on.
pub fn search(
    sql: &mut dyn Sql,
    wanted: &Wanted,
    mut below: Below,
    rows: i64,
) -> StoreResult<(Vec<Sealed>, Option<Below>)> {
    let all = wanted.act.is_none() && wanted.actor.is_none();
    let chunk = if all { rows + 1 } else { CHUNK };
    let place = |entry: &Entry| Below { at: entry.created_at, id: entry.entry_id.clone() };
    let (mut kept, mut looked_at): (Vec<Sealed>, i64) = (Vec::new(), 0);
    while looked_at < LOOKED_AT_MAX {
        let found = page(sql, wanted.subject.as_deref(), &below, chunk)?;
        let last = (found.len() as i64) < chunk;
        looked_at += found.len() as i64;
        for (entry, seal) in found {
            if wanted.since.is_some_and(|since| entry.created_at < since) {
                return Ok((kept, None));
            }
            if wanted.has(&entry) {
                if kept.len() as i64 == rows {
                    let next = kept.last().map(|(entry, _)| place(entry));
                    return Ok((kept, next));
                }
                below = place(&entry);
                kept.push((entry, seal));
            } else {
                below = place(&entry);
            }
        }
        if last {
            return Ok((kept, None));
        }
    }
    Ok((kept, Some(below)))
}

/// The newest entries below a place, about one thing or about everything.
fn page(sql: &mut dyn Sql, subject: Option<&str>, below: &Below, limit: i64) -> StoreResult<Vec<Sealed>> {
    let mut cells: Vec<Cell<'_>> = vec![below.at.into(), (&below.id).into(), limit.into()];
    let statement = match subject {
        None => include_str!("sql/journal_page.sql"),
        Some(subject) => {
            cells.push(subject.into());
            include_str!("sql/journal_page_of_subject.sql")
        }
    };
    let seal = |row: &Row| -> StoreResult<Option<Head>> {
        match row.maybe_word("hash")? {
            Some(hash) => Ok(Some(Head { place: row.int("place")?, hash })),
            None => Ok(None),
        }
    };
    sql.query(statement, &cells)?.iter().map(|row| Ok((entry(row)?, seal(row)?))).collect()
}

/// All entries about one thing, oldest first.
pub fn of_subject(sql: &mut dyn Sql, subject: &str) -> StoreResult<Vec<Entry>> {
    sql.query(include_str!("sql/journal_of_subject.sql"), &[subject.into()])?.iter().map(entry).collect()
}

/// The end of the chain as it is stored.
pub fn head(sql: &mut dyn Sql) -> StoreResult<Option<Head>> {
    sql.one(include_str!("sql/seal_last.sql"), &[])?
        .map(|row| Ok(Head { place: row.int("place")?, hash: row.word("hash")? }))
        .transpose()
}

/// The seal at a place of the chain.
pub fn seal_at(sql: &mut dyn Sql, place: i64) -> StoreResult<Option<Head>> {
    sql.one(include_str!("sql/seal_at.sql"), &[place.into()])?
        .map(|row| Ok(Head { place: row.int("place")?, hash: row.word("hash")? }))
        .transpose()
}

/// The first seal, which no other database has; none before the sealer has come by.
pub fn first_seal(sql: &mut dyn Sql) -> StoreResult<Option<Digest>> {
    Ok(seal_at(sql, 1)?.map(|first| first.hash))
}

/// Chains up to `limit` entries; answers how many, and the new end.
pub fn seal(sql: &mut dyn Sql, limit: i64) -> StoreResult<(usize, Option<Head>)> {
    let take = include_str!("sql/unsealed_take.sql");
    let first = sql.one(take, &[1.into()])?;
    let before = head(sql)?;
    let Some(first) = first else { return Ok((0, before)) };
    let (entry, next) = chained(before.as_ref(), &first)?;
    let hash = next.hash.to_string();
    if sql.touched(include_str!("sql/seal_insert.sql"), &seal_cells(&next, &entry, &hash))? == 0 {
        // Another process is sealing; the head that this one knows is old.
        return Ok((0, before));
    }
    sql.write("the journal", include_str!("sql/unsealed_delete.sql"), &[(&entry.entry_id).into()])?;
    // Whoever has the next place has all that follow: what is unsealed now nobody else seals.
    let (mut head, mut count) = (next, 1);
    let rows = sql.query(take, &[(limit - 1).into()])?;
    for some in rows.chunks(SEALS_AT_ONCE) {
        let mut seals = Vec::with_capacity(some.len());
        for row in some {
            let (entry, next) = chained(Some(&head), row)?;
            seals.push((next.place, entry.entry_id, next.hash.to_string()));
            head = next;
        }
        write_seals(sql, &seals)?;
        count += seals.len();
    }
    Ok((count, Some(head)))
}

/// Chains everything that waits for it.
pub(super) fn seal_all(sql: &mut dyn Sql) -> StoreResult<()> {
    while seal(sql, SEALED_AT_ONCE)?.0 > 0 {}
    Ok(())
}

/// Entries that [`seal_all`] takes at once.
const SEALED_AT_ONCE: i64 = 256;

/// Chains entries of another instance in the order that they had there, which their ids do not tell: ids come from outside,
/// and a clock may have been set back.
pub(super) fn seal_in_order(sql: &mut dyn Sql, entries: &[Entry]) -> StoreResult<()> {
    let Some((first, others)) = entries.split_first() else { return Ok(()) };
    let mut head = sealed(head(sql)?.as_ref(), first);
    let hash = head.hash.to_string();
    if sql.touched(include_str!("sql/seal_insert.sql"), &seal_cells(&head, first, &hash))? == 0 {
        return Err(StoreError::Busy("another process is sealing the journal".to_string()));
    }
    sql.write("the journal", include_str!("sql/unsealed_delete.sql"), &[(&first.entry_id).into()])?;
    for some in others.chunks(SEALS_AT_ONCE) {
        let mut seals = Vec::with_capacity(some.len());
        for entry in some {
            head = sealed(Some(&head), entry);
            seals.push((head.place, entry.entry_id.clone(), head.hash.to_string()));
        }
        write_seals(sql, &seals)?;
    }
    Ok(())
}

/// Seals that one statement writes.
const SEALS_AT_ONCE: usize = 16;

fn write_seals(sql: &mut dyn Sql, seals: &[(i64, String, String)]) -> StoreResult<()> {
    if seals.len() == SEALS_AT_ONCE {
        let cells: Vec<Cell<'_>> =
            seals.iter().flat_map(|(place, id, hash)| [(*place).into(), id.into(), hash.into()]).collect();
        check_written(
            "the journal",
            sql.touched(include_str!("sql/seal_insert_many.sql"), &cells)?,
            seals.len(),
        )?;
        let ids: Vec<Cell<'_>> = seals.iter().map(|(_, id, _)| id.into()).collect();
        let gone = sql.touched(include_str!("sql/unsealed_delete_many.sql"), &ids)?;
        return check_written("the journal", gone, seals.len());
    }
    for (place, id, hash) in seals {
        let cells = [(*place).into(), id.into(), hash.into()];
        sql.write("the journal", include_str!("sql/seal_insert.sql"), &cells)?;
        sql.write("the journal", include_str!("sql/unsealed_delete.sql"), &[id.into()])?;
    }
    Ok(())
}

/// The entry of a row, and the end of the chain with it.
fn chained(before: Option<&Head>, row: &Row) -> StoreResult<(Entry, Head)> {
    let entry = entry(row)?;
    let next = sealed(before, &entry);
    Ok((entry, next))
}

fn seal_cells<'a>(head: &Head, entry: &'a Entry, hash: &'a str) -> [Cell<'a>; 3] {
    [head.place.into(), (&entry.entry_id).into(), hash.into()]
}

/// What the chain shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Entries that were checked.
    pub entries: i64,
    /// The end of the chain.
    pub head: Option<Head>,
    /// The first thing that is wrong.
    pub fault: Option<String>,
}

/// Whether the chain still leads through an end that somebody remembers; else what is wrong.
pub fn leads_through(sql: &mut dyn Sql, head: &Head) -> StoreResult<Option<String>> {
    let place = head.place;
    let Some(stored) = seal_at(sql, place)? else {
        let end = self::head(sql)?.map_or(0, |head| head.place);
        return Ok(Some(format!("seal {place} was removed; the chain ends at {end}")));
    };
    let same = stored.hash == head.hash;
    Ok((!same).then(|| format!("seal {place} differs from the saved one")))
}

/// Walks a part of the chain from `from` on, which may be an end that was kept elsewhere: what was cut off or made anew
/// since then shows only there. `None` as the fault means that the part is whole. Answers whether it was the last part. What
/// was put beside the chain is for [`strays`] to find.
pub fn verify(sql: &mut dyn Sql, from: Option<Head>, limit: i64) -> StoreResult<(Verified, bool)> {
    let mut head = from;
    let start = head.as_ref().map_or(0, |head| head.place);
    if let Some(from) = &head
        && let Some(fault) = leads_through(sql, from)?
    {
        return Ok((Verified { entries: 0, head, fault: Some(fault) }, true));
    }
    let rows = sql.query(include_str!("sql/seals_after.sql"), &[start.into(), limit.into()])?;
    let mut seen = 0;
    for row in &rows {
        let (place, entry_id) = (row.int("place")?, row.text("entry_id")?.to_string());
        let expected = head.as_ref().map_or(1, |head| head.place + 1);
        let fault = if place != expected {
            Some(format!("seal {expected} was removed; the next one is {place}"))
        } else if row.maybe_at("created_at")?.is_none() {
            Some(format!("entry {entry_id}, number {place}, was removed"))
        } else {
            let entry = entry(row)?;
            let hash = seal_of(head.as_ref().map(|head| &head.hash), place, &entry);
            let stored: Digest = row.word("hash")?;
            let whole = hash == stored;
            head = Some(Head { place, hash: stored });
            (!whole).then(|| format!("entry {entry_id}, number {place}, was changed, inserted or moved"))
        };
        if fault.is_some() {
            return Ok((Verified { entries: start + seen, head, fault }, true));
        }
        seen += 1;
    }
    let done = i64::try_from(rows.len()).unwrap_or(i64::MAX) < limit;
    Ok((Verified { entries: start + seen, head, fault: None }, done))
}

/// What a part of the journal shows beside the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strays {
    /// This entry is neither in the chain nor on its way there.
    Found(String),
    /// None in this part; the next one is above this entry.
    NotUpTo(String),
    /// None to the end.
    None,
}

/// Looks through a part of the journal, above `after`, for an entry that no seal covers and that waits for none. However
/// long the history is, a part costs the same.
pub fn strays(sql: &mut dyn Sql, after: &str, limit: i64) -> StoreResult<Strays> {
    let rows = sql.query(include_str!("sql/strays.sql"), &[after.into(), limit.into()])?;
    for row in &rows {
        if row.flag("is_stray")? {
            return Ok(Strays::Found(format!(
                "entry {} was inserted, or its seal was removed",
                row.text("entry_id")?
            )));
        }
    }
    match rows.last() {
        Some(last) if i64::try_from(rows.len()).unwrap_or(i64::MAX) >= limit => {
            Ok(Strays::NotUpTo(last.text("entry_id")?.to_string()))
        }
        _ => Ok(Strays::None),
    }
}
