//! The operator's repository: its object folders and the head of its base branch. It is only read, except for the one
//! branch that a passed run adds ([`super::applied_patch`]) and for a patch that an operator lands ([`super::landing`]).

use super::call::{Git, GitError};
use std::fs;
use std::path::{Path, PathBuf};

/// How deep repositories may borrow from each other; the same limit as git's.
const BORROWED_DEPTH_MAX: usize = 5;

/// A repository of the operator's.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Its git directory; for a linked work tree, the common one.
    pub dir: PathBuf,
    /// Its object folders: its own first, then those that it borrows from.
    pub objects: Vec<PathBuf>,
    /// The commits where a shallow history ends, as git stores them.
    pub shallow: Option<Vec<u8>>,
}

impl Repository {
    /// Opens a work tree or a bare repository.
    pub fn open(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let path =
            path.canonicalize().map_err(|error| format!("there is no repository at {shown}: {error}"))?;
        let dir = git_dir(&path)
            .ok_or_else(|| format!("{shown} is not a git repository; create one with `git init`"))?;
        let config = fs::read_to_string(dir.join("config")).unwrap_or_default();
        let says = |key: &str| config.lines().any(|line| line.trim().to_ascii_lowercase().starts_with(key));
        if says("objectformat") && config.to_ascii_lowercase().contains("sha256") {
            return Err(format!("{shown} does not use SHA-1 objects; other formats are not supported"));
        }
        if says("partialclone") || says("promisor") {
            return Err(format!("{shown} is a partial clone; make a full clone"));
        }
        let mut objects = Vec::new();
        borrowed(&dir.join("objects"), 0, &mut objects)?;
        Ok(Self { shallow: fs::read(dir.join("shallow")).ok(), dir, objects })
    }

    /// git calls on it.
    pub fn git(&self) -> Git {
        Git::at(&self.dir)
    }

    /// git calls that write in it: with the owner and the modes that its objects have, and on disk before they answer.
    pub fn writing(&self) -> Git {
        let git = self.git().settings(vec!["core.fsync=objects,reference".into()]);
        git.writing_in(self.objects.first().unwrap_or(&self.dir))
    }

    /// Takes over a commit of a git directory of ours, with everything that these commits here do not have.
    pub(super) async fn receive(&self, ours: &Git, commit: &str, known: &[&str]) -> Result<(), GitError> {
        let mut wanted = format!("{commit}\n");
        known.iter().for_each(|known| wanted.push_str(&format!("^{known}\n")));
        let pack = ["pack-objects", "--revs", "--stdout", "-q", "--thin"];
        let pack = ours.call(&pack, wanted.as_bytes()).await?;
        self.writing().call(&["unpack-objects", "-q", "--strict"], &pack).await.map(drop)
    }

    /// What a branch points to; `None`: there is no such branch.
    pub async fn branch(&self, name: &str) -> Result<Option<String>, GitError> {
        match self
            .git()
            .line(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit_of(name)])
            .await
        {
            Ok(id) => Ok(Some(id)),
            Err(GitError::Refused { said, .. }) if said.is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a working tree of it has this branch checked out.
    pub fn is_checked_out(&self, name: &str) -> bool {
        let linked = fs::read_dir(self.dir.join("worktrees")).into_iter().flatten().flatten();
        let heads = linked.map(|one| one.path().join("HEAD")).chain([self.dir.join("HEAD")]);
        let wanted = format!("ref: refs/heads/{name}");
        heads.into_iter().any(|head| fs::read_to_string(head).is_ok_and(|text| text.trim_end() == wanted))
    }

    /// Whether a commit is there.
    pub async fn has_commit(&self, id: &str) -> Result<bool, GitError> {
        match self.git().line(&["cat-file", "-t", id]).await {
            Ok(kind) => Ok(kind == "commit"),
            Err(GitError::Refused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn commit_of(branch: &str) -> String {
    format!("refs/heads/{branch}^{{commit}}")
}

fn git_dir(path: &Path) -> Option<PathBuf> {
    let is_one = |dir: &Path| dir.join("HEAD").is_file() && dir.join("objects").is_dir();
    let inside = path.join(".git");
    if inside.is_dir() && is_one(&inside) {
        return Some(inside);
    }
    if let Ok(text) = fs::read_to_string(&inside) {
        // A linked work tree points to its own part, and that to the common directory.
        let own = path.join(text.strip_prefix("gitdir: ")?.trim_end());
        let shared = fs::read_to_string(own.join("commondir")).ok();
        let dir = shared.map_or(own.clone(), |shared| own.join(shared.trim_end()));
        return dir.canonicalize().ok().filter(|dir| is_one(dir));
    }
    is_one(path).then(|| path.to_owned())
}

/// Its object folder, and those that it borrows from.
fn borrowed(objects: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let shown = objects.display();
    let objects = objects.canonicalize().map_err(|error| format!("no objects at {shown}: {error}"))?;
    if found.contains(&objects) || depth > BORROWED_DEPTH_MAX {
        return Ok(());
    }
    // git reads one path in a line.
    if objects.as_os_str().as_encoded_bytes().iter().any(|b| matches!(b, b'\n' | b'"' | b'#')) {
        return Err(format!("{shown}: a path with a line break, # or \" cannot be shared with a clone"));
    }
    found.push(objects.clone());
    let lines = fs::read_to_string(objects.join("info/alternates")).unwrap_or_default();
    for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        borrowed(&objects.join(line), depth + 1, found)?;
    }
    Ok(())
}

/// Whether a name can be a branch of ours: short, plain, and without meaning to git or a shell.
pub fn is_branch_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-');
    let part = |part: &str| {
        !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with('.') && !part.ends_with(".lock")
    };
    name.len() <= 200 && name.bytes().all(plain) && !name.contains("..") && name.split('/').all(part)
}

/// Whether this is the full id of an object.
pub fn is_object_id(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
