//! Single keys from a terminal, which is restored however this ends: by a quit, a failure, a panic, Ctrl-C or SIGTERM.

use crate::cli::failure::{Failure, Outcome};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::collections::VecDeque;
use std::io::Write;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Most bytes at once that count as typed: pasted text is not a list of decisions.
const TYPED_AT_ONCE: usize = 8;
/// Bytes of an answer at most.
const ANSWER_BYTES_MAX: usize = 2_000;
/// How long it waits for a key before it checks for a signal.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
const INTERRUPT: u8 = 3;
const END: u8 = 4;
const ESCAPE: u8 = 27;

/// What a person typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// A key that writes something.
    Char(char),
    /// Return.
    Enter,
    /// They want to leave, or have left.
    Quit,
    /// More at once than anybody types: none of it is taken.
    Pasted,
    /// An arrow, a function key.
    Other,
}

/// The terminal of stdin.
pub(super) struct Keys {
    before: Termios,
    typed: VecDeque<u8>,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Keys {
    pub(super) fn take() -> Outcome<Self> {
        let before = tcgetattr(std::io::stdin())
            .map_err(|error| Failure::lost("terminal", format!("the terminal cannot be used: {error}")))?;
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let hang_up = signal(SignalKind::hangup())?;
        let keys = Self { before, typed: VecDeque::new(), interrupt, terminate, hang_up };
        keys.single()?;
        Ok(keys)
    }

    /// Keys come one by one, unseen, and Ctrl-C is one of them.
    pub(super) fn single(&self) -> Outcome {
        let mut modes = self.before.clone();
        modes.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(std::io::stdin(), OptionalActions::Drain, &modes).map_err(std::io::Error::from)?;
        Ok(())
    }

    /// The terminal as others expect it.
    pub(super) fn restore(&self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, &self.before);
    }

    /// Columns of the terminal.
    pub(super) fn width(&self) -> usize {
        let columns = tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_col));
        if columns == 0 { 80 } else { columns }
    }

    /// The next key.
    pub(super) async fn next(&mut self) -> Outcome<Key> {
        if self.typed.is_empty() && !self.more().await? {
            return Ok(Key::Quit);
        }
        if self.typed.len() > TYPED_AT_ONCE {
            self.typed.clear();
            return Ok(Key::Pasted);
        }
        Ok(match self.typed.pop_front() {
            None => Key::Other,
            Some(INTERRUPT | END) => Key::Quit,
            Some(ESCAPE) => {
                let bytes = sequence(self.typed.make_contiguous());
                self.typed.drain(..bytes);
                Key::Other
            }
            Some(b'\r' | b'\n') => Key::Enter,
            Some(byte) if byte.is_ascii_graphic() || byte == b' ' => Key::Char(char::from(byte)),
            Some(_) => Key::Other,
        })
    }

    /// Asks for a line, as the terminal lets people write one; `None` if they would rather not.
    pub(super) async fn ask(&mut self, question: &str) -> Outcome<Option<String>> {
        self.typed.clear();
        self.restore();
        let answer = self.line(question).await;
        self.typed.clear();
        self.single()?;
        answer
    }

    async fn line(&mut self, question: &str) -> Outcome<Option<String>> {
        let mut out = std::io::stdout().lock();
        write!(out, "{question}")?;
        out.flush()?;
        drop(out);
        let mut line = Vec::new();
        loop {
            if !self.more().await? {
                writeln!(std::io::stdout())?;
                return Ok(None);
            }
            line.extend(self.typed.drain(..));
            if line.ends_with(b"\n") {
                return Ok(Some(String::from_utf8_lossy(&line).trim().to_string()));
            }
            if line.len() > ANSWER_BYTES_MAX {
                return Ok(None);
            }
        }
    }

    /// Waits for something typed; `false` if a signal came, or nothing comes any more.
    async fn more(&mut self) -> Outcome<bool> {
        let stdin = std::io::stdin();
        let mut bytes = [0; 256];
        // Nothing else reads meanwhile, so input for an editor is still there when it starts.
        while !matches!(poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&LOOK_EVERY)), Ok(1..)) {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => return Ok(false),
                _ = self.terminate.recv() => return Ok(false),
                _ = self.hang_up.recv() => return Ok(false),
                () = tokio::task::yield_now() => {}
            }
        }
        let read = rustix::io::read(&stdin, &mut bytes);
        match read {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.typed.extend(&bytes[..count]);
                Ok(true)
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(true),
            // The other end of the terminal is gone.
            Err(rustix::io::Errno::IO) => Ok(false),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }
}

/// How many bytes after an escape belong to the same key, like `[A` for an arrow.
fn sequence(after: &[u8]) -> usize {
    match after {
        [b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| (0x40..=0x7e).contains(byte));
            1 + end.map_or(rest.len(), |end| end + 1)
        }
        [b'O', _, ..] => 2,
        _ => 0,
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::sequence;

    #[test]
    fn an_arrow_is_one_key_and_what_follows_is_another() {
        for (after, bytes) in
            [(&b""[..], 0), (b"d", 0), (b"[Ad", 2), (b"[1;5Cd", 5), (b"[3~d", 3), (b"OPd", 2), (b"[", 1)]
        {
            assert_eq!(sequence(after), bytes, "{after:?}");
        }
    }
}
