//! Takes captures from a spool to where they are stored: through a server, or into the engine of the server itself.

use super::capture_spool::{self, Hindered, Kept, Spool};
use super::failure::Failure;
use fernery_client::client::Reply;
use fernery_client::wire::{CaptureManyResponse, CaptureView};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{AzollaId, CaptureId};
use fernery_core::limits;
use fernery_engine::substrate::captures::{self, NewCapture, Stored};
use fernery_engine::substrate::operating::Refusal;
use fernery_engine::{Engine, StoreError, door};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tracing::{info, warn};

/// How long a command waits for the answer about one capture; it is safe in the spool all the while.
const ONE_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of one call, with room for what escapes add to them.
const CALL_BYTES: usize = limits::BODY_BYTES_MAX / 4;
/// How often a server looks into its own spool.
const EVERY: Duration = Duration::from_secs(30);

/// Why a capture is not stored.
#[derive(Debug)]
pub(super) enum Unstored {
    /// Nobody could take it now; somebody will.
    Later(Failure),
    /// Something must be set right first: the token, the URL, the server's version.
    Blocked(Failure),
    /// It will never be taken as it is.
    Never(Failure),
}

impl From<ClientError> for Unstored {
    fn from(error: ClientError) -> Self {
        let never = matches!(error, ClientError::Refused { .. })
            && matches!(error.status(), Some(400 | 409 | 413 | 422));
        match error.is_transient() {
            true => Self::Later(error.into()),
            false if never => Self::Never(error.into()),
            // No azolla there has an inbox yet.
            false if error.status() == Some(404) => Self::Blocked(Failure::from(error).for_now()),
            false => Self::Blocked(error.into()),
        }
    }
}

/// Sends one capture; once more if the connection broke.
pub(super) async fn send_one(client: &Client, kept: &Kept) -> Result<Reply<CaptureView>, Unstored> {
    let once = async || client.post("/v1/captures", &kept.request, Duration::ZERO).await;
    let sent = async {
        match once().await {
            Err(ClientError::Broken { .. }) => once().await,
            answer => answer,
        }
    };
    match tokio::time::timeout(ONE_WITHIN, sent).await {
        Ok(answer) => answer.map_err(Unstored::from),
        Err(_) => {
            let url = client.url().to_string();
            Err(ClientError::TimedOut { url, after: ONE_WITHIN }.into())
        }
    }
}

/// What became of captures that were sent together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// They are stored.
    pub(super) stored: usize,
    /// They were put aside: where, and why.
    pub(super) refused: Vec<(PathBuf, Failure)>,
    /// They stay in the spool, for this reason.
    pub(super) waits: Option<Unstored>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.stored += other.stored;
        self.refused.extend(other.refused);
        self.waits = self.waits.take().or(other.waits);
    }

    fn put_aside(&mut self, spool: &Spool, kept: &Kept, why: Failure) {
        // What cannot be moved is refused once more, next time.
        let there = spool.refuse(&kept.path).unwrap_or_else(|_| kept.path.clone());
        self.refused.push((there, why));
    }
}

/// Sends captures in arrays, and takes those that are answered for out of the spool. Stops at the first one that has to wait.
pub(super) async fn send_all(client: &Client, spool: &Spool, kept: Vec<Kept>) -> Tally {
    let mut tally = Tally::default();
    // Captures for an azolla that is not there must not keep the others.
    let mut by_azolla: BTreeMap<Option<AzollaId>, Vec<Kept>> = BTreeMap::new();
    for kept in kept {
        by_azolla.entry(kept.request.azolla_id.clone()).or_default().push(kept);
    }
    for group in by_azolla.into_values() {
        for call in calls(&group) {
            match send_array(client, call).await {
                Ok(answer) => {
                    for (kept, fits) in call.iter().zip(answer) {
                        if fits {
                            spool.forget(kept);
                            tally.stored += 1;
                        } else {
                            tally.put_aside(spool, kept, taken(&kept.request.capture_id));
                        }
                    }
                }
                Err(Unstored::Never(why)) if call.len() == 1 => tally.put_aside(spool, &call[0], why),
                Err(Unstored::Never(_)) => {
                    for kept in call {
                        match send_one(client, kept).await {
                            Ok(_) => {
                                spool.forget(kept);
                                tally.stored += 1;
                            }
                            Err(Unstored::Never(why)) => tally.put_aside(spool, kept, why),
                            Err(waits) => {
                                tally.waits = Some(waits);
                                return tally;
                            }
                        }
                    }
                }
                Err(waits) => {
                    tally.waits = Some(waits);
                    return tally;
                }
            }
        }
    }
    tally
}

fn taken(id: &Option<CaptureId>) -> Failure {
    let id = id.as_ref().map_or("", CaptureId::as_str);
    Failure::conflict(format!("the id {id} belongs to another capture"))
}

/// As many at once as one call may carry.
fn calls(mut kept: &[Kept]) -> Vec<&[Kept]> {
    let mut calls = Vec::new();
    while !kept.is_empty() {
        let mut bytes = 0;
        let fits = kept.iter().take(limits::CAPTURES_MAX).take_while(|kept| {
            let raw = kept.request.raw_content.as_ref().or(kept.request.raw_base64.as_ref());
            bytes += raw.map_or(0, String::len);
            bytes <= CALL_BYTES
        });
        let (call, rest) = kept.split_at(fits.count().max(1));
        calls.push(call);
        kept = rest;
    }
    calls
}

/// Answers for each whether it is stored; if not, its id is another's.
async fn send_array(client: &Client, call: &[Kept]) -> Result<Vec<bool>, Unstored> {
    let body: Vec<_> = call.iter().map(|kept| &kept.request).collect();
    let reply: Reply<CaptureManyResponse> = client.post("/v1/captures", &body, Duration::ZERO).await?;
    let answer = reply.read()?.captures;
    let fit = answer.iter().zip(&body).all(|(a, b)| Some(&a.capture_id) == b.capture_id.as_ref());
    if !fit || answer.len() != body.len() {
        let why = Failure::failed("unexpected_answer", "the answers do not belong to the captures");
        return Err(Unstored::Blocked(why));
    }
    Ok(answer.iter().map(|one| one.result != "conflict").collect())
}

/// Looks into the spool of a server's own data directory now and every half a minute, for ever.
pub(super) async fn keep_delivering(engine: Engine, data: PathBuf) {
    let mut ticks = tokio::time::interval(EVERY);
    let mut said = String::new();
    loop {
        ticks.tick().await;
        // What hinders it is said once, not twice a minute.
        let trouble = match deliver_spooled(&engine, &data).await {
            Ok(()) => String::new(),
            Err(why) => why,
        };
        if !trouble.is_empty() && trouble != said {
            warn!(%trouble, "captures wait in the spool");
        }
        said = trouble;
    }
}

/// Stores what commands left in the spool of this data directory while nobody served. What one inbox does not take keeps
/// nothing from the others; it is told of at the end.
pub(super) async fn deliver_spooled(engine: &Engine, data: &Path) -> Result<(), String> {
    let spool = Spool::at(data.join(capture_spool::DIR));
    let mut first_before = None;
    let mut hindered = Hindered::new();
    loop {
        let (looking, but) = (spool.clone(), hindered.clone());
        let found =
            tokio::task::spawn_blocking(move || looking.left_behind_but(limits::CAPTURES_MAX, &but)).await;
        let found = found.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        for path in &found.damaged {
            warn!(path = %path.display(), "a file in the spool held no capture and was put aside");
        }
        // What cannot be taken out of the spool is there again at once.
        let first = found.kept.first().map(|kept| kept.path.clone());
        if first.is_none() || first == first_before {
            let mut why: Vec<String> = hindered.into_values().collect();
            why.dedup();
            return if why.is_empty() { Ok(()) } else { Err(why.join("; ")) };
        }
        first_before = first;
        let mut by_azolla: BTreeMap<Option<AzollaId>, Vec<Kept>> = BTreeMap::new();
        for kept in found.kept {
            by_azolla.entry(kept.request.azolla_id.clone()).or_default().push(kept);
        }
        for (azolla, kept) in by_azolla {
            if let Err(why) = store_all(engine, &spool, &azolla, &kept).await {
                hindered.insert(azolla, why);
            }
        }
    }
}

/// Stores captures for one inbox: together, or one by one where one of them does not fit.
async fn store_all(
    engine: &Engine,
    spool: &Spool,
    azolla: &Option<AzollaId>,
    kept: &[Kept],
) -> Result<(), String> {
    let Err(Unfit) = store(engine, spool, azolla, kept).await? else { return Ok(()) };
    for one in kept {
        if let Err(Unfit) = store(engine, spool, azolla, std::slice::from_ref(one)).await? {
            put_aside(spool, one, "it does not fit");
        }
    }
    Ok(())
}

/// One of several captures does not fit, and none is stored.
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
        move |sql: &mut dyn fernery_engine::substrate::Sql| captures::capture(sql, azolla.as_ref(), &new);
    let answer = engine.substrate().transact(verb).await.map_err(|e: StoreError| e.to_string())?;
    match answer {
        Ok(stored) => {
            door::failpoint("captures_stored");
            for (kept, stored) in kept.iter().zip(&stored) {
                match stored {
                    Stored::New(_) | Stored::Before(_) => spool.forget(kept),
                    Stored::Taken(_) => put_aside(spool, kept, "its id belongs to another capture"),
                }
            }
            info!(captures = stored.len(), "stored what waited in the spool");
        }
        // The next blueprint may have what is missing.
        Err(Refusal::Conflict(why) | Refusal::Nobody(why)) => return Err(why),
        Err(Refusal::Unfit(_)) if kept.len() > 1 => return Ok(Err(Unfit)),
        Err(why) => kept.iter().for_each(|kept| put_aside(spool, kept, &format!("{why:?}"))),
    }
    Ok(Ok(()))
}

fn put_aside(spool: &Spool, kept: &Kept, why: &str) {
    match spool.refuse(&kept.path) {
        Ok(path) => warn!(path = %path.display(), %why, "a capture cannot be stored and was put aside"),
        Err(error) => {
            warn!(path = %kept.path.display(), %why, %error, "a capture can be neither stored nor put aside")
        }
    }
}

fn new_capture(kept: &Kept) -> Option<NewCapture> {
    Some(NewCapture {
        capture_id: kept.request.capture_id.clone()?,
        raw: capture_spool::raw(&kept.request)?,
        source_label: kept.request.source_label.clone().unwrap_or_default(),
        captured_at: kept.request.captured_at,
    })
}
