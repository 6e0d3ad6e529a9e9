//! Judges what was measured: pure functions from numbers to findings.

pub(super) mod clock;
pub(super) mod machine;
pub(super) mod peers;
pub(super) mod postgres;
pub(super) mod process;
pub(super) mod redis;
pub(super) mod sandbox;
pub(super) mod settings;
pub(super) mod sqlite;
