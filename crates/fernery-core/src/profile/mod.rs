//! Coding agents as data: how one is started, what it may see, and what its output says.
//!
//! The built-in profiles are the commented files in `profiles/`, compiled in; a file of the same name beside a blueprint's
//! wins over them. A blueprint keeps the profile as it was when it was read, so that an approval covers it and a run
//! repeats it. Command lines of agents change often: whoever starts one finds out its version first and keeps it.
//!
//! [`dialect`] reads what an agent writes. Success there needs the event by which its protocol ends; the exit code alone
//! says nothing, except where there is no protocol.

pub mod dialect;
mod form;
#[cfg(test)]
mod tests;

use crate::blueprint::{Flaw, Sandbox, millis};
use crate::limits;
use crate::words;
pub use dialect::{AgentReport, Dialect, Finish, OutputParser, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The profiles that are compiled in, by name.
const BUILTIN: [(&str, &str); 8] = [
    ("claude", include_str!("../../../../profiles/claude.toml")),
    ("codex", include_str!("../../../../profiles/codex.toml")),
    ("opencode", include_str!("../../../../profiles/opencode.toml")),
    ("gemini", include_str!("../../../../profiles/gemini.toml")),
    ("goose", include_str!("../../../../profiles/goose.toml")),
    ("aider", include_str!("../../../../profiles/aider.toml")),
    ("command", include_str!("../../../../profiles/command.toml")),
    ("mock", include_str!("../../../../profiles/mock.toml")),
];

/// Where a blueprint's own arguments go.
const ARGS: &str = "{args}";
/// This very program.
const FERNERY: &str = "{fernery}";
const PROMPT: &str = "{prompt}";
/// A file that holds the prompt.
const PROMPT_FILE: &str = "{prompt_file}";

words!(
    /// How an agent gets its prompt.
    PromptBy {
        /// On its standard input, which then ends.
        Stdin = "stdin",
        /// As a word of its command line, which other processes may read.
        Argument = "argument",
        /// In a file that its command line names.
        File = "file",
    }
);

/// What ends an agent before its budget does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileLimits {
    /// How long it may write nothing; `None` is no bound.
    #[serde(
        default,
        rename = "silence_ms",
        with = "millis::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub silence: Option<Duration>,
    /// Bytes that it may write.
    pub output_bytes: u64,
}

impl Default for ProfileLimits {
    fn default() -> Self {
        Self { silence: None, output_bytes: limits::AGENT_OUTPUT_BYTES_DEFAULT }
    }
}

/// How one agent is started and understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// What blueprints call it.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// How to get it, in words; empty if there is nothing to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub install: String,
    /// The program and its arguments, with places to fill in: see [`Profile::command`].
    pub argv: Vec<String>,
    /// Flags that a blueprint's arguments must not have, beside those in `argv`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<String>,
    /// How it gets its prompt.
    pub prompt: PromptBy,
    /// What its output is written in.
    pub dialect: Dialect,
    /// What prints its version; empty if nothing does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub version: Vec<String>,
    /// The names of the environment that hold its keys; it may see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Further names of the environment that it may see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Variables that are set for it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Files of its login, relative to the operator's home; it may read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub login: Vec<String>,
    /// Further files and folders there that it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether it may reach the network.
    pub network: bool,
    /// The least that must contain it; never nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// What ends it before its budget does.
    pub limits: ProfileLimits,
}

/// What fills the places of a command line.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The path of this program.
    pub fernery: &'a str,
    pub prompt: &'a str,
    /// The path of a file that holds the prompt, as the agent sees it.
    pub prompt_file: &'a str,
}

/// A prompt is too long to be an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptTooLong {
    pub bytes: usize,
}

impl std::fmt::Display for PromptTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let most = limits::PROMPT_ARGUMENT_BYTES_MAX;
        write!(f, "the prompt has {} bytes; as an argument it may have at most {most}", self.bytes)
    }
}

impl std::error::Error for PromptTooLong {}

/// A blueprint's own arguments do not go with a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedArgs {
    /// Which one, from zero; `None` if it is about all of them.
    pub nth: Option<usize>,
    pub why: String,
}

impl Profile {
    /// Reads a file, or answers everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Vec<Flaw>> {
        form::read(text)
    }

    /// The names of those that are built in.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// The commented file of one that is built in.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// One that is built in.
    pub fn builtin(name: &str) -> Option<Self> {
        let text = Self::builtin_text(name)?;
        Some(Self::parse(text).expect("a profile that is compiled in has no flaw"))
    }

    /// With a blueprint's own arguments in their place. Those that would change what the profile relies on are refused.
    pub fn with_args(&self, args: &[String]) -> Result<Self, RefusedArgs> {
        for (nth, arg) in args.iter().enumerate() {
            let refused = |why: String| Err(RefusedArgs { nth: Some(nth), why });
            if arg == "--" && self.argv.first().is_some_and(|program| program != ARGS) {
                return refused("would end the flags before those that the profile needs".to_string());
            }
            let strange = [ARGS, FERNERY]
                .into_iter()
                .chain((self.prompt != PromptBy::Argument).then_some(PROMPT))
                .chain((self.prompt != PromptBy::File).then_some(PROMPT_FILE))
                .find(|place| arg.contains(place));
            if let Some(place) = strange {
                return refused(format!("this profile does not use the placeholder `{place}`"));
            }
            if let Some(kept) = self.keeps(arg) {
                return refused(format!("`{kept}` is set by the profile, which needs it unchanged"));
            }
        }
        let mut argv = Vec::with_capacity(self.argv.len() + args.len());
        let place = self.argv.iter().position(|word| word == ARGS).unwrap_or(self.argv.len());
        argv.extend_from_slice(&self.argv[..place]);
        argv.extend_from_slice(args);
        argv.extend(self.argv[place..].iter().filter(|word| *word != ARGS).cloned());
        if argv.first().is_none_or(|program| program.trim().is_empty()) {
            let why = format!(
                "the profile `{}` has no program of its own: args must give the program and its arguments",
                self.name
            );
            return Err(RefusedArgs { nth: None, why });
        }
        if argv.len() > limits::ARGV_MAX {
            let why = format!(
                "a command may have at most {} words, including those of the profile",
                limits::ARGV_MAX
            );
            return Err(RefusedArgs { nth: None, why });
        }
        Ok(Self { argv, ..self.clone() })
    }

    /// The word of the profile that this argument would repeat.
    fn keeps(&self, arg: &str) -> Option<&str> {
        let flag = |word: &str| word.split_once('=').map_or(word.len(), |(flag, _)| flag.len());
        let given = &arg[..flag(arg)];
        let own = self.argv.iter().filter(|word| word.starts_with('-') && word.len() > 1);
        let mut own = own.chain(&self.reserved).map(|word| &word[..flag(word)]);
        own.find(|own| *own == given)
    }

    /// The words to start it with: `{fernery}`, `{prompt}` and `{prompt_file}` filled in, the prompt as the last word where
    /// it is an argument that has no place.
    pub fn command(&self, places: &Places<'_>) -> Result<Vec<String>, PromptTooLong> {
        if self.prompt == PromptBy::Argument && places.prompt.len() > limits::PROMPT_ARGUMENT_BYTES_MAX {
            return Err(PromptTooLong { bytes: places.prompt.len() });
        }
        let mut words: Vec<String> =
            self.argv.iter().filter(|word| *word != ARGS).map(|word| places.filled(word)).collect();
        if self.prompt == PromptBy::Argument && !self.argv.iter().any(|word| word.contains(PROMPT)) {
            words.push(places.prompt.to_string());
        }
        Ok(words)
    }

    /// Every name of the environment that it may see.
    pub fn visible_env(&self) -> impl Iterator<Item = &str> {
        self.secrets.iter().chain(&self.env).map(String::as_str)
    }

    /// Everything under the operator's home that it may read.
    pub fn visible_files(&self) -> impl Iterator<Item = &str> {
        self.login.iter().chain(&self.files).map(String::as_str)
    }

    /// The words that print its version; empty if nothing does.
    pub fn version_command(&self, fernery: &str) -> Vec<String> {
        let places = Places { fernery, prompt: "", prompt_file: "" };
        self.version.iter().map(|word| places.filled(word)).collect()
    }

    /// What an approval covers: all that decides what runs, none of the words for people.
    pub fn decisive(&self) -> Value {
        let mut decisive = serde_json::to_value(self).expect("a profile is plain JSON");
        if let Some(fields) = decisive.as_object_mut() {
            fields.retain(|key, _| !matches!(key.as_str(), "description" | "install"));
        }
        decisive
    }
}

impl Places<'_> {
    /// One word with its places filled in, left to right; what is filled in is not looked at again.
    fn filled(&self, word: &str) -> String {
        let mut out = String::with_capacity(word.len());
        let mut rest = word;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            rest = &rest[open..];
            let known = [(FERNERY, self.fernery), (PROMPT, self.prompt), (PROMPT_FILE, self.prompt_file)];
            let (place, value) =
                known.into_iter().find(|(place, _)| rest.starts_with(place)).unwrap_or(("{", "{"));
            out.push_str(value);
            rest = &rest[place.len()..];
        }
        out + rest
    }
}
