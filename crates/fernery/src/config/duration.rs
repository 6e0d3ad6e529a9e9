//! Durations as people write them.

pub use fernery_core::calendar::duration::{in_words, parse, show};
use std::time::Duration;

/// Whole milliseconds, as the wire has them.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
