//! System calls that a program may not make, whatever its files allow: those that inspect other processes, make
//! namespaces or mounts, mark a file setuid, or reach parts of the kernel that nothing here needs. They fail as if
//! permission were missing, or as if the kernel or file system did not support them.

mod modes;

use super::confine::Refused;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};
use std::collections::BTreeMap;

/// Calls that are always refused.
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    SYS_OPEN_TREE_ATTR,
    // A handle opens a file without the path that leads to it.
    libc::SYS_open_by_handle_at,
    // File flags by path, which Landlock does not check.
    SYS_FILE_SETATTR,
    // Keys belong to the user and outlive the program.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Parts of the kernel with a long history of holes.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];
// Numbers that are the same on every architecture, and that the libraries do not have yet.
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_OPEN_TREE_ATTR: i64 = 467;
const SYS_FILE_SETATTR: i64 = 469;
/// Refused if only rules contain a program: shared memory, semaphores and messages of System V and message queues of
/// POSIX have no path that a rule could cover, are visible to all processes, and outlive their maker.
const COMMON: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// Calls that change extended attributes. No rule covers them, and an access control list is one of them, which is a
/// mode by another name. Refused, they look like on a file system without attributes, which tools can handle.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
];
/// Calls whose arguments are in memory, where no filter can look. They fail as unknown (ENOSYS), so that libraries fall
/// back to `clone` and `openat`.
const UNKNOWN: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2];
/// Flags of `clone` that make a namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];
/// Requests that put input into a terminal, which somebody else then runs.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// The other layer of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// Namespaces: it sees only few paths, processes and networks.
    Second,
    /// Rules. None of them covers sockets with a path, behind which may be a service that runs anything for this user.
    Alone {
        /// Whether it may reach the network.
        network: bool,
    },
}

/// Refuses these calls to this process and all that it starts.
pub(super) fn restrict(layer: Layer) -> Result<(), Refused> {
    filters(layer).map_err(refused)?.iter().try_for_each(|filter| apply_filter(filter)).map_err(refused)
}

/// One filter per error code, and one for the x32 numbers.
fn filters(layer: Layer) -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let mut all = vec![always(UNKNOWN, libc::ENOSYS)?, without_calls(layer)?];
    if cfg!(target_arch = "x86_64") {
        all.insert(0, without_x32());
    }
    if layer != Layer::Second {
        all.push(always(ATTRIBUTES, libc::EOPNOTSUPP)?);
    }
    Ok(all)
}

fn refused(error: impl std::fmt::Display) -> Refused {
    Refused::new("the filter of system calls", error)
}

type Filter = Result<BpfProgram, seccompiler::BackendError>;

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Filter {
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch)?.try_into()
}

fn always(calls: &[i64], errno: i32) -> Filter {
    filter(calls.iter().map(|call| (*call, Vec::new())).collect(), errno)
}

/// Refuses the x32 numbers of all calls, which no other filter here knows.
fn without_x32() -> BpfProgram {
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    vec![
        // The number of the call is the first thing that a filter is shown.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, 0x4000_0000),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

fn without_calls(layer: Layer) -> Filter {
    let argument = |nth, op, value| SeccompCondition::new(nth, SeccompCmpArgLen::Dword, op, value);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag as u32);
        namespaces.push(SeccompRule::new(vec![argument(0, SeccompCmpOp::MaskedEq(flag), flag)?])?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    rules.extend(modes::rules()?);
    let mut typing = Vec::new();
    for request in TYPING {
        typing.push(SeccompRule::new(vec![argument(1, SeccompCmpOp::Eq, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, typing);
    // It may lower its own limits; by the limits of another process of its user it could kill that one.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![argument(0, SeccompCmpOp::Ne, 0)?])?]);
    let is_second = layer == Layer::Second;
    if !is_second {
        rules.extend(COMMON.iter().map(|call| (*call, Vec::new())));
        rules.insert(libc::SYS_socketpair, pairs_of_messages()?);
    }
    if layer == (Layer::Alone { network: false }) {
        rules.insert(libc::SYS_socket, Vec::new());
        return filter(rules, libc::EPERM);
    }
    let mut families = vec![libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    families.extend(is_second.then_some(libc::AF_UNIX));
    let mut others = Vec::new();
    for family in families {
        others.push(argument(0, SeccompCmpOp::Ne, family as u64)?);
    }
    let netlink = argument(0, SeccompCmpOp::Eq, libc::AF_NETLINK as u64)?;
    let not_routes = argument(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64)?;
    let socket = vec![SeccompRule::new(others)?, SeccompRule::new(vec![netlink, not_routes])?];
    rules.insert(libc::SYS_socket, socket);
    filter(rules, libc::EPERM)
}

/// One end of a pair of message sockets can be pointed at a path.
fn pairs_of_messages() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let (kinds, messages) = (0xf, libc::SOCK_DGRAM as u64);
    let op = SeccompCmpOp::MaskedEq(kinds);
    let kind = SeccompCondition::new(1, SeccompCmpArgLen::Dword, op, messages)?;
    Ok(vec![SeccompRule::new(vec![kind])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many filters the kernel holds this thread to.
    fn loaded() -> usize {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("it can be read");
        let count = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
        count.expect("the kernel counts them").trim().parse().expect("a number")
    }

    #[test]
    fn every_filter_is_one_that_the_kernel_takes() {
        for layer in [Layer::Second, Layer::Alone { network: true }, Layer::Alone { network: false }] {
            let all = filters(layer).expect("they can be made");
            // A filter binds the thread that loads it, and ends with it.
            let load = move || {
                for (nth, filter) in all.iter().enumerate() {
                    let before = loaded();
                    apply_filter(filter).unwrap_or_else(|error| panic!("filter {nth} of {layer:?}: {error}"));
                    assert_eq!(loaded(), before + 1, "filter {nth} of {layer:?} is in force");
                }
                // And they work: one call per error code.
                let refused = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUTS);
                assert_eq!(refused, Err(nix::errno::Errno::EPERM));
                let how = rustix::fs::ResolveFlags::empty();
                let flags = rustix::fs::OFlags::PATH;
                let unknown =
                    rustix::fs::openat2(rustix::fs::CWD, "/", flags, rustix::fs::Mode::empty(), how);
                assert_eq!(unknown.err(), Some(rustix::io::Errno::NOSYS));
                let attribute =
                    rustix::fs::setxattr("/nowhere", "user.fernery", b"1", rustix::fs::XattrFlags::empty());
                let nowhere = rustix::io::Errno::NOENT;
                let wanted = if layer == Layer::Second { nowhere } else { rustix::io::Errno::OPNOTSUPP };
                assert_eq!(attribute, Err(wanted));
            };
            std::thread::spawn(load).join().expect("all of them are taken");
        }
    }

    #[test]
    fn a_filter_that_the_kernel_does_not_take_is_told() {
        let endless = vec![sock_filter { code: 0, jt: 0, jf: 0, k: 0 }; 5_000];
        let refused = std::thread::spawn(move || apply_filter(&endless).is_err());
        assert!(refused.join().expect("it ended"));
    }
}
