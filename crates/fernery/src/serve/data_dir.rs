//! The data directory: readable by its owner only, and excluded from git.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file in the data directory that holds the URL of the running server.
pub(crate) const URL_FILE: &str = "url";

const OWN_GITIGNORE: &str = "*\n";

/// Makes the directory if it is missing, and closes it to other users.
pub(crate) fn prepare(dir: &Path) -> Result<(), String> {
    let refused =
        |why: &dyn std::fmt::Display| format!("cannot use the data directory {}: {why}", dir.display());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|e| refused(&e))?;
    let meta = fs::metadata(dir).map_err(|e| refused(&e))?;
    let ignore = dir.join(".gitignore");
    if meta.mode() & 0o077 != 0 {
        // Do not close a directory that holds other files: their users would lose access.
        let ours = fs::read_to_string(&ignore).is_ok_and(|text| text == OWN_GITIGNORE);
        let empty = fs::read_dir(dir).map_err(|e| refused(&e))?.next().is_none();
        if !ours && !empty {
            return Err(refused(
                &"other users can read it, and it contains files that are not Fernery's; choose another \
                    directory, or `chmod 700` it",
            ));
        }
    }
    // In a setgid folder it inherits that bit, and would pass it on to everything inside.
    if meta.mode() & 0o7077 != 0 {
        fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(|e| refused(&e))?;
    }
    if !ignore.exists() {
        fs::write(&ignore, OWN_GITIGNORE).map_err(|e| refused(&e))?;
    }
    Ok(())
}

/// Removes the URL that a killed server has left.
pub(super) fn forget_url(dir: &Path) {
    let _ = fs::remove_file(dir.join(URL_FILE));
}

/// Tells commands where the server is; removed at an orderly shutdown.
pub(crate) struct UrlFile {
    path: PathBuf,
    line: String,
}

impl UrlFile {
    /// Writes it atomically.
    pub(crate) fn write(dir: &Path, url: &str) -> std::io::Result<Self> {
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
            // A stale file only makes a command report that nobody answers there.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_drops_an_inherited_setgid_bit() {
        let parent = tempfile::tempdir().unwrap();
        fs::set_permissions(parent.path(), Permissions::from_mode(0o2775)).unwrap();
        let dir = parent.path().join("data");
        prepare(&dir).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o7777, 0o700);
    }
}
