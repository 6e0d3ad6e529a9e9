//! What viewers do not see: what the jobs of a stream hold, where an operator has set `redact` for it.
//!
//! The setting is read after the job, so that a job never comes out as it was before the setting; and only for those from whom it
//! hides anything, so that it costs nobody else a statement. Ids, states, times, names of workers, unique keys and codes of errors
//! stay: they are what a viewer works with.

use crate::http::problem::Refused;
use crate::http::wire::answer::Call;
use fernery_client::wire::{DeadLetterInfo, JobDetail, Role};
use fernery_core::{Progress, StreamName};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What stands in the place of a text.
const MARK: &str = "redacted";

/// Hides what a job holds.
pub(super) async fn job(call: &Call, job: &mut JobDetail) -> Result<(), Refused> {
    if !among(call, [&job.stream]).await?.is_empty() {
        hide(job);
    }
    Ok(())
}

/// Hides what dead jobs said.
pub(super) async fn letters<'a>(
    call: &Call,
    letters: impl Iterator<Item = &'a mut DeadLetterInfo>,
) -> Result<(), Refused> {
    let letters: Vec<_> = letters.collect();
    let hidden = among(call, letters.iter().map(|letter| &letter.stream)).await?;
    for letter in letters.into_iter().filter(|letter| hidden.contains(&letter.stream)) {
        letter.message = letter.message.take().map(|_| MARK.to_string());
    }
    Ok(())
}

/// Those of these streams that hide from this caller what their jobs hold.
async fn among<'a>(
    call: &Call,
    streams: impl IntoIterator<Item = &'a StreamName>,
) -> Result<BTreeSet<StreamName>, Refused> {
    // Producers read no jobs but their own.
    let sees = |role| matches!(role, Role::Operator | Role::Producer);
    let named: BTreeSet<StreamName> = streams.into_iter().cloned().collect();
    if named.is_empty() || call.caller.0.as_ref().is_some_and(|token| sees(token.role)) {
        return Ok(BTreeSet::new());
    }
    let store = call.server.engine().store();
    Ok(store.redacting(named.into_iter().collect()).await?.into_iter().collect())
}

fn hide(job: &mut JobDetail) {
    job.redacted = true;
    job.payload = raw(&json!({ MARK: true }));
    job.result = job.result.take().map(|_| raw(&json!({ MARK: true })));
    job.error = job.error.take().map(|error| only_code(&error));
    for attempt in &mut job.attempts {
        attempt.error = attempt.error.take().map(|error| only_code(&error));
        attempt.progress = attempt.progress.take().and_then(|progress| without_note(&progress));
    }
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// An error as groups of dead letters name it, without what it says.
fn only_code(error: &RawValue) -> Box<RawValue> {
    let read: Value = serde_json::from_str(error.get()).unwrap_or_default();
    raw(&json!({ "code": read["code"].as_str().unwrap_or_default(), "message": MARK }))
}

fn without_note(progress: &Progress) -> Option<Progress> {
    Progress::new(progress.percent(), progress.note().map(|_| MARK.to_string())).ok()
}
