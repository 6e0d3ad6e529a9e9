//! Input of a command: a named file, or stdin.

use super::failure::{Failure, Outcome};
use super::screen::asked;
use fernery_core::Timestamp;
use std::fs::File;
use std::io::{BufRead, IsTerminal, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

/// Opens a file that a person named; `-` is stdin.
pub(super) fn open(path: &Path) -> Outcome<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(std::io::stdin()), None));
    }
    let refused =
        |why: &dyn std::fmt::Display| Failure::usage(format!("cannot read {}: {why}", path.display()));
    let meta = std::fs::metadata(path).map_err(|e| refused(&e))?;
    if meta.is_dir() {
        return Err(refused(&"it is a directory"));
    }
    // Opening a pipe waits for its writer, perhaps for ever; a pipe that the shell has opened has one.
    if meta.file_type().is_fifo() && !path.starts_with("/dev") && !path.starts_with("/proc") {
        return Err(refused(&"it is a pipe; give - and redirect it to stdin"));
    }
    let file = File::open(path).map_err(|e| refused(&e))?;
    Ok((Box::new(file), meta.is_file().then_some(meta.len())))
}

/// Whether a person can be asked.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Waits for a yes. Otherwise `undone` says what was not done.
pub(super) fn confirmed(question: &str, undone: &str) -> Outcome {
    match ask(question)?.as_deref() {
        Some("y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::failed("not_confirmed", undone)),
    }
}

/// The answer to a question in a line; `None`: there is nobody to answer.
pub(super) fn ask(question: &str) -> Outcome<Option<String>> {
    write!(std::io::stderr(), "{}", asked(question))?;
    let mut answer = String::new();
    let bytes = std::io::stdin().lock().read_line(&mut answer)?;
    Ok((bytes > 0).then(|| answer.trim().to_string()))
}

/// A word as a shell takes it.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// The command as it was typed, to be shown with more behind it.
pub(super) fn typed() -> String {
    let args = std::env::args_os().skip(1).map(|arg| shell_word(&arg.to_string_lossy()));
    std::iter::once("fernery".to_string()).chain(args).collect::<Vec<_>>().join(" ")
}

/// Reads at most `max` bytes of text.
pub(super) fn read_text(path: &Path, max: usize) -> Outcome<String> {
    let (reader, _) = open(path)?;
    let refused = |why: String| Failure::usage(format!("cannot read {}: {why}", path.display()));
    let mut bytes = Vec::new();
    reader.take(max as u64 + 1).read_to_end(&mut bytes).map_err(|e| refused(e.to_string()))?;
    if bytes.len() > max {
        return Err(refused(format!("it is larger than {max} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8".into()))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

/// A duration on the command line.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    crate::config::duration::parse(text)
}

/// An instant on the command line.
pub(super) fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse()
}
