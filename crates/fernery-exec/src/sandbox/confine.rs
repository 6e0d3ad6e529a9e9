//! `fernery confine ORDER -- PROGRAM…`, the stage between the guard and a program. It prepares everything and then
//! executes the next stage in its place: bubblewrap, inside which it runs a second time, or the program.
//!
//! If something fails, it ends with a message on stderr and an exit code, as shells do: 125 for the cell, 126 for a
//! program that cannot be run, 127 for a missing one. Nothing ever runs with less containment than was ordered.

use super::{Cell, Tier, bubblewrap, cell, mounts, rights, syscalls, unveil};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::SigSet;
use nix::unistd::{Gid, Uid, close, setgroups, setresgid, setresuid};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, getuid, setrlimit, umask};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The hidden command that puts itself into a cell.
pub const COMMAND: &str = "confine";
/// The prefix of every message of this stage.
const SAYS: &str = "fernery confine: ";
/// The cell could not be made.
const NO_CELL: u8 = 125;
/// The program could not be run.
const NOT_RUN: u8 = 126;
/// There is no such program.
const NOT_FOUND: u8 = 127;
/// Bytes of the operator's login that are copied to a spare user.
const LOGIN_BYTES_MAX: u64 = 64 << 20;

/// The order for this stage.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) tier: Tier,
    /// Whether this is already inside bubblewrap.
    pub(super) inside: bool,
    /// Each login file, and its path inside.
    pub(super) logins: Vec<(PathBuf, PathBuf)>,
    pub(super) cell: Cell,
}

/// Why nothing was run.
#[derive(Debug)]
pub(super) struct Refused {
    code: u8,
    why: String,
}

impl Refused {
    pub(super) fn new(what: impl std::fmt::Display, why: impl std::fmt::Display) -> Self {
        Self { code: NO_CELL, why: format!("{what}: {why}") }
    }
}

/// The message of this stage, if a program ended with this code and output because it was never run. A program can
/// print the same: so this may count as trouble, but never as success.
pub fn refusal(exit: Option<i32>, stderr: &str) -> Option<String> {
    let first = stderr.lines().next().unwrap_or_default();
    match exit {
        Some(1) if first.starts_with("bwrap: ") => Some(first.to_string()),
        Some(code) if [NO_CELL, NOT_RUN, NOT_FOUND].map(i32::from).contains(&code) => {
            first.strip_prefix(SAYS).map(str::to_string)
        }
        _ => None,
    }
}

/// The main function of this stage. Returns only on failure.
pub fn main(args: &[OsString]) -> ExitCode {
    let Err(Refused { code, why }) = become_next(args);
    eprintln!("{SAYS}{why}");
    ExitCode::from(code)
}

fn become_next(args: &[OsString]) -> Result<std::convert::Infallible, Refused> {
    let [order, dashes, argv @ ..] = args else { return Err(Refused::new("called wrongly", "no order")) };
    let order = order.to_str().and_then(|order| serde_json::from_str(order).ok());
    let (Some(order), true, [_, ..]) = (order, dashes == "--", argv) else {
        return Err(Refused::new("called wrongly", "the order cannot be read"));
    };
    let order: Order = order;
    if order.inside {
        return inside(&order, argv);
    }
    close_others();
    // The server's umask may exclude others, such as the spare user.
    umask(Mode::from_raw_mode(0o022));
    furnish(&order)?;
    let cell = &order.cell;
    if let Some(uid) = cell.uid {
        show_hidden(cell, uid)?;
    }
    if order.tier == Tier::Landlock {
        match mounts::freeze(cell) {
            // The spare user owns nothing outside, and so can change nothing there.
            Err(_) if cell.uid.is_some() => {}
            frozen => frozen?,
        }
    }
    if let Some(uid) = cell.uid {
        leave_root(uid)?;
    }
    if getuid().is_root() {
        return Err(Refused::new("no program is contained as root", "no spare user was given"));
    }
    limit(cell, order.tier)?;
    std::env::set_current_dir(&cell.folder)
        .map_err(|error| Refused::new(format!("cannot work in {}", cell.folder.display()), error))?;
    match order.tier {
        Tier::Bubblewrap => bubblewrap::become_it(order, argv),
        Tier::Landlock | Tier::LandlockPartial => {
            rights::restrict_alone(cell, &order.logins)?;
            syscalls::restrict(syscalls::Layer::Alone { network: cell.network })?;
            run(argv)
        }
        Tier::Unconfined => Err(Refused::new("called wrongly", "there is nothing to confine")),
    }
}

/// The second layer, where bubblewrap has made the first.
fn inside(order: &Order, argv: &[OsString]) -> Result<std::convert::Infallible, Refused> {
    rights::restrict_inside(&order.cell)?;
    syscalls::restrict(syscalls::Layer::Second)?;
    // Unblocks the signals that were blocked for bubblewrap, which would have ended at once and taken the program with
    // it.
    SigSet::empty().thread_set_mask().map_err(|error| Refused::new("signals", error))?;
    run(argv)
}

fn run(argv: &[OsString]) -> Result<std::convert::Infallible, Refused> {
    let error = Command::new(&argv[0]).args(&argv[1..]).exec();
    let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
    Err(Refused { code, why: format!("{}: {error}", Path::new(&argv[0]).display()) })
}

/// Closes all inherited file descriptors except stdin, stdout and stderr.
fn close_others() {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<i32> = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // The descriptor of the listing itself is closed already.
        let _ = close(fd);
    }
}

/// Makes the home, and puts the login there where nothing can be mounted.
fn furnish(order: &Order) -> Result<(), Refused> {
    let cell = &order.cell;
    for folder in [cell.home.clone(), cell.temporary()] {
        make_folder(&folder, cell.uid).map_err(|error| Refused::new(folder.display(), error))?;
    }
    for (login, place) in &order.logins {
        // An earlier program may have left links in the home: never write through them, least of all as root.
        if place.ancestors().skip(1).take_while(|folder| folder.starts_with(&cell.home)).any(Path::is_symlink)
        {
            return Err(Refused::new(place.display(), "it would lie behind a link"));
        }
        let shown = match cell.uid {
            // A spare user cannot read root's files, so it gets a copy.
            Some(uid) => copy_login(login, place, &cell.home, uid),
            None if order.tier == Tier::Bubblewrap => Ok(()),
            None => link_login(login, place),
        };
        shown.map_err(|error| Refused::new(login.display(), error))?;
    }
    Ok(())
}

fn make_folder(folder: &Path, uid: Option<u32>) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => uid.map_or(Ok(()), |uid| cell::give(folder, uid)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn link_login(login: &Path, place: &Path) -> io::Result<()> {
    std::fs::create_dir_all(place.parent().unwrap_or(place))?;
    match symlink(login, place) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

fn copy_login(login: &Path, place: &Path, home: &Path, uid: u32) -> io::Result<()> {
    // An earlier attempt of the same run may have left one.
    if place.symlink_metadata().is_ok() {
        return Ok(());
    }
    std::fs::create_dir_all(place.parent().unwrap_or(home))?;
    let mut left = LOGIN_BYTES_MAX;
    copy(login, place, &mut left)?;
    let first = place.strip_prefix(home).ok().and_then(|place| place.components().next());
    first.map_or(Ok(()), |first| cell::give(&home.join(first), uid))
}

fn copy(from: &Path, to: &Path, left: &mut u64) -> io::Result<()> {
    let meta = from.metadata()?;
    if meta.is_dir() {
        std::fs::DirBuilder::new().mode(0o700).create(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()), left)?;
        }
    } else if meta.is_file() {
        *left = left.checked_sub(meta.len()).ok_or_else(|| io::Error::other("too large for a login"))?;
        std::fs::copy(from, to)?;
    }
    Ok(())
}

/// Makes the paths of the spare user visible where only root could reach them.
fn show_hidden(cell: &Cell, uid: u32) -> Result<(), Refused> {
    let own = std::env::current_exe().map_err(|error| Refused::new("its own program", error))?;
    let mut seen = vec![cell.folder.clone(), cell.home.clone(), own];
    seen.extend(cell.write.iter().chain(&cell.read).cloned());
    let hidden = unveil::hidden(&seen, uid);
    if !hidden.is_empty() {
        let remedy = "start fernery as an ordinary user, or put its data where others may enter";
        unshare(CloneFlags::CLONE_NEWNS)
            .map_err(io::Error::from)
            .and_then(|()| unveil::unveil(&seen, &hidden))
            .map_err(|error| Refused::new(format!("only root can enter {}", hidden[0].display()), error))
            .map_err(|refused| Refused::new(refused.why, remedy))?;
    }
    Ok(())
}

/// Becomes the spare user, for good.
fn leave_root(uid: u32) -> Result<(), Refused> {
    setgroups(&[])
        .and_then(|()| setresgid(Gid::from_raw(uid), Gid::from_raw(uid), Gid::from_raw(uid)))
        .and_then(|()| setresuid(Uid::from_raw(uid), Uid::from_raw(uid), Uid::from_raw(uid)))
        .map_err(|error| Refused::new(format!("cannot switch to user {uid}"), error))
}

fn limit(cell: &Cell, tier: Tier) -> Result<(), Refused> {
    let limits = &cell.limits;
    // The kernel counts all processes of a user. A spare user has no others, and in a user namespace the count starts
    // at zero.
    let counts_own = cell.uid.is_some() || tier == Tier::Landlock;
    let others = if counts_own { 0 } else { tasks_of(getuid().as_raw()) };
    for (resource, most) in [
        (Resource::Nproc, others + limits.processes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Data, limits.memory_bytes),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Core, 0),
    ] {
        let most = getrlimit(resource).maximum.map_or(most, |before| before.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
            .map_err(|error| Refused::new(format!("the limit {resource:?}"), error))?;
    }
    Ok(())
}

/// Processes and threads of a user.
fn tasks_of(uid: u32) -> u64 {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = all.filter(|entry| entry.metadata().is_ok_and(|meta| meta.uid() == uid));
    let threads = own.map(|entry| std::fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count));
    threads.sum::<usize>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_containment_is_told_from_the_program() {
        let said = |code, stderr| refusal(Some(code), stderr);
        assert_eq!(
            said(127, "fernery confine: nothere: No such file\n"),
            Some("nothere: No such file".into())
        );
        assert_eq!(said(1, "bwrap: No permissions\n"), Some("bwrap: No permissions".into()));
        assert_eq!(said(127, "sh: 1: nothere: not found\n"), None);
        assert_eq!(said(1, "fernery confine: x"), None);
        assert_eq!(refusal(None, "fernery confine: x"), None);
    }
}
