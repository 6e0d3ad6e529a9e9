//! What operators set for streams.

use super::acts::Actor;
use super::{Sql, journal};
use crate::error::StoreResult;
use crate::store::StreamChange;
use fernery_core::StreamName;
use fernery_core::journal::Act;
use serde_json::json;

/// Changes what is set for a stream, and the journal tells who did it. Makes the stream if it is not there, so that this can be
/// done before its first job. What is so already is not told again.
pub fn set(sql: &mut dyn Sql, actor: &Actor, name: &StreamName, change: StreamChange) -> StoreResult<()> {
    let now = sql.now();
    sql.write_new(include_str!("sql/stream_put.sql"), &[name.as_str().into(), now.into()])?;
    let Some(redact) = change.redact else { return Ok(()) };
    if sql.touched(include_str!("sql/stream_redact.sql"), &[name.as_str().into(), redact.into()])? == 0 {
        return Ok(());
    }
    journal::note(sql, &actor.0, Act::StreamSet, name.as_str(), &json!({ "redact": redact }))
}
