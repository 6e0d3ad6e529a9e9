//! The branch of a ticket: one, which moves forward with every attempt that passes. Where somebody else has touched it, it is
//! left alone, and the patch gets a branch of a new name.

use super::applied_patch::{AppliedPatch, Saying};
use super::call::{Git, GitError};
use super::repository::{Repository, is_branch_name, is_object_id};

/// Where an earlier run of a ticket left its branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierBranch {
    pub name: String,
    pub commit: String,
}

impl EarlierBranch {
    /// Reads what the evidence of a run says: `NAME at COMMIT`. `of` is the name that a ticket's branch begins with.
    pub fn parse(said: &str, of: &str) -> Option<Self> {
        let (name, commit) = said.lines().next()?.split_once(" at ")?;
        let number = name.strip_prefix(of)?;
        let ours = number.is_empty()
            || number
                .strip_prefix('-')
                .is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty());
        (ours && is_branch_name(name) && is_object_id(commit))
            .then(|| Self { name: name.to_string(), commit: commit.to_string() })
    }
}

/// A patch as a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub branch: String,
    pub commit: String,
    /// The commit of an earlier attempt that it is on top of.
    pub on_earlier: Option<String>,
    /// Why it is not the branch of the earlier run.
    pub why_new: Option<String>,
}

impl AppliedPatch {
    /// Makes the branch of a patch, or moves it forward by a commit on top of the earlier one. Whoever died after this finds
    /// the same commit there.
    pub async fn publish(
        &self,
        repository: &Repository,
        saying: &Saying<'_>,
        (branch, earlier): (&str, Option<&EarlierBranch>),
    ) -> Result<Published, GitError> {
        let mut why_new = None;
        if let Some(EarlierBranch { name, commit: old }) = earlier {
            if repository.has_commit(old).await? {
                let commit = self.commit_after(saying, old).await?;
                match self.forward(repository, name, (old, &commit)).await? {
                    None => {
                        let (branch, on_earlier) = (name.clone(), Some(old.clone()));
                        return Ok(Published { branch, commit, on_earlier, why_new: None });
                    }
                    Some(why) => why_new = Some(why),
                }
            } else {
                why_new = Some(format!("commit {old} of {name} is gone"));
            }
        }
        let commit = self.commit(saying).await?;
        let branch = self.bring(repository, &commit, branch).await?;
        // The name of a branch that was deleted is free again.
        let is_same = earlier.is_some_and(|earlier| earlier.name == branch);
        Ok(Published { branch, commit, on_earlier: None, why_new: why_new.filter(|_| !is_same) })
    }

    /// The commit on top of an earlier one of this ticket.
    async fn commit_after(&self, saying: &Saying<'_>, old: &str) -> Result<String, GitError> {
        let has_base = ["merge-base", "--is-ancestor", &self.base, old];
        match Git::at(&self.dir).asks(&has_base).await? {
            true => self.commit_on(saying, &[old]).await,
            // The base has moved: it is a parent too, so that a merge sees what is in it already.
            false => self.commit_on(saying, &[old, &self.base]).await,
        }
    }

    /// Moves a branch from `old` to `new`, if nobody else has touched it; answers why not.
    async fn forward(
        &self,
        repository: &Repository,
        name: &str,
        (old, new): (&str, &str),
    ) -> Result<Option<String>, GitError> {
        match repository.branch(name).await? {
            Some(there) if there == new => return Ok(None),
            Some(there) if there == old && repository.is_checked_out(name) => {
                return Ok(Some(format!("{name} is checked out in a working tree, and stays as it is")));
            }
            Some(there) if there == old => {}
            Some(_) => return Ok(Some(format!("{name} has commits of somebody else, and stays as it is"))),
            None => return Ok(Some(format!("{name} was deleted"))),
        }
        repository.receive(&Git::at(&self.dir), new, &[&self.base, old]).await?;
        let reference = format!("refs/heads/{name}");
        match repository.writing().call(&["update-ref", "--no-deref", &reference, new, old], b"").await {
            Ok(_) => Ok(None),
            // Somebody was faster, perhaps with the same commit.
            Err(error) => match repository.branch(name).await? {
                Some(there) if there == new => Ok(None),
                Some(there) if there == old => Err(error),
                _ => Ok(Some(format!("{name} was touched by somebody else just now, and stays as it is"))),
            },
        }
    }

    /// Takes back what [`AppliedPatch::publish`] did with this very patch: the branch goes back to its earlier commit, or is
    /// deleted if it was new.
    pub async fn unpublish(
        &self,
        repository: &Repository,
        saying: &Saying<'_>,
        (branch, earlier): (&str, Option<&EarlierBranch>),
    ) -> Result<(), GitError> {
        if let Some(EarlierBranch { name, commit: old }) = earlier
            && repository.has_commit(old).await?
        {
            let forward = self.commit_after(saying, old).await?;
            if repository.branch(name).await?.as_deref() == Some(&forward) {
                let reference = format!("refs/heads/{name}");
                return repository
                    .writing()
                    .call(&["update-ref", "--no-deref", &reference, old, &forward], b"")
                    .await
                    .map(drop);
            }
        }
        let commit = self.commit(saying).await?;
        self.withdraw(repository, &commit, branch).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_branch_of_this_ticket_is_moved_forward() {
        let commit = "a".repeat(40);
        let of = |said: &str| EarlierBranch::parse(said, "azolla/T-1").map(|earlier| earlier.name);
        assert_eq!(of(&format!("azolla/T-1 at {commit}")).as_deref(), Some("azolla/T-1"));
        assert_eq!(of(&format!("azolla/T-1-2 at {commit}\nnote: x")).as_deref(), Some("azolla/T-1-2"));
        for said in [
            format!("main at {commit}"),
            format!("azolla/T-1-x at {commit}"),
            format!("azolla/T-12 at {commit}"),
            "azolla/T-1 at main".to_string(),
            String::new(),
        ] {
            assert_eq!(of(&said), None, "{said}");
        }
    }
}
