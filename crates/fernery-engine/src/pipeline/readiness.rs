//! Emits TICKET_READY for objectives that entered TODO.
//!
//! Reads: objectives in TODO without an event for this entry. Claims: nothing; a unique key excludes a second event.
//! Writes: events. Does nothing where there is no such objective. It never puts anything into TODO.

use super::{Cell, Sql, Stage};
use crate::door;
use crate::error::StoreResult;
use fernery_core::artifact::{AzollaId, EventId, EventType};

/// Emits up to `limit` events; answers how many objectives it read.
pub fn emit(sql: &mut dyn Sql, azolla_id: &AzollaId, limit: i64) -> StoreResult<usize> {
    let cells = [azolla_id.as_str().into(), limit.into()];
    let waiting = sql.query(include_str!("sql/objectives_to_emit.sql"), &cells)?;
    for row in &waiting {
        let (objective_id, entry) = (row.text(0)?, row.int(1)?);
        let event_id = EventId::stored(&door::artifact_id());
        let cells: [Cell<'_>; 6] = [
            event_id.as_str().into(),
            azolla_id.as_str().into(),
            EventType::TicketReady.as_str().into(),
            objective_id.into(),
            entry.into(),
            sql.now().into(),
        ];
        sql.write_new(include_str!("sql/event_insert.sql"), &cells)?;
        sql.write_new(include_str!("sql/objective_emitted.sql"), &[objective_id.into(), entry.into()])?;
        sql.wakes(Stage::Scheduler);
    }
    Ok(waiting.len())
}
