//! The protocol between a worker and a guard: one message per packet, and with the start of a job the three ends of its
//! pipes.
//!
//! If either side ends, the socket closes, so neither can miss the other's death.

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Bytes of one message at most.
const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// Stdin, stdout and stderr of a job.
const FILES_MAX: usize = 3;

/// An order of the worker.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Order {
    /// Start the command, with these variables beside the guard's own; stdin, stdout and stderr come along.
    Start {
        /// Variables for the command about its job.
        env: Vec<(String, String)>,
        /// The grace on TERM for processes that outlive the command.
        grace_ms: u64,
        /// After so much silence of the worker the job is killed: a worker that hangs renews no lease.
        silence_ms_max: u64,
    },
    /// The worker is alive.
    Alive,
    /// End the job: TERM, so long a grace, KILL.
    Stop {
        /// How long it may take to end on TERM.
        grace_ms: u64,
    },
}

/// A report of the guard.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// It has become the subreaper of everything below it.
    Ready,
    Started {
        /// Its process, and its process group.
        pid: i32,
    },
    /// The command could not be started.
    NotStarted {
        /// The errno of the failure.
        errno: Option<i32>,
        why: String,
    },
    Ended(Ended),
}

#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Ended {
    /// How the command itself ended.
    pub exit: Exit,
    /// Why the command was stopped; `None` if it ended by itself. A program that ends in order on TERM exits with 0,
    /// but has not done its work.
    pub stopped: Option<Stopped>,
    /// How many processes outlived the command and had to be killed.
    pub leftovers: u32,
    /// Processes that KILL has not ended yet. The guard waits for them.
    pub immortal: Vec<i32>,
}

/// Why a command was ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The worker ordered it.
    Ordered,
    /// The worker was silent for too long.
    Silence,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    Signal(i32),
}

impl Exit {
    /// The code, if it ended by itself.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) => None,
        }
    }
}

/// One end of the socket between worker and guard.
///
/// The Rust type says stream, but the socket keeps packets apart; only this module relies on that.
#[derive(Debug)]
pub(super) struct Link(UnixStream);

impl Link {
    /// The two ends of a socket. Both are close-on-exec, so that no process started meanwhile inherits them.
    pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
    }

    /// Talks over this end.
    pub(super) fn new(end: OwnedFd) -> io::Result<Self> {
        Ok(Self(UnixStream::from_std(std::os::unix::net::UnixStream::from(end))?))
    }

    /// Sends one message, and these files with it.
    pub(super) async fn send(&self, message: &impl Serialize, files: &[impl AsFd]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the message is too long"));
        }
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        self.0
            .async_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
                let mut control = SendAncillaryBuffer::new(&mut space);
                if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&files)) {
                    return Err(io::Error::new(ErrorKind::InvalidInput, "too many files"));
                }
                sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
                Ok(())
            })
            .await
    }

    /// The next message with its files; `None` once the other side is gone.
    pub(super) async fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let received = self.0.async_io(Interest::READABLE, || {
            let mut bytes = vec![0; MESSAGE_BYTES_MAX];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let got =
                recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
            let mut files = Vec::new();
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(fds) = message {
                    files.extend(fds);
                }
            }
            if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
                return Err(io::Error::new(ErrorKind::InvalidData, "a message was cut off"));
            }
            bytes.truncate(got.bytes);
            Ok((bytes, files))
        });
        match received.await {
            Ok((bytes, _)) if bytes.is_empty() => Ok(None),
            Ok((bytes, files)) => Ok(Some((serde_json::from_slice(&bytes)?, files))),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    #[tokio::test]
    async fn a_message_brings_its_files_and_a_closed_end_is_noticed() {
        let (here, there) = Link::pair().unwrap();
        let (here, there) = (Link::new(here).unwrap(), Link::new(there).unwrap());
        let (mut reader, writer) = std::io::pipe().unwrap();
        let order = Order::Stop { grace_ms: 7 };
        here.send(&order, &[OwnedFd::from(writer)]).await.unwrap();
        here.send(&Report::Ready, &[] as &[OwnedFd]).await.unwrap();

        let (got, mut files) = there.receive::<Order>().await.unwrap().unwrap();
        assert_eq!(got, order);
        File::from(files.remove(0)).write_all(b"through the passed end").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through the passed end");
        let (got, files) = there.receive::<Report>().await.unwrap().unwrap();
        assert_eq!((got, files.len()), (Report::Ready, 0));

        drop(here);
        assert!(there.receive::<Order>().await.unwrap().is_none());
    }
}
