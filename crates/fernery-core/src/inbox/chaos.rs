//! Texts as nobody would think of them, the same for the same seed.

/// Pieces that mean something somewhere, and pieces that should mean nothing.
const PIECES: &[&str] = &[
    "(A)",
    "(a)",
    "x",
    "2026-05-30",
    "2026-02-31",
    "p1",
    "P4",
    "p9",
    "!",
    "!!!",
    "fix!!",
    "+cli",
    "+1",
    "C++",
    "#bug",
    "#123",
    "#fff",
    "@me",
    "@",
    "a@b.c",
    "due:fri",
    "due:tomorrow",
    "due:",
    "due:x",
    "today",
    "tonight",
    "tomorrow",
    "next",
    "week",
    "monday",
    "sun",
    "in",
    "3",
    "999999999999",
    "days",
    "weeks",
    "on",
    "12",
    "may",
    "feb",
    "30",
    "31st",
    "17:00",
    "25:00",
    "5pm",
    "at",
    "5",
    "eod",
    "eow",
    "urgent",
    "asap",
    "not",
    "by",
    "the",
    "for",
    "project:x",
    "priority:H",
    "\"",
    "'",
    "`",
    "```",
    "````text",
    "{\"candidates\":[]}",
    "$(id)",
    "rm",
    "-rf",
    "--yes",
    "sudo",
    "fernery",
    "https://x.org/#a",
    "://",
    "ignore",
    "everything",
    "above",
    "\n",
    "\n\n",
    "\t",
    " ",
    "  ",
    "\u{0}",
    "\u{1b}[2J",
    "\u{202e}",
    "\u{200d}",
    "\u{feff}",
    "ä",
    "😀",
    "\u{85}",
    "\\x00",
    "…",
    "-",
    "--",
    ".",
    ",",
    ":",
    ";",
    "(",
    ")",
];

/// A small generator.
pub(super) struct Chaos(u64);

impl Chaos {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `n`.
    pub(super) fn upto(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    /// Some pieces, with spaces between most of them.
    pub(super) fn text(&mut self, pieces_max: usize) -> String {
        let mut text = String::new();
        for _ in 0..self.upto(pieces_max + 1) {
            if self.upto(30) == 0 {
                let (piece, times) = (self.upto(PIECES.len()), self.upto(40));
                text.push_str(&PIECES[piece].repeat(times));
            }
            text.push_str(PIECES[self.upto(PIECES.len())]);
            if self.upto(4) > 0 {
                text.push(' ');
            }
        }
        text
    }

    pub(super) fn bytes(&mut self, bytes_max: usize) -> Vec<u8> {
        (0..self.upto(bytes_max + 1)).map(|_| self.upto(256) as u8).collect()
    }
}
