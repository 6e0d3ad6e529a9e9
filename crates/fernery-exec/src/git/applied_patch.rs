//! A patch on its base commit, in a git directory of our own: git applies it, the result is compared with what the
//! patch says, it becomes a reproducible commit, and that becomes one new branch in the operator's repository.

use super::call::{Git, GitError};
use super::ground::Ground;
use super::repository::Repository;
use super::take_patch::{DIFF, sections};
use fernery_core::Timestamp;
use fernery_core::patch::{Mode, Patch};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The null object id.
const NOTHING: &str = "0000000000000000000000000000000000000000";
/// Branch names tried for one objective before an operator has to clean up.
const BRANCHES_MAX: usize = 100;

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotApplied {
    /// The patch is at fault: this is a verdict.
    Unfit(String),
    /// The environment is at fault: this says nothing about the patch.
    Trouble(String),
}

impl NotApplied {
    fn trouble(error: impl ToString) -> Self {
        Self::Trouble(error.to_string())
    }
}

#[derive(Clone, Debug)]
pub struct AppliedPatch {
    /// Our git directory, with the objects that the patch adds.
    pub(super) dir: PathBuf,
    /// The commit that it is for.
    pub(super) base: String,
    /// The tree after the patch.
    pub tree: String,
}

/// The metadata of a commit.
#[derive(Clone, Debug)]
pub struct Saying<'a> {
    pub message: &'a str,
    /// Who wrote it: letters, digits, `-` and `_`.
    pub author: &'a str,
    /// When that began.
    pub authored_at: Timestamp,
    pub committed_at: Timestamp,
}

impl AppliedPatch {
    /// Applies a patch to the tree of `base`; writes only objects in `dir`.
    pub async fn make(
        dir: &Path,
        repository: &Repository,
        base: &str,
        (text, patch): (&str, &Patch),
    ) -> Result<Self, NotApplied> {
        fresh(dir).map_err(NotApplied::trouble)?;
        Ground { dir, repository, more_objects: &[], branch: None }.make().map_err(NotApplied::trouble)?;
        let git = Git::at(dir).index(&dir.join("patch.index"));
        git.call(&["read-tree", base], b"").await.map_err(NotApplied::trouble)?;
        let apply = ["apply", "--cached", "--whitespace=nowarn", "-"];
        git.call(&apply, text.as_bytes()).await.map_err(|error| match error {
            // git exits with 1 if the patch does not apply; any other code is a problem of the environment.
            GitError::Refused { said, code: Some(1), .. } => {
                NotApplied::Unfit(format!("it does not apply to its base: {said}"))
            }
            other => NotApplied::trouble(other),
        })?;
        let tree = git.line(&["write-tree"]).await.map_err(NotApplied::trouble)?;
        let raw = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--end-of-options", base, &tree];
        let raw = git.call(&raw, b"").await.map_err(NotApplied::trouble)?;
        // Catches a hunk that matched elsewhere, a delta with another result, and a mode that git read differently.
        if done(&raw).as_ref() != Some(&said(patch)) {
            return Err(NotApplied::Unfit("what it makes of its base is not what it says".into()));
        }
        let mut again = DIFF.to_vec();
        again.extend([base, &tree]);
        let again = git.call(&again, b"").await.map_err(NotApplied::trouble)?;
        if !is_written_so(text.as_bytes(), &again) {
            let why = "it is not written as git writes what it does: the places of its hunks are others";
            return Err(NotApplied::Unfit(why.into()));
        }
        Ok(Self { dir: dir.to_owned(), base: base.to_string(), tree })
    }

    /// The tree of a merge in the same git directory, on top of `base`.
    pub fn merged(&self, base: &str, tree: &str) -> Self {
        Self { dir: self.dir.clone(), base: base.to_string(), tree: tree.to_string() }
    }

    /// git calls on its git directory.
    pub fn git(&self) -> Git {
        Git::at(&self.dir)
    }

    /// Where its objects are.
    pub fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    /// The patched tree with these paths as in the base: changes to them are undone, added ones removed, deleted ones
    /// restored.
    pub async fn tree_keeping(&self, paths: &[String]) -> Result<String, GitError> {
        let kept: BTreeSet<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
        let git = Git::at(&self.dir).index(&self.dir.join("kept.index"));
        git.call(&["read-tree", &self.tree], b"").await?;
        let back =
            ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--end-of-options", &self.tree, &self.base];
        let back = git.call(&back, b"").await?;
        let changes = raw(&back).ok_or_else(|| GitError::Ended("git wrote no list of changes".into()))?;
        let mut info = Vec::new();
        for change in changes.iter().filter(|change| kept.contains(change.path)) {
            // Mode 000000 removes a path. A folder in the way of a file is removed, and vice versa.
            info.extend_from_slice(format!("{} {}\t", change.modes.1, change.ids.1).as_bytes());
            info.extend_from_slice(change.path);
            info.push(0);
        }
        git.call(&["update-index", "-z", "--index-info"], &info).await?;
        git.line(&["write-tree"]).await
    }

    /// The commit on the base; the same patch with the same metadata always gives the same commit.
    pub async fn commit(&self, saying: &Saying<'_>) -> Result<String, GitError> {
        self.commit_on(saying, &[&self.base]).await
    }

    /// As [`Self::commit`], with these parents beside the base.
    pub async fn commit_with(&self, saying: &Saying<'_>, parents: &[&str]) -> Result<String, GitError> {
        self.commit_on(saying, &[&[self.base.as_str()], parents].concat()).await
    }

    /// As [`Self::commit`], with exactly these parents.
    pub(super) async fn commit_on(&self, saying: &Saying<'_>, parents: &[&str]) -> Result<String, GitError> {
        let date = |at: Timestamp| format!("@{} +0000", at.as_millis().div_euclid(1_000));
        let (authored, committed) = (date(saying.authored_at), date(saying.committed_at));
        let address = format!("{}@localhost", saying.author);
        let env = [
            ("GIT_AUTHOR_NAME", saying.author),
            ("GIT_AUTHOR_EMAIL", address.as_str()),
            ("GIT_AUTHOR_DATE", authored.as_str()),
            ("GIT_COMMITTER_NAME", "fernery"),
            ("GIT_COMMITTER_EMAIL", "fernery@localhost"),
            ("GIT_COMMITTER_DATE", committed.as_str()),
        ];
        let mut args = vec!["-c", "commit.gpgSign=false", "commit-tree", &self.tree];
        parents.iter().for_each(|parent| args.extend(["-p", parent]));
        args.extend(["-F", "-"]);
        let id = Git::at(&self.dir).call_with(&args, saying.message.as_bytes(), &env).await?;
        Ok(String::from_utf8_lossy(&id).trim_end().to_string())
    }

    /// Deletes the branch that has this commit, and no other.
    pub async fn withdraw(
        &self,
        repository: &Repository,
        commit: &str,
        branch: &str,
    ) -> Result<(), GitError> {
        for n in 1..=BRANCHES_MAX {
            let name = numbered(branch, n);
            match repository.branch(&name).await? {
                None => return Ok(()),
                Some(there) if there == commit => {
                    let reference = format!("refs/heads/{name}");
                    repository
                        .writing()
                        .call(&["update-ref", "--no-deref", "-d", &reference, commit], b"")
                        .await?;
                    return Ok(());
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Brings the commit into the repository as a new branch; answers its name. A branch of that name with this commit
    /// is reused; with another commit, the next name is tried. No other ref is touched.
    pub async fn bring(
        &self,
        repository: &Repository,
        commit: &str,
        branch: &str,
    ) -> Result<String, GitError> {
        repository.receive(&Git::at(&self.dir), commit, &[&self.base]).await?;
        let theirs = repository.writing();
        for n in 1..=BRANCHES_MAX {
            let name = numbered(branch, n);
            match repository.branch(&name).await? {
                Some(there) if there == commit => return Ok(name),
                Some(_) => continue,
                None => {}
            }
            let reference = format!("refs/heads/{name}");
            match theirs.call(&["update-ref", "--no-deref", &reference, commit, NOTHING], b"").await {
                Ok(_) => return Ok(name),
                // Another process was faster, perhaps with the same commit.
                Err(error) => match repository.branch(&name).await? {
                    Some(there) if there == commit => return Ok(name),
                    Some(_) => {}
                    None => return Err(error),
                },
            }
        }
        Err(GitError::Ended(format!(
            "{branch} and {} more branches of that name exist; delete some",
            BRANCHES_MAX - 1
        )))
    }
}

fn numbered(branch: &str, n: usize) -> String {
    if n == 1 { branch.to_string() } else { format!("{branch}-{n}") }
}

/// Whether two patches of the same change look the same, so that a reader sees hunks where they really apply. How
/// binary data is packed differs between versions of git and does not matter.
fn is_written_so(given: &[u8], again: &[u8]) -> bool {
    let (given, again) = (sections(given), sections(again));
    let packed = |file: &[u8]| file.windows(PACKED.len()).any(|window| window == PACKED);
    given.len() == again.len()
        && given.iter().zip(&again).all(|(given, again)| given == again || packed(given))
}

/// The line before packed binary data; lines of text always have a prefix.
const PACKED: &[u8] = b"\nGIT binary patch\n";

/// Makes the folder empty: a previous owner that was killed may have left files.
fn fresh(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(dir),
    }
}

/// Mode and object of a file on one side; `None`: it is not there.
type Side = Option<(&'static str, String)>;
type Changes = BTreeMap<Vec<u8>, (Side, Side)>;

/// The changes according to the patch.
fn said(patch: &Patch) -> Changes {
    let mut changes = Changes::new();
    for file in &patch.files {
        let (old, new) = file.ids.clone().unwrap_or_default();
        let before = file.before.map(|of| (mode(of), old));
        let after = file.after.map(|of| (mode(of), new));
        // A file that becomes a link, or vice versa, is a deletion and an addition.
        let change = changes.entry(file.path.as_bytes().to_vec()).or_default();
        if before.is_some() {
            change.0 = before;
        }
        change.1 = after.or(change.1.take());
    }
    changes
}

/// One line of `git diff-tree --raw`: what a path was, and what it is.
struct RawChange<'a> {
    path: &'a [u8],
    modes: (&'a str, &'a str),
    ids: (&'a str, &'a str),
}

fn raw(output: &[u8]) -> Option<Vec<RawChange<'_>>> {
    let mut changes = Vec::new();
    let mut fields = output.split(|b| *b == 0).filter(|field| !field.is_empty());
    while let Some(field) = fields.next() {
        let mut words = std::str::from_utf8(field).ok()?.strip_prefix(':')?.split(' ');
        let mut word = || words.next();
        let (modes, ids) = ((word()?, word()?), (word()?, word()?));
        changes.push(RawChange { path: fields.next()?, modes, ids });
    }
    Some(changes)
}

/// The changes according to git. As in a patch, an unchanged object has no id.
fn done(output: &[u8]) -> Option<Changes> {
    let mut changes = Changes::new();
    for RawChange { path, modes: (old_mode, new_mode), ids: (old, new) } in raw(output)? {
        let kept = old == new;
        let side = |mode: &str, id: &str| -> Option<Side> {
            let id = if kept { String::new() } else { id.to_string() };
            Some(match mode {
                "000000" => None,
                "100644" => Some(("100644", id)),
                "100755" => Some(("100755", id)),
                "120000" => Some(("120000", id)),
                _ => return None,
            })
        };
        changes.insert(path.to_vec(), (side(old_mode, old)?, side(new_mode, new)?));
    }
    Some(changes)
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::File => "100644",
        Mode::Executable => "100755",
        Mode::Symlink => "120000",
    }
}
