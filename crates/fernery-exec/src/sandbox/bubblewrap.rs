//! The command line of bubblewrap for a cell: a new root that contains only what is named here.

use super::confine::{COMMAND, Order, Refused};
use super::{Cell, ETC, ETC_NETWORK, PATH, SYSTEM};
use crate::program;
use nix::sys::signal::{SigSet, Signal};
use rustix::fs::{MemfdFlags, memfd_create};
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where this program is found inside.
const OWN_PROGRAM: &str = "/run/fernery/confine";
/// The user id inside, whatever it is outside.
const USER: &str = "1000";
const PASSWD: &str = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
const GROUP: &str = "root:x:0:\nfernery:x:1000:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost\n";
const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";
/// Shared memory counts as memory of the machine.
const SHARED_MEMORY_BYTES_MAX: &str = "268435456";

/// Becomes bubblewrap, which then starts this program again, inside.
pub(super) fn become_it(order: Order, argv: &[OsString]) -> Result<Infallible, Refused> {
    let refused = |what: &'static str| move |error: io::Error| Refused::new(what, error);
    let bwrap = program::find("bwrap".as_ref(), Some(PATH.as_ref()))
        .map_err(|why| Refused::new("bubblewrap", why))?;
    let own = std::env::current_exe().map_err(refused("its own program"))?;
    let mut args = frame(order.cell.network);
    args.extend(system().map_err(refused("the system's folders"))?);
    args.extend(etc(&order.cell).map_err(refused("/etc"))?);
    args.extend(words(&["--proc", "/proc", "--dev", "/dev", "--size", SHARED_MEMORY_BYTES_MAX]));
    args.extend(words(&["--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--symlink", "../tmp", "/var/tmp"]));
    args.extend(shown(&order, &own));
    args.extend(words(&["--remount-ro", "/", "--chdir"]));
    args.extend([order.cell.folder.clone().into(), "--".into()]);
    let inside = Order { inside: true, logins: Vec::new(), ..order };
    let inside = serde_json::to_string(&inside).map_err(|error| Refused::new("the order", error))?;
    args.extend([OWN_PROGRAM.into(), COMMAND.into(), inside.into(), "--".into()]);
    args.extend_from_slice(argv);
    // A stop signals everything below the guard. Bubblewrap would end at once, and the program with it, without its
    // grace period. So this process blocks the signal here and unblocks it for the program.
    let ends: SigSet =
        [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT].into_iter().collect();
    ends.thread_block().map_err(|error| Refused::new("signals", error))?;
    Err(Refused::new(bwrap.display(), Command::new(&bwrap).args(args).exec()))
}

fn words(all: &[&str]) -> Vec<OsString> {
    all.iter().map(OsString::from).collect()
}

/// Its own namespaces; the network is shared only if that is allowed.
fn frame(network: bool) -> Vec<OsString> {
    let mut args = words(&["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
    args.push("--unshare-cgroup-try".into());
    if !network {
        args.push("--unshare-net".into());
    }
    args.extend(words(&["--hostname", "fernery", "--uid", USER, "--gid", USER, "--cap-drop", "ALL"]));
    args.push("--die-with-parent".into());
    args
}

/// The system's programs and libraries, with links where the system has links.
fn system() -> io::Result<Vec<OsString>> {
    let mut args = Vec::new();
    for path in SYSTEM.map(Path::new) {
        args.extend(alike(path)?);
    }
    Ok(args)
}

/// A path as it is outside: a link, a read-only bind, or nothing.
fn alike(path: &Path) -> io::Result<Vec<OsString>> {
    Ok(match path.symlink_metadata() {
        Ok(meta) if meta.is_symlink() => {
            vec!["--symlink".into(), std::fs::read_link(path)?.into(), path.into()]
        }
        Ok(_) => vec!["--ro-bind".into(), path.into(), path.into()],
        Err(_) => Vec::new(),
    })
}

/// A small `/etc`, made for this cell.
fn etc(cell: &Cell) -> io::Result<Vec<OsString>> {
    let home = cell.home.display();
    let passwd = format!("{PASSWD}fernery:x:{USER}:{USER}:fernery:{home}:/bin/sh\n");
    let mut files =
        vec![("/etc/passwd", passwd), ("/etc/group", GROUP.into()), ("/etc/nsswitch.conf", NSSWITCH.into())];
    let mut same = ETC.to_vec();
    if cell.network {
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        files.extend(["/etc/hosts", "/etc/resolv.conf", "/etc/services"].map(|path| (path, text(path))));
        same.extend(ETC_NETWORK);
    } else {
        files.push(("/etc/hosts", HOSTS.into()));
    }
    let mut args = Vec::new();
    for (path, text) in files {
        let mut file = File::from(memfd_create("etc", MemfdFlags::empty())?);
        file.write_all(text.as_bytes())?;
        file.seek(SeekFrom::Start(0))?;
        // Bubblewrap inherits it, reads it and closes it.
        args.extend(["--perms".into(), "0644".into(), "--file".into()]);
        args.extend([file.into_raw_fd().to_string().into(), path.into()]);
    }
    for path in same {
        args.extend(alike(Path::new(path))?);
    }
    Ok(args)
}

/// The cell's own paths. Outer folders come first, so that an inner one overrides them.
fn shown(order: &Order, own: &Path) -> Vec<OsString> {
    let cell = &order.cell;
    let same = |path: &PathBuf| (path.clone(), path.clone());
    let mut shown: Vec<(bool, PathBuf, PathBuf)> = Vec::new();
    let mut show = |may_write, paths: &mut dyn Iterator<Item = (PathBuf, PathBuf)>| {
        shown.extend(paths.map(|(from, to)| (may_write, from, to)));
    };
    show(false, &mut cell.read.iter().map(same));
    show(true, &mut [(cell.temporary(), PathBuf::from("/tmp"))].into_iter());
    show(true, &mut [&cell.home, &cell.folder].into_iter().chain(&cell.write).map(same));
    // A spare user has a copy in its home instead.
    show(false, &mut order.logins.iter().filter(|_| cell.uid.is_none()).cloned());
    show(false, &mut [(own.to_owned(), PathBuf::from(OWN_PROGRAM))].into_iter());
    shown.sort_by_key(|(_, _, to)| to.components().count());
    let flag = |may_write| if may_write { "--bind" } else { "--ro-bind" };
    shown
        .into_iter()
        .flat_map(|(may_write, from, to)| [flag(may_write).into(), from.into(), to.into()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Tier;

    #[test]
    fn what_lies_within_another_path_is_decided_last() {
        let mut cell = Cell::new("/repo/work", "/home/x");
        cell.read = vec!["/repo".into(), "/repo/work/.git".into()];
        let order = Order { tier: Tier::Bubblewrap, inside: false, logins: Vec::new(), cell };
        let args = shown(&order, Path::new("/usr/bin/fernery"));
        let place = |wanted: [&str; 3]| args.chunks(3).position(|bind| bind == wanted).expect("it is there");
        let (outer, folder) = (["--ro-bind", "/repo", "/repo"], ["--bind", "/repo/work", "/repo/work"]);
        let inner = ["--ro-bind", "/repo/work/.git", "/repo/work/.git"];
        assert!(place(outer) < place(folder) && place(folder) < place(inner));
    }
}
