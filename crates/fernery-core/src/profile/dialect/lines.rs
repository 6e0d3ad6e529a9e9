//! Bytes into lines. One that is too long is skipped whole, so that no output takes more memory than one line may.

use crate::limits;

/// What has come of the line that is not over yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    open: Vec<u8>,
    /// The open line is too long.
    skipped: bool,
}

impl Lines {
    /// Hands over each line that these bytes end.
    pub(super) fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.take(&rest[..end]);
            if let Some(line) = std::mem::take(self).rest() {
                each(&line);
            }
            rest = &rest[end + 1..];
        }
        self.take(rest);
    }

    fn take(&mut self, bytes: &[u8]) {
        self.skipped |= self.open.len() + bytes.len() > limits::AGENT_LINE_BYTES_MAX;
        if self.skipped {
            self.open = Vec::new();
        } else {
            self.open.extend_from_slice(bytes);
        }
    }

    /// The line that is not over.
    pub(super) fn rest(self) -> Option<Vec<u8>> {
        (!self.skipped && !self.open.is_empty()).then_some(self.open)
    }
}
