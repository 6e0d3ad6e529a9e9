//! File modes, checked after each run: files of the run lose setuid, setgid and world-write bits, and the server's
//! control files get their modes back. If the sandbox holds, no setuid or setgid bit and no changed control file is
//! found here; this is for escapes, and for programs without a sandbox.
//!
//! Links are never followed, neither at the end of a path nor on the way.

use fernery_door as door;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, chmod, fstat, open, openat, openat2, statat,
};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::{error, warn};

/// Bits that no file of a run keeps: setuid, setgid, and write access for everybody.
const STRIPPED: u32 = 0o6002;
/// Bits that the owner needs to read a folder.
const LOOK: u32 = 0o500;
/// What the owner of a private file or folder has of it.
const OWNER: u32 = 0o700;
/// All that a mode has beside the kind of file.
const BITS: u32 = 0o7777;
/// The bit that a new folder inherits from its parent.
const INHERITED: u32 = 0o2000;
/// Bits that give others access.
const OPENING: u32 = 0o7077;
/// The files that give control over the server, or let their reader work for it.
const TOKENS: [&str; 2] = ["operator.token", "worker.token"];
/// The file in the data directory that records repaired modes; `fernery doctor` reads it.
pub const MENDED_FILE: &str = "mended-modes.jsonl";

/// Makes a folder without the setgid bit: inherited from the parent, it would spread to everything inside, look like an
/// escape of a run, and programs in a cell may not set it.
pub fn make_plain(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mode = fs::symlink_metadata(folder)?.mode();
    match mode & INHERITED {
        0 => Ok(()),
        _ => fs::set_permissions(folder, fs::Permissions::from_mode(mode & BITS & !INHERITED)),
    }
}

/// Call this after each run in this folder, when all its processes have ended.
pub async fn settle(folder: &Path, private: &Private) {
    let (folder, private) = (folder.to_owned(), private.clone());
    let settled = tokio::task::spawn_blocking(move || {
        strip_loudly(&folder);
        private.mend();
    });
    if let Err(error) = settled.await {
        warn!(%error, "could not check file modes after a run");
    }
}

/// Like [`strip`], and logs what was found.
pub fn strip_loudly(folder: &Path) {
    let Stripped { changed, unseen } = strip(folder);
    let folder = folder.display();
    if changed > 0 {
        warn!(
            %folder, changed,
            "removed file modes that a run left behind: setuid, setgid, world-writable, or a folder \
             closed to its owner"
        );
    }
    if let Some((path, error)) = unseen {
        warn!(%folder, path = %path.display(), %error, "could not check all file modes in a run's folder");
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Stripped {
    /// Files and folders whose mode was changed.
    pub changed: u64,
    /// The first path that could not be checked.
    pub unseen: Option<(PathBuf, io::Error)>,
}

/// Removes the bits from a folder and everything inside. A folder that excludes its own user is opened to it.
pub fn strip(folder: &Path) -> Stripped {
    let mut stripped = Stripped::default();
    let root = match open(folder, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Ok(root) => root,
        Err(rustix::io::Errno::NOENT) => return stripped,
        Err(error) => return Stripped { unseen: Some((folder.to_owned(), error.into())), ..stripped },
    };
    let mut left = vec![PathBuf::from(".")];
    while let Some(place) = left.pop() {
        match strip_folder(&root, &place, &mut left) {
            Ok(changed) => stripped.changed += changed,
            Err(error) => _ = stripped.unseen.get_or_insert((place, error)),
        }
    }
    stripped
}

/// One folder and its files; subfolders are queued. The path is walked again without following links, so that neither
/// depth nor a surviving process can lead this elsewhere.
fn strip_folder(root: &OwnedFd, place: &Path, left: &mut Vec<PathBuf>) -> io::Result<u64> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let path = openat2(root, place, flags, Mode::empty(), resolve)?;
    let mode = mode_of(&fstat(&path)?);
    let mut changed = u64::from(set_mode(&path, mode, (mode & !STRIPPED) | LOOK)?);
    let folder = openat(&path, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") || entry.file_type() == FileType::Symlink {
            continue;
        }
        let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {}
            FileType::Directory => {
                let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name.to_bytes());
                left.push(place.join(name));
            }
            _ if mode_of(&stat) & STRIPPED != 0 => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = openat(&folder, name, flags, Mode::empty())?;
                let stat = fstat(&file)?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                    let mode = mode_of(&stat);
                    changed += u64::from(set_mode(&file, mode, mode & !STRIPPED)?);
                }
            }
            _ => {}
        }
    }
    Ok(changed)
}

fn mode_of(stat: &Stat) -> u32 {
    stat.st_mode & BITS
}

/// Sets the mode through the open file, not by name; answers whether it changed.
fn set_mode(file: impl AsFd, found: u32, wanted: u32) -> io::Result<bool> {
    if found == wanted {
        return Ok(false);
    }
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    chmod(path, Mode::from_raw_mode(wanted))?;
    Ok(true)
}

/// The control files of a server with their proper modes: the data directory and the files directly in it, as they
/// were when the server started. Tokens are readable by their owner only.
#[derive(Clone, Debug)]
pub struct Private {
    data: PathBuf,
    modes: Arc<Vec<(PathBuf, u32)>>,
}

/// A file whose mode was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mended {
    /// When it was seen.
    pub at: fernery_core::Timestamp,
    pub file: PathBuf,
    /// Its mode, in octal digits.
    pub found: String,
    /// And what it is now.
    pub restored: String,
}

impl Private {
    /// What is there now.
    pub fn of(data: &Path) -> Self {
        let mut modes = Vec::new();
        let entries = fs::read_dir(data).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in [data.to_owned()].into_iter().chain(entries) {
            let Ok(meta) = path.symlink_metadata() else { continue };
            if path == data || meta.is_file() {
                let is_token = path.file_name().is_some_and(|name| TOKENS.iter().any(|token| name == *token));
                let mode = meta.mode() & BITS;
                modes.push((path, if is_token { mode & 0o600 } else { mode }));
            }
        }
        Self { data: data.to_owned(), modes: Arc::new(modes) }
    }

    /// Restores modes that are more open than before, or closed to the owner, and logs it.
    pub fn mend(&self) -> Vec<Mended> {
        let mut mended = Vec::new();
        for (path, wanted) in self.modes.iter() {
            match mend(path, *wanted) {
                Ok(None) => {}
                Ok(Some(found)) => {
                    let (found, restored) = (format!("{found:04o}"), format!("{wanted:04o}"));
                    error!(
                        file = %path.display(), mode_found = %found, mode_restored = %restored,
                        "restored the mode of a private file: it was changed while a program ran. If it is \
                        a token that others could read, revoke it (`fernery token revoke`). To change a \
                        mode on purpose, stop the server first"
                    );
                    mended.push(Mended { at: door::wall_clock(), file: path.clone(), found, restored });
                }
                Err(error) => {
                    error!(
                        file = %path.display(), %error,
                        "the mode of a private file was changed and cannot be restored"
                    );
                }
            }
        }
        if let Err(error) = self.note(&mended) {
            warn!(%error, "could not record which file modes were restored");
        }
        mended
    }

    fn note(&self, mended: &[Mended]) -> io::Result<()> {
        if mended.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> = mended.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        let mut file = fs::OpenOptions::new();
        let file = file.create(true).append(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        file.open(self.data.join(MENDED_FILE))?.write_all((lines.join("\n") + "\n").as_bytes())
    }
}

/// Restores one mode; answers what it had become.
fn mend(path: &Path, wanted: u32) -> io::Result<Option<u32>> {
    let file = match open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        file => file?,
    };
    let stat = fstat(&file)?;
    let found = mode_of(&stat);
    let is_wrong = found & !wanted & OPENING != 0 || wanted & !found & OWNER != 0;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink || !is_wrong {
        return Ok(None);
    }
    set_mode(&file, found, wanted)?;
    Ok(Some(found))
}

/// What was mended in this data directory, oldest first.
pub fn mended(data: &Path) -> io::Result<Vec<Mended>> {
    let text = match fs::read_to_string(data.join(MENDED_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().expect("it is there").mode() & BITS
    }

    fn write(path: &Path, mode: u32) {
        fs::write(path, "x").expect("written");
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("its own file");
    }

    #[test]
    fn a_folder_of_a_run_hands_no_group_on() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::set_permissions(dir.path(), Permissions::from_mode(0o2775)).expect("its own folder");
        let run = dir.path().join("work/run-1");
        make_plain(&run).expect("a folder");
        let tree = run.join("tree");
        fs::create_dir(&tree).expect("a folder");
        assert_eq!([mode(&run) & 0o7000, mode(&tree) & 0o7000], [0, 0]);
        assert_eq!(strip(&run).changed, 0, "nobody did anything");
    }

    #[test]
    fn nothing_in_a_folder_stays_setuid_and_no_link_is_followed() {
        let dir = tempfile::tempdir().expect("a folder");
        let (run, outside) = (dir.path().join("run"), dir.path().join("outside"));
        let hidden = run.join("a/b");
        for folder in [&hidden, &outside] {
            fs::create_dir_all(folder).expect("a folder");
        }
        write(&outside.join("shell"), 0o4755);
        write(&run.join("shell"), 0o4755);
        write(&run.join("plain"), 0o755);
        write(&hidden.join("group"), 0o2711);
        write(&hidden.join("open"), 0o666);
        symlink(outside.join("shell"), run.join("link")).expect("a link");
        symlink(&outside, run.join("a/folder")).expect("a link");
        // Others could run what is in it, and its own user could not list it.
        fs::set_permissions(&hidden, Permissions::from_mode(0o3311)).expect("its own folder");
        let Stripped { changed, unseen } = strip(&run);
        assert!(unseen.is_none(), "{unseen:?}");
        assert_eq!(changed, 4);
        let modes = [&run.join("shell"), &run.join("plain"), &hidden, &hidden.join("group")].map(|p| mode(p));
        assert_eq!(modes, [0o755, 0o755, 0o1711, 0o711]);
        assert_eq!(mode(&hidden.join("open")), 0o664);
        assert_eq!(mode(&outside.join("shell")), 0o4755, "a link led there");
        assert_eq!(strip(&run).changed, 0);
        assert_eq!(strip(&dir.path().join("nothing")).changed, 0);
    }

    #[test]
    fn what_was_opened_is_closed_again_and_noted() {
        let dir = tempfile::tempdir().expect("a folder");
        let data = dir.path();
        fs::set_permissions(data, Permissions::from_mode(0o700)).expect("its own folder");
        let (operator, worker) = (data.join("operator.token"), data.join("worker.token"));
        let (settings, linked) = (data.join("fernery.toml"), data.join("fernery.db"));
        for (file, mode) in [(&operator, 0o600), (&worker, 0o600), (&settings, 0o644), (&linked, 0o600)] {
            write(file, mode);
        }
        let private = Private::of(data);
        assert_eq!(private.mend(), []);
        for (path, mode) in [(data, 0o755), (&operator, 0o644), (&worker, 0o000), (&settings, 0o600)] {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("its own file");
        }
        fs::remove_file(&linked).expect("removed");
        symlink("/etc/passwd", &linked).expect("a link");
        let mended: Vec<_> = private.mend().into_iter().map(|of| (of.file, of.found, of.restored)).collect();
        let of = |path: &Path, found: &str, restored: &str| (path.into(), found.into(), restored.into());
        let wanted = [of(data, "0755", "0700"), of(&operator, "0644", "0600"), of(&worker, "0000", "0600")];
        assert_eq!((&mended[0], mended.len()), (&wanted[0], 3));
        assert!(wanted.iter().all(|of| mended.contains(of)), "{mended:?}");
        assert_eq!([mode(data), mode(&operator), mode(&worker)], [0o700, 0o600, 0o600]);
        assert_eq!(mode(&settings), 0o600, "who closes a file may");
        assert_eq!(super::mended(data).expect("read").len(), 3);
        assert_eq!(private.mend(), []);
    }
}
