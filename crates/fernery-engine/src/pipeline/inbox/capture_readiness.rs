//! Emits CAPTURE_READY for captures that wait.
//!
//! Reads: captures that wait and that no unprocessed event tells of. Claims: nothing; a unique key excludes a second
//! event. Writes: events. Does nothing where no capture waits.

use crate::door;
use crate::error::StoreResult;
use crate::pipeline::{Cell, Sql, Stage};
use fernery_core::artifact::{AzollaId, EventId, EventType};

/// Emits up to `limit` events; answers how many.
pub fn emit(sql: &mut dyn Sql, azolla_id: &AzollaId, limit: i64) -> StoreResult<usize> {
    let now = sql.now();
    let cells = [azolla_id.as_str().into(), now.into(), limit.into()];
    // If two processes do this at once, the first one emits the event; the second finds nothing to do.
    let announced = sql.query(include_str!("../sql/captures_announce.sql"), &cells)?;
    for row in &announced {
        let (capture_id, entry) = (row.text(0)?, row.int(1)?);
        let event_id = EventId::stored(&door::artifact_id());
        let cells: [Cell<'_>; 6] = [
            event_id.as_str().into(),
            azolla_id.as_str().into(),
            EventType::CaptureReady.as_str().into(),
            capture_id.into(),
            entry.into(),
            now.into(),
        ];
        sql.write(capture_id, include_str!("../sql/event_insert.sql"), &cells)?;
    }
    if !announced.is_empty() {
        sql.wakes(Stage::Triage);
    }
    Ok(announced.len())
}
