//! What an attempt at rework starts from: the files of its base with the patch of an earlier attempt. Where the base has moved,
//! the two are merged, and what git cannot merge is left to the agent, between conflict markers.

use super::applied_patch::{AppliedPatch, NotApplied};
use super::call::{Git, GitError};
use super::clone::Clone;
use super::repository::{Repository, is_object_id};
use fernery_core::patch;
use fernery_core::pipeline::rework::{EARLIER, EarlierPatch, Start, TIP};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How a clone was made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) start: Start,
    /// The tree of its files, if that is not the base's.
    pub(crate) tree: Option<String>,
}

impl Started {
    pub(crate) fn at_base() -> Self {
        Self { start: Start::Base, tree: None }
    }

    fn without(why: impl ToString) -> Self {
        Self { start: Start::Without(why.to_string()), tree: None }
    }
}

/// Brings the candidate into a clone. Its git directories know nothing of it: to them these are changes of the files, so the
/// patch that is taken later is the whole one. An error says nothing about the candidate: try again.
pub(crate) async fn start_from(
    clone: &Clone,
    repository: &Repository,
    candidate: &EarlierPatch,
) -> Result<Started, String> {
    let Ok(read) = patch::read(&candidate.patch) else { return Ok(Started::without("it cannot be read")) };
    let known = is_object_id(&candidate.base_sha)
        && repository.has_commit(&candidate.base_sha).await.map_err(|error| error.to_string())?;
    if !known {
        return Ok(Started::without(format!(
            "commit {}, which they were made for, is gone",
            candidate.base_sha
        )));
    }
    // Beside the clone, where the agent does not see it; it is needed until the patch is taken.
    let dir = clone.trusted.with_file_name("candidate.git");
    let made = AppliedPatch::make(&dir, repository, &candidate.base_sha, (&candidate.patch, &read)).await;
    let applied = match made {
        Ok(applied) => applied,
        Err(NotApplied::Unfit(why)) => return Ok(Started::without(why)),
        Err(NotApplied::Trouble(why)) => return Err(why),
    };
    let (start, tree) = match candidate.base_sha == clone.base {
        true => (Start::Candidate, applied.tree.clone()),
        false => match merged(&dir, (&candidate.base_sha, &clone.base), &applied.tree).await {
            Ok(merged) => merged,
            // A git that is too old to merge trees says how it is used.
            Err(GitError::Refused { code: Some(129), .. }) => {
                return Ok(Started::without(
                    "the base has moved, and this git cannot merge trees: it is older than 2.38",
                ));
            }
            Err(error) => return Err(error.to_string()),
        },
    };
    borrow(&clone.trusted, &applied.objects()).map_err(|error| error.to_string())?;
    check_out(clone, &tree).await?;
    Ok(Started { start, tree: Some(tree) })
}

/// The tree of both: `to` has what happened to `from`, and so has the candidate.
async fn merged(dir: &Path, (from, to): (&str, &str), candidate: &str) -> Result<(Start, String), GitError> {
    let git = Git::at(dir);
    // Commits that have only what matters in common: the base may have been rewritten since.
    let root = commit(&git, &format!("{from}^{{tree}}"), None).await?;
    for (name, tree) in [(TIP, format!("{to}^{{tree}}")), (EARLIER, candidate.to_string())] {
        let of = commit(&git, &tree, Some(&root)).await?;
        git.call(&["update-ref", "--no-deref", &format!("refs/heads/{name}"), &of], b"").await?;
    }
    let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", TIP, EARLIER];
    let (clean, output) = git.asked(&args).await?;
    let mut parts = output.split(|b| *b == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    let tree = parts.next().filter(|tree| is_object_id(tree));
    let tree = tree.ok_or_else(|| GitError::Ended("git merge-tree names no tree".into()))?;
    let mut files: Vec<String> = parts.filter(|name| !name.is_empty()).collect();
    files.sort();
    files.dedup();
    Ok((if clean { Start::Merged } else { Start::Conflicts(files) }, tree))
}

/// A commit that never leaves this git directory.
async fn commit(git: &Git, tree: &str, parent: Option<&str>) -> Result<String, GitError> {
    let tree = git.line(&["rev-parse", "--verify", "--end-of-options", tree]).await?;
    let mut args = vec!["-c", "commit.gpgSign=false", "commit-tree", &tree, "-m", "x"];
    args.extend(parent.into_iter().flat_map(|parent| ["-p", parent]));
    let who = [("NAME", "fernery"), ("EMAIL", "fernery@localhost"), ("DATE", "@0 +0000")];
    let env: Vec<(String, &str)> = ["AUTHOR", "COMMITTER"]
        .iter()
        .flat_map(|role| who.iter().map(move |(what, value)| (format!("GIT_{role}_{what}"), *value)))
        .collect();
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let id = git.call_with(&args, b"", &env).await?;
    Ok(String::from_utf8_lossy(&id).trim_end().to_string())
}

/// Lets a git directory of ours read the objects in this folder.
fn borrow(dir: &Path, objects: &Path) -> io::Result<()> {
    let mut alternates = OpenOptions::new().append(true).open(dir.join("objects/info/alternates"))?;
    alternates.write_all(objects.as_os_str().as_bytes())?;
    alternates.write_all(b"\n")
}

/// Gives the files of a clone the state of this tree. Its index stays that of the base.
async fn check_out(clone: &Clone, tree: &str) -> Result<(), String> {
    let index = clone.trusted.join("start.index");
    fs::copy(clone.trusted.join("index"), &index).map_err(|error| error.to_string())?;
    let git = clone.git().index(&index);
    git.call(&["read-tree", "-u", "--reset", tree], b"").await.map_err(|error| error.to_string())?;
    let _ = fs::remove_file(&index);
    Ok(())
}
