//! What names programs, in whichever file: their words, and what of the environment they may see.

use super::reader::{Fields, Found, Reader};
use super::tree::{Node, Place};
use crate::limits;

impl Reader {
    /// A text that must be there; `what` it says.
    pub(crate) fn required(
        &mut self,
        fields: &mut Fields,
        key: &'static str,
        what: &str,
    ) -> Option<Found<String>> {
        if !fields.has(key) {
            self.missing(fields, key, what);
        }
        self.text(fields, key)
    }

    /// The program and its arguments.
    pub(crate) fn argv(&mut self, fields: &mut Fields) -> Vec<String> {
        if !fields.has("argv") {
            self.missing(fields, "argv", "the program and its arguments, like [\"make\", \"test\"]");
        }
        self.program(fields, "argv").unwrap_or_default()
    }

    /// A program and its arguments, if the key is there.
    pub(crate) fn program(&mut self, fields: &mut Fields, key: &'static str) -> Option<Vec<String>> {
        let list = self.list(fields, key)?;
        if !(1..=limits::ARGV_MAX).contains(&list.value.len()) {
            let why = format!("must be a program and its arguments: 1 to {} strings", limits::ARGV_MAX);
            self.flaw(list.at, &list.path, why);
        }
        let argv = self.arguments(list);
        if let Some(program) = argv.first().filter(|program| program.value.trim().is_empty()) {
            self.flaw(program.at, &program.path, "the program must not be empty");
        }
        Some(argv.into_iter().map(|word| word.value).collect())
    }

    /// Words of a command line, none of them longer than a system takes.
    pub(crate) fn arguments(&mut self, list: Found<Vec<Node>>) -> Vec<Found<String>> {
        let words: Vec<_> =
            self.texts(list).into_iter().map(|(at, path, value)| Found { value, at, path }).collect();
        if let Some(long) = words.iter().find(|word| word.value.len() > limits::ARGV_BYTES_MAX) {
            self.flaw(long.at, &long.path, format!("may have at most {} bytes", limits::ARGV_BYTES_MAX));
        }
        words
    }

    /// Names of the environment that a program may see.
    pub(crate) fn env(&mut self, fields: &mut Fields, key: &'static str) -> Vec<String> {
        let Some(list) = self.list(fields, key) else { return Vec::new() };
        if list.value.len() > limits::ENV_NAMES_MAX {
            self.flaw(list.at, &list.path, format!("may have at most {} names", limits::ENV_NAMES_MAX));
        }
        let mut names: Vec<String> = Vec::new();
        for (at, path, value) in self.texts(list) {
            let found = Found { value, at, path };
            if self.env_name(&found) && names.contains(&found.value) {
                self.flaw(found.at, &found.path, format!("`{}` is listed twice", found.value));
            }
            names.push(found.value);
        }
        names
    }

    /// Whether this can be the name of a variable that a program may see.
    pub(crate) fn env_name(&mut self, found: &Found<String>) -> bool {
        let (name, plain) = (&found.value, |c: char| c.is_ascii_alphanumeric() || c == '_');
        let why = if name.is_empty()
            || name.starts_with(|c: char| c.is_ascii_digit())
            || !name.chars().all(plain)
        {
            "must be the name of one environment variable: letters, digits and _"
        } else if name.to_ascii_uppercase().starts_with("FERNERY_") {
            "Fernery's own variables hold tokens: no command may see them"
        } else {
            return true;
        };
        self.flaw(found.at, &found.path, why);
        false
    }

    /// The texts of a list, each with its place and path.
    pub(crate) fn texts(&mut self, list: Found<Vec<Node>>) -> Vec<(Place, String, String)> {
        let mut texts = Vec::new();
        for (nth, node) in list.value.into_iter().enumerate() {
            let found = self.text_of(&format!("{}[{nth}]", list.path), node);
            texts.extend(found.map(|found| (found.at, found.path, found.value)));
        }
        texts
    }
}
