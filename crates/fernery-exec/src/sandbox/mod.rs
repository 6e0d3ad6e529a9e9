//! Containment of the programs that Fernery starts: a [`Cell`] says what a program may see and do, a [`Tier`] how that
//! is enforced.
//!
//! The sandbox wraps a command line: the guard starts `fernery confine`, which sets limits, drops root, and executes
//! bubblewrap or (with Landlock) the program itself. In both tiers reading is limited too: to the system's programs, a
//! few files of `/etc`, and the cell's own paths.
//!
//! The kernel decides. Whether it supports a tier is found out by running one ([`Probe`]), never guessed, and no
//! program falls back to a weaker tier than the chosen one.

mod bubblewrap;
mod cell;
pub mod confine;
pub mod modes;
mod mounts;
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
/// Further files for programs with a network.
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
