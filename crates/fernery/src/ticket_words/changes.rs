//! What an approval would cover now and did not cover before, line by line.

use super::covered::{Part, parts};
use fernery_core::patch::rows::{Fate, Row, between};
use fernery_core::pipeline::approval::TERMS;
use serde_json::Value;

/// Something that an approval covers, and that differs from what was approved before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Revised {
    pub(crate) name: &'static str,
    before: String,
    now: String,
}

impl Revised {
    /// Its lines, with the words that differ.
    pub(crate) fn rows(&self) -> Vec<Row<'_>> {
        between(&self.before, &self.now)
    }

    /// The lines that go and come.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |row: &Row<'_>| {
            let sign = match row.fate {
                Fate::Goes => '-',
                Fate::Comes => '+',
                Fate::Stays => return None,
            };
            let text: String = row.parts.iter().map(|part| part.text).collect();
            Some(format!("{sign} {} {text}", self.name))
        };
        self.rows().iter().filter_map(line).collect()
    }
}

/// What is different now from what was approved before, one for each name.
pub(crate) fn changes(before: &Value, now: &Value) -> Vec<Revised> {
    let texts = |shown: &Value| {
        let own = |key: &str| shown[key].as_str().unwrap_or_default().to_string();
        let mut all = vec![("title", own("title")), ("criteria", own("acceptance_criteria"))];
        for part in parts(shown) {
            let (Part::Fact(name, text) | Part::Text(name, text)) = part;
            match all.iter_mut().find(|(known, _)| *known == name) {
                Some((_, so_far)) => so_far.push_str(&format!("\n{text}")),
                None => all.push((name, text)),
            }
        }
        all
    };
    // What a decision said besides is about one attempt.
    let mut before = before.clone();
    if let Some(fields) = before.as_object_mut() {
        TERMS.iter().for_each(|term| drop(fields.remove(*term)));
    }
    let (then, now) = (texts(&before), texts(now));
    let of = |all: &[(&'static str, String)], name: &str| {
        all.iter().find(|(of, _)| *of == name).map_or(String::new(), |(_, text)| text.clone())
    };
    let gone = then.iter().filter(|(name, _)| !now.iter().any(|(of, _)| of == name));
    let names = now.iter().chain(gone).map(|(name, _)| *name);
    let both = names.map(|name| Revised { name, before: of(&then, name), now: of(&now, name) });
    both.filter(|change| change.before != change.now).collect()
}
