//! Durations as people write them.

pub use fernery_core::calendar::duration::{in_words, millis, parse, show};
