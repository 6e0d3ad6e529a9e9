//! One pass over a document before anything is read from it: is it JSON, is it shallow, is every key there once, is every
//! escape a character?
//!
//! Parsers differ in what they do with a key that stands twice or with half a surrogate pair; what means two things to two
//! readers is refused here, so that what is stored means one thing to all of them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// Why a document is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadJson {
    pub flaw: Flaw,
    /// The same for people, with the place.
    pub detail: String,
}

/// What can be wrong with a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// It is no JSON.
    Malformed,
    /// It nests too deep.
    TooDeep,
    /// A key stands twice in one object.
    DuplicateKey,
}

impl BadJson {
    fn new(flaw: Flaw, detail: String) -> Self {
        Self { flaw, detail }
    }
}

impl fmt::Display for BadJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for BadJson {}

/// Checks a whole document; afterwards any JSON parser accepts it.
pub fn scan(text: &str, depth_max: usize) -> Result<(), BadJson> {
    let mut scan = Scan { text, at: 0, keys: Vec::new(), open: Vec::new(), depth_max };
    scan.document()
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// The keys of every object that is open, innermost last.
    keys: Vec<Key>,
    /// What is open: an object with the index of its first key, or an array.
    open: Vec<Open>,
    depth_max: usize,
}

#[derive(Clone, Copy)]
enum Open {
    Object { first_key: usize },
    Array,
}

#[derive(Clone, Copy)]
struct Key {
    start: usize,
    end: usize,
    escaped: bool,
}

/// Up to here, comparing each key with each is faster than hashing.
const FEW_KEYS: usize = 8;

impl<'a> Scan<'a> {
    fn document(&mut self) -> Result<(), BadJson> {
        if self.text.starts_with('\u{feff}') {
            return Err(self.bad(Flaw::Malformed, "the document starts with a byte order mark"));
        }
        self.space();
        self.value_start()?;
        // Iterative, so that no input can exhaust the stack.
        while let Some(open) = self.open.last().copied() {
            self.space();
            match (self.peek(), open) {
                (Some(b','), _) => {
                    self.at += 1;
                    self.space();
                    if let Open::Object { .. } = open {
                        self.key()?;
                    }
                    self.value_start()?;
                }
                (Some(b'}'), Open::Object { first_key }) => {
                    self.at += 1;
                    self.unique(first_key)?;
                    self.keys.truncate(first_key);
                    self.open.pop();
                }
                (Some(b']'), Open::Array) => {
                    self.at += 1;
                    self.open.pop();
                }
                (None, _) => return Err(self.unexpected_end()),
                (_, Open::Object { .. }) => return Err(self.bad(Flaw::Malformed, "expected `,` or `}`")),
                (_, Open::Array) => return Err(self.bad(Flaw::Malformed, "expected `,` or `]`")),
            }
        }
        self.space();
        if self.at < self.text.len() {
            return Err(self.bad(Flaw::Malformed, "there is more after the end of the document"));
        }
        Ok(())
    }

    /// Reads a scalar whole, or opens a container and reads up to its first value.
    fn value_start(&mut self) -> Result<(), BadJson> {
        loop {
            match self.peek() {
                Some(b'"') => return self.string().map(drop),
                Some(b'-' | b'0'..=b'9') => return self.number(),
                Some(b't') => return self.word("true"),
                Some(b'f') => return self.word("false"),
                Some(b'n') => return self.word("null"),
                Some(b'{') => {
                    self.enter(Open::Object { first_key: self.keys.len() })?;
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        self.open.pop();
                        return Ok(());
                    }
                    self.key()?;
                }
                Some(b'[') => {
                    self.enter(Open::Array)?;
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        self.open.pop();
                        return Ok(());
                    }
                }
                Some(_) => return Err(self.bad(Flaw::Malformed, "expected a value")),
                None => return Err(self.unexpected_end()),
            }
        }
    }

    fn enter(&mut self, open: Open) -> Result<(), BadJson> {
        if self.open.len() == self.depth_max {
            let detail = format!("the document is nested more than {} levels deep", self.depth_max);
            return Err(self.bad(Flaw::TooDeep, &detail));
        }
        self.open.push(open);
        self.at += 1;
        self.space();
        Ok(())
    }

    fn key(&mut self) -> Result<(), BadJson> {
        match self.peek() {
            Some(b'"') => {}
            Some(_) => return Err(self.bad(Flaw::Malformed, "expected a key in quotes")),
            None => return Err(self.unexpected_end()),
        }
        let key = self.string()?;
        self.keys.push(key);
        self.space();
        match self.peek() {
            Some(b':') => self.at += 1,
            Some(_) => return Err(self.bad(Flaw::Malformed, "expected `:`")),
            None => return Err(self.unexpected_end()),
        }
        self.space();
        Ok(())
    }

    fn string(&mut self) -> Result<Key, BadJson> {
        let bytes = self.text.as_bytes();
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Key { start, end: self.at - 1, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..=0x1f) => {
                    return Err(self.bad(Flaw::Malformed, "a control character in a string must be escaped"));
                }
                Some(_) => self.at += 1,
                None => return Err(self.unexpected_end()),
            }
        }
    }

    fn escape(&mut self) -> Result<(), BadJson> {
        match self.text.as_bytes().get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => match self.unit(self.at)? {
                0xd800..=0xdbff => {
                    let next = self.at + 6;
                    let paired = self.text.as_bytes().get(next..next + 2) == Some(b"\\u")
                        && matches!(self.unit(next)?, 0xdc00..=0xdfff);
                    if !paired {
                        return Err(self.bad(Flaw::Malformed, "half of a surrogate pair is no character"));
                    }
                    self.at += 12;
                }
                0xdc00..=0xdfff => {
                    return Err(self.bad(Flaw::Malformed, "half of a surrogate pair is no character"));
                }
                _ => self.at += 6,
            },
            Some(_) => return Err(self.bad(Flaw::Malformed, "no such escape")),
            None => return Err(self.unexpected_end()),
        }
        Ok(())
    }

    /// The number in a `\uXXXX` that starts at `at`.
    fn unit(&self, at: usize) -> Result<u32, BadJson> {
        let digits = self.text.as_bytes().get(at + 2..at + 6);
        let Some(digits) = digits else { return Err(self.unexpected_end()) };
        digits.iter().try_fold(0, |unit, digit| match char::from(*digit).to_digit(16) {
            Some(value) => Ok(unit * 16 + value),
            None => Err(self.bad(Flaw::Malformed, "`\\u` needs four hexadecimal digits")),
        })
    }

    fn number(&mut self) -> Result<(), BadJson> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        match self.peek() {
            Some(b'0'..=b'9') => Err(self.bad(Flaw::Malformed, "a number does not start with 0")),
            _ => Ok(()),
        }
    }

    fn digits(&mut self) -> Result<(), BadJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        match self.peek() {
            _ if self.at > start => Ok(()),
            None => Err(self.unexpected_end()),
            Some(_) => Err(self.bad(Flaw::Malformed, "expected a digit")),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), BadJson> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.bad(Flaw::Malformed, "expected a value"))
        }
    }

    fn unique(&self, first_key: usize) -> Result<(), BadJson> {
        let keys = &self.keys[first_key..];
        if keys.len() <= FEW_KEYS && keys.iter().all(|key| !key.escaped) {
            for (n, key) in keys.iter().enumerate() {
                if keys[..n].iter().any(|other| self.raw(other) == self.raw(key)) {
                    return Err(self.doubled(key));
                }
            }
            return Ok(());
        }
        let mut seen = HashSet::with_capacity(keys.len());
        for key in keys {
            if !seen.insert(self.decoded(key)) {
                return Err(self.doubled(key));
            }
        }
        Ok(())
    }

    fn raw(&self, key: &Key) -> &'a str {
        &self.text[key.start..key.end]
    }

    /// The key as text: `"a"` and `"\u0061"` are the same key.
    fn decoded(&self, key: &Key) -> Cow<'a, str> {
        if !key.escaped {
            return Cow::Borrowed(self.raw(key));
        }
        let quoted = &self.text[key.start - 1..=key.end];
        serde_json::from_str(quoted).map_or(Cow::Borrowed(self.raw(key)), Cow::Owned)
    }

    fn doubled(&self, key: &Key) -> BadJson {
        let (line, column) = self.place(key.start);
        let shown: String = self.decoded(key).chars().take(64).collect();
        BadJson::new(
            Flaw::DuplicateKey,
            format!("key {shown:?} stands twice, again at line {line} column {column}"),
        )
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn bad(&self, flaw: Flaw, what: &str) -> BadJson {
        let (line, column) = self.place(self.at);
        BadJson::new(flaw, format!("{what} at line {line} column {column}"))
    }

    fn unexpected_end(&self) -> BadJson {
        let (line, column) = self.place(self.text.len());
        BadJson::new(Flaw::Malformed, format!("the document ends too early at line {line} column {column}"))
    }

    fn place(&self, at: usize) -> (usize, usize) {
        place(self.text.as_bytes(), at)
    }
}

/// Line and column of a byte, both from 1.
pub fn place(bytes: &[u8], at: usize) -> (usize, usize) {
    let before = &bytes[..at.min(bytes.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IgnoredAny;

    fn flaw(text: &str) -> Option<Flaw> {
        scan(text, 32).err().map(|bad| bad.flaw)
    }

    #[test]
    fn what_parsers_disagree_about_is_refused() {
        assert_eq!(flaw(r#"{"a":1,"a":2}"#), Some(Flaw::DuplicateKey));
        assert_eq!(flaw(r#"{"a":1,"\u0061":2}"#), Some(Flaw::DuplicateKey));
        assert_eq!(flaw(r#"{"x":[{"k":1,"k":1}]}"#), Some(Flaw::DuplicateKey));
        assert_eq!(flaw(r#"{"a":{"a":1},"b":{"a":1}}"#), None);
        let many: Vec<String> = (0..100).map(|n| format!("\"k{}\":0", n % 99)).collect();
        assert_eq!(flaw(&format!("{{{}}}", many.join(","))), Some(Flaw::DuplicateKey));
        for half in [r#""\ud800""#, r#""\udc00""#, r#""\ud800x""#, r#""\ud800\ud800""#, r#""\ud800\n""#] {
            assert_eq!(flaw(half), Some(Flaw::Malformed), "{half}");
        }
        assert_eq!(flaw(r#""\ud83c\udf3f""#), None);
        assert_eq!(flaw("\u{feff}{}"), Some(Flaw::Malformed));
    }

    #[test]
    fn depth_counts_from_the_root_and_32_is_allowed() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(flaw(&nested(32)), None);
        assert_eq!(flaw(&nested(33)), Some(Flaw::TooDeep));
        assert_eq!(flaw(&"[".repeat(1_000_000)), Some(Flaw::TooDeep));
    }

    #[test]
    fn an_error_says_where_it_is() {
        let bad = scan("{\n  \"a\": tru\n}", 32).unwrap_err();
        assert!(bad.detail.ends_with("at line 2 column 8"), "{}", bad.detail);
    }

    /// Every document that lies one byte from a good one is accepted by this scan exactly if it is by serde_json.
    #[test]
    fn the_scan_and_the_parser_agree_on_what_is_json() {
        let seeds = [
            r#"{"a":[1,-2.5e+10,0.1,"x\n\u00e9\\",true,false,null],"b":{}, "c":[] }"#,
            r#"[0,-0,1E5,{"k":{"l":["\"",""]}}]"#,
            " \"text\" ",
            "12.50",
        ];
        let bytes = b"{}[]:,\"\\u0e1-+.tfn xE\n\t";
        for seed in seeds {
            for at in 0..=seed.len() {
                for byte in bytes {
                    let inserted = format!("{}{}{}", &seed[..at], char::from(*byte), &seed[at..]);
                    let mut changed = seed.as_bytes().to_vec();
                    if let Some(place) = changed.get_mut(at) {
                        *place = *byte;
                    }
                    let changed = String::from_utf8(changed).unwrap();
                    for text in [inserted.as_str(), changed.as_str(), &seed[..at]] {
                        let parser = serde_json::from_str::<IgnoredAny>(text).is_ok();
                        let found = flaw(text);
                        let scan = found.is_none() || found == Some(Flaw::DuplicateKey);
                        assert_eq!(scan, parser, "{text}");
                    }
                }
            }
        }
    }
}
