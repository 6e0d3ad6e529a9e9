//! The difference between what two patches make of their bases: of the two trees, not of the two texts.

use super::applied_patch::{AppliedPatch, NotApplied};
use super::call::Git;
use super::ground::Ground;
use super::repository::{Repository, is_object_id};
use super::take_patch::DIFF;
use fernery_core::patch;
use std::fs;
use std::path::Path;

/// A patch and the commit that it is for.
#[derive(Clone, Debug)]
pub struct PatchedBase {
    pub base: String,
    /// Empty: nothing was changed.
    pub patch: String,
}

/// What changed from the tree of one to that of the other, as a patch. Works in `dir`, which its caller removes.
pub async fn difference(
    dir: &Path,
    repository: &Repository,
    sides: [&PatchedBase; 2],
) -> Result<String, NotApplied> {
    let trouble = |error: &dyn std::fmt::Display| NotApplied::Trouble(error.to_string());
    let (mut trees, mut objects) = (Vec::new(), Vec::new());
    for (nth, PatchedBase { base, patch: text }) in sides.into_iter().enumerate() {
        let known = is_object_id(base) && repository.has_commit(base).await.map_err(|e| trouble(&e))?;
        if !known {
            return Err(NotApplied::Trouble(format!("commit {base} is not in the repository any more")));
        }
        if text.is_empty() {
            trees.push(format!("{base}^{{tree}}"));
            continue;
        }
        let read = patch::read(text).map_err(|flaw| NotApplied::Unfit(flaw.to_string()))?;
        let place = dir.join(format!("side-{nth}.git"));
        let applied = AppliedPatch::make(&place, repository, base, (text, &read)).await?;
        objects.push(applied.objects());
        trees.push(applied.tree);
    }
    let both = dir.join("both.git");
    Ground { dir: &both, repository, more_objects: &objects, branch: None }
        .make()
        .map_err(|e| trouble(&e))?;
    let mut args = DIFF.to_vec();
    args.extend(trees.iter().map(String::as_str));
    let git = Git::at(&both);
    if let Ok(text) = String::from_utf8(git.call(&args, b"").await.map_err(|e| trouble(&e))?) {
        return Ok(text);
    }
    // Files that are not UTF-8 are written as binary.
    fs::write(both.join("info/attributes"), "* -diff\n").map_err(|e| trouble(&e))?;
    let text = git.call(&args, b"").await.map_err(|e| trouble(&e))?;
    String::from_utf8(text).map_err(|e| trouble(&e))
}
