//! What one program may see and do.

use super::confine::{COMMAND, Order};
use super::{PATH, Tier};
use fernery_core::Digest;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

/// The first of the user ids that are reserved for runs.
const SPARE_FIRST: u32 = 1_900_000_000;
/// How many of them there are.
const SPARE_COUNT: u32 = 1 << 24;

/// What one program may see and do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its working directory, which it may write.
    pub folder: PathBuf,
    /// Further paths that it may write.
    pub write: Vec<PathBuf>,
    /// What it may read besides the system, at the same path inside.
    pub read: Vec<PathBuf>,
    /// Its private home, with its temporary folder inside. Created if missing.
    pub home: PathBuf,
    /// Files and folders of the operator's home that appear at the same place in its own: read-only, or as a copy for a
    /// spare user.
    pub login: Vec<PathBuf>,
    /// Whether it may reach the network, loopback included.
    pub network: bool,
    /// Its limits.
    pub limits: CellLimits,
    /// Which spare user it is, where this process is root: see [`Cell::spare_uid`].
    pub uid: Option<u32>,
}

/// The limits of a program: per process, except `processes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellLimits {
    /// Processes and threads at once.
    pub processes: u64,
    pub file_bytes: u64,
    pub open_files: u64,
    /// Bytes of writable memory. Address space is not limited: JavaScript and WebAssembly runtimes reserve terabytes of
    /// it that they never touch.
    pub memory_bytes: u64,
    /// Seconds on a processor, all threads together.
    pub cpu_seconds: u64,
}

impl Default for CellLimits {
    fn default() -> Self {
        Self {
            processes: 1_024,
            file_bytes: 4 << 30,
            open_files: 8_192,
            memory_bytes: 8 << 30,
            cpu_seconds: 24 * 60 * 60,
        }
    }
}

impl Cell {
    /// A cell with nothing but a folder and a home: no network, no login.
    pub fn new(folder: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            write: Vec::new(),
            read: Vec::new(),
            home: home.into(),
            login: Vec::new(),
            network: false,
            limits: CellLimits::default(),
            uid: None,
        }
    }

    /// The command line that runs `argv` in this cell.
    pub fn wrap(&self, tier: Tier, argv: &[OsString]) -> io::Result<Vec<OsString>> {
        let bad = |why: String| io::Error::new(ErrorKind::InvalidInput, why);
        if argv.is_empty() {
            return Err(bad("the command is empty".into()));
        }
        if tier == Tier::Unconfined {
            return Ok(argv.to_vec());
        }
        if geteuid().is_root() && self.uid.is_none() {
            let why =
                "no program is contained as root: give it a spare user, or start fernery as another one";
            return Err(bad(why.into()));
        }
        let all = [&self.folder, &self.home].into_iter().chain(&self.write).chain(&self.read);
        if let Some(relative) = all.chain(&self.login).find(|path| !path.is_absolute()) {
            return Err(bad(format!("{} is not an absolute path", relative.display())));
        }
        let order = Order { tier, inside: false, logins: self.logins()?, cell: self.clone() };
        let order = serde_json::to_string(&order).map_err(|error| bad(error.to_string()))?;
        let mut wrapped = vec![std::env::current_exe()?.into_os_string()];
        wrapped.extend([COMMAND.into(), order.into(), "--".into()]);
        wrapped.extend_from_slice(argv);
        Ok(wrapped)
    }

    /// Each login file, and its path inside the cell.
    fn logins(&self) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        let operator = std::env::home_dir().unwrap_or_default();
        let inside = |login: &PathBuf| match login.strip_prefix(&operator) {
            Ok(place) if operator.is_absolute() => Ok((login.clone(), self.home.join(place))),
            _ => Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("{} is not in the home {}", login.display(), operator.display()),
            )),
        };
        self.login.iter().map(inside).collect()
    }

    /// Where it puts what is temporary.
    pub(super) fn temporary(&self) -> PathBuf {
        self.home.join("tmp")
    }

    /// The environment of every program, before its own variables.
    pub fn environment(&self) -> Vec<(String, String)> {
        let below = |place: &str| self.home.join(place).display().to_string();
        let own = [
            ("HOME", self.home.display().to_string()),
            ("TMPDIR", self.temporary().display().to_string()),
            ("XDG_CONFIG_HOME", below(".config")),
            ("XDG_CACHE_HOME", below(".cache")),
            ("XDG_DATA_HOME", below(".local/share")),
            ("XDG_STATE_HOME", below(".local/state")),
        ];
        let same = [("PATH", PATH), ("LANG", "C.UTF-8"), ("TERM", "dumb"), ("NO_COLOR", "1")];
        let same = same.map(|(name, value)| (name, value.to_string()));
        own.into_iter().chain(same).map(|(name, value)| (name.to_string(), value)).collect()
    }

    /// The user of an attempt: one of its own, so that its processes are counted alone and it owns nothing on this
    /// machine. `None`: this process is not root, or has no spare user id.
    pub fn spare_uid(attempt: &str) -> Option<u32> {
        if !geteuid().is_root() {
            return None;
        }
        let (first, count) = spare_range(&std::fs::read_to_string("/proc/self/uid_map").ok()?)?;
        let digest = Digest::of_bytes(attempt.as_bytes()).to_string();
        let number = digest.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        Some(first + number % count)
    }

    /// Changes the owner of files and folders, recursively, to the spare user; does nothing without one. Does not
    /// follow links.
    pub fn hand_over(&self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> io::Result<()> {
        let Some(uid) = self.uid else { return Ok(()) };
        paths.into_iter().try_for_each(|path| give(path.as_ref(), uid))
    }
}

pub(super) fn give(path: &Path, uid: u32) -> io::Result<()> {
    lchown(path, Some(uid), Some(uid))?;
    if path.symlink_metadata()?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give(&entry?.path(), uid)?;
        }
    }
    Ok(())
}

/// The range of spare user ids; in a container it may be small.
fn spare_range(uid_map: &str) -> Option<(u32, u32)> {
    let ranges = uid_map.lines().filter_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse::<u64>().ok());
        let (first, _, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
        Some((first, first + count))
    });
    let (from, until) = ranges.max_by_key(|(from, until)| until - from)?;
    let wanted = (u64::from(SPARE_FIRST), u64::from(SPARE_FIRST + SPARE_COUNT));
    let (first, last) = if from <= wanted.0 && wanted.1 <= until {
        wanted
    } else {
        // The lower half is for users and services.
        (from + (until - from) / 2, until - 1)
    };
    let count = u32::try_from(last.checked_sub(first)?).ok().filter(|count| *count > 0)?;
    Some((u32::try_from(first).ok()?, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_users_are_far_from_all_others_where_there_is_room() {
        assert_eq!(spare_range("         0          0 4294967295\n"), Some((SPARE_FIRST, SPARE_COUNT)));
        assert_eq!(spare_range("0 1000 1\n1 100000 65536\n"), Some((32_769, 32_767)));
        assert_eq!(spare_range("0 1000 1\n"), None);
        assert_eq!(spare_range(""), None);
    }

    #[test]
    fn a_path_that_means_another_place_inside_is_refused() {
        let mut cell = Cell { uid: Some(SPARE_FIRST), ..Cell::new("/w", "/h") };
        cell.read = vec!["up/../there".into()];
        let why = cell.wrap(Tier::Landlock, &["true".into()]).unwrap_err().to_string();
        assert_eq!(why, "up/../there is not an absolute path");
        cell.read.clear();
        cell.login = vec!["/nobody's/.login".into()];
        let why = cell.wrap(Tier::Landlock, &["true".into()]).unwrap_err().to_string();
        assert!(why.contains("/nobody's/.login is not in the home"), "{why}");
    }

    #[test]
    fn without_containment_a_command_line_stays_as_it_is() {
        let argv = ["sh".into(), "-c".into(), "true".into()];
        assert_eq!(Cell::new("/w", "/h").wrap(Tier::Unconfined, &argv).unwrap(), argv);
    }
}
