//! Makes everything but the folders of the cell read-only, in a mount namespace of the program's own. Landlock has no
//! rule for modes, owners, times and flags of files: the owner of a file could change them by its path. On a read-only
//! mount the kernel refuses all of that.
//!
//! Without root, a user namespace gives the right to make a mount namespace; the next exec loses it again, because the
//! user inside is the same.

use super::Cell;
use super::confine::Refused;
use nix::sched::{CloneFlags, unshare};
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind_recursive, mount_change, mount_remount};
use rustix::process::{getgid, getuid};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// From here on this process changes nothing outside of its cell.
pub(super) fn freeze(cell: &Cell) -> Result<(), Refused> {
    let refused = |what: &'static str| move |error: io::Error| Refused::new(what, error);
    own_namespace().map_err(refused("no namespace keeps modes of files outside as they are"))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| Refused::new("no mount of its own", error))?;
    let mut own = Vec::new();
    for path in [&cell.folder, &cell.home].into_iter().chain(&cell.write) {
        let path = path.canonicalize().map_err(|error| Refused::new(path.display(), error))?;
        mount_bind_recursive(&path, &path).map_err(|error| Refused::new(path.display(), error))?;
        own.push(path);
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").map_err(refused("its mounts"))?;
    let mut failed = Vec::new();
    for (place, flags) in mounts.lines().filter_map(read_line) {
        if own.iter().any(|own| place.starts_with(own)) {
            continue;
        }
        if let Err(error) = mount_remount(&place, MountFlags::BIND | MountFlags::RDONLY | flags, "") {
            failed.push((place, error));
        }
    }
    // A mount over a failed one may have been made later.
    match failed.into_iter().find(|(place, _)| can_be_changed(place)) {
        Some((place, error)) => {
            Err(Refused::new(format!("{} stays open to changes", place.display()), error))
        }
        None => Ok(()),
    }
}

/// Whether something there could still be changed. What lies beneath another mount, or is inaccessible for this user,
/// is out of reach for the program too.
fn can_be_changed(place: &Path) -> bool {
    match statvfs(place) {
        Ok(stat) => !stat.f_flag.contains(StatVfsMountFlags::RDONLY),
        Err(error) => {
            let error = io::Error::from(error);
            !matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::NotFound)
        }
    }
}

fn own_namespace() -> io::Result<()> {
    let (uid, gid) = (getuid(), getgid());
    if uid.is_root() {
        return Ok(unshare(CloneFlags::CLONE_NEWNS)?);
    }
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
    // The kernel wants this said before a group is mapped.
    std::fs::write("/proc/self/setgroups", "deny")?;
    let (uid, gid) = (uid.as_raw(), gid.as_raw());
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// A mount's place, and those of its flags that have to be given again so that they stay.
fn read_line(line: &str) -> Option<(PathBuf, MountFlags)> {
    let mut fields = line.split(' ').skip(4);
    let (place, options) = (fields.next()?, fields.next()?);
    let flag = |option| match option {
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "noatime" => MountFlags::NOATIME,
        "nodiratime" => MountFlags::NODIRATIME,
        "relatime" => MountFlags::RELATIME,
        "nosymfollow" => MountFlags::NOSYMFOLLOW,
        _ => MountFlags::empty(),
    };
    Some((unescaped(place), options.split(',').map(flag).collect()))
}

/// Spaces, tabs, line ends and backslashes are written as three octal digits.
fn unescaped(place: &str) -> PathBuf {
    let mut parts = place.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.extend(code);
        bytes.extend_from_slice(if code.is_some() { &part.as_bytes()[3..] } else { part.as_bytes() });
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_with_what_has_to_stay() {
        let line =
            "36 35 98:0 /mnt1 /mnt\\040with\\134more rw,nosuid,noexec,relatime master:1 - ext3 /dev/root rw";
        let (place, flags) = read_line(line).expect("a mount");
        assert_eq!(place, Path::new("/mnt with\\more"));
        assert_eq!(flags, MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::RELATIME);
        assert!(read_line("36 35").is_none());
    }
}
