//! The marks in a captured line, as in todo.txt and Todoist.
//!
//! Only the first line is read, and leniently. A certain mark is removed from the title: a mark at the start (`(A)`,
//! `p1`, `!!`), `due:fri` and the like anywhere, and all marks at the end. A mark inside a sentence is used if it can
//! hardly mean anything else, and stays; inside quotation marks nothing is read. In doubt the words stay: a person sees
//! them.
//!
//! A priority sets the importance, a date the urgency; never the other way round.

mod words;

use super::dates::{self, When};
use super::label::{is_name, is_same};
use super::one_line;
use super::recurring::{self, Every};
use crate::Timestamp;
use crate::calendar::Zone;
use jiff::civil::Date;
use words::{exclamation, leans, letter, name, priority, tells_of_the_past};

/// Characters of a title that was made from a capture.
const TITLE_CHARS: usize = 120;
/// Words of a line that are looked at; nobody writes marks after so many.
const WORDS_MAX: usize = 200;
/// Projects, contexts or labels that are kept of one line.
const NAMES_MAX: usize = 10;

/// What ends a clause.
const ENDS: [char; 4] = ['.', ',', ';', ':'];

/// What a captured line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    /// The first line, without what is certainly a mark.
    pub title: String,
    /// How important, if it says so.
    pub importance: Option<u8>,
    /// How urgent, if it says so or has a date.
    pub urgency: Option<u8>,
    pub due_at: Option<Timestamp>,
    /// `+these`.
    pub projects: Vec<String>,
    /// `@these`.
    pub contexts: Vec<String>,
    /// `#these`.
    pub labels: Vec<String>,
    /// Whether it is marked as done. This has no effect.
    pub done: bool,
    /// When it was done, as written.
    pub done_on: Option<String>,
    /// When it was written down, as written.
    pub written_on: Option<String>,
    /// How often it comes again, and the line without that.
    pub every: Option<(Every, String)>,
}

/// Reads a captured line.
pub fn read_line(text: &str, captured_at: Timestamp, zone: &Zone) -> Marks {
    let line =
        text.lines().map(|line| line.trim().trim_end_matches("\\x0D")).find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("");
    let mut reader = Reader::new(line, captured_at, zone);
    if reader.words.len() <= WORDS_MAX {
        reader.keys();
        reader.start();
        reader.recurring(captured_at);
        reader.end();
        reader.inside();
        reader.names();
    }
    let mut marks = reader.marks;
    let left: Vec<_> = reader.words.iter().filter(|word| !word.taken).map(|word| word.text).collect();
    let mut left = left.join(" ");
    if reader.words.last().is_some_and(|word| word.taken) {
        left.truncate(left.trim_end_matches([' ', ',', ';', ':', '-']).len());
    }
    let cleaned = one_line(&left, TITLE_CHARS);
    marks.title = [cleaned, one_line(line, TITLE_CHARS)]
        .into_iter()
        .find(|title| !title.is_empty())
        .unwrap_or("(empty capture)".into());
    if let Some(due_at) = marks.due_at {
        let by_date = urgency_of(due_at, captured_at, zone);
        marks.urgency = Some(marks.urgency.map_or(by_date, |said| said.min(by_date)));
    }
    marks
}

/// The labels that a line is marked with by `+`.
pub fn labels(line: &str) -> Vec<String> {
    let mut labels = Vec::new();
    for (sign, label) in words_of(line).iter().filter(|word| !word.quoted).filter_map(|word| name(word.text))
    {
        if sign == '+' {
            keep(&mut labels, label);
        }
    }
    labels
}

/// How urgent a date is on the day that it was said: gone, by tomorrow, within seven days, within 31, later.
fn urgency_of(due_at: Timestamp, now: Timestamp, zone: &Zone) -> u8 {
    let day = |at| zone.civil(at).map(|civil| civil.date());
    let days = match (day(now), day(due_at)) {
        (Some(now), Some(due)) => (due - now).get_days(),
        _ => return 4,
    };
    match days {
        _ if due_at <= now => 0,
        ..=1 => 1,
        2..=7 => 2,
        8..=31 => 3,
        _ => 4,
    }
}

struct Word<'a> {
    text: &'a str,
    /// In lower case and without what ends a clause.
    plain: String,
    quoted: bool,
    taken: bool,
}

struct Reader<'a> {
    words: Vec<Word<'a>>,
    zone: &'a Zone,
    today: Option<Date>,
    marks: Marks,
}

/// The words of a line, and which of them are quoted.
fn words_of(line: &str) -> Vec<Word<'_>> {
    let mut closes = None;
    let words = line.split_whitespace().map(|text| {
        let plain = text.trim_end_matches(ENDS).to_lowercase();
        closes = closes.or_else(|| plain.chars().next().filter(|c| matches!(c, '"' | '`')));
        let quoted = closes.is_some();
        if closes.is_some_and(|mark| plain.ends_with(mark) && (plain.len() > 1 || text.len() == 1)) {
            closes = None;
        }
        Word { text, plain, quoted, taken: false }
    });
    words.collect()
}

impl<'a> Reader<'a> {
    fn new(line: &'a str, captured_at: Timestamp, zone: &'a Zone) -> Self {
        let today = zone.civil(captured_at).map(|civil| civil.date());
        Self { words: words_of(line), zone, today, marks: Marks::default() }
    }

    /// `due:fri`, `project:x`, `priority:H`: certain at any place of the line.
    fn keys(&mut self) {
        for at in 0..self.words.len() {
            let Some(word) = self.free(at) else { continue };
            let Some((key, value)) = word.plain.split_once(':') else { continue };
            let (key, value) = (key.to_string(), value.to_string());
            let as_written = word.text.split_once(':').map_or("", |(_, name)| name.trim_end_matches(ENDS));
            let taken = match &key[..] {
                "due" if value.to_uppercase().parse::<Timestamp>().is_ok() => {
                    self.marks.due_at = value.to_uppercase().parse().ok();
                    1
                }
                "due" => self.today.and_then(|today| dates::value(&value, today)).map_or(0, |mut when| {
                    let time = [3, 2, 1]
                        .into_iter()
                        .find_map(|n| Some((n, dates::clock(&self.phrase(at + 1, n)?)?)));
                    when.time = when.time.or(time.map(|(_, time)| time));
                    self.due(when);
                    1 + time.map_or(0, |(n, _)| n)
                }),
                "project" | "proj" => {
                    usize::from(is_name(as_written) && keep(&mut self.marks.projects, as_written))
                }
                "priority" | "pri" => {
                    let importance = match &value[..] {
                        "h" | "a" => Some(0),
                        "b" => Some(1),
                        "m" | "c" => Some(2),
                        "l" | "d" => Some(3),
                        _ => None,
                    };
                    importance.map_or(0, |grade| usize::from(self.important(grade)))
                }
                _ => 0,
            };
            self.take(at, taken);
        }
    }

    /// The marks at the start: `x`, `(A)` and dates as in todo.txt; `p1`, `!!`.
    fn start(&mut self) {
        let marked = |word: Option<&Word<'_>>| {
            word.is_some_and(|w| dates::iso(w.text).is_some() || letter(w.text).is_some())
        };
        let mut at = 0;
        if self.free(0).is_some_and(|word| word.text == "x") && marked(self.free(1)) {
            self.marks.done = true;
            self.take(0, 1);
            at = 1;
        }
        while let Some(word) = self.free(at) {
            if let Some(grade) =
                letter(word.text).or_else(|| priority(&word.plain)).or_else(|| exclamation(word.text))
            {
                self.important(grade);
            } else if at > 0 && dates::iso(word.text).is_some() && self.marks.written_on.is_none() {
                let date = Some(word.text.to_string());
                let is_end = self.marks.done && self.marks.done_on.is_none();
                *(if is_end { &mut self.marks.done_on } else { &mut self.marks.written_on }) = date;
            } else {
                break;
            }
            self.take(at, 1);
            at += 1;
        }
    }

    /// `every monday`, where the words begin or end with it. What is left must be something.
    fn recurring(&mut self, captured_at: Timestamp) {
        let first = self.words.iter().position(|word| !word.taken);
        let last = self.words.iter().rposition(|word| word.plain == "every");
        for (at, begins) in [(first, true), (last, false)] {
            let Some(at) = at else { continue };
            let Some(words) = (at..self.words.len()).map(|at| self.free(at)).collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            let plain: Vec<&str> = words.iter().map(|word| &word.plain[..]).collect();
            let Some((taken, every)) = recurring::phrase(&plain) else { continue };
            let only_names = words[taken..].iter().all(|word| name(word.text).is_some());
            let rest: Vec<&str> = self
                .words
                .iter()
                .enumerate()
                .filter(|(n, _)| !(at..at + taken).contains(n))
                .map(|(_, word)| word.text)
                .collect();
            let says_something =
                self.words.iter().enumerate().any(|(n, word)| {
                    !word.taken && !(at..at + taken).contains(&n) && name(word.text).is_none()
                });
            if !says_something || !(begins || only_names) {
                continue;
            }
            let Some(due_at) = every.first(captured_at, self.zone).and_then(|at| every.due(at, self.zone))
            else {
                continue;
            };
            self.marks.due_at.get_or_insert(due_at);
            self.marks.every = Some((every, rest.join(" ")));
            self.take(at, taken);
            return;
        }
    }

    /// The marks that the line ends with.
    fn end(&mut self) {
        while let Some(last) = self.words.iter().rposition(|word| !word.taken) {
            let Some(word) = self.free(last) else { return };
            let (text, plain) = (word.text, word.plain.clone());
            if let Some((from, when)) = self.date_up_to(last) {
                let before = self.before(from);
                if !tells_of_the_past(&before) && self.is_ahead(when) {
                    // Short names of some days are words too: somebody sat, the sun shone, they wed.
                    let is_word_too = from == last && matches!(&plain[..], "sat" | "sun" | "wed" | "mon");
                    let certain = !before.is_empty() && !leans(&before) && !is_word_too;
                    self.due(when);
                    if certain {
                        self.take(from, last + 1 - from);
                        continue;
                    }
                }
                return;
            }
            let before = self.before(last);
            if let Some(grade) = exclamation(text) {
                self.important(grade);
            } else if let Some(grade) = priority(&plain).filter(|_| !leans(&before)) {
                self.important(grade);
            } else if plain == "asap" && !leans(&before) {
                self.marks.urgency = Some(0);
            } else if leans(&before) || name(text).is_none() {
                let marks = text.len() - text.trim_end_matches('!').len();
                if let Some(grade) = exclamation(&text[text.len() - marks..]).filter(|_| marks > 1) {
                    self.important(grade);
                    self.words[last].text = text.trim_end_matches('!');
                }
                return;
            }
            self.take(last, 1);
        }
    }

    /// A mark inside the sentence is read if it can hardly mean anything else, and stays.
    fn inside(&mut self) {
        for at in 0..self.words.len() {
            let Some(word) = self.free(at) else { continue };
            let plain = word.plain.clone();
            let before = self.before(at);
            if let Some(grade) = priority(&plain) {
                self.important(grade);
            } else if matches!(plain.trim_end_matches('!'), "urgent" | "asap" | "urgently") {
                let earlier = at.checked_sub(2).map_or("", |at| &self.words[at].plain);
                let denied = |word: &str| {
                    matches!(word, "not" | "no" | "isn't" | "never" | "less" | "nothing" | "hardly")
                };
                if !denied(&before) && !denied(earlier) {
                    self.marks.urgency = Some(0);
                }
            }
            let plain_day =
                matches!(&plain[..], "today" | "tonight" | "tomorrow") || dates::iso(&plain).is_some();
            let introduced = dates::introduces(&plain) && plain != "this" || plain == "next";
            let is_first = before.is_empty()
                && (plain == "in"
                    || !plain.starts_with(char::is_alphabetic)
                    || plain.len() > 3
                    || plain == "may");
            let found = (1..=dates::PHRASE_WORDS_MAX).rev().find_map(|n| {
                let words = self.phrase(at, n)?;
                let whole = n > 1 || plain_day || dates::is_whole_weekday(&plain);
                dates::phrase(&words, self.today?).filter(|_| whole)
            });
            if let Some(when) = found.filter(|when| self.is_ahead(*when))
                && (plain_day || introduced || is_first)
                && !tells_of_the_past(&before)
            {
                self.due(when);
            }
        }
    }

    /// A word that may still be read.
    fn free(&self, at: usize) -> Option<&Word<'a>> {
        self.words.get(at).filter(|word| !word.quoted && !word.taken)
    }

    /// So many free words from here.
    fn phrase(&self, at: usize, n: usize) -> Option<Vec<&str>> {
        (at..at + n).map(|at| self.free(at).map(|word| &word.plain[..])).collect()
    }

    /// The word before this one, as far as it was not taken; empty at the start.
    fn before(&self, at: usize) -> String {
        self.words[..at].iter().rfind(|word| !word.taken).map_or(String::new(), |word| word.plain.clone())
    }

    /// The longest date that ends with this word.
    fn date_up_to(&self, last: usize) -> Option<(usize, When)> {
        (1..=dates::PHRASE_WORDS_MAX.min(last + 1)).rev().find_map(|n| {
            let from = last + 1 - n;
            Some((from, dates::phrase(&self.phrase(from, n)?, self.today?)?))
        })
    }

    /// Whether a day lies ahead, or is today: only `due:` names days that are gone.
    fn is_ahead(&self, when: When) -> bool {
        self.today.is_some_and(|today| when.date >= today)
    }

    fn due(&mut self, when: When) {
        if self.marks.due_at.is_none() {
            // A day so far away that no instant can be written for it is no date.
            self.marks.due_at =
                self.zone.instant(when.civil()).filter(|at| at.to_string().parse::<Timestamp>().is_ok());
        }
    }

    fn important(&mut self, grade: u8) -> bool {
        self.marks.importance.get_or_insert(grade);
        true
    }

    /// `+project`, `@context`, `#label`, at any place of the line.
    fn names(&mut self) {
        for word in self.words.iter().filter(|word| !word.quoted) {
            if let Some((sign, name)) = name(word.text) {
                let list = match sign {
                    '+' => &mut self.marks.projects,
                    '@' => &mut self.marks.contexts,
                    _ => &mut self.marks.labels,
                };
                keep(list, name);
            }
        }
    }

    fn take(&mut self, at: usize, n: usize) {
        self.words.iter_mut().skip(at).take(n).for_each(|word| word.taken = true);
    }
}

/// Whether there was room, or it was there already.
fn keep(names: &mut Vec<String>, name: &str) -> bool {
    let known = names.iter().any(|known| is_same(known, name));
    if !known && names.len() < NAMES_MAX {
        names.push(name.to_string());
        return true;
    }
    known
}

#[cfg(test)]
mod tests;
