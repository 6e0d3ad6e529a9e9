//! Files that a command checks one by one: named, in folders, or on stdin.

use super::failure::{Failure, Outcome};
use super::input;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Folders inside each other, at most.
const DEPTH_MAX: usize = 64;

/// Why a file has no text to check.
#[derive(Debug)]
pub(super) struct Unread {
    /// Why.
    pub(super) why: String,
    /// Where in the text, if it has some.
    pub(super) place: Option<(usize, usize)>,
    /// The file itself cannot be read: the call was wrong, not what is in the file.
    pub(super) is_usage: bool,
}

/// The named files, and all files with this extension in the named folders, in order.
pub(super) fn found(named: &[PathBuf], extension: &str) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in named {
        if path == Path::new("-") || !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        walk(path, extension, 0, &mut files)?;
        if files.len() == before {
            return Err(Failure::usage(format!("there is no .{extension} file in {}", path.display())));
        }
    }
    Ok(files)
}

fn walk(folder: &Path, extension: &str, depth: usize, files: &mut Vec<PathBuf>) -> Outcome {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("cannot read the folder {}: {why}", folder.display()))
    };
    if depth > DEPTH_MAX {
        return Err(refused(&"it is nested too deeply"));
    }
    let mut entries: Vec<_> =
        fs::read_dir(folder).and_then(Iterator::collect).map_err(|error: std::io::Error| refused(&error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        // Links are not followed: they may form a loop.
        let kind = entry.file_type().map_err(|error| refused(&error))?;
        if kind.is_dir() {
            walk(&path, extension, depth + 1, files)?;
        } else if path.extension().is_some_and(|of| of == extension) {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads at most `max` bytes of text; `-` is stdin.
pub(super) fn read(path: &Path, max: usize) -> Result<String, Unread> {
    let cannot = |why: &str| Unread { why: format!("cannot be read: {why}"), place: None, is_usage: true };
    let (reader, _) = input::open(path).map_err(|failure| {
        let named = format!("cannot read {}: ", path.display());
        cannot(failure.message().strip_prefix(&named).unwrap_or(failure.message()))
    })?;
    let mut bytes = Vec::new();
    let taken = reader.take(max as u64 + 1).read_to_end(&mut bytes);
    taken.map_err(|error| cannot(&error.to_string()))?;
    if bytes.len() > max {
        return Err(Unread { why: format!("it is larger than {max} bytes"), place: None, is_usage: false });
    }
    String::from_utf8(bytes).map_err(|error| {
        let (valid, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let before = String::from_utf8_lossy(valid);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Unread { why: "it is not UTF-8".into(), place: Some((line, column)), is_usage: false }
    })
}

/// The name of a file for people.
pub(super) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "stdin".to_string() } else { path.display().to_string() }
}

/// Every file was reported; ends with the worst code.
pub(super) fn ended(failed: usize, unreadable: usize) -> Outcome {
    match (failed, unreadable) {
        (0, 0) => Ok(()),
        (_, 0) => Err(Failure::told()),
        _ => Err(Failure::told_usage()),
    }
}
