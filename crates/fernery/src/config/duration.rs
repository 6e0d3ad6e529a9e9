//! Durations as people write them.

pub use fernery_core::duration::{parse, show};
