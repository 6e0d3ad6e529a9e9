//! The data directory: closed to everybody but its owner, and never part of anybody's repository.

use super::failure::{Failure, Outcome};
use super::server::URL_FILE;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const OWN_GITIGNORE: &str = "*\n";

/// Makes the directory if it is not there, and closes it to others.
pub(super) fn prepare(dir: &Path) -> Outcome {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::usage(format!("the data directory {} cannot be used: {why}", dir.display()))
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| refused(&e))?;
    let meta = fs::metadata(dir).map_err(|e| refused(&e))?;
    let ignore = dir.join(".gitignore");
    if meta.mode() & 0o077 != 0 {
        // Closing a directory that holds other things would take them from whoever uses them.
        let ours = fs::read_to_string(&ignore).is_ok_and(|text| text == OWN_GITIGNORE);
        let empty = fs::read_dir(dir).map_err(|e| refused(&e))?.next().is_none();
        if !ours && !empty {
            return Err(refused(
                &"others can read it and it holds files that are not Fernery's; choose another, or `chmod 700` it",
            ));
        }
        fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(|e| refused(&e))?;
    }
    if !ignore.exists() {
        fs::write(&ignore, OWN_GITIGNORE).map_err(|e| refused(&e))?;
    }
    Ok(())
}

/// Tells commands where the server is; gone when the server has ended in order.
pub(super) struct UrlFile {
    path: PathBuf,
    line: String,
}

impl UrlFile {
    /// Writes it whole or not at all.
    pub(super) fn write(dir: &Path, url: &str) -> std::io::Result<Self> {
        let path = dir.join(URL_FILE);
        let unfinished = dir.join(format!("{URL_FILE}.new"));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        let line = format!("{url}\n");
        file.write_all(line.as_bytes())?;
        fs::rename(&unfinished, &path)?;
        Ok(Self { path, line })
    }
}

impl Drop for UrlFile {
    fn drop(&mut self) {
        // On PostgreSQL another server may use the directory too, and have put its own URL there since.
        if fs::read_to_string(&self.path).is_ok_and(|line| line == self.line) {
            // Left behind, it only makes a command say that nobody answers there.
            let _ = fs::remove_file(&self.path);
        }
    }
}
