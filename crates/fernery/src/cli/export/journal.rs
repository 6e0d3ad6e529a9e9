//! The journal of an export: every entry up to some place in the chain, with its seal.
//!
//! An export takes time, and the server goes on meanwhile. The journal shows which objectives have changed since they
//! were read, and whether the inbox has; those are read again until nothing newer is in the journal.

use super::folder::Folder;
use crate::cli::failure::{Failure, Outcome};
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::JournalPage;
use fernery_core::canonical::Digest;
use fernery_core::exported::tells_of_inbox;
use fernery_core::journal::{Act, Entry, Head};
use fernery_core::limits;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often the sealer is waited for, and how long each time.
const SEAL_TRIES: u32 = 2_000;
const SEAL_WAIT: Duration = Duration::from_millis(5);
/// Entries per further read: few, because it must be faster than the changes.
const FURTHER_ROWS: u32 = 50;

/// How often the whole journal is read again for a missing entry.
const HOLE_TRIES: u32 = 10;

/// How far down a look goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// To where all is known.
    New,
    /// To the first entry.
    All,
}

/// What an entry tells of.
#[derive(Clone)]
enum About {
    /// A ticket of this name, or something that is no objective.
    Subject(String),
    /// The inbox.
    Inbox,
}

/// What is known of the journal.
#[derive(Default)]
pub(super) struct Journal {
    entries: BTreeMap<String, (About, Option<Head>)>,
    /// Blueprints that were ever in force.
    pub(super) blueprints: BTreeSet<Digest>,
}

async fn page(client: &Client, rows: u32, cursor: Option<String>) -> Outcome<JournalPage> {
    let query = Query::new().with("limit", Some(rows)).with("cursor", cursor);
    let reply: Reply<JournalPage> = client.get("/v1/journal", &query, Duration::ZERO).await?;
    Ok(reply.read()?)
}

/// A place that the chain has reached already: the highest among the newest entries, or 0 if none of them is sealed.
pub(super) async fn reached(client: &Client) -> Outcome<i64> {
    let places = page(client, FURTHER_ROWS, None).await?.entries.into_iter().filter_map(|entry| entry.seal);
    Ok(places.map(|seal| seal.place).max().unwrap_or(0))
}

impl Journal {
    /// Reads what is new, and waits until all that is there at first sight is sealed; answers the end of that. An entry
    /// whose writer was slower than those of younger ones appears below what is known: then all is read again.
    pub(super) async fn read(&mut self, client: &Client, folder: &mut Folder) -> Outcome<Option<Head>> {
        let mut end = self.sealed(client, folder, Depth::New).await?;
        for _ in 0..HOLE_TRIES {
            if self.is_whole(end.as_ref()) {
                return Ok(end);
            }
            end = self.sealed(client, folder, Depth::All).await?;
        }
        if self.is_whole(end.as_ref()) {
            return Ok(end);
        }
        let why =
            "entries of the journal's chain are missing; `fernery verify` says whether they were removed";
        Err(Failure::failed("incomplete", why))
    }

    /// Whether every place up to the end is known.
    fn is_whole(&self, end: Option<&Head>) -> bool {
        let last = end.map_or(0, |end| end.place);
        let places = self.entries.values().filter_map(|(_, seal)| seal.as_ref()).map(|seal| seal.place);
        let known: BTreeSet<i64> = places.filter(|place| (1..=last).contains(place)).collect();
        i64::try_from(known.len()) == Ok(last)
    }

    async fn sealed(&mut self, client: &Client, folder: &mut Folder, depth: Depth) -> Outcome<Option<Head>> {
        self.look(client, folder, depth).await?;
        let seen: Vec<String> = self.entries.keys().cloned().collect();
        for _ in 0..SEAL_TRIES {
            if seen.iter().all(|id| self.seal(id).is_some()) {
                let end = seen.iter().filter_map(|id| self.seal(id)).max_by_key(|seal| seal.place);
                return Ok(end.cloned());
            }
            tokio::time::sleep(SEAL_WAIT).await;
            self.look(client, folder, Depth::New).await?;
        }
        let why = "some journal entries are not sealed yet; the server's log says why";
        Err(Failure::failed("unsealed", why))
    }

    fn seal(&self, id: &str) -> Option<&Head> {
        self.entries.get(id).and_then(|(_, seal)| seal.as_ref())
    }

    /// Reads from the newest entry down.
    async fn look(&mut self, client: &Client, folder: &mut Folder, depth: Depth) -> Outcome {
        let mut open: BTreeSet<String> =
            self.entries.iter().filter(|(_, (_, seal))| seal.is_none()).map(|(id, _)| id.clone()).collect();
        let all = depth == Depth::All;
        let rows = if all || self.entries.is_empty() { limits::PAGE_ROWS_MAX } else { FURTHER_ROWS };
        let mut cursor = None;
        loop {
            let page = page(client, rows, cursor).await?;
            let mut known = true;
            for row in page.entries {
                open.remove(&row.entry_id);
                known &= self.seal(&row.entry_id).is_some();
                let seal = row.seal.map(|seal| Head { place: seal.place, hash: seal.hash });
                let act: Option<Act> = row.act.parse().ok();
                let about = match tells_of_inbox(act, &row.why) {
                    true => About::Inbox,
                    false => About::Subject(row.subject.clone()),
                };
                self.entries.insert(row.entry_id.clone(), (about, seal.clone()));
                if act == Some(Act::BlueprintInForce) {
                    self.blueprints.extend(
                        row.why["blueprint"].as_str().and_then(|digest| digest.parse::<Digest>().ok()),
                    );
                }
                let id = row.entry_id.clone();
                let entry = Entry {
                    entry_id: row.entry_id,
                    created_at: row.created_at,
                    actor: row.actor,
                    act: row.act,
                    subject: row.subject,
                    why: row.why,
                };
                folder.json("journal", &id, &entry)?;
                if let Some(seal) = seal {
                    folder.json("beside/journal", &id, &seal)?;
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() || (!all && known && open.is_empty()) {
                return Ok(());
            }
        }
    }

    /// What entries after a place tell of: subjects, and whether they tell of the inbox.
    pub(super) fn told_after(&self, place: i64) -> (BTreeSet<String>, bool) {
        let after = |seal: &Option<Head>| seal.as_ref().is_none_or(|seal| seal.place > place);
        let (mut subjects, mut inbox) = (BTreeSet::new(), false);
        for (about, _) in self.entries.values().filter(|(_, seal)| after(seal)) {
            match about {
                About::Subject(subject) => drop(subjects.insert(subject.clone())),
                About::Inbox => inbox = true,
            }
        }
        (subjects, inbox)
    }

    /// Takes back what came after the end.
    pub(super) fn cut(&self, folder: &mut Folder, end: Option<&Head>) -> Outcome {
        let place = end.map_or(0, |end| end.place);
        for (id, (_, seal)) in &self.entries {
            if seal.as_ref().is_none_or(|seal| seal.place > place) {
                folder.remove("journal", id)?;
                folder.remove("beside/journal", id)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_journal_entry_is_detected() {
        let head = |place| Head { place, hash: Digest::of_bytes(b"") };
        let mut journal = Journal::default();
        assert!(journal.is_whole(None));
        for (id, place) in [("a", Some(1)), ("b", Some(3)), ("c", None), ("d", Some(5))] {
            journal.entries.insert(id.into(), (About::Inbox, place.map(head)));
        }
        assert!(journal.is_whole(Some(&head(1))));
        assert!(!journal.is_whole(Some(&head(3))));
        journal.entries.insert("late".into(), (About::Inbox, Some(head(2))));
        assert!(journal.is_whole(Some(&head(3))));
        assert!(!journal.is_whole(Some(&head(5))));
    }
}
