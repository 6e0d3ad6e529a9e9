//! A private clone for one run: the files of the base commit, a git directory that the agent may change freely, and a
//! second one that only we use. Only the files themselves are copied.

use super::call::{Git, GitError};
use super::ground::Ground;
use super::repository::Repository;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A clone in a folder of its own.
#[derive(Clone, Debug)]
pub struct Clone {
    /// The files, with the agent's git directory among them.
    pub tree: PathBuf,
    /// Our git directory, which the agent cannot reach.
    pub trusted: PathBuf,
    /// The commit that the files are of.
    pub base: String,
}

/// Why there is no clone.
#[derive(Debug)]
pub enum NoClone {
    /// A folder could not be made.
    Folder(io::Error),
    /// git could not check it out.
    Git(GitError),
}

impl std::fmt::Display for NoClone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Folder(error) => write!(f, "no folder for a clone: {error}"),
            Self::Git(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for NoClone {
    fn from(error: io::Error) -> Self {
        Self::Folder(error)
    }
}

impl From<GitError> for NoClone {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

impl Clone {
    /// The clone that an earlier run made in this folder.
    pub fn left_in(folder: &Path, base: &str) -> Self {
        Self { tree: folder.join("tree"), trusted: folder.join("trusted.git"), base: base.to_string() }
    }

    /// Makes a clone in `folder`, on `branch`, with the files of `of` (a commit or a tree) on top of `base`.
    pub async fn make(
        folder: &Path,
        repository: &Repository,
        (base, of): (&str, &str),
        branch: &str,
        more_objects: &[PathBuf],
    ) -> Result<Self, NoClone> {
        let clone = Self::left_in(folder, base);
        fs::create_dir_all(&clone.tree)?;
        Ground { dir: &clone.trusted, repository, more_objects, branch: None }.make()?;
        clone.git().call(&["read-tree", "-u", "--reset", of], b"").await?;
        let own = clone.tree.join(".git");
        Ground { dir: &own, repository, more_objects, branch: Some((branch, base)) }.make()?;
        fs::copy(clone.trusted.join("index"), own.join("index"))?;
        Ok(clone)
    }

    /// git calls with our git directory on its files.
    pub fn git(&self) -> Git {
        Git::at(&self.trusted).tree(&self.tree)
    }
}
