//! Repositories that tickets may name. Each is a table in the file; as a flag or variable it is `NAME=PATH#BASE`.
//!
//! A ticket contains the name and never a path: its author cannot point an agent at a folder of their choice.

use super::file::{required, text, text_of};
use fernery_core::artifact::check_id;
use fernery_core::limits::CLAIM_STREAMS_MAX;
use fernery_core::toml_file::{Entry, Node, Reader, Shape};
use fernery_exec::git::repository::is_branch_name;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The base branch if none is set.
const BASE_DEFAULT: &str = "main";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoSettings {
    /// The `repo_ref` of tickets.
    pub name: String,
    /// A work tree or a bare repository on this machine.
    pub path: PathBuf,
    /// The branch that work starts from.
    pub base: String,
}

/// All repositories by name.
pub type Repos = BTreeMap<String, RepoSettings>;

impl fmt::Display for RepoSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}#{}", self.name, self.path.display(), self.base)
    }
}

/// Reads `NAME=PATH#BASE`; relative paths start at `from`.
pub fn parse(texts: &[String], from: &Path) -> Result<Repos, String> {
    let mut repos = Repos::new();
    for text in texts {
        let Some((name, rest)) = text.split_once('=') else {
            return Err(format!("expected NAME=PATH#BASE, as in web=../web#main, not {text:?}"));
        };
        check_id(name).map_err(|why| format!("{name:?} is not a valid name of a repository: {why}"))?;
        let (path, base) = rest.rsplit_once('#').unwrap_or((rest, BASE_DEFAULT));
        if path.is_empty() || path.contains('\0') {
            return Err(format!("repository {name}: expected a path"));
        }
        if path.contains("://") {
            return Err(format!(
                "repository {name}: {path:?} is on another machine; clone it (git clone --mirror) and give the folder"
            ));
        }
        if !is_branch_name(base) {
            return Err(format!("repository {name}: {base:?} is not a valid branch name"));
        }
        let repo = RepoSettings { name: name.into(), path: from.join(path), base: base.into() };
        if repos.insert(name.to_string(), repo).is_some() {
            return Err(format!("repository {name} is given twice"));
        }
    }
    if repos.len() > CLAIM_STREAMS_MAX {
        return Err(format!(
            "{} repositories; one process can have at most {CLAIM_STREAMS_MAX}",
            repos.len()
        ));
    }
    Ok(repos)
}

/// The table of the file, written as flags are; `None`: it has a flaw.
pub(super) fn texts_of(reader: &mut Reader, table: Node) -> Option<Vec<String>> {
    let mut repos = reader.fields("repos", table)?;
    let mut texts = Vec::new();
    for (name, Entry { node, .. }) in repos.entries() {
        let at = repos.path(&name);
        texts.push(match node.value {
            Shape::Text(_) => text_of(reader, at, node).map(|path| format!("{name}={}", path.value)),
            _ => reader.fields(&at, node).and_then(|mut fields| {
                let path = required(reader, &mut fields, "path", "where the repository is");
                let base = text(reader, &mut fields, "base");
                reader.end(fields);
                let base = base.map_or_else(|| BASE_DEFAULT.to_string(), |base| base.value);
                Some(format!("{name}={}#{base}", path?.value))
            }),
        });
    }
    texts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Result<Repos, String> {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        parse(&texts, Path::new("/etc/fernery"))
    }

    #[test]
    fn a_repository_has_a_name_a_path_and_a_base() {
        let repos = of(&["web=../web", "api=/srv/api.git#release/1"]).expect("both are right");
        assert_eq!(repos["web"].to_string(), "web=/etc/fernery/../web#main");
        assert_eq!(repos["api"].to_string(), "api=/srv/api.git#release/1");
    }

    #[test]
    fn every_mistake_is_named() {
        for (text, why) in [
            ("web", "NAME=PATH#BASE"),
            ("../x=y", "not a valid name"),
            ("web=", "a path"),
            ("web=https://host/x.git", "git clone --mirror"),
            ("web=x#--upload-pack=x", "not a valid branch name"),
        ] {
            let error = of(&[text]).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(of(&["a=x", "a=y"]).expect_err("twice").contains("twice"));
    }
}
