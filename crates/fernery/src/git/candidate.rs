//! A patch on the base that it was made for, in a place of our own: applied by git, checked against what it says it does,
//! made a commit that is the same whenever it is made again, and brought into the operator's repository as one new branch.

use super::call::{Git, GitError};
use super::capture::{DIFF, sections};
use super::ground::Ground;
use super::repository::Repository;
use fernery_core::Timestamp;
use fernery_core::patch::{Mode, Patch};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An id that stands for nothing.
const NOTHING: &str = "0000000000000000000000000000000000000000";
/// Branches of one objective that are tried before somebody has to clear up.
const BRANCHES_MAX: usize = 100;

/// Why there is no candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoCandidate {
    /// By the patch: it is a verdict.
    Unfit(String),
    /// By what is around it: it says nothing about the patch.
    Trouble(String),
}

impl NoCandidate {
    fn trouble(error: impl ToString) -> Self {
        Self::Trouble(error.to_string())
    }
}

/// A patch that applies.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Our git directory, which has the objects that the patch brings.
    dir: PathBuf,
    /// The commit that it is for.
    base: String,
    /// What it makes of that commit's tree.
    pub(crate) tree: String,
}

/// What a commit says beside its tree.
#[derive(Clone, Debug)]
pub(crate) struct Saying<'a> {
    /// The message.
    pub(crate) message: &'a str,
    /// Who wrote it: letters, digits, `-` and `_`.
    pub(crate) author: &'a str,
    /// When that began.
    pub(crate) authored_at: Timestamp,
    /// When it was taken.
    pub(crate) committed_at: Timestamp,
}

impl Candidate {
    /// Applies a patch to the tree of `base`, without any file being written but objects in `dir`.
    pub(crate) async fn make(
        dir: &Path,
        repository: &Repository,
        base: &str,
        (text, patch): (&str, &Patch),
    ) -> Result<Self, NoCandidate> {
        fresh(dir).map_err(NoCandidate::trouble)?;
        Ground { dir, repository, more_objects: &[], branch: None }.make().map_err(NoCandidate::trouble)?;
        let git = Git::at(dir).index(&dir.join("candidate.index"));
        git.call(&["read-tree", base], b"").await.map_err(NoCandidate::trouble)?;
        let apply = ["apply", "--cached", "--whitespace=nowarn", "-"];
        git.call(&apply, text.as_bytes()).await.map_err(|error| match error {
            // What does not apply is 1; anything else is about what is around it.
            GitError::Refused { said, code: Some(1), .. } => {
                NoCandidate::Unfit(format!("it does not apply to its base: {said}"))
            }
            other => NoCandidate::trouble(other),
        })?;
        let tree = git.line(&["write-tree"]).await.map_err(NoCandidate::trouble)?;
        let raw = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--end-of-options", base, &tree];
        let raw = git.call(&raw, b"").await.map_err(NoCandidate::trouble)?;
        // A hunk that found another place, a delta that makes something else, a mode that git read in its own way: all
        // end here.
        if done(&raw).as_ref() != Some(&said(patch)) {
            return Err(NoCandidate::Unfit("what it makes of its base is not what it says".into()));
        }
        let mut again = DIFF.to_vec();
        again.extend([base, &tree]);
        let again = git.call(&again, b"").await.map_err(NoCandidate::trouble)?;
        if !is_written_so(text.as_bytes(), &again) {
            let why = "it is not written as git writes what it does: the places of its hunks are others";
            return Err(NoCandidate::Unfit(why.into()));
        }
        Ok(Self { dir: dir.to_owned(), base: base.to_string(), tree })
    }

    /// Where its objects are.
    pub(crate) fn objects(&self) -> PathBuf {
        self.dir.join("objects")
    }

    /// The commit: of one patch always the same.
    pub(crate) async fn commit(&self, saying: &Saying<'_>) -> Result<String, GitError> {
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
        let args = ["-c", "commit.gpgSign=false", "commit-tree", &self.tree, "-p", &self.base, "-F", "-"];
        let id = Git::at(&self.dir).call_with(&args, saying.message.as_bytes(), &env).await?;
        Ok(String::from_utf8_lossy(&id).trim_end().to_string())
    }

    /// Deletes the branch that has this commit, and no other.
    pub(crate) async fn withdraw(
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
                        .git()
                        .call(&["update-ref", "--no-deref", "-d", &reference, commit], b"")
                        .await?;
                    return Ok(());
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Brings the commit into the repository as a new branch; answers its name. One that is there with this commit is it;
    /// with another, the next name is tried. No other ref is touched.
    pub(crate) async fn bring(
        &self,
        repository: &Repository,
        commit: &str,
        branch: &str,
    ) -> Result<String, GitError> {
        let ours = Git::at(&self.dir);
        let wanted = format!("{commit}\n^{}\n", self.base);
        let pack =
            ours.call(&["pack-objects", "--revs", "--stdout", "-q", "--thin"], wanted.as_bytes()).await?;
        let theirs = repository.git();
        theirs.call(&["unpack-objects", "-q", "--strict"], &pack).await?;
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
                // Somebody was faster, perhaps with this very commit.
                Err(error) => match repository.branch(&name).await? {
                    Some(there) if there == commit => return Ok(name),
                    Some(_) => {}
                    None => return Err(error),
                },
            }
        }
        Err(GitError::Ended(format!(
            "{branch} and {} more of that name are there; delete some",
            BRANCHES_MAX - 1
        )))
    }
}

fn numbered(branch: &str, n: usize) -> String {
    if n == 1 { branch.to_string() } else { format!("{branch}-{n}") }
}

/// Whether two patches of the same change show it alike: whoever reads where a hunk stands is not lied to. How bytes are packed
/// differs between versions of git and says nothing to a reader.
fn is_written_so(given: &[u8], again: &[u8]) -> bool {
    let (given, again) = (sections(given), sections(again));
    let packed = |file: &[u8]| file.windows(PACKED.len()).any(|window| window == PACKED);
    given.len() == again.len()
        && given.iter().zip(&again).all(|(given, again)| given == again || packed(given))
}

/// The line before bytes that are packed; in text every line has a mark in front.
const PACKED: &[u8] = b"\nGIT binary patch\n";

/// An empty place: whoever was here before was killed.
fn fresh(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(dir),
    }
}

/// Mode and object of a file on one side; `None`: it is not there.
type Side = Option<(&'static str, String)>;
/// What changes, by path.
type Changes = BTreeMap<Vec<u8>, (Side, Side)>;

/// What the patch says that it does.
fn said(patch: &Patch) -> Changes {
    let mut changes = Changes::new();
    for file in &patch.files {
        let (old, new) = file.ids.clone().unwrap_or_default();
        let before = file.before.map(|of| (mode(of), old));
        let after = file.after.map(|of| (mode(of), new));
        // A file that becomes a link, or the other way round, goes and comes.
        let change = changes.entry(file.path.as_bytes().to_vec()).or_default();
        if before.is_some() {
            change.0 = before;
        }
        change.1 = after.or(change.1.take());
    }
    changes
}

/// What git says that was done. An object that stays has no id here, as in a patch.
fn done(output: &[u8]) -> Option<Changes> {
    let mut changes = Changes::new();
    let mut fields = output.split(|b| *b == 0).filter(|field| !field.is_empty());
    while let Some(field) = fields.next() {
        let mut words = std::str::from_utf8(field).ok()?.strip_prefix(':')?.split(' ');
        let mut word = || words.next();
        let (old_mode, new_mode, old, new) = (word()?, word()?, word()?, word()?);
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
        changes.insert(fields.next()?.to_vec(), (side(old_mode, old)?, side(new_mode, new)?));
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
