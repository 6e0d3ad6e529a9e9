//! A worker's name and the folder for its reports: one name, one folder, one process at a time.

use crate::cli::failure::{Failure, Outcome};
use fernery_client::worker::{Gathered, WorkerError, gather_reports};
use fernery_core::WorkerId;
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most workers without a name of their own on one machine.
const UNNAMED_MAX: usize = 1_000;
/// Bytes of a file name; systems allow 255, and some are needed for a suffix.
const FILE_NAME_BYTES_MAX: usize = 200;
/// Lock file beside the spool of a worker without a name of its own.
const LOCK_SUFFIX: &str = ".lock";

/// A name that only this process has while it holds the lock.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) id: WorkerId,
    pub(super) spool: PathBuf,
    _lock: Option<File>,
}

impl Place {
    /// The place under this name. The spool itself sees to it that no other process has it.
    pub(super) fn named(id: WorkerId, base: &Path) -> Self {
        let spool = base.join(file_name(id.as_str()));
        Self { id, spool, _lock: None }
    }

    /// The first free name on this machine.
    pub(super) fn unnamed(base: &Path) -> Outcome<Self> {
        make_base(base)?;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("worker");
        for n in 1..=UNNAMED_MAX {
            let name = format!("{host}-{n}");
            let path = base.join(format!("{}{LOCK_SUFFIX}", file_name(&name)));
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
            let file = file.map_err(|e| unusable(&path, &e))?;
            match file.try_lock() {
                Ok(()) => {
                    let id = WorkerId::new(&name).map_err(|e| Failure::usage(e.to_string()))?;
                    return Ok(Self { _lock: Some(file), ..Self::named(id, base) });
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(unusable(&path, &error)),
            }
        }
        Err(Failure::usage(format!(
            "{UNNAMED_MAX} workers without a name already run here; name this one with --id"
        )))
    }

    /// Takes over the reports that workers without a name have left under names that nobody has now: of two that are
    /// started again, or of one on a machine that got another name, no one comes back under the old one.
    pub(super) fn gather(&self, base: &Path) -> Vec<(PathBuf, Result<Gathered, WorkerError>)> {
        let Ok(files) = base.read_dir() else { return Vec::new() };
        let locks = files.flatten().filter_map(|file| {
            let spool = base.join(file.file_name().to_str()?.strip_suffix(LOCK_SUFFIX)?);
            (spool != self.spool).then(|| (file.path(), spool))
        });
        let mut found = Vec::new();
        for (lock, spool) in locks {
            // Held while its reports are moved, so that nobody starts to work under that name.
            let free = OpenOptions::new().write(true).open(lock).ok().filter(|lock| lock.try_lock().is_ok());
            if free.is_some() {
                let gathered = gather_reports(&spool, &self.spool);
                found.push((spool, gathered));
            }
        }
        found.retain(|(_, gathered)| !matches!(gathered, Ok(nothing) if *nothing == Gathered::default()));
        found
    }
}

/// Makes the folder for the spools of all workers.
pub(super) fn make_base(base: &Path) -> Outcome {
    match DirBuilder::new().recursive(true).mode(0o700).create(base) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(unusable(base, &"it is not a directory"))
        }
        Err(error) => Err(unusable(base, &error)),
    }
}

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("cannot use the spool {}: {why}", path.display()))
}

/// The default folder for reports: in the data directory by which the server was found, else in the user's state
/// directory, per server. A report to another server would be lost.
pub(super) fn spool_base(found_in: Option<&Path>, url: &str) -> Outcome<PathBuf> {
    if let Some(data) = found_in {
        return Ok(data.join("spool"));
    }
    let dir = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = dir("XDG_STATE_HOME").or_else(|| dir("HOME").map(|home| home.join(".local/state")));
    let Some(state) = state.filter(|dir| dir.is_absolute()) else {
        return Err(Failure::usage("no directory to keep reports in: set --spool, XDG_STATE_HOME or HOME"));
    };
    let server = url.split_once("://").map_or(url, |(_, rest)| rest);
    Ok(state.join("fernery/spool").join(file_name(server)))
}

/// A text as a file name. If it is too long, it is cut and ends in a digest.
fn file_name(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte as char),
            b'.' if !name.is_empty() => name.push('.'),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    if name.len() > FILE_NAME_BYTES_MAX {
        let hash = fernery_core::hex(&Sha256::digest(text)[..16]);
        name.truncate(FILE_NAME_BYTES_MAX - 1 - hash.len());
        name = format!("{name}~{hash}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_a_name_of_its_own_and_a_later_one_gets_it_again() {
        let base = tempfile::tempdir().unwrap();
        let first = Place::unnamed(base.path()).unwrap();
        let second = Place::unnamed(base.path()).unwrap();
        assert_ne!((&first.id, &first.spool), (&second.id, &second.spool));
        let id = first.id.clone();
        drop(first);
        assert_eq!(Place::unnamed(base.path()).unwrap().id, id);
    }

    #[test]
    fn file_names_neither_escape_their_folder_nor_collide() {
        assert_eq!(file_name("host.example-1"), "host.example-1");
        assert_eq!(file_name("../a/b"), "%2e.%2fa%2fb");
        assert_eq!(file_name("."), "%2e");
        assert_ne!(file_name("a:b"), file_name("a/b"));
        let long = |end: &str| file_name(&format!("{}{end}", "ä".repeat(199)));
        assert_eq!((long("a").len(), long("b").len()), (FILE_NAME_BYTES_MAX, FILE_NAME_BYTES_MAX));
        assert_ne!(long("a"), long("b"));
        assert_eq!(file_name(&"a".repeat(200)), "a".repeat(200));
        assert_eq!(spool_base(Some(Path::new("d")), "http://x").unwrap(), Path::new("d/spool"));
    }
}
