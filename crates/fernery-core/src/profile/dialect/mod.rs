//! What agents write while they work, read as it comes: whether one has finished, what it used, what it says.
//!
//! Whatever else stands in the output is passed over: lines that are no JSON, events that nobody knows, lines longer than
//! any event. A line without its end counts only if it is whole. So output that was cut off anywhere never reads as success,
//! and what an agent did not report is `None`, never 0.

mod claude;
mod codex;
mod gemini;
mod goose;
mod lines;
mod mock;
mod opencode;
#[cfg(test)]
mod tests;

use crate::limits;
use crate::names::{is_unprintable, showable};
use crate::words;
use lines::Lines;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Characters of a session's name, and of why an agent failed.
const SHORT_CHARS_MAX: usize = 2_000;

words!(
    /// What the output of an agent is written in.
    Dialect {
        /// JSON lines of Claude Code's print mode.
        Claude = "claude",
        /// JSON lines of `codex exec`.
        Codex = "codex",
        /// JSON lines of `opencode run`.
        Opencode = "opencode",
        /// JSON lines of Gemini CLI.
        Gemini = "gemini",
        /// JSON lines of `goose run`.
        Goose = "goose",
        /// JSON lines of `fernery mock-agent`.
        Mock = "mock",
        /// No protocol: words for people.
        Text = "text",
    }
);

/// How an agent says that it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It did what it wanted to do.
    Success,
    /// It could not, for this reason.
    Error(String),
}

/// What an agent says it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, those from a cache too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens of them that came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Tokens written, those of its reasoning too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens in all.
    pub tokens: u64,
}

/// What an agent's output says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentReport {
    /// How it ended by its protocol. `None`: the event by which it ends never came, or there is no protocol.
    pub finished: Option<Finish>,
    pub usage: Option<Usage>,
    /// What that cost, in millionths of a dollar.
    pub cost_usd_micros: Option<u64>,
    /// Its last message, fit to be shown.
    pub message: Option<String>,
    /// What it calls this session.
    pub session: Option<String>,
    /// It asked something: as its protocol asks, or by a line `QUESTION: …` of its last message.
    pub question: bool,
    /// What it asked, as far as it says.
    pub asked: Option<String>,
    /// Why nothing has to change, where its last line is `NO_CHANGE: …`.
    pub no_change: Option<String>,
}

/// Listens to one agent from its first byte to its last.
#[derive(Debug)]
pub struct OutputParser {
    dialect: Dialect,
    lines: Lines,
    told: AgentReport,
    /// Which message of several the last one belongs to, where they come in pieces.
    piece_of: Option<String>,
    note: Option<String>,
}

impl OutputParser {
    /// The parser of an agent that has written nothing yet.
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, lines: Lines::default(), told: AgentReport::default(), piece_of: None, note: None }
    }

    /// Takes what it wrote next, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, &mut |line| self.line(line));
        self.lines = lines;
    }

    /// What it is doing, in one line for people.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// It writes no more: what it has said in all.
    pub fn finish(mut self) -> AgentReport {
        if let Some(rest) = std::mem::take(&mut self.lines).rest() {
            self.line(&rest);
        }
        let mut told = self.told;
        if let Some(message) = &mut told.message {
            keep_end(message);
        }
        told.message = told.message.map(|text| showable(text.trim())).filter(|text| !text.is_empty());
        let message = told.message.as_deref().unwrap_or_default();
        let last = message.lines().last().unwrap_or_default();
        told.no_change = last.strip_prefix("NO_CHANGE:").map(|why| why.trim().to_string());
        // Its last word counts.
        if told.no_change.is_none()
            && let Some(question) = final_question(message, self.dialect)
        {
            told.question = true;
            told.asked = Some(question);
        }
        told.asked = told.asked.map(|text| bounded_question(&text)).filter(|text| !text.is_empty());
        told
    }

    /// It asked by a tool of its protocol, with this input.
    fn asks(&mut self, input: &Value) {
        self.told.question = true;
        self.told.asked = question_of(input).or(self.told.asked.take());
    }

    fn line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        if self.dialect == Dialect::Text {
            self.append(&line);
            self.append("\n");
            self.note = shown(&line).or(self.note.take());
            return;
        }
        let Some(event) = event_of(&line) else { return };
        match self.dialect {
            Dialect::Claude => claude::hear(&event, self),
            Dialect::Codex => codex::hear(&event, self),
            Dialect::Opencode => opencode::hear(&event, self),
            Dialect::Gemini => gemini::hear(&event, self),
            Dialect::Goose => goose::hear(&event, self),
            Dialect::Mock => mock::hear(&event, self),
            Dialect::Text => {}
        }
        self.note = self.dialect.note_of(&event).or(self.note.take());
    }

    /// A new last message.
    fn says(&mut self, text: &str) {
        self.told.message = None;
        self.append(text);
    }

    /// More of the last message.
    fn append(&mut self, text: &str) {
        let message = self.told.message.get_or_insert_default();
        message.push_str(text);
        // Cut only now and then: a long output comes in many pieces.
        if message.len() > 2 * limits::AGENT_MESSAGE_BYTES_MAX {
            keep_end(message);
        }
    }

    fn session(&mut self, name: Option<&str>) {
        let plain = |name: &&str| !name.is_empty() && name.len() <= 200 && !name.chars().any(is_unprintable);
        self.told.session = name.filter(plain).map(str::to_string).or(self.told.session.take());
    }

    fn failed(&mut self, why: Option<&str>) {
        let why = why.map(str::trim).filter(|why| !why.is_empty()).unwrap_or("it does not say why");
        self.told.finished =
            Some(Finish::Error(showable(&why.chars().take(SHORT_CHARS_MAX).collect::<String>())));
    }
}

impl Dialect {
    /// What a line of output says its agent is doing, for people to see; `None` if it says nothing of that.
    pub fn last_line(self, line: &str) -> Option<String> {
        match self {
            Self::Text => shown(line),
            _ => self.note_of(&event_of(line)?),
        }
    }

    fn note_of(self, event: &Value) -> Option<String> {
        let note = match self {
            Self::Claude => claude::note(event),
            Self::Codex => codex::note(event),
            Self::Opencode => opencode::note(event),
            Self::Gemini => gemini::note(event),
            Self::Goose => goose::note(event),
            Self::Mock => mock::note(event),
            Self::Text => None,
        };
        shown(&note?)
    }
}

/// The question at the end of a message: the last line that begins with `QUESTION:`, with the list of choices below it and, in a
/// protocol that keeps messages apart, the rest of its paragraph. Programs without one often write more after it (what they used,
/// what they saved), and many put the word in bold.
fn final_question(message: &str, dialect: Dialect) -> Option<String> {
    let dressed = |c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '>' | '#');
    let lines: Vec<&str> = message.lines().collect();
    let asked = |line: &str| line.trim_start_matches(dressed).strip_prefix("QUESTION:").map(str::to_string);
    let (nth, first) = lines.iter().enumerate().rev().find_map(|(nth, line)| Some((nth, asked(line)?)))?;
    let first = first.trim().trim_start_matches(['*', '_', '`']).trim().to_string();
    let belongs = |line: &&&str| match dialect {
        Dialect::Text => line.starts_with([' ', '\t', '-', '*']),
        _ => !line.trim().is_empty(),
    };
    let more = lines[nth + 1..].iter().take_while(belongs).map(|line| line.trim_end());
    Some(std::iter::once(first.as_str()).chain(more).collect::<Vec<_>>().join("\n").trim().to_string())
}

/// What the input of a tool for questions asks, all of it.
fn question_of(input: &Value) -> Option<String> {
    let of = |one: &Value| {
        let text = ["question", "prompt", "message", "text"].into_iter().find_map(|key| one[key].as_str())?;
        let options = one["options"].as_array().into_iter().flatten();
        let label =
            |option: &Value| option["label"].as_str().or(option.as_str()).map(|label| format!("\n- {label}"));
        Some(text.to_string() + &options.filter_map(label).collect::<String>())
    };
    let many: Vec<String> = input["questions"].as_array().into_iter().flatten().filter_map(of).collect();
    if many.is_empty() { of(input) } else { Some(many.join("\n")) }
}

fn bounded_question(text: &str) -> String {
    let text = showable(text.trim());
    text[..text.floor_char_boundary(limits::QUESTION_BYTES_MAX)].to_string()
}

/// Keeps the end of a message that is too long.
fn keep_end(message: &mut String) {
    let from = message.len().saturating_sub(limits::AGENT_MESSAGE_BYTES_MAX);
    message.drain(..message.ceil_char_boundary(from));
}

/// An event is one JSON object on a line; other lines are ignored.
fn event_of(line: &str) -> Option<Value> {
    let line = line.trim();
    if !line.starts_with('{') {
        return None;
    }
    serde_json::from_str(line).ok().filter(Value::is_object)
}

/// The last line with something on it, without what a terminal would obey.
fn shown(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let plain: String =
        line.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !is_unprintable(*c)).collect();
    let short: String = plain.trim().chars().take(limits::AGENT_NOTE_CHARS_MAX).collect();
    (!short.is_empty()).then_some(short)
}

/// `Bash: cargo test`: a tool, and the first of these that its input has.
fn tool_note(name: &str, input: &Value) -> String {
    let said = ["command", "file_path", "filePath", "path", "pattern", "query", "url", "description"];
    match said.iter().find_map(|key| input[*key].as_str()) {
        Some(of) => format!("{name}: {}", of.lines().next().unwrap_or_default()),
        None => name.to_string(),
    }
}

/// A number of tokens.
fn count(value: &Value) -> Option<u64> {
    value.as_u64()
}

/// All that are there, together; `None` if none is.
fn sum(counts: &[Option<u64>]) -> Option<u64> {
    counts.iter().flatten().copied().reduce(u64::saturating_add)
}

/// Dollars as millionths. What is no amount is no report.
fn micros(dollars: &Value) -> Option<u64> {
    let dollars = dollars.as_f64().filter(|usd| (0.0..=limits::ENVELOPE_USD_MAX as f64).contains(usd))?;
    Some((dollars * 1e6).round() as u64)
}

impl Usage {
    /// Usage of what is read and written; `None` if neither is known.
    fn of(input: Option<u64>, cached: Option<u64>, output: Option<u64>) -> Option<Self> {
        Some(Self { input, cached, output, tokens: sum(&[input, output])? })
    }

    /// Both together.
    fn and(self, more: Self) -> Self {
        Self {
            input: sum(&[self.input, more.input]),
            cached: sum(&[self.cached, more.cached]),
            output: sum(&[self.output, more.output]),
            tokens: self.tokens.saturating_add(more.tokens),
        }
    }
}
