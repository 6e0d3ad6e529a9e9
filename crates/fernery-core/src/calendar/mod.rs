//! Time: instants and durations as the wire and people write them, and when something happens on a calendar.
//!
//! * [`time`]: instants as the wire and the database write them
//! * [`duration`]: durations as people write them
//! * [`zone`]: wall-clock time of a place, from the compiled-in zone database
//! * [`cron`]: the five fields of cron
//! * [`schedule`]: when something is due next, and what becomes of times that were missed

pub mod cron;
pub mod duration;
pub mod schedule;
pub mod time;
pub mod zone;

pub use schedule::{Missed, Schedule};
pub use time::Timestamp;
pub use zone::Zone;
