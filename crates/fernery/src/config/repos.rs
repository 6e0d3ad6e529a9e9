//! Repositories that tickets may name: in the file a table each, elsewhere `NAME=PATH#BASE`.
//!
//! A ticket says a name and never a path, so that nobody who writes one can point an agent at a folder of their choice.

use super::file::described;
use crate::git::repository::is_branch_name;
use fernery_core::artifact::check_id;
use fernery_core::limits::CLAIM_STREAMS_MAX;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The branch that work starts from where nobody says.
const BASE_DEFAULT: &str = "main";

/// One repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoSettings {
    /// What tickets call it.
    pub name: String,
    /// A work tree or a bare repository on this machine.
    pub path: PathBuf,
    /// The branch that work starts from.
    pub base: String,
}

/// All of them by name.
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
        check_id(name).map_err(|why| format!("{name:?} is no name for a repository: {why}"))?;
        let (path, base) = rest.rsplit_once('#').unwrap_or((rest, BASE_DEFAULT));
        if path.is_empty() || path.contains('\0') {
            return Err(format!("repository {name}: expected a path"));
        }
        if path.contains("://") {
            return Err(format!(
                "repository {name}: {path:?} is elsewhere; clone it (git clone --mirror) and name the folder"
            ));
        }
        if !is_branch_name(base) {
            return Err(format!("repository {name}: {base:?} is no name of a branch"));
        }
        let repo = RepoSettings { name: name.into(), path: from.join(path), base: base.into() };
        if repos.insert(name.to_string(), repo).is_some() {
            return Err(format!("repository {name} is there twice"));
        }
    }
    if repos.len() > CLAIM_STREAMS_MAX {
        return Err(format!("{} repositories; one process has at most {CLAIM_STREAMS_MAX}", repos.len()));
    }
    Ok(repos)
}

/// The table of the file in the form of the others.
pub(super) fn texts_of(table: &DeTable<'_>) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    for (name, value) in table {
        let name = name.get_ref();
        let fields = match value.get_ref() {
            DeValue::String(path) => {
                texts.push(format!("{name}={path}"));
                continue;
            }
            DeValue::Table(fields) => fields,
            other => {
                return Err(format!(
                    "`repos.{name}` is a table with path and base, not {}",
                    described(other)
                ));
            }
        };
        let text = |key: &str| match fields.get(key).map(|value| value.get_ref()) {
            None => Ok(None),
            Some(DeValue::String(text)) => Ok(Some(text.to_string())),
            Some(other) => Err(format!("`repos.{name}.{key}` is a text in quotes, not {}", described(other))),
        };
        let (path, base) = (text("path")?, text("base")?);
        if let Some(other) = fields.keys().find(|key| !["path", "base"].contains(&key.get_ref().as_ref())) {
            return Err(format!("unknown key `repos.{name}.{}`; there are path and base", other.get_ref()));
        }
        let path = path.ok_or_else(|| format!("`repos.{name}` has no path"))?;
        texts.push(format!("{name}={path}#{}", base.as_deref().unwrap_or(BASE_DEFAULT)));
    }
    Ok(texts)
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
            ("../x=y", "no name"),
            ("web=", "a path"),
            ("web=https://host/x.git", "git clone --mirror"),
            ("web=x#--upload-pack=x", "no name of a branch"),
        ] {
            let error = of(&[text]).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(of(&["a=x", "a=y"]).expect_err("twice").contains("twice"));
    }
}
