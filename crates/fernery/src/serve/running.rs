//! Which server uses a data directory: it holds the file `server.lock` from before it opens its database until it ends.
//!
//! The kernel says who holds it, and forgets it when that process ends, however. So a command knows that a server is on its
//! way before there is a URL, and no number in a file can name a process that has nothing to do with it. On PostgreSQL
//! several servers may share a directory: the first holds the lock.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use rustix::process::{
    Flock, FlockOffsetType, FlockType, Pid, PidfdFlags, Signal, fcntl_getlk, pidfd_open, pidfd_send_signal,
};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// The file in the data directory that its server holds.
pub(crate) const LOCK_FILE: &str = "server.lock";

/// Held for as long as this process serves. No other descriptor of this file may be opened here: closing it would drop the lock.
pub(crate) struct Held {
    _file: File,
}

/// Holds the data directory for this process; `None`: another server holds it.
pub(crate) fn hold(data: &Path) -> io::Result<Option<Held>> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(data.join(LOCK_FILE))?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(Held { _file: file })),
        Err(Errno::ACCESS | Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Who serves from a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldBy {
    /// No server has held it since servers do.
    Unknown,
    Nobody,
    Process(Pid),
    /// A process that cannot be seen from here, for example in another container.
    Hidden,
}

pub(crate) fn holder(data: &Path) -> io::Result<HeldBy> {
    let file = match OpenOptions::new().read(true).write(true).open(data.join(LOCK_FILE)) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(HeldBy::Unknown);
        }
        Err(error) => return Err(error),
    };
    let wanted = Flock {
        start: 0,
        length: 0,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    Ok(match fcntl_getlk(&file, &wanted)? {
        None => HeldBy::Nobody,
        Some(Flock { pid: Some(pid), .. }) => HeldBy::Process(pid),
        Some(Flock { pid: None, .. }) => HeldBy::Hidden,
    })
}

/// A running server.
pub(crate) struct ServerProcess {
    pub(crate) pid: Pid,
    process: OwnedFd,
}

/// The process that holds a data directory; `None`: no process that can be seen does.
pub(crate) fn process(data: &Path) -> io::Result<Option<ServerProcess>> {
    while let HeldBy::Process(pid) = holder(data)? {
        let process = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(process) => process,
            // It has just ended.
            Err(Errno::SRCH) => continue,
            Err(error) => return Err(error.into()),
        };
        // If it holds the lock still, then the number was not given to another process in between.
        if holder(data)? == HeldBy::Process(pid) {
            return Ok(Some(ServerProcess { pid, process }));
        }
    }
    Ok(None)
}

impl ServerProcess {
    /// Asks it to end.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        match pidfd_send_signal(&self.process, Signal::TERM) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether it has ended within this time.
    pub(crate) fn ends_within(&self, time: Duration) -> io::Result<bool> {
        let mut ended = [PollFd::new(&self.process, PollFlags::IN)];
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        loop {
            match poll(&mut ended, Some(&time)) {
                Ok(found) => return Ok(found > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Lets a moment pass.
pub(crate) fn moment(time: Duration) {
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    let _ = poll(&mut [], Some(&time));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_holds_what_no_process_has_locked() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(holder(data.path()).unwrap(), HeldBy::Unknown);
        std::fs::write(data.path().join(LOCK_FILE), "1\n").unwrap();
        assert_eq!(holder(data.path()).unwrap(), HeldBy::Nobody, "a number in the file says nothing");
        assert!(process(data.path()).unwrap().is_none());
    }
}
