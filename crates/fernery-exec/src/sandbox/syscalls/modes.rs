//! Calls that set modes. A setuid or setgid file of this user gives this user's rights to whoever runs it, and outlives
//! the run. No run may make one, whatever its sandbox.

use nix::libc;
use seccompiler::{BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

const BITS: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];
/// Flags with which `open` creates a file. Without them the mode argument is ignored and may be anything.
const MAKING: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];
/// The number is the same on every architecture; the libraries do not have it for all of them.
const SYS_FCHMODAT2: i64 = 452;

/// Calls whose argument with this number is a mode.
const MODE_AT: &[(i64, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (SYS_FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    (libc::SYS_mkdirat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
];
/// Calls that open files: the position of their flags; the mode is the next argument.
const FLAGS_AT: &[(i64, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// What is refused of these calls.
pub(super) fn rules() -> Result<Vec<(i64, Vec<SeccompRule>)>, BackendError> {
    let has = |argument: u8, bits: u32| {
        let bits = u64::from(bits);
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)
    };
    let mut all = Vec::new();
    for (call, mode) in MODE_AT {
        let rules = BITS.map(|bit| SeccompRule::new(vec![has(*mode, bit)?]));
        all.push((*call, rules.into_iter().collect::<Result<_, _>>()?));
    }
    for (call, flags) in FLAGS_AT {
        let mut rules = Vec::new();
        for (making, bit) in MAKING.into_iter().flat_map(|making| BITS.map(|bit| (making, bit))) {
            rules.push(SeccompRule::new(vec![has(*flags, making as u32)?, has(flags + 1, bit)?])?);
        }
        all.push((*call, rules));
    }
    Ok(all)
}
