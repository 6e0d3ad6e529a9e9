//! Says before an approval that nobody could carry the work out.

use crate::cli::failure::Outcome;
use crate::cli::screen::{Paint, Screen, plain};
use fernery_client::wire::ApprovalView;

/// The warning, if there is a reason for one.
pub(in crate::cli) fn warn(screen: Screen, approval: &ApprovalView) -> Outcome {
    let Some(unmanned) = &approval.unmanned else { return Ok(()) };
    let line = format!("warning: approved, it would wait: {}", plain(&unmanned.why).replace('\n', " "));
    screen.line("")?;
    screen.say_painted(&line, Paint::Bad)
}
