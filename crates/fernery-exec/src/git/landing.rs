//! Lands a commit on a branch of the operator's repository: its objects come over, and the branch moves from the commit
//! that was read to this one, or not at all. It is never forced, and no hook runs.

use super::call::{Git, GitError};
use super::repository::Repository;

/// A branch that is to move.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    pub branch: &'a str,
    /// Where it is.
    pub from: &'a str,
    /// Where it shall be: this commit is on top of `from`.
    pub to: &'a str,
    /// The word in the branch's log.
    pub why: &'a str,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The branch has the commit: by this call, or it had it before.
    Yes,
    /// The branch is somewhere else by now; `None`: it is gone.
    Elsewhere(Option<String>),
}

/// Whether a branch points to another ref; then it cannot be moved by itself.
pub async fn is_symbolic(repository: &Repository, branch: &str) -> Result<bool, GitError> {
    repository.git().asks(&["symbolic-ref", "-q", &format!("refs/heads/{branch}")]).await
}

/// Whether the branch has this commit; `false` also where the commit is not in the repository.
pub async fn has(repository: &Repository, branch: &str, commit: &str) -> Result<bool, GitError> {
    let Some(tip) = repository.branch(branch).await? else { return Ok(false) };
    if tip == commit {
        return Ok(true);
    }
    Ok(repository.has_commit(commit).await?
        && repository.git().asks(&["merge-base", "--is-ancestor", commit, &tip]).await?)
}

/// Brings the commit over; nothing refers to it yet.
pub async fn bring(repository: &Repository, ours: &Git, of: Move<'_>) -> Result<(), GitError> {
    repository.receive(ours, of.to, &[of.from]).await
}

/// Moves the branch, if it is still where it was read.
pub async fn advance(repository: &Repository, of: Move<'_>) -> Result<Moved, GitError> {
    let reference = format!("refs/heads/{}", of.branch);
    let args = ["update-ref", "--no-deref", "-m", of.why, &reference, of.to, of.from];
    let who = [("GIT_COMMITTER_NAME", "fernery"), ("GIT_COMMITTER_EMAIL", "fernery@localhost")];
    match repository.writing().call_with(&args, b"", &who).await {
        Ok(_) => Ok(Moved::Yes),
        // Somebody else was faster, or an earlier call of ours has done it.
        Err(error) => {
            if has(repository, of.branch, of.to).await? {
                return Ok(Moved::Yes);
            }
            match repository.branch(of.branch).await? {
                Some(tip) if tip == of.from => Err(error),
                tip => Ok(Moved::Elsewhere(tip)),
            }
        }
    }
}
