//! The database file.

use super::super::finding::{Finding, Level, bytes, span};
use fernery_core::Timestamp;
use std::time::Duration;

/// SQLite's number for `synchronous = FULL`.
const FULL: i64 = 2;
/// With less free space in the file, VACUUM is not worth it.
const FREE_MIN: u64 = 256 << 20;
/// A write-ahead log this many times over its limit will not shrink by itself.
const WAL_RUNAWAY: u64 = 16;

/// The durability settings of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    pub(crate) journal_mode: &'a str,
    /// The value that a server of this version sets.
    pub(crate) synchronous: i64,
    /// Whether a server has it open.
    pub(crate) served: bool,
}

/// Whether every acknowledged commit was synced.
pub(crate) fn durability(kept: Kept<'_>) -> Finding {
    const CHECK: &str = "durability";
    let sync = if kept.synchronous == FULL { "FULL".to_string() } else { kept.synchronous.to_string() };
    let found = format!("journal_mode={}, a server sets synchronous={sync}", kept.journal_mode);
    if kept.synchronous < FULL {
        return Finding::problem(
            CHECK,
            format!("{found}: a power failure may lose acknowledged commits"),
            "use an unmodified build of Fernery",
        );
    }
    match kept.journal_mode {
        "wal" => Finding::ok(CHECK, format!("{found}: every commit is synced before it is acknowledged")),
        _ if kept.served => Finding::problem(
            CHECK,
            format!("{found}, but a server has it open and needs wal"),
            "restart the server; no other program may change the journal mode of its database",
        ),
        _ => Finding::ok(CHECK, format!("{found}; the next start sets wal")),
    }
}

/// Whether the file has the schema version of this program.
pub(crate) fn schema(found: usize, known: usize, served: bool) -> Finding {
    const CHECK: &str = "schema";
    let text = format!("schema version {found}, this program makes {known}");
    match found {
        0 => Finding::warning(CHECK, "the file has no schema yet", "`fernery up` makes it"),
        _ if found == known => Finding::ok(CHECK, format!("schema version {found}")),
        _ if found > known => {
            Finding::problem(CHECK, text, "use the newer version that made it: this one refuses to open it")
        }
        _ if served => Finding::warning(
            CHECK,
            text,
            "restart the server: it is still an older version, and the newer one migrates the database",
        ),
        _ => Finding::warning(
            CHECK,
            text,
            "`fernery up` migrates it, and keeps a copy of the old file; run `fernery backup` before, \
            because there is no way back",
        ),
    }
}

/// Whether the clock is behind the newest timestamp in the file.
pub(crate) fn clock(newest_at: Timestamp, wall: Timestamp) -> Finding {
    const CHECK: &str = "clock";
    let ahead = u64::try_from(newest_at.as_millis() - wall.as_millis()).unwrap_or(0);
    let behind = Duration::from_millis(ahead);
    let level = match ahead {
        0..2_000 => Level::Ok,
        2_000..3_600_000 => Level::Warning,
        _ => Level::Problem,
    };
    let found = match level {
        Level::Ok => "the clock is not behind the newest timestamp in the database".to_string(),
        _ => format!(
            "the clock is {} behind the newest timestamp in the database: it was set back",
            span(behind)
        ),
    };
    let remedy = "correct the machine's clock (`timedatectl status`): leases are safe, because they \
        continue from the newest timestamp, but scheduled jobs start late";
    Finding::at(level, CHECK, found, remedy)
}

/// Whether checkpoints keep the write-ahead log within its limit.
pub(crate) fn wal_size(wal: u64, limit: u64, served: bool) -> Finding {
    const CHECK: &str = "wal_size";
    let found = format!("the write-ahead log has {}, its limit is {}", bytes(wal), bytes(limit));
    let level = match wal {
        _ if wal <= limit => Level::Ok,
        _ if wal <= limit.saturating_mul(WAL_RUNAWAY) => Level::Warning,
        _ => Level::Problem,
    };
    let remedy = if served {
        "a long-running reader prevents a checkpoint: find it with `fuser` on the database file and let it \
        finish; a running backup is such a reader"
    } else {
        "`fernery up` checkpoints it"
    };
    Finding::at(level, CHECK, found, remedy)
}

/// Whether much of the file is free pages.
pub(crate) fn free_pages(file: u64, free: u64) -> Finding {
    const CHECK: &str = "free_pages";
    let found = format!("the database file has {}; {} of it are free pages", bytes(file), bytes(free));
    let level = if free > FREE_MIN && free > file / 2 { Level::Warning } else { Level::Ok };
    let remedy = "new jobs will use them; to shrink the file, stop the server, run `fernery backup` to a \
        new file and replace the database with it";
    Finding::at(level, CHECK, found, remedy)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{Ok, Problem, Warning};
    use super::*;

    #[test]
    fn a_commit_that_is_not_synced_is_a_problem() {
        for (journal_mode, synchronous, served, level) in [
            ("wal", 2, true, Ok),
            ("wal", 3, true, Ok),
            ("wal", 1, true, Problem),
            ("wal", 0, false, Problem),
            ("delete", 2, false, Ok),
            ("delete", 2, true, Problem),
        ] {
            let kept = Kept { journal_mode, synchronous, served };
            assert_eq!(durability(kept).level, level, "{kept:?}");
        }
    }

    #[test]
    fn a_different_schema_version_is_reported() {
        for (found, known, served, level) in [
            (2, 2, true, Ok),
            (1, 2, false, Warning),
            (1, 2, true, Warning),
            (3, 2, false, Problem),
            (0, 2, false, Warning),
        ] {
            assert_eq!(schema(found, known, served).level, level, "{found} {known}");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_is_told() {
        let wall = 1_000_000_000;
        for (newest, level) in [
            (0, Ok),
            (wall, Ok),
            (wall + 1_999, Ok),
            (wall + 2_000, Warning),
            (wall + 3_599_999, Warning),
            (wall + 3_600_000, Problem),
        ] {
            let finding = clock(Timestamp::from_millis(newest), Timestamp::from_millis(wall));
            assert_eq!(finding.level, level, "{newest}");
        }
    }

    #[test]
    fn a_log_over_its_limit_and_a_file_of_free_pages_are_reported() {
        const LIMIT: u64 = 64 << 20;
        for (wal, level) in
            [(0, Ok), (LIMIT, Ok), (LIMIT + 1, Warning), (16 * LIMIT, Warning), (16 * LIMIT + 1, Problem)]
        {
            assert_eq!(wal_size(wal, LIMIT, true).level, level, "{wal}");
        }
        for (file, free, level) in [
            (1 << 20, 1 << 20, Ok),
            (1 << 30, 500 << 20, Ok),
            (1 << 30, 600 << 20, Warning),
            (400 << 20, 257 << 20, Warning),
        ] {
            assert_eq!(free_pages(file, free).level, level, "{file} {free}");
        }
    }
}
