//! Where in a stream a claim starts to look.
//!
//! Claimed rows stay in the index of `ready` until they are vacuumed, and a claim that starts at the front walks over all
//! of them: measured, three times the time after a minute of load. So a claim starts where the last one ended. What
//! appears before that place (a promoted job, one that was put back, an enqueue that committed late) is found by a look
//! from the front: whenever there was less than asked, and for every stream several times a second. A hint, like a nudge:
//! wrong, it costs a moment.

use crate::supervise::lock;
use fernery_core::StreamName;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// The front of the line.
pub(super) const FRONT: i64 = i64::MIN;
/// How long a busy stream is not looked at from the front.
const WINDOW: Duration = Duration::from_millis(100);
/// Streams that are remembered; beyond that all are forgotten.
const STREAMS_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct ScanStarts {
    known: Mutex<HashMap<StreamName, ScanStart>>,
}

#[derive(Clone, Copy)]
struct ScanStart {
    seq: i64,
    until: Instant,
}

impl ScanStarts {
    /// Where to start in each of these streams.
    pub(super) fn starts(&self, streams: &[StreamName], now: Instant) -> Vec<i64> {
        let known = lock(&self.known);
        let start = |stream| known.get(stream).filter(|head| now < head.until).map_or(FRONT, |head| head.seq);
        streams.iter().map(start).collect()
    }

    /// A claim from `start` got all it asked for, the last of this stream at `last`, if any.
    pub(super) fn passed(&self, stream: &StreamName, start: i64, last: Option<i64>, now: Instant) {
        let mut known = lock(&self.known);
        if known.len() >= STREAMS_MAX {
            known.clear();
        }
        match (known.get_mut(stream), last) {
            (Some(head), last) => {
                head.seq = last.map_or(head.seq, |last| last + 1);
                if start == FRONT {
                    head.until = now + WINDOW;
                }
            }
            (None, Some(last)) => {
                known.insert(stream.clone(), ScanStart { seq: last + 1, until: now + WINDOW });
            }
            (None, None) => {}
        }
    }

    /// Something may stand before the place: the next look is from the front.
    pub(super) fn forget(&self, stream: &StreamName) {
        lock(&self.known).remove(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_stream_is_looked_at_from_the_front_again_and_again() {
        let scan_starts = ScanStarts::default();
        let streams = [StreamName::stored("s")];
        let start = Instant::now();
        assert_eq!(scan_starts.starts(&streams, start), [FRONT]);
        scan_starts.passed(&streams[0], FRONT, Some(7), start);
        assert_eq!(scan_starts.starts(&streams, start), [8]);
        scan_starts.passed(&streams[0], 8, Some(9), start + WINDOW / 2);
        assert_eq!(scan_starts.starts(&streams, start + WINDOW / 2), [10]);
        let later = start + WINDOW;
        assert_eq!(scan_starts.starts(&streams, later), [FRONT], "however much it is claimed from");
        scan_starts.passed(&streams[0], FRONT, Some(3), later);
        assert_eq!(
            scan_starts.starts(&streams, later),
            [4],
            "what was found before the place is not jumped over"
        );
        scan_starts.forget(&streams[0]);
        assert_eq!(scan_starts.starts(&streams, later), [FRONT]);
    }
}
