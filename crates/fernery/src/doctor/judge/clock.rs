//! A clock that has jumped ahead.

use super::super::finding::{Finding, span};
use fernery_engine::clock_step::{Doubt, REMEDY};

/// Whether the clock is further ahead of the newest timestamp in the database than the time since then explains.
pub(crate) fn step(doubt: &Doubt) -> Finding {
    let found = format!("{doubt}: {} ahead; retention is suspended", span(doubt.ahead()));
    Finding::problem("clock_step", found, REMEDY)
}
