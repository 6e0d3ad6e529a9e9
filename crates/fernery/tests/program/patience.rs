//! Waiting for what another process does.

use fernery_engine::door::stop_watch;
use std::time::Duration;

/// Nothing here takes longer unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again, for as long as anything may take: another process tells nobody when it is done.
#[allow(clippy::disallowed_methods, reason = "another process gives no signal to wait for")]
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let until = stop_watch() + PATIENCE;
    while !is_so() {
        if stop_watch() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
