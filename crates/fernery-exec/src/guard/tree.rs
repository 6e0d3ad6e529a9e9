//! The processes below one process, seen through `/proc`, and signals to them.
//!
//! A list of processes is outdated as soon as it is read: ask again until nothing is left.

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use std::fs;

/// What `/proc/PID/stat` says about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    /// It has ended and waits to be reaped.
    pub zombie: bool,
}

impl Process {
    /// Looks at a process; `None` if there is none.
    pub(crate) fn look(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(pid: i32, stat: &str) -> Option<Self> {
        // The name is in parentheses and may itself contain parentheses and spaces.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let zombie = matches!(fields.next()?, "Z" | "X");
        let mut number = || fields.next()?.parse().ok();
        Some(Self { pid, parent: number()?, group: number()?, session: number()?, zombie })
    }

    /// Sends it a signal, unless its pid was reused since.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        // What the handle names does not change any more; a parent changes only to one of ours.
        if Self::look(self.pid).is_some_and(|now| now.session == self.session || now.parent == self.parent) {
            let _ = pidfd_send_signal(handle, signal);
        }
    }
}

/// The children of a process.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut all = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(line) => all.extend(line.split_ascii_whitespace().filter_map(|n| n.parse::<i32>().ok())),
            // Kernels may be built without this file.
            Err(_) => return children_by_search(pid),
        }
    }
    all
}

fn children_by_search(pid: i32) -> Vec<i32> {
    let Ok(all) = fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|child| Process::look(*child).is_some_and(|p| p.parent == pid))
        .collect()
}

/// Everything below a process that has not ended, parents before children.
pub(crate) fn descendants(of: i32) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut open = children(of);
    while let Some(pid) = open.pop() {
        // A process that changes its parent meanwhile would be seen twice.
        if found.iter().any(|p| p.pid == pid) {
            continue;
        }
        if let Some(process) = Process::look(pid).filter(|p| !p.zombie) {
            found.push(process);
            open.extend(children(pid));
        }
    }
    found
}

/// Sends TERM to everything below a process: to the whole group of its child `leader` at once, unless that child was
/// reaped, and to the others one by one. Answers how many there were.
pub(crate) fn terminate(below: i32, leader: Option<i32>) -> usize {
    let mut others = descendants(below);
    let seen = others.len();
    if let Some(group) = leader.and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::TERM);
        others.retain(|p| p.group != group.as_raw_nonzero().get());
        // A stopped process would notice only after CONT.
        let _ = kill_process_group(group, Signal::CONT);
    }
    for process in others {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
    seen
}

/// Sends KILL to everything below a process.
pub(crate) fn kill(below: i32) -> Vec<Process> {
    let all = descendants(below);
    all.iter().for_each(|process| process.signal(Signal::KILL));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let stat = "77 (a) R 1 2) S 10 20 30 0 -1";
        let process = Process { pid: 77, parent: 10, group: 20, session: 30, zombie: false };
        assert_eq!(Process::parse(77, stat), Some(process));
        assert!(Process::parse(77, "77 (x) Z 10 20 30").unwrap().zombie);
        assert_eq!(Process::parse(77, "77 (x"), None);
    }

    #[test]
    fn both_ways_of_looking_find_a_child_and_a_kill_ends_it() {
        let mut child = Command::new("sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap();
        let (me, pid) = (std::process::id() as i32, child.id() as i32);
        assert!(children(me).contains(&pid));
        assert!(children_by_search(me).contains(&pid));
        Process::look(pid).unwrap().signal(Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
