//! What a patch may touch, and how much of it.

use super::{Body, FileChange, Mode, Patch, path, read};
use crate::limits;
use serde::{Deserialize, Serialize};

/// Files that decide what runs, for whom, who must look, and what the next agent is told: a patch touches them only where the
/// blueprint says so. A name is a file, one that ends in `/` a folder, in any folder; one with a `/` inside is a path.
pub const PROTECTED: [&str; 48] = [
    ".github/",
    ".gitlab/",
    ".gitlab-ci.yml",
    ".circleci/",
    ".cirrus.yml",
    ".buildkite/",
    ".builds/",
    ".build.yml",
    ".drone.yml",
    ".woodpecker/",
    ".woodpecker.yml",
    ".woodpecker.yaml",
    ".forgejo/",
    ".gitea/",
    ".tekton/",
    ".travis.yml",
    ".appveyor.yml",
    "appveyor.yml",
    ".ci/",
    "azure-pipelines.yml",
    "azure-pipelines.yaml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    ".githooks/",
    ".husky/",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "lefthook-local.yml",
    ".gitattributes",
    ".lfsconfig",
    "CODEOWNERS",
    ".devcontainer/",
    ".vscode/",
    ".idea/",
    ".envrc",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".claude/",
    ".codex/",
    ".gemini/",
    ".cursor/",
    ".mcp.json",
    "fernery.toml",
    "azollas/",
];

/// What the gate `patch` lets through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchPolicy {
    pub max_files: u32,
    /// Whether symbolic links may come, that lead to somewhere in the repository.
    pub symlinks: bool,
    /// Whether files may become executable.
    pub executables: bool,
    /// Protected files that may be touched, written as [`PROTECTED`] is.
    pub allow: Vec<String>,
    /// What the name of the branch starts with that the bundles of a `PATCH_DIAZOTROPH` name, beside a description of the
    /// patch. No key of the file: the azolla's own `branch_prefix` is copied here, so that the gate judges by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_prefix: Option<String>,
}

impl Default for PatchPolicy {
    fn default() -> Self {
        let max_files = limits::PATCH_FILES_DEFAULT;
        Self { max_files, symlinks: false, executables: false, allow: Vec::new(), branch_prefix: None }
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
    let covers = |pattern: &&str| covers(pattern, &file.folded);
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

/// A link leads to somewhere in the repository. Up only from its own folder: behind a name may be another link.
fn link_fault(from: &str, link: &str) -> Option<String> {
    let mut folder: Vec<&str> = from.split('/').collect();
    folder.pop();
    let mut named = false;
    for part in link.split('/') {
        match part {
            // An absolute path has an empty first part.
            "" => {
                return Some(format!("leads to `{}`, which is no path in the repository", path::shown(link)));
            }
            "." => {}
            ".." if named => return Some(format!("leads up behind a name, to `{}`", path::shown(link))),
            ".." => {
                if folder.pop().is_none() {
                    return Some(format!("leads out of the repository, to `{}`", path::shown(link)));
                }
            }
            part => {
                named = true;
                folder.push(part);
            }
        }
    }
    path::check(&folder.join("/")).err().map(|why| format!("leads to `{}`: {why}", path::shown(link)))
}

/// Whether a pattern covers a path that is folded already. A folder is covered with all that is in it, and so is whatever
/// else has its name.
fn covers(pattern: &str, file: &str) -> bool {
    covers_folded(&path::folded(pattern), file)
}

/// As [`covers`], where the pattern is folded too.
pub(super) fn covers_folded(pattern: &str, file: &str) -> bool {
    match pattern.strip_suffix('/') {
        Some(folder) if folder.contains('/') => file == folder || file.starts_with(pattern),
        Some(folder) => file.split('/').any(|part| part == folder),
        None if pattern.contains('/') => file == pattern,
        None => file.rsplit('/').next() == Some(pattern),
    }
}
