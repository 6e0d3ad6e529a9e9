//! A text that a person types into an editor.
//!
//! It is in a file of the person's own from before the editor opens until somebody has taken it: whatever refuses it,
//! kills this process or loses the answer, the text is there, and the person is told where.

use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::screen::{plain, remark};
use fernery_engine::door;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The editor that the person has chosen.
pub(in crate::cli) fn chosen() -> Option<std::ffi::OsString> {
    ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

/// Opens the editor with this form until `take` has taken what was written, or the person gives up. `go_on` is the
/// command that takes the text later, without the name of its file.
pub(in crate::cli) async fn until_taken<T>(
    form: &str,
    go_on: &str,
    take: impl AsyncFn(&Draft) -> Outcome<T>,
) -> Outcome<T> {
    if chosen().is_none() {
        return Err(Failure::usage("pass --title, --file FILE, or - and the text on stdin; or set EDITOR"));
    }
    let draft = Draft::write(form)?;
    match draft.edit() {
        Ok(()) if draft.text()? != form => {}
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

/// The file that a text is in.
pub(in crate::cli) struct Draft(PathBuf);

impl Draft {
    fn write(text: &str) -> Outcome<Self> {
        let folder = folder();
        let name = format!("{:016x}.md", u64::from_ne_bytes(door::random_bytes()));
        let path = folder.join(name);
        let refused = |error: std::io::Error| {
            Failure::failed("not_written", format!("cannot write {}: {error}", path.display()))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(refused)?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(refused)?;
        file.write_all(text.as_bytes()).map_err(refused)?;
        Ok(Self(path))
    }

    /// The draft of this name, if it is one that an earlier command has kept.
    pub(in crate::cli) fn found(path: &Path) -> Option<Self> {
        let is_ours = path.canonicalize().ok()?.parent() == Some(folder().canonicalize().ok()?.as_path());
        is_ours.then(|| Self(path.to_path_buf()))
    }

    pub(in crate::cli) fn path(&self) -> &Path {
        &self.0
    }

    pub(in crate::cli) fn text(&self) -> Outcome<String> {
        let refused =
            |error| Failure::failed("not_read", format!("cannot read {}: {error}", self.0.display()));
        fs::read_to_string(&self.0).map_err(refused)
    }

    /// Puts another text in its place.
    pub(in crate::cli) fn rewrite(&self, text: &str) -> Outcome {
        let beside = self.0.with_extension("new");
        let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
        let written =
            written.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        written.and_then(|()| fs::rename(&beside, &self.0)).map_err(|error| {
            Failure::failed("not_written", format!("cannot write {}: {error}", self.0.display()))
        })
    }

    fn edit(&self) -> Outcome {
        let Some(editor) = chosen() else { return Err(Failure::usage("set EDITOR")) };
        // Like git: the variable may hold arguments, and the file name is one word.
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{} \"$1\"", editor.to_string_lossy())).arg("sh").arg(&self.0);
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
        let _ = fs::remove_file(&self.0);
    }

    /// Says where the text is, and how to go on with it.
    fn kept(&self, failure: Failure, go_on: &str) -> Failure {
        let file = self.0.display().to_string();
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
