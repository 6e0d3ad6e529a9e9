//! A clock that nobody can explain.

use super::super::finding::{Finding, span};
use fernery_engine::clock_step::{Doubt, REMEDY};

/// Whether the clock is further ahead of what the database has seen than the time in between explains.
pub(crate) fn step(doubt: &Doubt) -> Finding {
    let found = format!("{doubt}: {} ahead; retention is suspended", span(doubt.ahead()));
    Finding::problem("clock_step", found, REMEDY)
}
