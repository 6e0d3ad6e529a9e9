//! Waiting for what another process does.

use fernery_engine::door::stop_watch;
use std::time::Duration;

/// Nothing here takes longer unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// As [`eventually`], for something that is found.
#[track_caller]
pub(crate) fn until<T>(mut find: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    let so = eventually(|| {
        found = find();
        found.is_some()
    });
    assert!(so, "it did not come to that");
    found.expect("it was just found")
}

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
