//! The form of a profile's file, with the rules that hold between its keys.

use super::dialect::Dialect;
use super::{ARGS, FERNERY, PROMPT, PROMPT_FILE, Profile, ProfileLimits, PromptBy};
use crate::artifact::check_id;
use crate::blueprint::{Flaw, Sandbox};
use crate::limits;
use crate::names::nearest;
use crate::toml_file::{Fields, Found, Reader, tree};
use std::collections::BTreeMap;

const KIND: tree::Kind = tree::Kind { what: "profile", builtin: &[], own: "name" };
const PLACES: [&str; 4] = [ARGS, FERNERY, PROMPT, PROMPT_FILE];

pub(super) fn read(text: &str) -> Result<Profile, Vec<Flaw>> {
    let (table, sources) = tree::read(&KIND, text, &|_| None)?;
    let mut reader = Reader::new(sources);
    let mut file = reader.file(table);
    let profile = reader.profile(&mut file);
    reader.end(file);
    match (reader.flaws(), profile) {
        (flaws, Some(profile)) if flaws.is_empty() => Ok(profile),
        (flaws, _) => Err(flaws),
    }
}

impl Reader {
    /// `None` only where a flaw was noted.
    fn profile(&mut self, file: &mut Fields) -> Option<Profile> {
        let name = self.required(file, "name", "what blueprints call the agent");
        if let Some(name) = name.as_ref().filter(|name| check_id(&name.value).is_err()) {
            let why = "must have 1 to 64 characters of A-Z a-z 0-9 _ - and start with a letter or digit";
            self.flaw(name.at, &name.path, why);
        }
        let description = self.line(file, "description", 200).map_or_else(String::new, |found| found.value);
        let install = self.line(file, "install", 500).map_or_else(String::new, |found| found.value);
        let prompt = self.text(file, "prompt");
        let prompt = prompt.and_then(|found| self.word(found, PromptBy::ALL, PromptBy::as_str));
        let prompt = prompt.map_or(PromptBy::Stdin, |found| found.value);
        let argv_at = file.place("argv");
        let argv = self.argv(file);
        if let Some(at) = argv_at {
            self.places(&Found { value: &argv, at, path: "argv".to_string() }, prompt);
        }
        let reserved = self.list(file, "reserved");
        let reserved = reserved.map(|list| self.arguments(list)).unwrap_or_default();
        let reserved = reserved.into_iter().map(|word| word.value).collect();
        let dialect = self.required(file, "dialect", "the format of its output; \"text\" if it has none");
        let dialect = dialect.and_then(|found| self.word(found, Dialect::ALL, Dialect::as_str));
        let version = self.program(file, "version").unwrap_or_default();
        let secrets = self.env(file, "secrets");
        let env = self.env(file, "env");
        let set = self.set(file);
        let login = self.files_of_home(file, "login");
        let files = self.files_of_home(file, "files");
        let network = self.flag(file, "network").unwrap_or(false);
        let sandbox = self.text(file, "sandbox");
        // That nothing contains an agent is said by a blueprint, where people look for it.
        let tiers = [Sandbox::Bubblewrap, Sandbox::Landlock];
        let sandbox = sandbox.and_then(|found| self.word(found, &tiers, Sandbox::as_str));
        let limits = self.profile_limits(file);
        Some(Profile {
            name: name?.value,
            description,
            install,
            argv,
            reserved,
            prompt,
            dialect: dialect?.value,
            version,
            secrets,
            env,
            set,
            login,
            files,
            network,
            sandbox: sandbox.map(|found| found.value),
            limits,
        })
    }

    /// Whether the places in a command line are known, and those that the prompt needs.
    fn places(&mut self, argv: &Found<&Vec<String>>, prompt: PromptBy) {
        let words = argv.value;
        for (nth, word) in words.iter().enumerate() {
            let path = format!("argv[{nth}]");
            let inner = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            let is_name = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            if inner.is_some_and(is_name) && !PLACES.contains(&word.as_str()) {
                let near = nearest(word, PLACES.into_iter());
                let hint = near.map_or_else(
                    || format!("known: {}", PLACES.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                self.flaw(argv.at, &path, format!("unknown placeholder `{word}`; {hint}"));
            }
            if word.contains(ARGS) && word != ARGS {
                self.flaw(argv.at, &path, format!("`{ARGS}` must be a word of its own"));
            }
            if word.contains(FERNERY) && nth > 0 {
                self.flaw(argv.at, &path, format!("`{FERNERY}` is a program: it must be the first word"));
            }
        }
        if words.iter().filter(|word| *word == ARGS).count() > 1 {
            self.flaw(argv.at, &argv.path, format!("`{ARGS}` is listed twice"));
        }
        let has = |place: &str| words.iter().any(|word| word.contains(place));
        if prompt == PromptBy::File && !has(PROMPT_FILE) {
            let why = format!("prompt = \"file\" needs the placeholder `{PROMPT_FILE}`");
            self.flaw(argv.at, &argv.path, why);
        }
        for (place, of) in [(PROMPT, PromptBy::Argument), (PROMPT_FILE, PromptBy::File)] {
            if has(place) && prompt != of {
                self.flaw(argv.at, &argv.path, format!("`{place}` needs prompt = \"{of}\""));
            }
        }
    }

    fn set(&mut self, file: &mut Fields) -> BTreeMap<String, String> {
        let (mut set, at) = (BTreeMap::new(), file.place("set").unwrap_or_default());
        let Some(mut table) = self.table(file, "set") else { return set };
        for (name, entry) in table.entries() {
            let found = Found { value: name.clone(), at: entry.key_at, path: table.path(&name) };
            let named = self.env_name(&found);
            if let Some(value) = self.text_of(&found.path, entry.node).filter(|_| named) {
                set.insert(name, value.value);
            }
        }
        if set.len() > limits::ENV_NAMES_MAX {
            self.flaw(at, "set", format!("may have at most {} variables", limits::ENV_NAMES_MAX));
        }
        set
    }

    fn files_of_home(&mut self, file: &mut Fields, key: &'static str) -> Vec<String> {
        let Some(list) = self.list(file, key) else { return Vec::new() };
        if list.value.len() > limits::LOGIN_FILES_MAX {
            self.flaw(list.at, &list.path, format!("may have at most {} files", limits::LOGIN_FILES_MAX));
        }
        let mut files: Vec<String> = Vec::new();
        for (at, path, name) in self.texts(list) {
            if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
                self.flaw(at, &path, "must be a path under the home directory, like .claude/settings.json");
            } else if files.contains(&name) {
                self.flaw(at, &path, format!("`{name}` is listed twice"));
            }
            files.push(name);
        }
        files
    }

    fn profile_limits(&mut self, file: &mut Fields) -> ProfileLimits {
        let mut found = ProfileLimits::default();
        if let Some(mut table) = self.table(file, "limits") {
            let silence = self.duration(&mut table, "silence", limits::BUDGET_MIN..=limits::TIMEOUT_MAX);
            found.silence = silence.map(|found| found.value);
            let bytes = self.number(&mut table, "output_bytes", 1..=limits::AGENT_OUTPUT_BYTES_MAX);
            found.output_bytes = bytes.map_or(found.output_bytes, |found| found.value);
            self.end(table);
        }
        found
    }
}
