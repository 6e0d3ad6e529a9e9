//! Follows the bytes of a connection from head to head and keeps, for each head, how it says the length of its body.
//!
//! The parser (hyper) drops a Content-Length that stands beside a Transfer-Encoding, so only the raw bytes show that
//! both were there. The client decides how the bytes are cut into reads, and one read may hold several requests, so the
//! boundaries are found here byte by byte. Only the start of one line is kept. If this reader does not understand
//! something, it is lost: from then on it vouches for no head.

use std::collections::VecDeque;

/// Bytes of a line that are kept: enough for the names and the numbers that matter.
const LINE_BYTES: usize = 64;

/// What the bytes of one head say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub length: bool,
    pub encoding: bool,
    /// How many bytes it has.
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    /// So many bytes of a body are left.
    Body(u64),
    Chunked(Chunk),
    Lost,
}

/// The position in a chunked body; the same states as in the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    Start,
    Size(u64),
    AfterSize(u64),
    Extension(u64),
    SizeLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    EndCr,
    EndLf,
    Trailer,
    TrailerLf,
}

/// The reader of one connection.
#[derive(Debug)]
pub struct Framing {
    state: State,
    head: Head,
    /// The request line has been read.
    begun: bool,
    line: [u8; LINE_BYTES],
    line_bytes: usize,
    /// The Content-Length, if it is a number.
    length: Option<u64>,
    /// Heads that were read and not yet asked for.
    heads: VecDeque<Head>,
}

impl Default for Framing {
    fn default() -> Self {
        Self {
            state: State::Head,
            head: Head::default(),
            begun: false,
            line: [0; LINE_BYTES],
            line_bytes: 0,
            length: None,
            heads: VecDeque::new(),
        }
    }
}

impl Framing {
    /// Reads on.
    pub fn read(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first().copied() {
            let taken = match self.state {
                State::Head => self.read_line(bytes),
                State::Body(left) => {
                    let taken = left.min(bytes.len() as u64);
                    self.state = if taken == left { State::Head } else { State::Body(left - taken) };
                    taken as usize
                }
                State::Chunked(Chunk::Data(left)) => {
                    let taken = left.min(bytes.len() as u64);
                    let next = if taken == left { Chunk::DataCr } else { Chunk::Data(left - taken) };
                    self.state = State::Chunked(next);
                    taken as usize
                }
                State::Chunked(chunk) => {
                    self.state = chunk.after(first);
                    1
                }
                State::Lost => {
                    self.head.bytes = self.head.bytes.saturating_add(bytes.len());
                    bytes.len()
                }
            };
            bytes = &bytes[taken..];
        }
    }

    /// The next head in order; `None` if the reader is lost.
    pub fn next_head(&mut self) -> Option<Head> {
        self.heads.pop_front()
    }

    /// Bytes so far of the head that has not ended.
    pub fn unfinished_bytes(&self) -> usize {
        self.head.bytes
    }

    /// Whether the first line of a head has begun and not ended.
    pub fn is_in_request_line(&self) -> bool {
        !self.begun && self.head.bytes > 0
    }

    /// Reads up to the end of a line of a head; answers how much that was.
    fn read_line(&mut self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        let room = &mut self.line[self.line_bytes.min(LINE_BYTES)..];
        let kept = part.len().min(room.len());
        room[..kept].copy_from_slice(&part[..kept]);
        self.line_bytes += part.len();
        let taken = part.len() + usize::from(end.is_some());
        self.head.bytes += taken;
        if end.is_some() {
            self.end_line();
        }
        taken
    }

    fn end_line(&mut self) {
        let whole = self.line_bytes <= LINE_BYTES;
        let kept = self.line;
        let line = &kept[..self.line_bytes.min(LINE_BYTES)];
        let line = if whole { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
        self.line_bytes = 0;
        match (self.begun, line) {
            // Empty lines before a request are passed over.
            (false, []) => self.head.bytes = 0,
            (false, _) => self.begun = true,
            (true, []) => self.end_head(),
            (true, header) => self.read_header(header, whole),
        }
    }

    fn read_header(&mut self, line: &[u8], whole: bool) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.head.encoding = true;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let number =
                std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
            let number = number.filter(|_| whole).and_then(|text| text.parse().ok());
            // The same length twice counts once; the parser refuses everything else, and this reader is lost.
            self.length = if self.head.length && self.length != number { None } else { number };
            self.head.length = true;
        }
    }

    fn end_head(&mut self) {
        let head = std::mem::take(&mut self.head);
        self.state = match (head.encoding, head.length, self.length.take()) {
            (true, ..) => State::Chunked(Chunk::Start),
            (false, false, _) | (false, true, Some(0)) => State::Head,
            (false, true, Some(length)) => State::Body(length),
            (false, true, None) => State::Lost,
        };
        self.begun = false;
        self.heads.push_back(head);
    }
}

impl Chunk {
    fn after(self, byte: u8) -> State {
        let digit = char::from(byte).to_digit(16).map(u64::from);
        let grown =
            |size: u64| size.checked_mul(16).zip(digit).and_then(|(size, digit)| size.checked_add(digit));
        let next = match (self, byte) {
            (Self::Start, _) => digit.map(Self::Size),
            (Self::Size(size), _) if digit.is_some() => grown(size).map(Self::Size),
            (Self::Size(size) | Self::AfterSize(size), b' ' | b'\t') => Some(Self::AfterSize(size)),
            (Self::Size(size) | Self::AfterSize(size), b';') => Some(Self::Extension(size)),
            (Self::Size(size) | Self::AfterSize(size) | Self::Extension(size), b'\r') => {
                Some(Self::SizeLf(size))
            }
            (Self::Extension(_), b'\n') => None,
            (Self::Extension(size), _) => Some(Self::Extension(size)),
            (Self::SizeLf(0), b'\n') => Some(Self::EndCr),
            (Self::SizeLf(size), b'\n') => Some(Self::Data(size)),
            (Self::DataCr, b'\r') => Some(Self::DataLf),
            (Self::DataLf, b'\n') => Some(Self::Start),
            (Self::EndCr, b'\r') => Some(Self::EndLf),
            (Self::EndLf, b'\n') => return State::Head,
            (Self::EndCr, _) => Some(Self::Trailer),
            (Self::Trailer, b'\r') => Some(Self::TrailerLf),
            (Self::Trailer, _) => Some(Self::Trailer),
            (Self::TrailerLf, b'\n') => Some(Self::EndCr),
            _ => None,
        };
        next.map_or(State::Lost, State::Chunked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n\
        \r\nPOST /1 HTTP/1.1\r\nhost: a\r\ncontent-length: 7\r\n\r\n\r\n\r\nxyz\
        POST /2 HTTP/1.1\nTransfer-Encoding: chunked\nhost: a\n\n\
        3;a=\"b\"\r\nGET\r\n0a \r\n0123456789\r\n0\r\ncontent-length: 5\r\n\r\n\
        POST /3 HTTP/1.1\r\nContent-Length: 4\r\nx: y\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n\
        POST /4 HTTP/1.1\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\nGET /5 HTTP/1.1\r\n\r\n";

    fn heads(framing: &mut Framing) -> Vec<(bool, bool)> {
        std::iter::from_fn(|| framing.next_head()).map(|head| (head.length, head.encoding)).collect()
    }

    const EXPECTED: [(bool, bool); 6] =
        [(false, false), (true, false), (false, true), (true, true), (true, false), (false, false)];

    #[test]
    fn heads_are_told_apart_however_the_bytes_are_cut() {
        let bytes = REQUESTS.as_bytes();
        for cut in 0..=bytes.len() {
            let mut framing = Framing::default();
            framing.read(&bytes[..cut]);
            framing.read(&bytes[cut..]);
            assert_eq!(heads(&mut framing), EXPECTED, "cut after {cut} bytes");
            assert_eq!(framing.unfinished_bytes(), 0);
        }
        let mut framing = Framing::default();
        bytes.iter().for_each(|byte| framing.read(&[*byte]));
        assert_eq!(heads(&mut framing), EXPECTED);
    }

    #[test]
    fn what_it_does_not_understand_makes_it_vouch_for_nothing_more() {
        let next = "GET / HTTP/1.1\r\n\r\n";
        for bad in [
            "POST / HTTP/1.1\r\ncontent-length: 5x\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\ng\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\n\n",
        ] {
            let mut framing = Framing::default();
            framing.read(bad.as_bytes());
            framing.read(next.as_bytes());
            assert_eq!(heads(&mut framing).len(), 1, "{bad:?}");
        }
        let long = format!("POST / HTTP/1.1\r\ncontent-length: {}5\r\n\r\n{next}", " ".repeat(LINE_BYTES));
        let mut framing = Framing::default();
        framing.read(long.as_bytes());
        assert_eq!(heads(&mut framing), [(true, false)]);
    }

    #[test]
    fn the_bytes_of_a_head_that_has_not_ended_are_counted() {
        let mut framing = Framing::default();
        framing.read(b"GET / HTT");
        assert!(framing.is_in_request_line());
        assert_eq!(framing.unfinished_bytes(), 9);
        framing.read(b"P/1.1\r\nhost: a");
        assert!(!framing.is_in_request_line());
        assert_eq!(framing.unfinished_bytes(), 23);
        framing.read(b"\r\n\r\n");
        assert_eq!(framing.unfinished_bytes(), 0);
        assert_eq!(framing.next_head(), Some(Head { length: false, encoding: false, bytes: 27 }));
    }
}
