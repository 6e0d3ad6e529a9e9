//! Whether a candidate merges with the tip of its base branch, and into which tree. Works on git directories of ours:
//! nothing in the operator's repository is written, and no merge driver of it runs.

use super::call::{Git, GitError};
use super::ground::Ground;
use super::repository::Repository;
use super::take_patch::sections;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What became of a candidate on the tip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// This tree: the tip's, with exactly the candidate's changes.
    Clean(String),
    /// The tip has all of it.
    Contained,
    /// It does not merge: these files, and why.
    Conflict { files: Vec<String>, why: String },
}

/// A commit made from a patch, and where it shall go.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The commit that the patch is for.
    pub base: &'a str,
    /// The commit with the patch.
    pub commit: &'a str,
    /// The name of the base branch, for people.
    pub branch: &'a str,
    /// Where that branch is now.
    pub tip: &'a str,
}

/// A git directory of ours that borrows all objects of a repository.
pub fn scratch(dir: &Path, repository: &Repository) -> std::io::Result<Git> {
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir)?;
    Ground { dir, repository, more_objects: &[], branch: None }.make()?;
    Ok(Git::at(dir))
}

/// Merges a candidate with the tip of its branch, in a git directory of ours that knows both.
pub async fn merge(git: &Git, candidate: Candidate<'_>) -> Result<Merged, GitError> {
    let Candidate { base, commit, branch, tip } = candidate;
    if tip == base {
        let tree = git.line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).await?;
        return Ok(Merged::Clean(tree));
    }
    if !git.asks(&["merge-base", "--is-ancestor", base, tip]).await? {
        let why = format!(
            "{branch} no longer has commit {}, which the patch was made for: its history was changed",
            short(base)
        );
        return Ok(Merged::Conflict { files: Vec::new(), why });
    }
    let args = ["merge-tree", "--write-tree", "--no-messages", "--name-only", "-z", tip, commit];
    let (clean, output) = git.asked(&args).await?;
    let mut names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let tree = names.next().map(|tree| String::from_utf8_lossy(tree).into_owned()).unwrap_or_default();
    if !clean {
        let files: BTreeSet<String> = names.map(shown).collect();
        let files: Vec<String> = files.into_iter().collect();
        let why = format!("{branch} changed the same lines: {}", files.join(", "));
        return Ok(Merged::Conflict { files, why });
    }
    if tree == git.line(&["rev-parse", "--verify", &format!("{tip}^{{tree}}")]).await? {
        return Ok(Merged::Contained);
    }
    let (reviewed, makes) = (changes(git, base, commit).await?, changes(git, tip, &tree).await?);
    if reviewed == makes {
        return Ok(Merged::Clean(tree));
    }
    let differs = |name: &&String| reviewed.get(*name) != makes.get(*name);
    let files: BTreeSet<&String> = reviewed.keys().chain(makes.keys()).filter(differs).collect();
    let files: Vec<String> = files.into_iter().cloned().collect();
    let why = format!(
        "on {branch} it would not make exactly the changes that were reviewed, because a part is there already or a \
         file was moved: {}",
        files.join(", ")
    );
    Ok(Merged::Conflict { files, why })
}

/// The changes between two trees, by file: modes and lines, wherever in the file they are.
type Changes = BTreeMap<String, Vec<Vec<u8>>>;

async fn changes(git: &Git, from: &str, to: &str) -> Result<Changes, GitError> {
    let args = [
        "diff",
        "-U0",
        "--minimal",
        "--full-index",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--end-of-options",
        from,
        to,
    ];
    let output = git.call(&args, b"").await?;
    let mut changes = Changes::new();
    for section in sections(&output) {
        let (name, lines) = change(section);
        // A file that becomes a link, or vice versa, has two sections.
        changes.entry(name).or_default().extend(lines);
    }
    Ok(changes)
}

/// The name of a section's file, and what changes in it.
fn change(section: &[u8]) -> (String, Vec<Vec<u8>>) {
    let mut lines = section.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let first = String::from_utf8_lossy(first.strip_prefix(b"diff --git a/").unwrap_or(first)).into_owned();
    // `x b/x`: the name twice, unless it is quoted.
    let half =
        first.get(..first.len().saturating_sub(3) / 2).filter(|half| first == format!("{half} b/{half}"));
    let name = half.map_or(first.clone(), str::to_string);
    let mut found: Vec<Vec<u8>> = Vec::new();
    let (mut ids, mut in_hunks) = (None, false);
    for line in lines {
        if line.starts_with(b"@@ ") {
            in_hunks = true;
        } else if in_hunks {
            // Context of none: every line is one that goes or comes, or says that the last one has no end.
            found.extend((!line.is_empty()).then(|| line.to_vec()));
        } else if line.starts_with(b"index ") {
            ids = Some(line.to_vec());
        } else if !line.is_empty() && !line.starts_with(b"--- ") && !line.starts_with(b"+++ ") {
            found.push(line.to_vec());
        }
    }
    // What has no lines is told by its objects.
    if !in_hunks {
        found.extend(ids);
    }
    found.sort();
    (name, found)
}

fn shown(name: &[u8]) -> String {
    fernery_core::names::showable(&String::from_utf8_lossy(name))
}

pub fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_its_lines_wherever_they_are_and_an_object_where_there_are_none() {
        let at = |place: &str| {
            format!(
                "diff --git a/a b.txt b/a b.txt\nindex {place}1..2 100644\n--- a/a b.txt\n+++ b/a b.txt\n@@ -{place} +1 @@\n-x\n+y\n\\ No newline\n"
            )
        };
        let (name, lines) = change(at("7").as_bytes());
        assert_eq!(name, "a b.txt");
        assert_eq!((name, lines), change(at("9").as_bytes()));
        let binary = |id: &str| {
            format!(
                "diff --git a/b b/b\nnew file mode 100644\nindex {id}\nBinary files /dev/null and b/b differ\n"
            )
        };
        assert_ne!(change(binary("1..2").as_bytes()), change(binary("1..3").as_bytes()));
        assert_ne!(
            change(binary("1..2").as_bytes()).1,
            change(b"diff --git a/b b/b\nold mode 1\nnew mode 2\n").1
        );
    }
}
