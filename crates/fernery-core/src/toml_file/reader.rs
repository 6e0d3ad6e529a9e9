//! Takes keys out of a table one by one and notes what is wrong with each. What nobody asked for is a mistake too.

use super::Flaw;
use super::tree::{Entry, Node, Place, Shape, Sources, Table};
use crate::calendar::duration;
use crate::limits;
use crate::names::{is_unprintable, nearest};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// Notes flaws. A value that has one is answered as `None`; so is one that is not there.
pub struct Reader {
    sources: Sources,
    flaws: Vec<Flaw>,
}

/// A table that is being read.
pub struct Fields {
    /// Its key, with a dot after it; empty for the file.
    prefix: String,
    at: Place,
    entries: Table,
    asked: Vec<&'static str>,
}

/// A value with its place, for rules over more than one.
pub struct Found<T> {
    pub value: T,
    pub at: Place,
    /// Its key, with those of the tables around it.
    pub path: String,
}

impl<T> Found<T> {
    fn new(value: T, at: Place, path: &str) -> Self {
        Self { value, at, path: path.to_string() }
    }
}

impl Fields {
    /// A key of this table, with those of the tables around it.
    pub fn path(&self, key: &str) -> String {
        format!("{}{}", self.prefix, key.escape_debug())
    }

    fn take(&mut self, key: &'static str) -> Option<(String, Node)> {
        self.entry(key).map(|entry| (self.path(key), entry.node))
    }

    /// Takes a key with its value, whatever that is.
    pub fn entry(&mut self, key: &'static str) -> Option<Entry> {
        self.asked.push(key);
        self.entries.remove(key)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Where a key's value is, if it is there.
    pub(crate) fn place(&self, key: &str) -> Option<Place> {
        self.entries.get(key).map(|entry| entry.node.at)
    }

    /// Takes a key whose value does not matter; answers where it was.
    pub(crate) fn drop(&mut self, key: &'static str) -> Option<(Place, String)> {
        self.take(key).map(|(path, node)| (node.at, path))
    }

    /// A text, left where it is.
    pub(crate) fn word(&self, key: &str) -> Option<&str> {
        match &self.entries.get(key)?.node.value {
            Shape::Text(text) => Some(text),
            _ => None,
        }
    }

    /// All that is left, when the keys are names of their own.
    pub fn entries(&mut self) -> Vec<(String, Entry)> {
        std::mem::take(&mut self.entries).into_iter().collect()
    }
}

impl Reader {
    pub(crate) fn new(sources: Sources) -> Self {
        Self { sources, flaws: Vec::new() }
    }

    /// Notes that something is wrong.
    pub fn flaw(&mut self, at: Place, path: &str, message: impl Into<String>) {
        if self.flaws.len() < limits::BLUEPRINT_FLAWS_MAX {
            self.flaws.push(self.sources.flaw(at, path, message.into()));
        }
    }

    /// Every flaw, in the order of the file.
    pub fn flaws(mut self) -> Vec<Flaw> {
        self.flaws.sort_by_key(|flaw| (flaw.line, flaw.column));
        self.flaws
    }

    /// Line and column of a place, both from one.
    pub fn position(&self, at: Place) -> (usize, usize) {
        self.sources.position(at)
    }

    pub(crate) fn file(&self, entries: Table) -> Fields {
        Fields { prefix: String::new(), at: Place::default(), entries, asked: Vec::new() }
    }

    /// A value that must be a table.
    pub fn fields(&mut self, path: &str, node: Node) -> Option<Fields> {
        match node.value {
            Shape::Table(entries) => {
                Some(Fields { prefix: format!("{path}."), at: node.at, entries, asked: Vec::new() })
            }
            other => {
                self.flaw(node.at, path, format!("must be a table, not {}", other.described()));
                None
            }
        }
    }

    /// Ends a table: a key that nobody asked for is a mistake.
    pub fn end(&mut self, mut fields: Fields) {
        for (key, entry) in fields.entries() {
            let asked = fields.asked.iter().copied();
            let path = fields.path(&key);
            self.unknown(entry.key_at, &path, "key", &key, asked);
        }
    }

    /// A name that is not among the `known` ones.
    pub(crate) fn unknown<'a>(
        &mut self,
        at: Place,
        path: &str,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) {
        let shown = name.escape_debug();
        let hint = match nearest(name, known.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known: {}", known.collect::<Vec<_>>().join(", ")),
        };
        self.flaw(at, path, format!("unknown {what} `{shown}`; {hint}"));
    }

    /// A key that must be there and is not; `what` it says.
    pub fn missing(&mut self, fields: &Fields, key: &str, what: &str) {
        let path = fields.path(key);
        self.flaw(fields.at, &path, format!("is missing: {what}"));
    }

    /// A table, if the key is there.
    pub fn table(&mut self, fields: &mut Fields, key: &'static str) -> Option<Fields> {
        let (path, node) = fields.take(key)?;
        self.fields(&path, node)
    }

    pub(crate) fn list(&mut self, fields: &mut Fields, key: &'static str) -> Option<Found<Vec<Node>>> {
        let (path, node) = fields.take(key)?;
        match node.value {
            Shape::List(items) => Some(Found::new(items, node.at, &path)),
            other => {
                self.flaw(node.at, &path, format!("must be a list, not {}", other.described()));
                None
            }
        }
    }

    /// A value that must be a text, and one that people can read.
    pub(crate) fn text_of(&mut self, path: &str, node: Node) -> Option<Found<String>> {
        let Shape::Text(text) = node.value else {
            self.flaw(node.at, path, format!("must be a string in quotes, not {}", node.value.described()));
            return None;
        };
        // What a person approves must be what the person sees.
        if let Some(bad) = text.chars().find(|c| is_unprintable(*c) && !matches!(c, '\n' | '\t')) {
            self.flaw(node.at, path, format!("contains the invisible character {}", bad.escape_unicode()));
            return None;
        }
        Some(Found::new(text, node.at, path))
    }

    /// A text, if the key is there.
    pub(crate) fn text(&mut self, fields: &mut Fields, key: &'static str) -> Option<Found<String>> {
        let (path, node) = fields.take(key)?;
        self.text_of(&path, node)
    }

    pub(crate) fn line(
        &mut self,
        fields: &mut Fields,
        key: &'static str,
        chars_max: usize,
    ) -> Option<Found<String>> {
        let found = self.text(fields, key)?;
        if found.value.chars().count() > chars_max || found.value.contains(['\n', '\t']) {
            self.flaw(found.at, &found.path, format!("must be one line of at most {chars_max} characters"));
            return None;
        }
        Some(found)
    }

    /// A text with a form of its own.
    pub(crate) fn parsed<T: FromStr<Err: ToString>>(&mut self, found: Found<String>) -> Option<Found<T>> {
        match found.value.parse() {
            Ok(value) => Some(Found { value, at: found.at, path: found.path }),
            Err(why) => {
                self.flaw(found.at, &found.path, T::Err::to_string(&why));
                None
            }
        }
    }

    /// One word of a closed set.
    pub(crate) fn word<T: Copy>(
        &mut self,
        found: Found<String>,
        known: &[T],
        spelled: fn(T) -> &'static str,
    ) -> Option<Found<T>> {
        match known.iter().find(|word| spelled(**word) == found.value) {
            Some(word) => Some(Found { value: *word, at: found.at, path: found.path }),
            None => {
                self.unknown(found.at, &found.path, "word", &found.value, known.iter().map(|w| spelled(*w)));
                None
            }
        }
    }

    pub(crate) fn number(
        &mut self,
        fields: &mut Fields,
        key: &'static str,
        bounds: RangeInclusive<u64>,
    ) -> Option<Found<u64>> {
        let (path, node) = fields.take(key)?;
        let number = match node.value {
            Shape::Whole(number) => number.and_then(|n| u64::try_from(n).ok()).filter(|n| bounds.contains(n)),
            other => {
                self.flaw(node.at, &path, format!("must be a whole number, not {}", other.described()));
                return None;
            }
        };
        if number.is_none() {
            self.flaw(
                node.at,
                &path,
                format!("must be a number from {} to {}", bounds.start(), bounds.end()),
            );
        }
        number.map(|number| Found::new(number, node.at, &path))
    }

    pub(crate) fn flag(&mut self, fields: &mut Fields, key: &'static str) -> Option<bool> {
        let (path, node) = fields.take(key)?;
        match node.value {
            Shape::Switch(on) => Some(on),
            other => {
                self.flaw(node.at, &path, format!("must be true or false, not {}", other.described()));
                None
            }
        }
    }

    pub(crate) fn small(
        &mut self,
        fields: &mut Fields,
        key: &'static str,
        bounds: RangeInclusive<u32>,
    ) -> Option<u32> {
        let wide = u64::from(*bounds.start())..=u64::from(*bounds.end());
        self.number(fields, key, wide).and_then(|found| u32::try_from(found.value).ok())
    }

    pub(crate) fn duration(
        &mut self,
        fields: &mut Fields,
        key: &'static str,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Found<Duration>> {
        let (path, node) = fields.take(key)?;
        // A bare number gets the answer of a text without its unit: it says which forms there are.
        let (at, text) = match node.value {
            Shape::Whole(Some(number)) => (node.at, number.to_string()),
            value => {
                let found = self.text_of(&path, Node { at: node.at, value })?;
                (found.at, found.value)
            }
        };
        match duration::parse(&text) {
            Ok(duration) if bounds.contains(&duration) => Some(Found::new(duration, at, &path)),
            Ok(_) => {
                let (from, to) = (duration::show(*bounds.start()), duration::show(*bounds.end()));
                self.flaw(at, &path, format!("must be a duration from {from} to {to}"));
                None
            }
            Err(why) => {
                self.flaw(at, &path, why);
                None
            }
        }
    }

    /// Dollars, exact to a millionth.
    pub(crate) fn dollars(&mut self, fields: &mut Fields, key: &'static str) -> Option<u64> {
        let (path, node) = fields.take(key)?;
        let written = match node.value {
            Shape::Whole(number) => number.map(|number| number.to_string()),
            Shape::Fraction(written) => Some(written),
            other => {
                self.flaw(node.at, &path, format!("must be an amount in dollars, not {}", other.described()));
                return None;
            }
        };
        let micros = written.as_deref().and_then(micros_of);
        if micros.is_none() {
            let most = limits::ENVELOPE_USD_MAX;
            self.flaw(
                node.at,
                &path,
                format!("must be an amount like 12.50, more than 0 and at most {most} dollars"),
            );
        }
        micros
    }
}

/// `12.50` as millionths. No way through a binary fraction: what is approved is what is written.
fn micros_of(written: &str) -> Option<u64> {
    let written = written.strip_prefix('+').unwrap_or(written);
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let micros = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?;
    let micros = micros.checked_add(format!("{fraction:0<6}").parse().ok()?)?;
    (1..=limits::ENVELOPE_USD_MAX * 1_000_000).contains(&micros).then_some(micros)
}
