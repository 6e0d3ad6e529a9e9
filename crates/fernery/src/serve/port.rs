//! Who listens on a port, as far as this user may see.

use super::running::LOCK_FILE;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The state LISTEN in the kernel's tables.
const LISTEN: &str = "0A";

/// A process that holds a port.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listener {
    pid: u32,
    name: String,
    /// The data directory, if it is a server of ours.
    data: Option<PathBuf>,
}

/// Why a port cannot be had, in a line, with what to do.
pub(super) fn in_use(address: SocketAddr) -> String {
    let other = "choose another port with --listen (port 0 picks a free one)";
    match listener(address) {
        Some(Listener { pid, data: Some(data), .. }) => {
            let data = data.display();
            format!(
                "cannot listen on {address}: process {pid}, the fernery server of {data}, does; stop it with `fernery \
                 down --data {data}`, or {other}"
            )
        }
        Some(Listener { pid, name, data: None }) => {
            format!("cannot listen on {address}: process {pid} ({name}) does; stop it, or {other}")
        }
        None => {
            format!("cannot listen on {address}: another process does, which this user cannot see; {other}")
        }
    }
}

fn listener(address: SocketAddr) -> Option<Listener> {
    let mut sockets = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        sockets.extend(inodes(&fs::read_to_string(table).unwrap_or_default(), address.port()));
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find_map(|pid| {
        let opened = opened(pid);
        let holds = |inode: &String| {
            opened.iter().any(|file| file.as_os_str() == format!("socket:[{inode}]").as_str())
        };
        sockets.iter().any(holds).then(|| Listener { pid, name: name(pid), data: data_of(&opened) })
    })
}

/// The sockets that listen on a port, on any address.
fn inodes(table: &str, port: u16) -> Vec<String> {
    let inode = |line: &str| {
        let mut words = line.split_whitespace();
        let local = words.nth(1)?;
        let state = words.nth(1)?;
        let (_, at) = local.rsplit_once(':')?;
        let is_it = state == LISTEN && u16::from_str_radix(at, 16) == Ok(port);
        is_it.then(|| words.nth(5).map(str::to_string)).flatten()
    };
    table.lines().skip(1).filter_map(inode).collect()
}

fn opened(pid: u32) -> Vec<PathBuf> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).collect()
}

fn name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().chars().filter(|c| !c.is_control()).collect()
}

fn data_of(opened: &[PathBuf]) -> Option<PathBuf> {
    let lock = opened.iter().find(|file| file.file_name() == Some(LOCK_FILE.as_ref()))?;
    lock.parent().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_process_that_listens_is_found_by_its_socket() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = listener(socket.local_addr().unwrap()).expect("this process listens");
        assert_eq!((found.pid, &found.data), (std::process::id(), &None));
        let said = in_use(socket.local_addr().unwrap());
        assert!(said.contains(&format!("process {} ({})", found.pid, found.name)), "{said}");
        assert_eq!(said.lines().count(), 1);
    }

    #[test]
    fn only_sockets_that_listen_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n   \
                     1: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1\n   \
                     2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4713 1\n";
        assert_eq!(inodes(table, 8080), ["4711"]);
    }
}
