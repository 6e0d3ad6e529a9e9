//! The script of a mock agent: where it comes from, and how it is read.
//!
//! The words of the command line win, each one step; then the variable `FERNERY_MOCK`, its steps apart by `;` or on lines of
//! their own; then the lines of the prompt that start with `mock:`. With none of them it is `ok`.

use fernery_core::calendar::duration;
use fernery_core::names::nearest;
use std::time::Duration;

/// The variable with the script, if the command line has none.
pub const MOCK_ENV: &str = "FERNERY_MOCK";

/// Headings in the prompt of an attempt that is not the first: one before it failed, asked, or left something to start from.
const EARLIER: [&str; 3] = [
    "\n## The attempt before this one ",
    "\n## The question of an attempt before this one",
    "\n## What the attempt before this one changed",
];

/// Mebibytes that are really written by one step.
const MEBIBYTES_MAX: u64 = 1 << 10;
/// Mebibytes of a file with nothing in it.
const SPARSE_MEBIBYTES_MAX: u64 = 1 << 20;

/// Every behaviour, what it takes and what it does.
pub const BEHAVIOURS: &[(&str, &str, &str)] = &[
    ("ok", "", "write the title of the prompt to MOCK.md"),
    ("write", "PATH TEXT", "write a file; \\n and \\t in the text are a line's end and a tab"),
    ("append", "PATH TEXT", "add to a file"),
    ("delete", "PATH", "delete a file or a folder"),
    (
        "replace",
        "PATH OLD => NEW",
        "replace a text in a file, unless that was done before; `fix` is the same",
    ),
    ("symlink", "PATH TARGET", "make a symbolic link"),
    ("binary", "PATH", "write a file that is no text"),
    ("huge", "PATH MIB", "write a large file"),
    ("sparse", "PATH MIB", "make a large file with nothing in it"),
    ("commit", "[MESSAGE]", "commit everything"),
    ("delete-git", "", "delete .git"),
    ("say", "TEXT", "say something"),
    ("usage", "IN OUT [USD] | none", "report this, or nothing"),
    ("wait", "DURATION", "do nothing for a while"),
    ("flood", "MIB", "write so much that is no event"),
    ("daemon", "", "leave a process behind, in a session of its own"),
    ("empty", "", "succeed with nothing changed"),
    ("no-change", "WHY", "succeed, and say why nothing has to change"),
    ("ask", "QUESTION", "ask a person, and end"),
    ("fail", "WHY", "say that it could not be done"),
    ("exit", "CODE", "end with this code and no last event"),
    ("partial", "", "end in the middle of the last event"),
    ("crash", "", "end by a signal"),
    ("hang", "", "never end"),
    ("deaf", "", "never end, not even when asked to (SIGTERM)"),
];

/// The usage that it reports.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reported {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cost_usd: Option<f64>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Ok,
    Write { path: String, text: String },
    Append { path: String, text: String },
    Delete { path: String },
    Replace { path: String, from: String, to: String },
    Symlink { path: String, target: String },
    Binary { path: String },
    Huge { path: String, mebibytes: u64 },
    Sparse { path: String, mebibytes: u64 },
    Commit { message: String },
    DeleteGit,
    Say(String),
    Usage(Option<Reported>),
    Wait(Duration),
    Flood { mebibytes: u64 },
    Daemon,
    Empty,
    NoChange(String),
    Ask(String),
    Fail(String),
    Exit(u8),
    Partial,
    Crash,
    Hang,
    Deaf,
}

/// The steps to take.
pub(super) fn script_of(words: &[String], set: Option<&str>, prompt: &str) -> Result<Vec<Step>, String> {
    let lines: Vec<&str> = if !words.is_empty() {
        words.iter().map(String::as_str).collect()
    } else if let Some(set) = set.filter(|set| !set.trim().is_empty()) {
        set.split(['\n', ';']).collect()
    } else {
        prompt.lines().filter_map(|line| line.trim_start().strip_prefix("mock:")).collect()
    };
    let mut steps = Vec::new();
    for line in lines.into_iter().map(str::trim).filter(|line| !line.is_empty()) {
        steps.extend(step_of(line, EARLIER.iter().any(|heading| prompt.contains(heading)))?);
    }
    Ok(if steps.is_empty() { vec![Step::Ok] } else { steps })
}

/// One step; none if it is for another attempt.
fn step_of(line: &str, is_again: bool) -> Result<Option<Step>, String> {
    let (word, rest) = split(line);
    let missing = || format!("`{line}`: {}", form_of(word));
    let needed = |text: &str| if text.is_empty() { Err(missing()) } else { Ok(text.to_string()) };
    let path = || path_of(split(rest).0).ok_or_else(missing);
    let text = || unescaped(split(rest).1);
    let mebibytes = |text: &str, most: u64| {
        text.parse().ok().filter(|mebibytes| (1..=most).contains(mebibytes)).ok_or_else(missing)
    };
    Ok(Some(match word {
        "first" => return if is_again { Ok(None) } else { step_of(rest, is_again) },
        "again" => return if is_again { step_of(rest, is_again) } else { Ok(None) },
        "ok" => Step::Ok,
        "write" => Step::Write { path: path()?, text: text() + "\n" },
        "append" => Step::Append { path: path()?, text: text() + "\n" },
        "delete" => Step::Delete { path: path()? },
        "replace" | "fix" => {
            let (from, to) = split(rest).1.split_once(" =>").ok_or_else(missing)?;
            let from = needed(&unescaped(from))?;
            Step::Replace { path: path()?, from, to: unescaped(to.strip_prefix(' ').unwrap_or(to)) }
        }
        "symlink" => Step::Symlink { path: path()?, target: needed(split(rest).1)? },
        "binary" => Step::Binary { path: path()? },
        "huge" => Step::Huge { path: path()?, mebibytes: mebibytes(split(rest).1, MEBIBYTES_MAX)? },
        "sparse" => {
            Step::Sparse { path: path()?, mebibytes: mebibytes(split(rest).1, SPARSE_MEBIBYTES_MAX)? }
        }
        "commit" => Step::Commit { message: if rest.is_empty() { "Mock".into() } else { rest.into() } },
        "delete-git" => Step::DeleteGit,
        "say" => Step::Say(unescaped(rest)),
        "usage" if rest == "none" => Step::Usage(None),
        "usage" => Step::Usage(Some(reported(rest).ok_or_else(missing)?)),
        "wait" => Step::Wait(duration::parse(rest)?),
        "flood" => Step::Flood { mebibytes: mebibytes(rest, MEBIBYTES_MAX)? },
        "daemon" => Step::Daemon,
        "empty" => Step::Empty,
        "no-change" => Step::NoChange(needed(rest)?),
        "ask" => Step::Ask(needed(rest)?),
        "fail" => Step::Fail(needed(rest)?),
        "exit" => Step::Exit(rest.parse().map_err(|_| missing())?),
        "partial" => Step::Partial,
        "crash" => Step::Crash,
        "hang" => Step::Hang,
        "deaf" => Step::Deaf,
        other => {
            let known = || BEHAVIOURS.iter().map(|(name, _, _)| *name);
            let hint = match nearest(other, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known: {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("a mock agent cannot `{other}`; {hint}"));
        }
    }))
}

fn form_of(word: &str) -> String {
    let known = BEHAVIOURS.iter().find(|(name, _, _)| *name == if word == "fix" { "replace" } else { word });
    known.map_or_else(String::new, |(name, takes, _)| format!("expected `{name} {takes}`"))
}

/// The first word, and what follows it.
fn split(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// A path inside the folder. Escapes are tested with links.
fn path_of(path: &str) -> Option<String> {
    let inside = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    inside.then(|| path.to_string())
}

fn reported(rest: &str) -> Option<Reported> {
    let mut numbers = rest.split_whitespace();
    let (input, output) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    let cost_usd = match numbers.next() {
        Some(usd) => Some(usd.parse().ok().filter(|usd: &f64| usd.is_finite() && *usd >= 0.0)?),
        None => None,
    };
    Some(Reported { input, output, cost_usd })
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, chars.clone().next()) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('\\')) => out.push('\\'),
            _ => {
                out.push(c);
                continue;
            }
        }
        chars.next();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prompt: &str) -> Result<Vec<Step>, String> {
        script_of(&[], None, prompt)
    }

    #[test]
    fn the_command_line_wins_over_the_environment_and_that_over_the_prompt() {
        let words = ["hang".to_string(), "write a b c".to_string()];
        let prompt = "# Do it\n```text\n  mock: empty\nmock:partial\n```\n";
        let write = Step::Write { path: "a".into(), text: "b c\n".into() };
        assert_eq!(script_of(&words, Some("crash"), prompt).unwrap(), [Step::Hang, write]);
        assert_eq!(script_of(&[], Some("crash; deaf\nok"), prompt).unwrap().len(), 3);
        assert_eq!(script_of(&[], Some(" "), prompt).unwrap(), [Step::Empty, Step::Partial]);
        assert_eq!(read("# Nothing\n").unwrap(), [Step::Ok]);
    }

    #[test]
    fn a_step_may_be_for_the_first_attempt_or_for_those_after_it() {
        let script = "mock: first empty\nmock: again crash\n";
        assert_eq!(read(script).unwrap(), [Step::Empty]);
        for heading in EARLIER {
            assert_eq!(read(&format!("{script}{heading}\n")).unwrap(), [Step::Crash], "{heading}");
        }
    }

    #[test]
    fn texts_may_have_lines() {
        let replaced = Step::Replace { path: "a.py".into(), from: "a - b".into(), to: "a + b".into() };
        assert_eq!(read("mock: fix a.py a - b => a + b").unwrap(), [replaced]);
        let written = Step::Write { path: "d/a".into(), text: "x\n\ty\\z\n".into() };
        assert_eq!(read("mock: write d/a x\\n\\ty\\\\z").unwrap(), [written]);
    }

    #[test]
    fn what_it_cannot_do_is_told() {
        for (line, why) in [
            ("wirte a b", "did you mean `write`?"),
            ("zzz", "known: ok, write"),
            ("write /etc/passwd x", "expected `write PATH TEXT`"),
            ("write a/../../b x", "expected `write PATH TEXT`"),
            ("replace a b", "expected `replace PATH OLD => NEW`"),
            ("huge a 0", "expected `huge PATH MIB`"),
            ("huge a 1025", "expected `huge PATH MIB`"),
            ("sparse a 1048577", "expected `sparse PATH MIB`"),
            ("usage 1", "expected `usage IN OUT [USD] | none`"),
            ("exit 256", "expected `exit CODE`"),
            ("wait 5", "has no unit"),
        ] {
            let told = read(&format!("mock: {line}")).unwrap_err();
            assert!(told.contains(why), "{line}: {told}");
        }
        for (name, takes, _) in BEHAVIOURS {
            let takes = takes.replace(" | none", "").replace(['[', ']'], "").replace("IN OUT USD", "1 2 0.5");
            let takes = takes.replace("MIB", "1").replace("CODE", "3").replace("DURATION", "1s");
            assert!(read(&format!("mock: {name} {takes}")).is_ok(), "{name} {takes}");
        }
    }
}
