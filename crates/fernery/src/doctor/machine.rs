//! Measures the machine: disk space, limits, file modes, the kind of file system, and the time of real syncs.

use super::finding::Finding;
use super::judge::machine::{self as judge, FileLimit, Left, Medium, Private, SyncTimes};
use crate::http::token_path;
use fernery_client::wire::Role;
use fernery_engine::door;
use fernery_exec::sandbox::modes::{MENDED_FILE, mended};
use rustix::process::{Resource, getrlimit};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Writes in the measurement; the median counts.
const SYNC_WRITES: usize = 15;
/// A page, as the database writes them.
const SYNC_BYTES: usize = 4_096;

/// The folder of a path, or the nearest one above it that is there.
pub(super) fn nearest_folder(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Free space on the file systems of these folders; each file system is reported once.
pub(super) fn disk_space(folders: &[PathBuf]) -> Vec<Finding> {
    let mut seen = Vec::new();
    let mut findings = Vec::new();
    for folder in folders {
        let device = fs::metadata(folder).map(|meta| meta.dev()).ok();
        if seen.contains(&device) {
            continue;
        }
        seen.push(device);
        findings.push(match rustix::fs::statvfs(folder) {
            Ok(stat) => {
                let room = Left {
                    free: stat.f_bavail.saturating_mul(stat.f_frsize),
                    total: stat.f_blocks.saturating_mul(stat.f_frsize),
                };
                let inodes = Left { free: stat.f_favail, total: stat.f_files };
                judge::disk_space(folder, room, inodes)
            }
            Err(error) => unseen("disk_space", folder, &error.into()),
        });
    }
    findings
}

fn unseen(check: &'static str, path: &Path, error: &io::Error) -> Finding {
    Finding::warning(
        check,
        format!("cannot inspect {}: {error}", path.display()),
        "run this command as the user that runs the server",
    )
}

/// The kind of file system, and how long a sync takes there.
pub(super) fn syncing(folder: &Path) -> Vec<Finding> {
    let (name, medium) = match rustix::fs::statfs(folder) {
        Ok(stat) => kind((stat.f_type as u64) & 0xffff_ffff),
        Err(error) => return vec![unseen("file_system", folder, &error.into())],
    };
    let trial = match time_syncs(folder) {
        Ok(times) => judge::sync_time(folder, times, medium),
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            Finding::warning(
                "sync_time",
                format!("not measured: cannot write to {}: {error}", folder.display()),
                "run this command as the user that runs the server; it must be able to write there",
            )
        }
        Err(error) => Finding::problem(
            "sync_time",
            format!("a write to {} failed: {error}", folder.display()),
            "a server cannot store anything there: free some space, or check the kernel log (`dmesg`)",
        ),
    };
    vec![judge::file_system(folder, &name, medium), trial]
}

fn kind(magic: u64) -> (String, Medium) {
    const KNOWN: &[(u64, &str, Medium)] = &[
        (0xef53, "ext4", Medium::Disk),
        (0x5846_5342, "xfs", Medium::Disk),
        (0x9123_683e, "btrfs", Medium::Disk),
        (0x2fc1_2fc1, "zfs", Medium::Disk),
        (0xf2f5_2010, "f2fs", Medium::Disk),
        (0xca45_1a4e, "bcachefs", Medium::Disk),
        (0x0102_1994, "tmpfs", Medium::Memory),
        (0x8584_58f6, "ramfs", Medium::Memory),
        (0x794c_7630, "overlayfs", Medium::Layer),
        (0x6573_5546, "fuse", Medium::Program),
    ];
    match KNOWN.iter().find(|(known, ..)| *known == magic) {
        Some((_, name, medium)) => ((*name).to_string(), *medium),
        None => (format!("file system {magic:#x}"), Medium::Unknown),
    }
}

/// The file of the measurement; it is removed when this is dropped.
struct Probe(PathBuf);

impl Drop for Probe {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn time_syncs(folder: &Path) -> io::Result<SyncTimes> {
    let path = folder.join(format!(".doctor-{:016x}", u64::from_ne_bytes(door::random_bytes())));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let _probe = Probe(path);
    let page = [0x46; SYNC_BYTES];
    let mut times = Vec::with_capacity(SYNC_WRITES);
    for _ in 0..SYNC_WRITES {
        let watch = door::stop_watch();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&page)?;
        file.sync_data()?;
        times.push(watch.elapsed());
    }
    times.sort();
    Ok(SyncTimes { median: times[SYNC_WRITES / 2], worst: times[SYNC_WRITES - 1] })
}

/// The limit of open files: the running server's, or else this command's.
pub(super) fn file_limit(server: Option<u32>) -> Finding {
    let of_server = server.and_then(|pid| {
        let text = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let (soft, hard) = open_files(&text)?;
        Some(FileLimit { soft, hard, server: Some(pid) })
    });
    judge::file_limit(of_server.unwrap_or_else(|| {
        let own = getrlimit(Resource::Nofile);
        let unlimited = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        FileLimit { soft: unlimited(own.current), hard: unlimited(own.maximum), server: None }
    }))
}

/// The soft and the hard limit, from the text of `/proc/PID/limits`.
fn open_files(limits: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut numbers = line.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some((numbers.next()??, numbers.next()??))
}

/// Whether others can read the data directory and the tokens in it.
pub(super) fn modes(data: &Path) -> Vec<Finding> {
    let meta = match fs::metadata(data) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let found = format!("{} does not exist yet; `fernery up` creates it", data.display());
            return vec![Finding::ok("data_directory", found)];
        }
        Err(error) => return vec![unseen("data_directory", data, &error)],
    };
    if !meta.is_dir() {
        return vec![Finding::problem(
            "data_directory",
            format!("{} is not a directory", data.display()),
            "name another directory with --data, or move that file",
        )];
    }
    let mut findings = vec![judge::mode(data, meta.mode(), Private::Directory)];
    for role in [Role::Operator, Role::Worker] {
        findings.extend(file_mode(&token_path(data, role), "token_file", Private::Token));
    }
    let noted = data.join(MENDED_FILE);
    match mended(data) {
        Ok(mended) => findings.extend(judge::mended(&mended, &noted)),
        Err(error) => findings.push(unseen("mended_modes", &noted, &error)),
    }
    findings
}

/// Whether others can read a file; `None` if it is not there.
pub(super) fn file_mode(path: &Path, check: &'static str, what: Private) -> Option<Finding> {
    match fs::metadata(path) {
        Ok(meta) => Some(judge::mode(path, meta.mode(), what)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(unseen(check, path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_of_limits_is_read() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max processes             62895                62895                processes \n\
                     Max open files            1024                 unlimited            files     \n";
        assert_eq!(open_files(table), Some((1_024, u64::MAX)));
        assert_eq!(open_files("Max open files   many  files"), None);
        assert_eq!(open_files(""), None);
    }

    #[test]
    fn the_sync_measurement_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let times = time_syncs(folder.path()).expect("measured");
        assert!(times.median <= times.worst);
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 0);
        assert!(time_syncs(&folder.path().join("missing")).is_err());
    }
}
