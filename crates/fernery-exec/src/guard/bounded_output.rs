//! A job's output within bounds: the beginning of stdout, the end of stderr.

use std::collections::VecDeque;

/// The first bytes of a stream, and whether there were more.
#[derive(Debug)]
pub struct Head {
    bytes: Vec<u8>,
    max: usize,
    cut: bool,
}

impl Head {
    /// Keeps at most this many bytes.
    pub fn new(max: usize) -> Self {
        Self { bytes: Vec::new(), max, cut: false }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(self.max - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        self.cut |= taken < bytes.len();
    }

    /// Whether there was more than is kept.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// What is kept, whether or not there was more.
    pub fn kept(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// What is kept, if nothing was cut off.
    pub fn whole(self) -> Result<Vec<u8>, Truncated> {
        if self.cut { Err(Truncated) } else { Ok(self.bytes) }
    }
}

/// There was more than may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

/// The last bytes of a stream.
#[derive(Debug)]
pub struct Tail {
    bytes: VecDeque<u8>,
    max: usize,
    cut: bool,
}

impl Tail {
    /// Keeps at most this many bytes.
    pub fn new(max: usize) -> Self {
        Self { bytes: VecDeque::new(), max, cut: false }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let over = (self.bytes.len() + bytes.len()).saturating_sub(self.max);
        self.cut |= over > 0;
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(&bytes[bytes.len().saturating_sub(self.max)..]);
    }

    /// The end of it as text. If the beginning is cut off, it starts with a whole line where possible.
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        match text.split_once('\n') {
            Some((_, whole_lines)) if self.cut && !whole_lines.trim().is_empty() => whole_lines.to_string(),
            _ => text.into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_whole_up_to_its_last_byte_and_cut_after_it() {
        let mut head = Head::new(4);
        head.push(b"ab");
        head.push(b"cd");
        assert!(!head.is_cut());
        head.push(b"");
        assert_eq!(head.whole(), Ok(b"abcd".to_vec()));
        let mut head = Head::new(4);
        head.push(b"abcde");
        assert!(head.is_cut());
        assert_eq!(head.whole(), Err(Truncated));
    }

    #[test]
    fn a_tail_keeps_the_end_whatever_the_pieces() {
        for piece in [1, 3, 7, 100] {
            let mut tail = Tail::new(10);
            for bytes in b"first\nsecond\nthird".chunks(piece) {
                tail.push(bytes);
            }
            assert_eq!(tail.text(), "third", "pieces of {piece}");
        }
        let mut tail = Tail::new(4);
        tail.push("aé".as_bytes());
        tail.push(b"xyz");
        assert_eq!(tail.text(), "\u{fffd}xyz", "half a character is shown as such");
    }
}
