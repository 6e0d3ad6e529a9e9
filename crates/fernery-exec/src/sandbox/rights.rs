//! What a program may do with files, sockets and signals by Landlock's rules: alone, or as a second layer under bubblewrap.

use super::confine::Refused;
use super::{Cell, ETC, ETC_NETWORK, SYSTEM};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use std::path::{Path, PathBuf};

/// This ABI version (Linux 6.12) covers reading, writing, TCP, signals and abstract sockets.
const NEEDED: ABI = ABI::V6;

/// Files of `/etc` that alone tell names from numbers; under bubblewrap they are made anew.
const ETC_NAMES: [&str; 3] = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf"];
const ETC_HOSTS: [&str; 4] = ["/etc/hosts", "/etc/resolv.conf", "/etc/host.conf", "/etc/services"];
/// Files of `/proc` about the machine and the program itself; the folders of its children are not known in advance.
const PROC: [&str; 9] = [
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/loadavg",
    "/proc/uptime",
    "/proc/version",
    "/proc/filesystems",
    "/proc/sys/vm/overcommit_memory",
];
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Confines this process by rules alone. Fails if the kernel does not know one of them.
pub(super) fn restrict_alone(cell: &Cell, logins: &[(PathBuf, PathBuf)]) -> Result<(), Refused> {
    let (read, all) = (AccessFs::from_read(NEEDED), AccessFs::from_all(NEEDED));
    let mut rules = ruleset(CompatLevel::HardRequirement, cell.network).map_err(refused)?;
    let mut system: Vec<&str> = [&SYSTEM[..], &ETC, &ETC_NAMES, &PROC].concat();
    if cell.network {
        system.extend([&ETC_NETWORK[..], &ETC_HOSTS].concat());
    }
    for path in system.iter().map(Path::new).filter(|path| path.exists()) {
        rules = allow(rules, path, read)?;
    }
    for device in DEVICES.map(Path::new) {
        rules = allow(rules, device, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate)?;
    }
    // A spare user has a copy in its home instead.
    let logins = logins.iter().map(|(login, _)| login).filter(|_| cell.uid.is_none());
    for path in cell.read.iter().chain(logins) {
        rules = allow(rules, path, read)?;
    }
    for path in [&cell.folder, &cell.home].into_iter().chain(&cell.write) {
        rules = allow(rules, path, all & !BitFlags::from(AccessFs::IoctlDev))?;
    }
    rules.restrict_self().map(drop).map_err(refused)
}

/// Confines writing a second time inside the mount namespace, and as far as the kernel can, blocks signals to and
/// abstract sockets of others.
pub(super) fn restrict_inside(cell: &Cell) -> Result<(), Refused> {
    let mut rules = ruleset(CompatLevel::BestEffort, true).map_err(refused)?;
    rules = allow(rules, Path::new("/"), AccessFs::from_read(NEEDED))?;
    let own = [cell.folder.as_path(), &cell.home, Path::new("/tmp"), Path::new("/dev"), Path::new("/proc")];
    for path in own.into_iter().chain(cell.write.iter().map(PathBuf::as_path)) {
        rules = allow(rules, path, AccessFs::from_all(NEEDED))?;
    }
    rules.restrict_self().map(drop).map_err(refused)
}

fn ruleset(level: CompatLevel, network: bool) -> Result<RulesetCreated, RulesetError> {
    let rules = Ruleset::default().set_compatibility(level).handle_access(AccessFs::from_all(NEEDED))?;
    let rules = match network {
        true => rules,
        false => rules.handle_access(AccessNet::from_all(NEEDED))?,
    };
    rules.scope(Scope::from_all(NEEDED))?.create()
}

fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, Refused> {
    let missing = |error: &dyn std::fmt::Display| Refused::new(path.display(), error);
    let meta = path.metadata().map_err(|error| missing(&error))?;
    let fd = PathFd::new(path).map_err(|error| missing(&error))?;
    let access = if meta.is_dir() { access } else { access & AccessFs::from_file(NEEDED) };
    rules.add_rule(PathBeneath::new(fd, access)).map_err(|error| missing(&error))
}

fn refused(error: RulesetError) -> Refused {
    Refused::new("Landlock", error)
}
