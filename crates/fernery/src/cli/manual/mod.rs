//! Generated from the program's own definition of its commands: manual pages and completions.

pub(super) mod complete;
pub(super) mod completions;
pub(super) mod man;
