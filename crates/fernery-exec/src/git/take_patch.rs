//! Takes an agent's work from its clone as a patch: committed or not, staged or not, but without new files that the
//! repository ignores. Uses our git directory, never the agent's.

use super::call::GitError;
use super::clone::Clone;
use fernery_core::limits;
use fernery_door as door;
use std::fs;
use std::path::Path;

/// Limits on bytes and number of all files of a clone; beyond them, no patch is taken.
const TREE_BYTES_MAX: u64 = 8 << 30;
const TREE_FILES_MAX: u64 = 2_000_000;
/// Bytes of one file that a patch may have.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What a clone holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TakenPatch {
    /// The patch against the base; empty if nothing changed.
    pub patch: String,
    /// The tree that it makes.
    pub tree: String,
}

/// Why no patch could be taken from a clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPatch {
    /// The agent's work is at fault: too large, or not possible as a patch.
    Unfit(String),
    /// The environment is at fault.
    Trouble(String),
}

impl From<GitError> for NoPatch {
    fn from(error: GitError) -> Self {
        match error {
            // git names the file that it refuses, and why.
            GitError::Refused { code: Some(_), .. } => Self::Unfit(error.to_string()),
            _ => Self::Trouble(error.to_string()),
        }
    }
}

/// How a patch is written.
pub(super) const DIFF: [&str; 8] = [
    "diff",
    "--binary",
    "--full-index",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--end-of-options",
];

/// Takes the patch. Call it only when nobody works in the clone any more.
pub(crate) async fn take_patch(clone: &Clone) -> Result<TakenPatch, NoPatch> {
    let tree = clone.tree.clone();
    let looked = tokio::task::spawn_blocking(move || look(&tree)).await;
    looked.map_err(|error| NoPatch::Trouble(error.to_string()))??;
    // A fresh index: what an earlier take left in another index cannot be trusted.
    let index = clone.trusted.join(format!("capture-{}.index", door::artifact_id()));
    fs::copy(clone.trusted.join("index"), &index).map_err(|error| NoPatch::Trouble(error.to_string()))?;
    let git = clone.git().index(&index);
    git.call(&["add", "-A"], b"").await?;
    let tree = git.line(&["write-tree"]).await?;
    let patch = diff(clone, &tree).await?;
    let _ = fs::remove_file(&index);
    match String::from_utf8(patch) {
        Ok(patch) if !patch.contains('\0') => fits(patch, tree),
        unreadable_patch => {
            let bytes = unreadable_patch.map_or_else(|error| error.into_bytes(), String::into_bytes);
            // Files that are not text are written as binary.
            let attributes = clone.trusted.join("info/attributes");
            let mut lines = fs::read_to_string(&attributes).unwrap_or_default();
            lines.push_str(&unreadable(clone, &tree, &bytes).await?);
            fs::write(&attributes, lines).map_err(|error| NoPatch::Trouble(error.to_string()))?;
            let patch = String::from_utf8(diff(clone, &tree).await?)
                .map_err(|_| NoPatch::Unfit("the patch is not UTF-8".into()))?;
            fits(patch, tree)
        }
    }
}

fn fits(patch: String, tree: String) -> Result<TakenPatch, NoPatch> {
    // The whole result is bounded, and the patch is most of it.
    let max = limits::CONTENT_BYTES_MAX * 3 / 4;
    if patch.len() > max {
        return Err(NoPatch::Unfit(format!("the patch has {} bytes; the limit is {max}", patch.len())));
    }
    Ok(TakenPatch { patch, tree })
}

async fn diff(clone: &Clone, tree: &str) -> Result<Vec<u8>, GitError> {
    let mut args = DIFF.to_vec();
    args.extend([clone.base.as_str(), tree]);
    clone.git().call(&args, b"").await
}

/// Lines for git's attributes file that mark the files that are not text as binary.
async fn unreadable(clone: &Clone, tree: &str, patch: &[u8]) -> Result<String, GitError> {
    let names = ["diff", "--name-only", "--no-renames", "-z", "--end-of-options", clone.base.as_str(), tree];
    let names = clone.git().call(&names, b"").await?;
    let names: Vec<&[u8]> = names.split(|b| *b == 0).filter(|name| !name.is_empty()).collect();
    let files = sections(patch);
    // A file that becomes a link, or vice versa, has one name and two sections: then they cannot be paired.
    if names.len() != files.len() {
        return Ok("* -diff\n".into());
    }
    let mut lines = String::new();
    for (name, _) in names.iter().zip(&files).filter(|(_, file)| !is_text(file)) {
        match std::str::from_utf8(name) {
            Ok(name)
                if name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'_' | b'-')) =>
            {
                lines.push_str(&format!("/{name} -diff\n"));
            }
            // A name that would need quoting.
            _ => return Ok("* -diff\n".into()),
        }
    }
    Ok(lines)
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}

/// The parts of a patch, one for each file.
pub(super) fn sections(patch: &[u8]) -> Vec<&[u8]> {
    let mut starts: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(b"diff --git ") {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().zip(ends).map(|(start, end)| &patch[*start..end]).collect()
}

/// Whether the clone is small enough to read: nothing here waits for a disk that an agent has filled.
fn look(tree: &Path) -> Result<(), NoPatch> {
    let (mut bytes, mut files) = (0_u64, 0_u64);
    let mut open = vec![tree.to_owned()];
    while let Some(folder) = open.pop() {
        let shown = folder.strip_prefix(tree).unwrap_or(&folder).display().to_string();
        let unreadable = |error: std::io::Error| NoPatch::Unfit(format!("cannot be read: {shown}: {error}"));
        for entry in fs::read_dir(&folder).map_err(unreadable)?.flatten() {
            let path = entry.path();
            let name = path.strip_prefix(tree).unwrap_or(&path).display();
            if entry.file_name().eq_ignore_ascii_case(".git") {
                // The agent's own git directory is not taken, however large. git would enter any other one and obey
                // what the agent wrote there.
                if folder == tree && entry.file_name() == ".git" {
                    continue;
                }
                return Err(NoPatch::Unfit(format!("{name} is a repository inside the repository")));
            }
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_dir() && !meta.is_file() && !meta.is_symlink() {
                return Err(NoPatch::Unfit(format!("{name} is neither a file nor a folder nor a link")));
            }
            files += 1;
            if meta.is_dir() {
                open.push(entry.path());
            } else if meta.is_file() {
                bytes = bytes.saturating_add(meta.len());
            }
            if meta.is_file() && meta.len() > FILE_BYTES_MAX {
                return Err(NoPatch::Unfit(format!(
                    "{name} has {} bytes; the limit is {FILE_BYTES_MAX}",
                    meta.len()
                )));
            }
            if files > TREE_FILES_MAX || bytes > TREE_BYTES_MAX {
                return Err(NoPatch::Unfit(format!(
                    "the changes have more than {TREE_FILES_MAX} files or {TREE_BYTES_MAX} bytes"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_patch_are_told_apart_by_their_first_lines_alone() {
        let patch = b"diff --git a/x b/x\n+diff --git a/y b/y\n-z\ndiff --git a/y b/y\n+\xff\n";
        let parts = sections(patch);
        assert_eq!(parts.len(), 2);
        assert!(parts[0].ends_with(b"-z\n") && std::str::from_utf8(parts[1]).is_err());
        assert!(sections(b"").is_empty());
    }
}
