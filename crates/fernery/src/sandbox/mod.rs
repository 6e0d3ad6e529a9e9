//! Containment of the programs that Fernery starts: what one may see and do is a [`Cell`], how that is held to is a [`Tier`].
//!
//! The sandbox wraps a command line: the guard starts `fernery confine`, which sets limits, leaves root behind, and becomes
//! bubblewrap or, where Landlock does it, the program itself. What may be read is a list too, in both tiers: the system's
//! programs, a handful of files of `/etc`, the cell's own paths, and nothing else.
//!
//! The kernel is authoritative. Whether it can hold a tier is found out by running one ([`Probe`]), never guessed, and no
//! program falls back to a weaker tier than the one that was chosen for it.

mod bubblewrap;
mod cell;
pub(crate) mod confine;
mod probe;
mod rights;
mod syscalls;
mod unveil;

pub use cell::{Cell, CellLimits};
pub use confine::{COMMAND, refusal};
pub use fernery_core::blueprint::Sandbox as Tier;
pub use probe::{Obstacle, Probe, Probing};

/// Programs and libraries of the system, which every program may read and run.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Files of `/etc` that tell a program how to find its libraries, its tools and the time.
const ETC: [&str; 5] =
    ["/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"];
/// And those by which it knows whom it speaks to.
const ETC_NETWORK: [&str; 6] = [
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls",
    "/etc/pki/ca-trust",
    "/etc/gai.conf",
];
/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
