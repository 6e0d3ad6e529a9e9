//! Which calls of the kernel a program may not make, whatever its files allow: those that look into other processes, make
//! namespaces or mounts, or reach parts of the kernel that nothing here needs. They fail as if permission was missing.

use super::confine::Refused;
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter, sock_filter,
};
use std::collections::BTreeMap;

/// Calls that are refused whatever they ask for.
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
    // A handle opens a file without the path that leads to it.
    libc::SYS_open_by_handle_at,
    // Keys that outlive the program, and are its user's.
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
/// Requests by which a program types into its terminal what somebody else then runs.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Which sockets a program may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    /// To the network that it has, be it only its own loopback; and by path, where the paths themselves are few.
    Internet {
        /// By path too.
        unix: bool,
    },
    /// None but pairs.
    None,
}

impl Sockets {
    /// Where nothing but rules stand between a program and the machine: no rule covers a socket that is named by a path, and
    /// behind one may be whoever runs anything for this user.
    pub(super) fn alone(network: bool) -> Self {
        if network { Self::Internet { unix: false } } else { Self::None }
    }
}

/// Refuses these calls to this process and all that it starts.
pub(super) fn restrict(sockets: Sockets) -> Result<(), Refused> {
    let mut all = vec![without_clone3().map_err(refused)?, without_calls(sockets).map_err(refused)?];
    if cfg!(target_arch = "x86_64") {
        all.insert(0, without_x32());
    }
    all.iter().try_for_each(|filter| apply_filter(filter)).map_err(refused)
}

fn refused(error: impl std::fmt::Display) -> Refused {
    Refused::new("the filter of system calls", error)
}

type Filter = Result<BpfProgram, seccompiler::BackendError>;

fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Filter {
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(errno as u32), arch)?.try_into()
}

/// What it asks for lies in memory, where no filter can look. Told that it is unknown, libraries take `clone`.
fn without_clone3() -> Filter {
    filter(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

/// A second set of numbers for the same calls, which no other filter here knows.
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

fn without_calls(sockets: Sockets) -> Filter {
    let argument = |nth, op, value| SeccompCondition::new(nth, SeccompCmpArgLen::Dword, op, value);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let mut namespaces = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag as u32);
        namespaces.push(SeccompRule::new(vec![argument(0, SeccompCmpOp::MaskedEq(flag), flag)?])?);
    }
    rules.insert(libc::SYS_clone, namespaces);
    let mut typing = Vec::new();
    for request in TYPING {
        typing.push(SeccompRule::new(vec![argument(1, SeccompCmpOp::Eq, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, typing);
    // Limits of its own are its own to lower; with those of another process of its user it could end that one.
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![argument(0, SeccompCmpOp::Ne, 0)?])?]);
    let Sockets::Internet { unix } = sockets else {
        rules.insert(libc::SYS_socket, Vec::new());
        rules.insert(libc::SYS_socketpair, pairs_of_messages()?);
        return filter(rules, libc::EPERM);
    };
    let mut families = vec![libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    families.extend(unix.then_some(libc::AF_UNIX));
    let mut others = Vec::new();
    for family in families {
        others.push(argument(0, SeccompCmpOp::Ne, family as u64)?);
    }
    let netlink = argument(0, SeccompCmpOp::Eq, libc::AF_NETLINK as u64)?;
    let not_routes = argument(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64)?;
    let socket = vec![SeccompRule::new(others)?, SeccompRule::new(vec![netlink, not_routes])?];
    rules.insert(libc::SYS_socket, socket);
    if !unix {
        rules.insert(libc::SYS_socketpair, pairs_of_messages()?);
    }
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

    #[test]
    fn every_filter_is_one_that_the_kernel_takes() {
        for sockets in [Sockets::None, Sockets::Internet { unix: true }, Sockets::Internet { unix: false }] {
            // 4096 instructions are the most for one filter.
            assert!(without_calls(sockets).unwrap().len() < 4_096);
        }
        assert!(!without_clone3().unwrap().is_empty());
    }
}
