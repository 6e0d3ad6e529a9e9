//! What a worker calls itself, and where it keeps its reports: one name, one directory, one process at a time.

use crate::cli::failure::{Failure, Outcome};
use fernery_core::WorkerId;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Workers without a name of their own on one machine.
const UNNAMED_MAX: usize = 1_000;

/// A name that is this process's alone as long as it holds it.
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

    /// The first free name on this machine: a worker that is started again finds the reports that it has left.
    pub(super) fn unnamed(base: &Path) -> Outcome<Self> {
        let unusable = |path: &Path, error: std::io::Error| {
            Failure::usage(format!("the spool {} cannot be used: {error}", path.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(base).map_err(|e| unusable(base, e))?;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("worker");
        for n in 1..=UNNAMED_MAX {
            let name = format!("{host}-{n}");
            let path = base.join(format!("{}.lock", file_name(&name)));
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
            let file = file.map_err(|e| unusable(&path, e))?;
            match file.try_lock() {
                Ok(()) => {
                    let id = WorkerId::new(&name).map_err(|e| Failure::usage(e.to_string()))?;
                    return Ok(Self { _lock: Some(file), ..Self::named(id, base) });
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(unusable(&path, error)),
            }
        }
        Err(Failure::usage(format!(
            "{UNNAMED_MAX} workers without a name run here; --id gives this one its own"
        )))
    }
}

/// Where reports are kept when nobody says: with the data that the server was found by, else in the state directory of
/// the user, for each server apart. A report that reached another server would be lost.
pub(super) fn spool_base(found_in: Option<&Path>, url: &str) -> Outcome<PathBuf> {
    if let Some(data) = found_in {
        return Ok(data.join("spool"));
    }
    let dir = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = dir("XDG_STATE_HOME").or_else(|| dir("HOME").map(|home| home.join(".local/state")));
    let Some(state) = state.filter(|dir| dir.is_absolute()) else {
        return Err(Failure::usage(
            "neither XDG_STATE_HOME nor HOME says where to keep reports; --spool does",
        ));
    };
    let server = url.split_once("://").map_or(url, |(_, rest)| rest);
    Ok(state.join("fernery/spool").join(file_name(server)))
}

/// A text as the name of one file.
fn file_name(text: &str) -> String {
    let mut name = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte as char),
            b'.' if !name.is_empty() => name.push('.'),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
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
    fn no_name_leaves_its_folder_and_none_meets_another() {
        assert_eq!(file_name("host.example-1"), "host.example-1");
        assert_eq!(file_name("../a/b"), "%2e.%2fa%2fb");
        assert_eq!(file_name("."), "%2e");
        assert_ne!(file_name("a:b"), file_name("a/b"));
        assert_eq!(spool_base(Some(Path::new("d")), "http://x").unwrap(), Path::new("d/spool"));
    }
}
