//! Delivers captures from a spool to a server.

use crate::cli::failure::Failure;
use crate::spool::{self, Kept, Spool};
use fernery_client::client::Reply;
use fernery_client::wire::{CaptureManyResponse, CaptureOutcome, CaptureView};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::CaptureId;
use fernery_core::limits;
use std::path::PathBuf;
use std::time::Duration;

/// How long a command waits for the answer about one capture; it is safe in the spool all the while.
const ONE_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of one call, with room for JSON escapes.
const CALL_BYTES: usize = limits::BODY_BYTES_MAX / 4;

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

/// Sends one capture; retries once if the connection broke.
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

    fn take_out(&mut self, spool: &Spool, kept: &Kept) {
        spool.forget(kept);
        self.stored += 1;
    }

    fn put_aside(&mut self, spool: &Spool, kept: &Kept, why: Failure) {
        // If it cannot be moved, it is refused again next time.
        let there = spool.refuse(&kept.path).unwrap_or_else(|_| kept.path.clone());
        self.refused.push((there, why));
    }
}

/// Sends captures in arrays, and removes those that the server answered from the spool. Stops at the first one that has
/// to wait.
pub(super) async fn send_all(client: &Client, spool: &Spool, kept: Vec<Kept>) -> Tally {
    let mut tally = Tally::default();
    // Captures for a missing azolla must not hold up the others.
    for group in spool::by_azolla(kept).into_values() {
        for call in calls(&group) {
            if let Err(waits) = send_call(client, spool, call, &mut tally).await {
                tally.waits = Some(waits);
                return tally;
            }
        }
    }
    tally
}

/// Sends one array; if the server refuses one of its captures for good, one by one. `Err`: something has to wait.
async fn send_call(client: &Client, spool: &Spool, call: &[Kept], tally: &mut Tally) -> Result<(), Unstored> {
    match send_array(client, call).await {
        Ok(answer) => {
            for (kept, fits) in call.iter().zip(answer) {
                match fits {
                    true => tally.take_out(spool, kept),
                    false => tally.put_aside(spool, kept, taken(&kept.request.capture_id)),
                }
            }
            Ok(())
        }
        Err(Unstored::Never(why)) if call.len() == 1 => {
            tally.put_aside(spool, &call[0], why);
            Ok(())
        }
        Err(Unstored::Never(_)) => send_singly(client, spool, call, tally).await,
        Err(waits) => Err(waits),
    }
}

async fn send_singly(
    client: &Client,
    spool: &Spool,
    call: &[Kept],
    tally: &mut Tally,
) -> Result<(), Unstored> {
    for kept in call {
        match send_one(client, kept).await {
            Ok(_) => tally.take_out(spool, kept),
            Err(Unstored::Never(why)) => tally.put_aside(spool, kept, why),
            Err(waits) => return Err(waits),
        }
    }
    Ok(())
}

fn taken(id: &Option<CaptureId>) -> Failure {
    let id = id.as_ref().map_or("", CaptureId::as_str);
    Failure::conflict(format!("id {id} already belongs to another capture"))
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

/// Answers for each whether it is stored; if not, another capture has its id.
async fn send_array(client: &Client, call: &[Kept]) -> Result<Vec<bool>, Unstored> {
    let body: Vec<_> = call.iter().map(|kept| &kept.request).collect();
    let reply: Reply<CaptureManyResponse> = client.post("/v1/captures", &body, Duration::ZERO).await?;
    let answer = reply.read()?.captures;
    let fit = answer.iter().zip(&body).all(|(a, b)| Some(&a.capture_id) == b.capture_id.as_ref());
    if !fit || answer.len() != body.len() {
        let why = Failure::failed("unexpected_answer", "the server's answers do not match the captures");
        return Err(Unstored::Blocked(why));
    }
    Ok(answer.iter().map(|one| one.result != CaptureOutcome::Conflict).collect())
}
