//! The owner and the modes that git itself would give to what it writes in a folder of the operator's: those of the
//! folder. A server may run as root and has a umask of its own, and neither must show in somebody's repository.

use rustix::process::geteuid;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tokio::process::Command;

/// Starts git with a umask. The first argument is the umask, the others are git's.
const WITH_UMASK: &str = "umask \"$0\" && exec git \"$@\"";

/// Who writes in a folder, and with which modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The user and the group; `None`: this process's own.
    pub user: Option<(u32, u32)>,
    /// What others may not do. Where the repository sets core.sharedRepository, git itself allows more.
    pub umask: u32,
}

impl Owner {
    /// The owner of a folder; `None`: the folder cannot be looked at.
    pub fn of(folder: &Path) -> Option<Self> {
        let meta = fs::metadata(folder).ok()?;
        let user = (meta.uid(), meta.gid());
        // Only root can be somebody else. Whoever cannot get there would write nothing.
        let other = geteuid().is_root() && user.0 != 0 && is_reachable(folder, user);
        Some(Self { user: other.then_some(user), umask: !meta.mode() & 0o077 })
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WITH_UMASK, &format!("{:03o}", self.umask)]);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

/// Whether a user can go through every folder on the way.
fn is_reachable(folder: &Path, (user, group): (u32, u32)) -> bool {
    let may_enter = |meta: &Metadata| {
        let shift = match (meta.uid() == user, meta.gid() == group) {
            (true, _) => 6,
            (_, true) => 3,
            _ => 0,
        };
        meta.mode() >> shift & 0o1 != 0
    };
    folder.ancestors().all(|part| fs::metadata(part).is_ok_and(|meta| may_enter(&meta)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_written_gets_the_modes_of_the_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        for (mode, umask) in [(0o755, 0o022), (0o775, 0o002), (0o700, 0o077), (0o2770, 0o007)] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).expect("a mode");
            assert_eq!(Owner::of(dir.path()).map(|owner| owner.umask), Some(umask), "{mode:o}");
        }
        assert_eq!(Owner::of(&dir.path().join("none")), None);
    }
}
