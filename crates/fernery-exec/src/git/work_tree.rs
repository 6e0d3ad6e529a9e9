//! The working trees of the operator's repository that have a branch checked out, after that branch has moved: one whose own
//! changes are in other files gets the new files, any other is left as it is, with the command to type.
//!
//! Nothing of the repository runs: no hook, no filter, no fsmonitor, no submodule. Where attributes name a filter, files
//! cannot even be compared without running it, so that tree is left alone.

use super::call::{Git, GitError};
use super::merging::short;
use super::repository::Repository;
use fernery_core::names::showable;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a git directory has while somebody is in the middle of something.
const UNDER_WAY: [&str; 6] =
    ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "index.lock"];

/// A working tree after the branch has moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    pub path: PathBuf,
    /// Why it was left alone, and what to type; `None`: it has the new files.
    pub left_alone: Option<(String, String)>,
}

/// Lets every working tree that has the branch checked out follow it from one commit to another. Once more for the same
/// two commits, it finishes what was left or changes nothing.
pub async fn follow(
    repository: &Repository,
    branch: &str,
    (from, to): (&str, &str),
) -> Result<Vec<Followed>, GitError> {
    let listed = repository.git().call(&["worktree", "list", "--porcelain", "-z"], b"").await?;
    let mut followed = Vec::new();
    for path in on_branch(&listed, branch) {
        let Some(dir) = git_dir(&path, repository) else { continue };
        // Comparing may write the index, too: it keeps there what it has seen.
        let git = Git::at(&dir).tree(&path).writing_in(&path);
        let tree = Tree { git, dir, path, repository, branch, from, to };
        // The branch has moved all the same: one tree that git cannot look at keeps no other from following.
        let left_alone = tree.follow().await.unwrap_or_else(|error| {
            Some((format!("git could not look at it: {error}"), tree.command(&BTreeSet::new())))
        });
        followed.push(Followed { path: tree.path, left_alone });
    }
    Ok(followed)
}

/// The folders of working trees on this branch.
fn on_branch(listed: &[u8], branch: &str) -> Vec<PathBuf> {
    let wanted = format!("branch refs/heads/{branch}");
    let (mut found, mut path) = (Vec::new(), None);
    for line in listed.split(|byte| *byte == 0) {
        if let Some(at) = line.strip_prefix(b"worktree ") {
            path = Some(PathBuf::from(OsStr::from_bytes(at)));
        } else if line == wanted.as_bytes() {
            found.extend(path.take());
        }
    }
    found
}

/// The git directory of a working tree; a linked one has its own.
fn git_dir(path: &Path, repository: &Repository) -> Option<PathBuf> {
    let inside = path.join(".git");
    if inside.is_dir() {
        return Some(repository.dir.clone());
    }
    let text = fs::read_to_string(&inside).ok()?;
    path.join(text.strip_prefix("gitdir: ")?.trim_end()).canonicalize().ok()
}

struct Tree<'a> {
    git: Git,
    dir: PathBuf,
    path: PathBuf,
    repository: &'a Repository,
    branch: &'a str,
    from: &'a str,
    to: &'a str,
}

impl Tree<'_> {
    /// Why it is left alone, and the command.
    async fn follow(&self) -> Result<Option<(String, String)>, GitError> {
        let changed = self.changed().await?;
        if let Some(why) = self.unusual(&changed).await? {
            return Ok(Some((why, self.command(&BTreeSet::new()))));
        }
        let git = self.git.clone().settings(self.no_filters().await?);
        if self.has_followed(&git, &changed).await? {
            return Ok(None);
        }
        // Changes to other files stay as they are, as with `git merge`.
        let all = self.edited(&git).await?;
        let edited: BTreeSet<String> =
            changed.iter().map(|(_, name)| showable(name)).filter(|name| all.contains(name)).collect();
        if !edited.is_empty() {
            let some: Vec<&str> = edited.iter().take(3).map(String::as_str).collect();
            let more = if edited.len() > some.len() { ", …" } else { "" };
            let why = format!("it has changes that are not committed: {}{more}", some.join(", "));
            return Ok(Some((why, self.command(&edited))));
        }
        if let Some((_, name)) = changed.iter().find(|(how, name)| how == "A" && self.lies(name)) {
            let why = format!("a file that is not committed is in the way: {name}");
            let names = BTreeSet::from([name.clone()]);
            return Ok(Some((why, self.command(&names))));
        }
        match git.call(&["read-tree", "-m", "-u", self.from, self.to], b"").await {
            Ok(_) => Ok(None),
            Err(error) => Ok(Some((error.to_string(), self.command(&BTreeSet::new())))),
        }
    }

    /// Whether the index has every changed file as the branch has it now.
    async fn has_followed(&self, git: &Git, changed: &[(String, String)]) -> Result<bool, GitError> {
        let mut args = vec!["--literal-pathspecs", "diff-index", "--cached", "--quiet", self.to, "--"];
        // Of a name that is no text only all files together can be asked about.
        if changed.iter().all(|(_, name)| !name.contains(char::REPLACEMENT_CHARACTER)) {
            args.extend(changed.iter().map(|(_, name)| name.as_str()));
        }
        git.asks(&args).await
    }

    fn lies(&self, name: &str) -> bool {
        self.path.join(name).symlink_metadata().is_ok()
    }

    /// What changes between the two commits: how (`A`, `M`, `D`, `T`), and which file.
    async fn changed(&self) -> Result<Vec<(String, String)>, GitError> {
        let args = ["diff-tree", "-r", "-z", "--name-status", "--no-renames", self.from, self.to];
        let output = self.repository.git().call(&args, b"").await?;
        let mut fields =
            output.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
        let mut changed = Vec::new();
        while let (Some(how), Some(name)) = (fields.next(), fields.next()) {
            changed.push((how, name));
        }
        Ok(changed)
    }

    /// What keeps us from even comparing its files.
    async fn unusual(&self, changed: &[(String, String)]) -> Result<Option<String>, GitError> {
        if let Some(name) = UNDER_WAY.iter().find(|name| self.dir.join(name).exists()) {
            return Ok(Some(format!("something is under way there ({name})")));
        }
        for (key, value) in self.config("^core\\.(autocrlf|worktree)$").await? {
            if key != "core.autocrlf" || value != "false" {
                return Ok(Some(format!("its repository sets {key}")));
            }
        }
        let attributes = |name: &str| name == ".gitattributes" || name.ends_with("/.gitattributes");
        if changed.iter().any(|(_, name)| attributes(name)) {
            return Ok(Some("the merge changes .gitattributes".into()));
        }
        let mut names = self.git.call(&["ls-files", "-z"], b"").await?;
        changed.iter().for_each(|(_, name)| names.extend(name.bytes().chain([0])));
        let found = self.git.call(&["check-attr", "-z", "--stdin", "filter"], &names).await?;
        let mut fields = found.split(|byte| *byte == 0);
        while let (Some(name), Some(_), Some(value)) = (fields.next(), fields.next(), fields.next()) {
            if !matches!(value, b"unspecified" | b"unset") {
                let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
                return Ok(Some(format!("attributes name the filter {value}, for example for {name}")));
            }
        }
        Ok(None)
    }

    /// Settings that turn every filter of the repository off, should a file get one by an attribute meanwhile.
    async fn no_filters(&self) -> Result<Vec<String>, GitError> {
        let found = self.config("^filter\\..*\\.(clean|smudge|process|required)$").await?;
        let off = |(key, _): (String, String)| match key.strip_suffix(".required") {
            Some(name) => format!("{name}.required=false"),
            None => format!("{key}="),
        };
        Ok(found.into_iter().map(off).collect())
    }

    /// The settings of the repository whose names match.
    async fn config(&self, names: &str) -> Result<Vec<(String, String)>, GitError> {
        // Without `--local`, so that what is set for one working tree alone is read too.
        let args = ["config", "--includes", "-z", "--get-regexp", names];
        let (_, output) = self.git.asked(&args).await?;
        let of = |field: &[u8]| {
            let text = String::from_utf8_lossy(field).into_owned();
            let (key, value) = text.split_once('\n').unwrap_or((&text, "true"));
            (key.to_string(), value.to_string())
        };
        Ok(output.split(|byte| *byte == 0).filter(|field| !field.is_empty()).map(of).collect())
    }

    /// The files that are not as the branch had them before it moved.
    async fn edited(&self, git: &Git) -> Result<BTreeSet<String>, GitError> {
        let plain = [
            "--name-only",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=all",
        ];
        let mut files = vec!["diff"];
        files.extend(plain);
        let mut staged = vec!["diff", "--cached"];
        staged.extend(plain);
        staged.extend([self.from, "--"]);
        let mut edited = BTreeSet::new();
        for args in [files, staged] {
            let output = git.call(&args, b"").await?;
            let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            edited.extend(names.map(|name| showable(&String::from_utf8_lossy(name))));
        }
        Ok(edited)
    }

    /// What to type, to take the new files over and keep what is not committed.
    fn command(&self, edited: &BTreeSet<String>) -> String {
        let git = format!("git -C {}", quoted(&self.path.to_string_lossy()));
        let (from, to) = (short(self.from), short(self.to));
        if edited.is_empty() {
            return format!("{git} read-tree -m -u {from} {to}");
        }
        let branch = self.branch;
        format!("{git} switch --detach {from} && {git} stash -u && {git} switch {branch} && {git} stash pop")
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':');
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_trees_on_the_branch_are_found() {
        let listed = b"worktree /a\0HEAD 1\0branch refs/heads/main\0\0worktree /b c\0HEAD 1\0detached\0\0\
            worktree /d\0HEAD 1\0branch refs/heads/main2\0\0worktree /bare\0bare\0\0";
        assert_eq!(on_branch(listed, "main"), [PathBuf::from("/a")]);
        assert_eq!(on_branch(listed, "x"), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_folder_with_a_space_is_one_word() {
        assert_eq!(quoted("/a/b-c"), "/a/b-c");
        assert_eq!(quoted("/a b'c"), "'/a b'\\''c'");
    }
}
