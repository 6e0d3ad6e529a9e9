//! Stores captures that commands have left in the spool of this server's data directory, without a call to itself.

use crate::spool::{self, Hindered, Kept, Spool};
use fernery_core::artifact::AzollaId;
use fernery_core::limits;
use fernery_engine::pipeline::acts::Refusal;
use fernery_engine::pipeline::inbox::captures::{self, NewCapture, Stored};
use fernery_engine::{Engine, StoreError, door};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing::{info, warn};

/// How often a server looks into its own spool.
const EVERY: Duration = Duration::from_secs(30);

/// Delivers the spool of the server's own data directory at once and then every half minute, for ever.
pub(super) async fn keep_delivering(engine: Engine, data: PathBuf) {
    let mut ticks = tokio::time::interval(EVERY);
    let mut said = String::new();
    loop {
        ticks.tick().await;
        // A failure is logged once, not twice a minute.
        let trouble = match deliver_spooled(&engine, &data).await {
            Ok(()) => String::new(),
            Err(why) => why,
        };
        if !trouble.is_empty() && trouble != said {
            warn!(%trouble, "could not deliver spooled captures; will retry");
        }
        said = trouble;
    }
}

/// Stores what commands left in the spool of this data directory while no server ran. If one inbox refuses a capture,
/// the others still get theirs; the refusal is reported at the end.
async fn deliver_spooled(engine: &Engine, data: &Path) -> Result<(), String> {
    let spool = Spool::at(data.join(spool::DIR));
    let mut first_before = None;
    let mut hindered = Hindered::new();
    loop {
        let (looking, but) = (spool.clone(), hindered.clone());
        let found =
            tokio::task::spawn_blocking(move || looking.left_behind_but(limits::CAPTURES_MAX, &but)).await;
        let found = found.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        for path in &found.damaged {
            warn!(path = %path.display(), "moved a file that is no capture out of the spool");
        }
        // A capture that cannot be removed from the spool would come again at once.
        let first = found.kept.first().map(|kept| kept.path.clone());
        if first.is_none() || first == first_before {
            let mut why: Vec<String> = hindered.into_values().collect();
            why.dedup();
            return if why.is_empty() { Ok(()) } else { Err(why.join("; ")) };
        }
        first_before = first;
        for (azolla, kept) in spool::by_azolla(found.kept) {
            if let Err(why) = store_all(engine, &spool, &azolla, &kept).await {
                hindered.insert(azolla, why);
            }
        }
    }
}

/// Stores captures for one inbox: together, or one by one if one of them is refused.
async fn store_all(
    engine: &Engine,
    spool: &Spool,
    azolla: &Option<AzollaId>,
    kept: &[Kept],
) -> Result<(), String> {
    let Err(Unfit) = store(engine, spool, azolla, kept).await? else { return Ok(()) };
    for one in kept {
        if let Err(Unfit) = store(engine, spool, azolla, std::slice::from_ref(one)).await? {
            put_aside(spool, one, "the server does not accept it");
        }
    }
    Ok(())
}

/// One of several captures is refused, so none was stored.
struct Unfit;

async fn store(
    engine: &Engine,
    spool: &Spool,
    azolla: &Option<AzollaId>,
    kept: &[Kept],
) -> Result<Result<(), Unfit>, String> {
    let new: Vec<NewCapture> = kept.iter().filter_map(new_capture).collect();
    let azolla = azolla.clone();
    let verb =
        move |sql: &mut dyn fernery_engine::pipeline::Sql| captures::capture(sql, azolla.as_ref(), &new);
    let answer = engine.substrate().transact(verb).await.map_err(|e: StoreError| e.to_string())?;
    match answer {
        Ok(stored) => {
            door::failpoint("captures_stored");
            for (kept, stored) in kept.iter().zip(&stored) {
                match stored {
                    Stored::New(_) | Stored::Before(_) => spool.forget(kept),
                    Stored::Taken(_) => put_aside(spool, kept, "its id already belongs to another capture"),
                }
            }
            info!(captures = stored.len(), "delivered spooled captures");
        }
        // A later blueprint may accept it.
        Err(Refusal::Conflict(why) | Refusal::Nobody(why)) => return Err(why),
        Err(Refusal::Unfit(_)) if kept.len() > 1 => return Ok(Err(Unfit)),
        Err(why) => kept.iter().for_each(|kept| put_aside(spool, kept, &format!("{why:?}"))),
    }
    Ok(Ok(()))
}

fn put_aside(spool: &Spool, kept: &Kept, why: &str) {
    match spool.refuse(&kept.path) {
        Ok(path) => warn!(path = %path.display(), %why, "cannot store a capture; moved it out of the spool"),
        Err(error) => {
            warn!(path = %kept.path.display(), %why, %error, "cannot store a capture, and cannot move it out of the spool")
        }
    }
}

fn new_capture(kept: &Kept) -> Option<NewCapture> {
    Some(NewCapture {
        capture_id: kept.request.capture_id.clone()?,
        raw: spool::raw(&kept.request)?,
        source_label: kept.request.source_label.clone().unwrap_or_default(),
        captured_at: kept.request.captured_at,
    })
}
