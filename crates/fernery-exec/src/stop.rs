//! Why a program that works under a lease is told to stop. (The loop of `fernery worker` has finer reasons of its own; the
//! binary maps them to these.)

use fernery_core::pipeline::patching::Cut;
use std::time::Duration;

/// Why a program is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Nobody wants its work any more.
    Cancelled,
    /// The rest of its budget is for handing in what there is.
    BudgetSpent,
    /// The process that runs it is about to end.
    ShuttingDown,
    /// Another may hold its work by now.
    LeaseLost,
}

impl StopReason {
    /// What it says about the work; `None`: nothing, for the work is tried again from the start.
    pub fn cut(self) -> Option<Cut> {
        match self {
            Self::Cancelled => Some(Cut::Cancelled),
            Self::BudgetSpent => Some(Cut::Budget),
            Self::ShuttingDown | Self::LeaseLost => None,
        }
    }
}

/// The order to stop: TERM, the grace, KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopOrder {
    pub reason: StopReason,
    pub grace: Duration,
}
