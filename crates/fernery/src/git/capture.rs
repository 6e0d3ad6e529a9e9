//! What an agent left behind in its clone, as a patch: committed or not, staged or not, whatever it did to its git
//! directory; but for new files that the repository ignores. Read with our git directory; the agent's is not looked at.

use super::call::GitError;
use super::clone::Clone;
use fernery_core::limits;
use fernery_engine::door;
use std::fs;
use std::path::Path;

/// Bytes of all files of a clone together, and how many there may be: beyond that nobody tries to capture it.
const TREE_BYTES_MAX: u64 = 8 << 30;
const TREE_FILES_MAX: u64 = 2_000_000;
/// Bytes of one file that is captured.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// What a clone holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Captured {
    /// The patch against the base; empty if nothing changed.
    pub(crate) patch: String,
    /// The tree that it makes.
    pub(crate) tree: String,
}

/// Why a clone could not be captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Uncaptured {
    /// By what the agent left: it is too large, or cannot be a patch.
    Unfit(String),
    /// By what is around it.
    Trouble(String),
}

impl From<GitError> for Uncaptured {
    fn from(error: GitError) -> Self {
        match error {
            // Of files that git will not take it says which and why.
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

/// Captures it. To be called when nobody works in it any more.
pub(crate) async fn capture(clone: &Clone) -> Result<Captured, Uncaptured> {
    let tree = clone.tree.clone();
    let looked = tokio::task::spawn_blocking(move || look(&tree)).await;
    looked.map_err(|error| Uncaptured::Trouble(error.to_string()))??;
    // An index of its own: what an earlier capture put into another is nothing that this one may trust.
    let index = clone.trusted.join(format!("capture-{}.index", door::artifact_id()));
    fs::copy(clone.trusted.join("index"), &index).map_err(|error| Uncaptured::Trouble(error.to_string()))?;
    let git = clone.git().index(&index);
    git.call(&["add", "-A"], b"").await?;
    let tree = git.line(&["write-tree"]).await?;
    let patch = diff(clone, &tree).await?;
    let _ = fs::remove_file(&index);
    match String::from_utf8(patch) {
        Ok(patch) if !patch.contains('\0') => fits(patch, tree),
        unreadable_patch => {
            let bytes = unreadable_patch.map_or_else(|error| error.into_bytes(), String::into_bytes);
            // What is no text is written as bytes.
            let attributes = clone.trusted.join("info/attributes");
            let mut lines = fs::read_to_string(&attributes).unwrap_or_default();
            lines.push_str(&unreadable(clone, &tree, &bytes).await?);
            fs::write(&attributes, lines).map_err(|error| Uncaptured::Trouble(error.to_string()))?;
            let patch = String::from_utf8(diff(clone, &tree).await?)
                .map_err(|_| Uncaptured::Unfit("the patch is not UTF-8".into()))?;
            fits(patch, tree)
        }
    }
}

fn fits(patch: String, tree: String) -> Result<Captured, Uncaptured> {
    // All parts of a result together are bounded, and a patch is most of it.
    let max = limits::CONTENT_BYTES_MAX * 3 / 4;
    if patch.len() > max {
        return Err(Uncaptured::Unfit(format!(
            "a patch of {} bytes; at most {max} can be handed in",
            patch.len()
        )));
    }
    Ok(Captured { patch, tree })
}

async fn diff(clone: &Clone, tree: &str) -> Result<Vec<u8>, GitError> {
    let mut args = DIFF.to_vec();
    args.extend([clone.base.as_str(), tree]);
    clone.git().call(&args, b"").await
}

/// Lines for git's attributes by which the files that are no text are written as bytes.
async fn unreadable(clone: &Clone, tree: &str, patch: &[u8]) -> Result<String, GitError> {
    let names = ["diff", "--name-only", "--no-renames", "-z", "--end-of-options", clone.base.as_str(), tree];
    let names = clone.git().call(&names, b"").await?;
    let names: Vec<&[u8]> = names.split(|b| *b == 0).filter(|name| !name.is_empty()).collect();
    let files = sections(patch);
    // A file that becomes a link, or the other way round, has two sections: then nobody counts.
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
            // A name that has to be written in another way.
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

/// Whether somebody may read all of it: nothing here waits for a disk that an agent has filled.
fn look(tree: &Path) -> Result<(), Uncaptured> {
    let (mut bytes, mut files) = (0_u64, 0_u64);
    let mut open = vec![tree.to_owned()];
    while let Some(folder) = open.pop() {
        let shown = folder.strip_prefix(tree).unwrap_or(&folder).display().to_string();
        let unreadable =
            |error: std::io::Error| Uncaptured::Unfit(format!("cannot be read: {shown}: {error}"));
        for entry in fs::read_dir(&folder).map_err(unreadable)?.flatten() {
            let path = entry.path();
            let name = path.strip_prefix(tree).unwrap_or(&path).display();
            if entry.file_name().eq_ignore_ascii_case(".git") {
                // The agent's own git directory is not captured, however large. git would go into any other, and do there
                // what the agent has written into it.
                if folder == tree && entry.file_name() == ".git" {
                    continue;
                }
                return Err(Uncaptured::Unfit(format!("{name}: a repository inside the repository")));
            }
            let Ok(meta) = entry.metadata() else { continue };
            if !meta.is_dir() && !meta.is_file() && !meta.is_symlink() {
                return Err(Uncaptured::Unfit(format!("{name} is neither a file nor a folder nor a link")));
            }
            files += 1;
            if meta.is_dir() {
                open.push(entry.path());
            } else if meta.is_file() {
                bytes = bytes.saturating_add(meta.len());
            }
            if meta.is_file() && meta.len() > FILE_BYTES_MAX {
                return Err(Uncaptured::Unfit(format!(
                    "{name} has {} bytes; at most {FILE_BYTES_MAX} are captured",
                    meta.len()
                )));
            }
            if files > TREE_FILES_MAX || bytes > TREE_BYTES_MAX {
                return Err(Uncaptured::Unfit(format!(
                    "more than {TREE_FILES_MAX} files or {TREE_BYTES_MAX} bytes are left"
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
