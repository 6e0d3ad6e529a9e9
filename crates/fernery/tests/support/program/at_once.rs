//! Tests that start many servers and mostly wait.

use std::sync::atomic::{AtomicUsize, Ordering};

/// More would only get into each other's way on a small machine.
const AT_ONCE: usize = 4;

/// Does each of these, a few at once: most of their time they wait for leases to run out.
pub(crate) fn at_once<T: Sync>(all: &[T], each: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    each(one);
                }
            });
        }
    });
}
