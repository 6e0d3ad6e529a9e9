//! What a patch may touch, and how much of it.

use super::{Body, FileChange, Mode, Patch, path, read};
use crate::limits;
use serde::{Deserialize, Serialize};

/// Files that decide what runs, for whom, and who must look: a patch touches them only where the blueprint says so. A name
/// alone is a file of that name in any folder; one that ends in `/` is a folder at the root.
pub const PROTECTED: [&str; 21] = [
    ".github/",
    ".gitlab/",
    ".gitlab-ci.yml",
    ".circleci/",
    ".buildkite/",
    ".woodpecker/",
    ".forgejo/",
    ".gitea/",
    ".travis.yml",
    ".ci/",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    ".githooks/",
    ".husky/",
    ".pre-commit-config.yaml",
    ".gitattributes",
    "CODEOWNERS",
    "fernery.toml",
    "azollas/",
    "lefthook.yml",
];

/// What the gate `patch` lets through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchPolicy {
    /// Files at most.
    pub max_files: u32,
    /// Whether symbolic links may come, that lead to somewhere in the repository.
    pub symlinks: bool,
    /// Whether files may become executable.
    pub executables: bool,
    /// Protected files that may be touched, written as [`PROTECTED`] is.
    pub allow: Vec<String>,
}

impl Default for PatchPolicy {
    fn default() -> Self {
        let max_files = limits::PATCH_FILES_DEFAULT;
        Self { max_files, symlinks: false, executables: false, allow: Vec::new() }
    }
}

/// What is wrong with a patch under this policy; `None`: nothing.
pub fn fault(patch: &str, policy: &PatchPolicy) -> Option<String> {
    let patch = match read(patch) {
        Ok(patch) => patch,
        Err(flaw) => return Some(flaw.to_string()),
    };
    if patch.files.len() > policy.max_files as usize {
        return Some(format!("touches {} files; {} are allowed", patch.files.len(), policy.max_files));
    }
    refused(&patch, policy)
}

fn refused(patch: &Patch, policy: &PatchPolicy) -> Option<String> {
    patch.files.iter().find_map(|file| {
        let why = file_fault(file, policy)?;
        Some(format!("line {}: `{}`: {why}", file.line, path::shown(&file.path)))
    })
}

fn file_fault(file: &FileChange, policy: &PatchPolicy) -> Option<String> {
    let covers = |pattern: &&str| covers(pattern, &file.path);
    if let Some(pattern) = PROTECTED.iter().find(|pattern| covers(pattern))
        && !policy.allow.iter().any(|allowed| covers(&allowed.as_str()))
    {
        return Some(format!("is protected; `allow = [\"{pattern}\"]` in the gate lets it through"));
    }
    if file.after == Some(Mode::Executable) && file.before != Some(Mode::Executable) && !policy.executables {
        return Some("becomes executable; `executables = true` in the gate lets it through".into());
    }
    if file.after == Some(Mode::Symlink) {
        if !policy.symlinks {
            return Some("is a symbolic link; `symlinks = true` in the gate lets it through".into());
        }
        if let Body::Text { link, .. } = &file.body {
            return link_fault(&file.path, link);
        }
    }
    None
}

/// A link leads to somewhere in the repository.
fn link_fault(from: &str, link: &str) -> Option<String> {
    let mut folder: Vec<&str> = from.split('/').collect();
    folder.pop();
    for part in link.split('/') {
        match part {
            // An absolute path has an empty first part.
            "" => {
                return Some(format!("leads to `{}`, which is no path in the repository", path::shown(link)));
            }
            "." => {}
            ".." => {
                if folder.pop().is_none() {
                    return Some(format!("leads out of the repository, to `{}`", path::shown(link)));
                }
            }
            part => folder.push(part),
        }
    }
    path::check(&folder.join("/")).err().map(|why| format!("leads to `{}`: {why}", path::shown(link)))
}

fn covers(pattern: &str, file: &str) -> bool {
    let (pattern, file) = (path::folded(pattern), path::folded(file));
    if pattern.ends_with('/') {
        file.starts_with(&pattern)
    } else if pattern.contains('/') {
        file == pattern
    } else {
        file.rsplit('/').next() == Some(&pattern)
    }
}
