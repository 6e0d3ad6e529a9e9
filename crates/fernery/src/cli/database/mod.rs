//! Commands on a database itself: copy it, fence it after a restore, confirm the clock after a jump.

pub(super) mod backup;
pub(super) mod clock;
pub(super) mod fence;
mod offline;
