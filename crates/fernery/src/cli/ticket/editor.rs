//! A text that a person types into an editor.
//!
//! It is in a file of the person's own from before the editor opens until somebody has taken it: whatever refuses it,
//! kills this process or loses the answer, the text is there, and the person is told where. Where nobody could be told, because
//! the terminal was gone, the next such command offers it again.

use super::text;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::screen::{plain, remark, when};
use fernery_core::Timestamp;
use fernery_engine::door;
use fernery_exec::program;
use rustix::fs::FlockOperation;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, DirEntry, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The editor that the person has chosen, or else one that is installed.
fn chosen() -> Outcome<OsString> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let path = std::env::var_os("PATH");
    let installed = |name: &&&str| program::find(OsStr::new(name), path.as_deref()).is_ok();
    let fallback = || ["sensible-editor", "nano", "vi"].iter().find(installed).map(OsString::from);
    set("VISUAL").or_else(|| set("EDITOR")).or_else(fallback).ok_or_else(|| {
        Failure::usage("no editor was found: set EDITOR to the one you like, as in EDITOR=nano, or pass flags or --file FILE")
    })
}

/// Opens the editor with this form until `take` has taken what was written, or the person gives up. `go_on` is the
/// command that takes the text later, without the name of its file.
pub(in crate::cli) async fn until_taken<T>(
    form: &str,
    go_on: &str,
    take: impl AsyncFn(&Draft) -> Outcome<T>,
) -> Outcome<T> {
    chosen()?;
    let again = offered(form, go_on)?;
    let is_new = again.is_none();
    let draft = again.map_or_else(|| Draft::write(form, go_on), Ok)?;
    match draft.edit() {
        Ok(()) if !is_new || draft.text()? != form => {}
        // Nothing was typed.
        unsaved => {
            if draft.text().is_ok_and(|text| text == form) {
                draft.forget();
                return Err(unsaved
                    .err()
                    .unwrap_or_else(|| Failure::failed("not_written", "nothing was saved")));
            }
            return Err(draft.kept(unsaved.err().unwrap_or_else(Failure::told), go_on));
        }
    }
    loop {
        let refused = match take(&draft).await {
            Ok(taken) => {
                draft.forget();
                return Ok(taken);
            }
            Err(refused) => refused,
        };
        if !input::can_ask() {
            return Err(draft.kept(refused, go_on));
        }
        remark(&format!("error: {}", plain(refused.message())));
        match input::ask("[e]dit it again, [s]end it again as it is, or [k]eep it for later? [e] ")?
            .as_deref()
        {
            Some("" | "e") => draft.edit().map_err(|failed| draft.kept(failed, go_on))?,
            Some("s") => {}
            _ => return Err(draft.kept(Failure::failed("not_taken", "nothing was sent"), go_on)),
        }
    }
}

/// The newest text that an earlier such command has left, if the person wants to go on with it.
fn offered(form: &str, go_on: &str) -> Outcome<Option<Draft>> {
    for kept in kept().into_iter().filter(|kept| kept.go_on == go_on) {
        let Some(draft) = Draft::taken_up(kept.path) else { continue };
        match draft.text() {
            // Nothing was typed into it.
            Ok(text) if text == form => draft.forget(),
            Ok(text) => {
                let title = text::read(&text).0.title.filter(|title| !title.is_empty());
                let title = title.map_or(String::new(), |title| format!(": “{title}”"));
                let written = when::relative(kept.written_at, door::wall_clock());
                remark(&format!(
                    "a text of yours was not sent ({written}){title}; it is in {}",
                    draft.path.display()
                ));
                let answer = input::ask("go on with it? (No leaves it there.) [y/N] ")?;
                if matches!(answer.as_deref(), Some("y" | "Y" | "yes")) {
                    return Ok(Some(draft));
                }
                draft.release();
                return Ok(None);
            }
            Err(_) => draft.release(),
        }
    }
    Ok(None)
}

/// A text that was not sent, and that no command works on.
pub(in crate::cli) struct KeptDraft {
    pub(in crate::cli) path: PathBuf,
    /// The command that takes it, without the name of its file.
    pub(in crate::cli) go_on: String,
    written_at: Timestamp,
}

/// All of them, the newest first. In a folder that all users share, only one's own.
pub(in crate::cli) fn kept() -> Vec<KeptDraft> {
    let own = rustix::process::geteuid().as_raw();
    let kept = |entry: io::Result<DirEntry>| {
        let path = entry.ok()?.path();
        let meta = fs::symlink_metadata(&path).ok().filter(|meta| meta.is_file() && meta.uid() == own)?;
        let words = path.file_name()?.to_str()?.strip_suffix(".md")?.rsplit_once('+')?.0.replace('+', " ");
        let since = meta.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let written_at = Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?);
        let in_hand = File::open(path.with_extension(LOCK)).is_ok_and(|lock| !locks(&lock));
        (!in_hand).then(|| KeptDraft { go_on: format!("fernery {words} --file"), path, written_at })
    };
    let mut all: Vec<KeptDraft> = fs::read_dir(folder()).into_iter().flatten().filter_map(kept).collect();
    all.sort_by_key(|kept| std::cmp::Reverse(kept.written_at));
    all
}

/// The extension of the file beside a draft that is locked while a command works on it. The draft itself would not do: editors
/// put another file in its place.
const LOCK: &str = "lock";

fn locks(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// The file that a text is in.
pub(in crate::cli) struct Draft {
    path: PathBuf,
    /// Held while this command works on it.
    _lock: Option<File>,
}

impl Draft {
    fn write(text: &str, go_on: &str) -> Outcome<Self> {
        let folder = folder();
        // The name says which command takes the text: no word of one has a plus in it.
        let command = go_on.trim_start_matches("fernery ").trim_end_matches(" --file").replace(' ', "+");
        let name = format!("{command}+{:016x}.md", u64::from_ne_bytes(door::random_bytes()));
        let path = folder.join(name);
        let refused = |error: std::io::Error| {
            Failure::failed("not_written", format!("cannot write {}: {error}", path.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(refused)?;
        let lock = Self::lock(&path).map_err(refused)?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(refused)?;
        file.write_all(text.as_bytes()).map_err(refused)?;
        Ok(Self { path, _lock: lock })
    }

    /// The lock of a draft; `None`: another command works on it.
    fn lock(path: &Path) -> io::Result<Option<File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(path.with_extension(LOCK))?;
        Ok(locks(&lock).then_some(lock))
    }

    /// A draft that was left, for this command to work on.
    fn taken_up(path: PathBuf) -> Option<Self> {
        let lock = Self::lock(&path).ok()??;
        Some(Self { path, _lock: Some(lock) })
    }

    /// The draft of this name, if it is one that an earlier command has kept.
    pub(in crate::cli) fn found(path: &Path) -> Option<Self> {
        let is_ours = path.canonicalize().ok()?.parent() == Some(folder().canonicalize().ok()?.as_path());
        is_ours.then(|| Self { path: path.to_path_buf(), _lock: None })
    }

    pub(in crate::cli) fn path(&self) -> &Path {
        &self.path
    }

    pub(in crate::cli) fn text(&self) -> Outcome<String> {
        let refused =
            |error| Failure::failed("not_read", format!("cannot read {}: {error}", self.path.display()));
        fs::read_to_string(&self.path).map_err(refused)
    }

    /// Puts another text in its place.
    pub(in crate::cli) fn rewrite(&self, text: &str) -> Outcome {
        let beside = self.path.with_extension("new");
        let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
        let written =
            written.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        written.and_then(|()| fs::rename(&beside, &self.path)).map_err(|error| {
            Failure::failed("not_written", format!("cannot write {}: {error}", self.path.display()))
        })
    }

    fn edit(&self) -> Outcome {
        let editor = chosen()?;
        // Like git: the variable may hold arguments, and the file name is one word.
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{} \"$1\"", editor.to_string_lossy())).arg("sh").arg(&self.path);
        let ended = command
            .status()
            .map_err(|e| Failure::failed("editor", format!("cannot start the editor: {e}")))?;
        match ended.success() {
            true => Ok(()),
            false => {
                Err(Failure::failed("not_written", format!("the editor failed ({ended}); nothing was sent")))
            }
        }
    }

    /// The text is taken.
    pub(in crate::cli) fn forget(self) {
        let _ = fs::remove_file(&self.path);
        self.release();
    }

    /// No command works on it any more.
    fn release(&self) {
        let _ = fs::remove_file(self.path.with_extension(LOCK));
    }

    /// Says where the text is, and how to go on with it.
    fn kept(&self, failure: Failure, go_on: &str) -> Failure {
        self.release();
        let file = self.path.display().to_string();
        let go_on = format!("{go_on} {}", input::shell_word(&file));
        match failure.message().is_empty() {
            true => failure.says(format!("your text is kept in {file}; to send it: {go_on}")),
            false => failure.hint(format_args!("your text is kept in {file}; to send it: {go_on}")),
        }
    }
}

/// Where drafts are kept; without a home, with the temporary files.
fn folder() -> PathBuf {
    let place = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let state = place("XDG_STATE_HOME").or_else(|| Some(place("HOME")?.join(".local/state")));
    state.map_or_else(|| std::env::temp_dir().join("fernery-drafts"), |state| state.join("fernery/drafts"))
}
