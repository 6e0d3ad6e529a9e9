//! Reads the journal: who did what, by act, subject, actor and time; and whether its chain is whole.

use super::paging::Place;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use fernery_client::wire::{JournalEntry, JournalHead, JournalPage, JournalVerdict};
use fernery_core::Timestamp;
use fernery_core::journal::Act;
use fernery_engine::pipeline::journal::{self, Sealed, Wanted};
use fernery_engine::pipeline::reading::Below;
use fernery_engine::{StoreError, Substrate};

/// Seals that are checked in one transaction.
const SEALS_A_STEP: i64 = 1_000;
/// The most seals at the end of the chain that can be asked for alone.
pub(in crate::http) const LAST_MAX: u64 = 10_000;
/// Characters of a name that is searched for.
const SEARCHED_CHARS_MAX: usize = 200;

/// `GET /v1/journal`
pub async fn list(call: Call) -> Replied {
    let act: Option<Act> = call.query.parsed("act")?;
    let (since, until): (Option<Timestamp>, _) = (call.query.parsed("since")?, call.query.parsed("until")?);
    let wanted = Wanted {
        subject: searched(&call, "subject")?,
        act: act.map(|act| act.as_str().to_string()),
        actor: searched(&call, "actor")?,
        since,
    };
    // A cursor of the whole journal is one of an earlier version too.
    let list = match (&wanted, until) {
        (wanted, None) if *wanted == Wanted::default() => "journal".to_string(),
        (wanted, until) => format!("journal {wanted:?} {until:?}"),
    };
    let place = Place::read(&call, list)?;
    let below = match until {
        // Below every id of that instant.
        Some(until) if until <= place.below.at => Below { at: until, id: String::new() },
        _ => place.below.clone(),
    };
    let rows = place.rows();
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| journal::search(sql, &wanted, below.clone(), rows));
    let (found, next) = found.await?;
    let entries = found.into_iter().map(entry).collect();
    Reply::json(200, &JournalPage { entries, next_cursor: next.map(|next| place.cursor(&next)) })
}

/// A part of a name, or a whole one.
fn searched(call: &Call, name: &str) -> Result<Option<String>, Refused> {
    match call.query.text(name) {
        Some(text) if text.contains('\0') || text.chars().count() > SEARCHED_CHARS_MAX || text.is_empty() => {
            let detail = format!("1 to {SEARCHED_CHARS_MAX} characters without NUL");
            Err(Refusal::field(Code::Invalid, format!("?{name}"), detail))
        }
        text => Ok(text.map(str::to_string)),
    }
}

pub(super) fn entry((entry, seal): Sealed) -> JournalEntry {
    let journal::Entry { entry_id, created_at, actor, act, subject, why } = entry;
    JournalEntry { entry_id, created_at, actor, act, subject, why, seal: seal.map(seal_view) }
}

fn seal_view(head: journal::Head) -> JournalHead {
    JournalHead { place: head.place, hash: head.hash }
}

/// `GET /v1/journal/verify`
pub async fn verify(call: Call) -> Replied {
    let substrate = call.server.engine().substrate();
    let wanted = call.query.number("place", 1..=i64::MAX as u64)?.map_or(0, |place| place as i64);
    if let Some(last) = call.query.number("last", 1..=LAST_MAX)? {
        if wanted > 0 {
            return Err(Refusal::field(Code::Invalid, "?last", "give place or last, not both"));
        }
        return Reply::json(200, &newest(&substrate, last as i64).await?);
    }
    let (mut from, mut at) = (None::<journal::Head>, None);
    loop {
        // A step ends at the requested place, so that the seal there is read.
        let start = from.as_ref().map_or(0, |head| head.place);
        let step = if wanted > start { SEALS_A_STEP.min(wanted - start) } else { SEALS_A_STEP };
        let (verified, done) = substrate.read(move |sql| journal::verify(sql, from.clone(), step)).await?;
        let journal::Verified { entries, head, mut fault } = verified;
        at = at.or_else(|| head.clone().filter(|head| head.place == wanted));
        if done && fault.is_none() {
            fault = stray(&substrate).await?;
        }
        if done || fault.is_some() {
            let (head, at) = (head.map(seal_view), at.map(seal_view));
            return Reply::json(200, &JournalVerdict { entries, head, fault, at });
        }
        from = head;
    }
}

/// The end of the chain alone: at least so many seals, and what was sealed while it was looked at.
async fn newest(substrate: &Substrate, last: i64) -> Result<JournalVerdict, StoreError> {
    let start = substrate.read(move |sql| {
        let end = journal::head(sql)?.map_or(0, |head| head.place);
        let before = (end - last).max(0);
        Ok((before, if before == 0 { None } else { journal::seal_at(sql, before)? }))
    });
    let (before, mut from) = start.await?;
    if before > 0 && from.is_none() {
        let fault = Some(format!("seal {before} was removed"));
        return Ok(JournalVerdict { entries: 0, head: None, fault, at: None });
    }
    let mut left = last;
    loop {
        let step = left.clamp(1, SEALS_A_STEP);
        let (verified, done) = substrate.read(move |sql| journal::verify(sql, from.clone(), step)).await?;
        let journal::Verified { entries, head, fault } = verified;
        left -= step;
        if done || left <= 0 || fault.is_some() {
            return Ok(JournalVerdict {
                entries: entries - before,
                head: head.map(seal_view),
                fault,
                at: None,
            });
        }
        from = head;
    }
}

/// A journal entry that is not in the chain, if there is one.
async fn stray(substrate: &Substrate) -> Result<Option<String>, StoreError> {
    let mut after = String::new();
    loop {
        match substrate.read(move |sql| journal::strays(sql, &after, SEALS_A_STEP)).await? {
            journal::Strays::Found(fault) => return Ok(Some(fault)),
            journal::Strays::NotUpTo(entry_id) => after = entry_id,
            journal::Strays::None => return Ok(None),
        }
    }
}
