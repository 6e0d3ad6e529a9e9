//! Makes the paths of a spare user visible inside folders that only root may enter: each such folder is covered, for
//! this process and its successors, by an empty one that contains only those paths.

use rustix::fs::{Mode, OFlags, open};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The outermost folders above these paths that this user may not enter.
pub(super) fn hidden(paths: &[PathBuf], uid: u32) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for path in both(paths) {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        if let Some(barred) = above.into_iter().find(|folder| is_barred(folder, uid))
            && !folders.iter().any(|known| known == barred)
        {
            folders.push(barred.to_owned());
        }
    }
    folders
}

fn is_barred(folder: &Path, uid: u32) -> bool {
    let Ok(meta) = folder.metadata() else { return false };
    let needed = if meta.uid() == uid { 0o100 } else { 0o001 };
    meta.mode() & needed == 0
}

/// Paths as they are called, and as they are called without links.
fn both(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = paths.to_vec();
    all.extend(paths.iter().filter_map(|path| path.canonicalize().ok()));
    all.sort();
    all.dedup();
    all
}

/// Covers the hidden folders. This process must have a mount namespace of its own.
pub(super) fn unveil(paths: &[PathBuf], hidden: &[PathBuf]) -> io::Result<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let mut kept = Vec::new();
    for path in both(paths) {
        if hidden.iter().any(|folder| path.starts_with(folder)) {
            let is_folder = path.metadata()?.is_dir();
            kept.push((open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?, path, is_folder));
        }
    }
    for folder in hidden {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", folder, "tmpfs", flags, c"mode=0755,size=1m")?;
    }
    // A folder comes before what is in it.
    for (file, path, is_folder) in kept {
        if !path.exists() {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            match is_folder {
                true => std::fs::create_dir(&path)?,
                false => drop(std::fs::File::create(&path)?),
            }
        }
        mount_bind_recursive(format!("/proc/self/fd/{}", file.as_raw_fd()), &path)?;
    }
    Ok(())
}
