//! Whether the clock can be trusted when a database is opened after some time.
//!
//! A clock that was set far ahead would let retention delete what finished a moment ago, and leave instants of the future in
//! the database. So each database keeps the newest instant that was current, with the boot of the machine and the time since
//! then. What the clock says beyond that, and beyond the time that the process can be shown to have been away, is a step.

use crate::door::Boot;
use fernery_core::Timestamp;
use std::fmt;
use std::time::Duration;

/// A step up to this long is believed: a day, and a weekend in which a machine was off, or a virtual one stood still. Nothing
/// on it can tell: the time since boot stands still with it.
pub const STEP_MAX: Duration = Duration::from_secs(4 * 24 * 3600);

/// An instant, and where in the life of the machine it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What the clock said.
    pub at: Timestamp,
    /// In which boot.
    pub boot: Boot,
}

/// What is known about the time in between, if the machine was booted since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// It lasted at least this long.
    pub at_least: Duration,
    /// The clock had got this far before the process was started.
    pub seen_at: Option<Timestamp>,
}

/// A clock that is ahead of all that can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// What it says.
    pub clock_at: Timestamp,
    /// How late it can be by what is known.
    pub expected_at: Timestamp,
}

impl Doubt {
    /// The step that nothing explains.
    pub fn ahead(&self) -> Duration {
        self.clock_at.since(self.expected_at)
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the clock says {}, but by the timestamps in the database it can be {} at the latest",
            self.clock_at, self.expected_at
        )
    }
}

/// Says what to do about a [`Doubt`].
pub const REMEDY: &str = "if the clock is wrong, correct it; if it is right (the server was off for a long \
    time), run `fernery clock confirm` (on SQLite, stop the server before and start it after). Until then \
    retention is suspended, and on SQLite new entries are dated in the past";

/// Judges what the clock says now against the last instant that was kept. A database that has kept none, or a kernel that never
/// tells boots apart, gives no reason for doubt. An earlier version kept the instant without its boot: another boot, then.
pub fn judge(kept: &Reading, now: &Reading, between: Between) -> Option<Doubt> {
    if kept.at == Timestamp::default() || (kept.boot.id == 0 && now.boot.id == 0) {
        return None;
    }
    let ms = Duration::from_millis;
    let same_boot = kept.boot.id == now.boot.id && now.boot.up_ms >= kept.boot.up_ms;
    let expected_at = match same_boot {
        // The times of files prove nothing here: while somebody served, they were written by the clock that is judged.
        true => kept.at.after(ms(now.boot.up_ms.abs_diff(kept.boot.up_ms))),
        false => kept.at.max(between.seen_at.unwrap_or(kept.at)).after(between.at_least),
    };
    let doubt = Doubt { clock_at: now.at, expected_at };
    (doubt.ahead() > STEP_MAX).then_some(doubt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + ms)
    }

    fn reading(ms: i64, id: i64, up_ms: i64) -> Reading {
        Reading { at: at(ms), boot: Boot { id, up_ms } }
    }

    #[test]
    fn a_step_is_what_neither_uptime_nor_files_explain() {
        let kept = reading(0, 7, 50 * DAY);
        let off = |up_ms: i64| Between { at_least: Duration::from_millis(up_ms as u64), seen_at: None };
        for (what, now, between, ahead) in [
            ("no time has passed", reading(0, 7, 50 * DAY), off(0), None),
            ("a long stop in one boot", reading(90 * DAY, 7, 140 * DAY), off(140 * DAY), None),
            ("a step in one boot", reading(90 * DAY, 7, 50 * DAY + HOUR), off(0), Some(90 * DAY - HOUR)),
            ("a reboot", reading(HOUR, 8, HOUR / 2), off(HOUR / 2), None),
            ("a weekend in which a virtual machine stood still", reading(5 * DAY, 7, 51 * DAY), off(0), None),
            ("longer than that", reading(5 * DAY + 1, 7, 51 * DAY), off(0), Some(4 * DAY + 1)),
            ("a weekend without power", reading(4 * DAY, 8, 0), off(0), None),
            ("longer than a weekend", reading(4 * DAY + 1, 8, 0), off(0), Some(4 * DAY + 1)),
            ("a clock far ahead", reading(400 * DAY, 8, HOUR), off(HOUR), Some(400 * DAY - HOUR)),
            ("a reboot long ago", reading(400 * DAY, 8, 399 * DAY), off(399 * DAY), None),
            ("a clock that was set back", reading(-9 * DAY, 8, 0), off(0), None),
            ("a kernel that does not tell", reading(400 * DAY, 0, 0), off(0), Some(400 * DAY)),
        ] {
            let expected = ahead.map(|ms| Duration::from_millis(ms as u64));
            assert_eq!(judge(&kept, &now, between).map(|doubt| doubt.ahead()), expected, "{what}");
        }
        let restored = Between { at_least: Duration::ZERO, seen_at: Some(at(400 * DAY - HOUR)) };
        assert_eq!(
            judge(&kept, &reading(400 * DAY, 8, 0), restored),
            None,
            "a backup was restored an hour ago"
        );
        let none = Reading { at: Timestamp::default(), boot: Boot { id: 0, up_ms: 0 } };
        assert_eq!(judge(&none, &reading(400 * DAY, 8, 0), off(0)), None, "nothing was kept yet");
        let earlier = reading(0, 0, 0);
        assert!(judge(&earlier, &reading(400 * DAY, 8, 0), off(0)).is_some(), "kept by an earlier version");
        assert_eq!(judge(&earlier, &reading(90 * DAY, 8, 0), off(90 * DAY)), None, "it ended in this boot");
        assert_eq!(judge(&earlier, &reading(400 * DAY, 0, 0), off(0)), None, "boots are never told apart");
    }
}
