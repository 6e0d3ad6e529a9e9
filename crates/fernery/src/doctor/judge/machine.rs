//! The machine: disk space, limits, file modes, and whether a sync really reaches the disk.

use super::super::finding::{Finding, Level, bytes, span};
use fernery_exec::sandbox::modes::Mended;
use std::path::Path;
use std::time::Duration;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// With less free space, the next burst of jobs may fill the disk.
const ROOM_MIN: u64 = 256 * MIB;
/// Waiting claims that a server should be able to hold; each needs one connection, and so one open file.
const WAITING_CLAIMS: u64 = 10_000;
/// Open files besides the connections: the database, its readers, logs.
const OTHER_FILES: u64 = 256;

/// What is left of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) free: u64,
    pub(crate) total: u64,
}

impl Left {
    fn percent(self) -> u64 {
        self.free.saturating_mul(100).checked_div(self.total).unwrap_or(100)
    }
}

/// Free space and inodes on the file system of `folder`.
pub(crate) fn disk_space(folder: &Path, room: Left, inodes: Left) -> Finding {
    const CHECK: &str = "disk_space";
    let place = folder.display();
    let mut found = format!("{place}: {} free ({} %)", bytes(room.free), room.percent());
    // A file system that creates inodes on demand reports a total of 0.
    let inodes_level = match inodes {
        Left { total: 0, .. } => Level::Ok,
        Left { free: 0..1_000, .. } => Level::Problem,
        _ if inodes.percent() < 5 => Level::Warning,
        _ => Level::Ok,
    };
    if inodes.total > 0 {
        found = format!("{found}, {} inodes free ({} %)", inodes.free, inodes.percent());
    }
    let room_level = match room {
        Left { free, .. } if free < ROOM_MIN => Level::Problem,
        Left { free, .. } if free < 2 * GIB => Level::Warning,
        Left { free, .. } if room.percent() < 10 && free < 20 * GIB => Level::Warning,
        _ => Level::Ok,
    };
    let remedy = if room_level >= inodes_level {
        "free some space, or move the data directory to a larger disk: on a full disk no job can be stored \
        or finished; a shorter `retention` deletes finished jobs earlier"
    } else {
        "the file system is running out of inodes: delete many small files on it"
    };
    Finding::at(room_level.max(inodes_level), CHECK, found, remedy)
}

/// What kind of file system holds the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// It keeps what was synced.
    Disk,
    /// It is in memory, and lost at a restart.
    Memory,
    /// The top layer of a container (overlayfs), lost with the container.
    Layer,
    /// A program serves it (FUSE).
    Program,
    Unknown,
}

/// Whether a file there survives a restart of the machine.
pub(crate) fn file_system(folder: &Path, name: &str, medium: Medium) -> Finding {
    const CHECK: &str = "file_system";
    let found = format!("{} is on {name}", folder.display());
    match medium {
        Medium::Disk => Finding::ok(CHECK, found),
        Medium::Memory => Finding::problem(
            CHECK,
            format!("{found}, which is in memory"),
            "move the database to a disk: all jobs are lost when the machine restarts",
        ),
        Medium::Layer => Finding::warning(
            CHECK,
            format!("{found}, the layer of a container"),
            "put the database on a volume: all jobs are lost when the container is replaced",
        ),
        Medium::Program => Finding::warning(
            CHECK,
            format!("{found}, which another program provides (FUSE)"),
            "make sure that it keeps synced data, or move the database to a local disk",
        ),
        Medium::Unknown => Finding::ok(CHECK, format!("{found}, which this program does not know")),
    }
}

/// How long real writes took to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncTimes {
    pub(crate) median: Duration,
    pub(crate) worst: Duration,
}

/// Every commit waits for one sync, which it shares with the commits that arrive meanwhile.
const SYNC_SLOW: Duration = Duration::from_millis(50);
/// No durable device is this fast: something in between acknowledges the sync without doing it.
const SYNC_TOO_FAST: Duration = Duration::from_micros(8);

/// Whether syncs are quick enough, and slow enough to be real.
pub(crate) fn sync_time(folder: &Path, times: SyncTimes, medium: Medium) -> Finding {
    const CHECK: &str = "sync_time";
    let place = folder.display();
    let found =
        format!("{place}: a synced write takes {} (slowest: {})", span(times.median), span(times.worst));
    if times.median > SYNC_SLOW {
        let remedy = "use a faster disk, or take load off this one: every commit waits for a sync";
        return Finding::warning(CHECK, found, remedy);
    }
    if times.median < SYNC_TOO_FAST && medium == Medium::Disk {
        let remedy = "something may only pretend to sync (libeatmydata, a virtual disk with cache=unsafe): \
            make sure that a power failure loses nothing";
        return Finding::warning(CHECK, found, remedy);
    }
    Finding::ok(CHECK, found)
}

/// How many files a process may have open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileLimit {
    pub(crate) soft: u64,
    pub(crate) hard: u64,
    /// The process id of the running server; `None`: these are the limits of this command.
    pub(crate) server: Option<u32>,
}

/// Whether enough claims can wait at once.
pub(crate) fn file_limit(limit: FileLimit) -> Finding {
    const CHECK: &str = "file_limit";
    let shown = |n: u64| if n == u64::MAX { "unlimited".to_string() } else { n.to_string() };
    // A server raises its soft limit to the hard limit when it starts.
    let (counts, whose) = match limit.server {
        Some(pid) => (limit.soft, format!("process {pid} may open {} files", shown(limit.soft))),
        None => (
            limit.hard,
            format!("{} files; a server raises this to {} for itself", shown(limit.soft), shown(limit.hard)),
        ),
    };
    if counts >= WAITING_CLAIMS + OTHER_FILES {
        return Finding::ok(CHECK, whose);
    }
    let claims = counts.saturating_sub(OTHER_FILES);
    Finding::warning(
        CHECK,
        format!("{whose}: only about {claims} claims can wait at once, instead of {WAITING_CLAIMS}"),
        "raise it where the server is started: LimitNOFILE=65536 in its systemd unit, or `ulimit -Hn 65536`",
    )
}

/// Something that only its owner should be able to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Private {
    Directory,
    Database,
    Token,
}

/// Whether other users can read a private file or folder.
pub(crate) fn mode(path: &Path, mode: u32, what: Private) -> Finding {
    let (check, wanted) = match what {
        Private::Directory => ("data_directory", 0o700),
        Private::Database => ("database_file", 0o600),
        Private::Token => ("token_file", 0o600),
    };
    let mode = mode & 0o7777;
    let path = path.display();
    let found = format!("{path} has mode {mode:04o}");
    if mode & 0o077 == 0 {
        return Finding::ok(check, found);
    }
    match what {
        Private::Token => Finding::problem(
            check,
            format!("{found}: other users can use it, and a server refuses to start with it"),
            format!(
                "`chmod {wanted:o} {path}`; if somebody may have read it, `fernery token revoke` it, delete the file and \
                 start the server again"
            ),
        ),
        Private::Directory | Private::Database => Finding::warning(
            check,
            format!("{found}: other users can access it"),
            format!("`chmod {wanted:o} {path}`"),
        ),
    }
}

/// File modes that the server restored after a run. The files may have been read before that. `noted` is the file with the
/// server's notes about it.
pub(crate) fn mended(mended: &[Mended], noted: &Path) -> Option<Finding> {
    let last = mended.last()?;
    let file = last.file.display();
    Some(Finding::warning(
        "mended_modes",
        format!(
            "the mode of a private file was changed {} times while a program ran; last: {file} had {} at \
            {}, and was reset to {}",
            mended.len(),
            last.found,
            last.at,
            last.restored
        ),
        format!(
            "find out which program did it (the server's log names the time); if a token was open, `fernery token revoke` it, \
             delete its file and start the server again; then delete {}",
            noted.display()
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{Ok, Problem, Warning};
    use super::*;

    #[test]
    fn room_is_judged_by_what_is_free_and_by_its_share() {
        let plenty = Left { free: 1_000_000, total: 2_000_000 };
        for (free, total, inodes, level) in [
            (100 * GIB, 200 * GIB, plenty, Ok),
            (30 * GIB, 1_000 * GIB, plenty, Ok),
            (15 * GIB, 1_000 * GIB, plenty, Warning),
            (15 * GIB, 100 * GIB, plenty, Ok),
            (GIB, 2 * GIB, plenty, Warning),
            (255 * MIB, 500 * MIB, plenty, Problem),
            (0, 500 * MIB, plenty, Problem),
            (100 * GIB, 200 * GIB, Left { free: 0, total: 0 }, Ok),
            (100 * GIB, 200 * GIB, Left { free: 49_999, total: 1_000_000 }, Warning),
            (100 * GIB, 200 * GIB, Left { free: 999, total: 2_000 }, Problem),
            (0, 0, plenty, Problem),
        ] {
            let room = Left { free, total };
            assert_eq!(disk_space(Path::new("/d"), room, inodes).level, level, "{room:?} {inodes:?}");
        }
    }

    #[test]
    fn a_file_system_that_forgets_is_told() {
        for (medium, level) in [
            (Medium::Disk, Ok),
            (Medium::Unknown, Ok),
            (Medium::Memory, Problem),
            (Medium::Layer, Warning),
            (Medium::Program, Warning),
        ] {
            assert_eq!(file_system(Path::new("/d"), "x", medium).level, level, "{medium:?}");
        }
    }

    #[test]
    fn a_slow_or_faked_sync_is_reported() {
        for (micros, medium, level) in [
            (500, Medium::Disk, Ok),
            (50_000, Medium::Disk, Ok),
            (50_001, Medium::Disk, Warning),
            (8, Medium::Disk, Ok),
            (7, Medium::Disk, Warning),
            (1, Medium::Memory, Ok),
        ] {
            let times = SyncTimes { median: Duration::from_micros(micros), worst: Duration::from_secs(1) };
            assert_eq!(sync_time(Path::new("/d"), times, medium).level, level, "{micros} {medium:?}");
        }
    }

    #[test]
    fn the_file_limit_is_that_of_the_running_or_the_next_server() {
        for (soft, hard, server, level) in [
            (1_024, 1_048_576, None, Ok),
            (1_024, 10_256, None, Ok),
            (1_024, 10_255, None, Warning),
            (1_024, u64::MAX, None, Ok),
            (1_024, 1_048_576, Some(7), Warning),
            (10_256, 10_256, Some(7), Ok),
            (100, 100, None, Warning),
        ] {
            let limit = FileLimit { soft, hard, server };
            assert_eq!(file_limit(limit).level, level, "{limit:?}");
        }
    }

    #[test]
    fn what_others_can_read_is_told() {
        for (bits, what, level) in [
            (0o600, Private::Token, Ok),
            (0o100_600, Private::Token, Ok),
            (0o400, Private::Token, Ok),
            (0o640, Private::Token, Problem),
            (0o604, Private::Token, Problem),
            (0o700, Private::Directory, Ok),
            (0o755, Private::Directory, Warning),
            (0o710, Private::Directory, Warning),
            (0o600, Private::Database, Ok),
            (0o644, Private::Database, Warning),
        ] {
            assert_eq!(mode(Path::new("/d/f"), bits, what).level, level, "{bits:o} {what:?}");
        }
    }
}
