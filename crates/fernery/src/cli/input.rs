//! Input of a command: a named file, or stdin.

use super::failure::{Failure, Outcome};
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
    write!(std::io::stderr(), "{question}")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::failed("not_confirmed", undone)),
    }
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
