//! The folder of a demo: a readable repository, the files for a server, and later its data and its export. Nothing is
//! overwritten.

use crate::cli::failure::{Failure, Outcome};
use crate::demo;
use fernery_exec::git::call::{Git, GitError};
use fernery_exec::sandbox::Tier;
use rustix::fs::Mode;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The author of the first commit.
const WHO: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "demo"),
    ("GIT_AUTHOR_EMAIL", "demo@localhost"),
    ("GIT_COMMITTER_NAME", "demo"),
    ("GIT_COMMITTER_EMAIL", "demo@localhost"),
];

pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Makes it, with everything that a server needs to start.
    pub(super) async fn make(root: &Path, sandbox: Option<Tier>) -> Outcome<Self> {
        // Without a trailing slash, which would be shown twice.
        let folder = Self { root: root.components().collect() };
        let shown = folder.shown();
        let no_git = |error: GitError| Failure::failed("git", error.to_string());
        Git::at(root).call(&["version"], b"").await.map_err(no_git)?;
        // If this runs as root, agents run as other users and must be able to read the repository.
        rustix::process::umask(Mode::from_raw_mode(0o022));
        fs::create_dir(root).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                Failure::conflict(format!("{shown} already exists, and the demo overwrites nothing"))
                    .hint("move or delete it, or name another folder: --dir OTHER")
            }
            _ => Failure::usage(format!("cannot create the folder {shown}: {error}")),
        })?;
        // It may lie in another repository, and must not become part of it.
        folder.write(".gitignore", "*\n")?;
        folder.write("fernery.toml", demo::CONFIG)?;
        folder.write("azolla.toml", &demo::blueprint(sandbox))?;
        fs::create_dir(folder.repo()).map_err(|error| folder.failed("repo", &error))?;
        for (name, text) in demo::REPOSITORY {
            folder.write(&format!("repo/{name}"), text)?;
        }
        let git = Git::at(&std::path::absolute(folder.repo())?.join(".git"));
        let git = git.tree(&std::path::absolute(folder.repo())?);
        for words in [
            &["init", "--quiet", "--template=", "--initial-branch=main"][..],
            &["add", "--all"],
            &["commit", "--quiet", "--message=A greeter, and a test that it fails"],
        ] {
            let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            git.call_with(&words, b"", &WHO).await.map_err(|error| {
                no_git(error).hint(format_args!("{shown} is incomplete: delete it before you try again"))
            })?;
        }
        Ok(folder)
    }

    fn write(&self, name: &str, text: &str) -> Outcome {
        fs::write(self.root.join(name), text).map_err(|error| self.failed(name, &error))
    }

    fn failed(&self, name: &str, error: &std::io::Error) -> Failure {
        Failure::failed("not_written", format!("cannot write {}: {error}", self.root.join(name).display()))
    }

    /// As people read it.
    pub(super) fn shown(&self) -> String {
        self.root.display().to_string()
    }

    /// As a shell reads it, with what is below it.
    pub(super) fn typed(&self, below: &str) -> String {
        let path = self.root.join(below).display().to_string();
        let path = path.trim_end_matches('/');
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
        if path.chars().all(plain) { path.to_string() } else { format!("'{}'", path.replace('\'', r"'\''")) }
    }

    /// The repository that the ticket is about.
    pub(super) fn repo(&self) -> PathBuf {
        self.root.join("repo")
    }

    /// The settings of its server.
    pub(super) fn config(&self) -> PathBuf {
        self.root.join("fernery.toml")
    }

    /// The token that its server has made for the operator.
    pub(super) fn operator_token(&self) -> PathBuf {
        self.root.join("data").join(crate::cli::server::TOKEN_FILE)
    }

    /// Where all that came of it goes.
    pub(super) fn export(&self) -> PathBuf {
        self.root.join("export")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted_into_a_shell() {
        let typed = |root: &str| Folder { root: root.into() }.typed("repo");
        assert_eq!(typed("fernery-demo"), "fernery-demo/repo");
        assert_eq!(typed("my demo"), "'my demo/repo'");
        assert_eq!(typed("it's; rm"), r"'it'\''s; rm/repo'");
        assert_eq!(Folder { root: "a".into() }.typed(""), "a");
    }
}
