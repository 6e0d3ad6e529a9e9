//! Whether the repositories that tickets may name are there, can be read, have their base branch, and can be read by others as
//! their owner meant.

use super::Finding;
use crate::config::{RepoSettings, Repos};
use fernery_exec::git::left_modes;
use fernery_exec::git::repository::Repository;

const CHECK: &str = "repository";

pub(super) async fn examine(repos: &Repos) -> Vec<Finding> {
    let mut findings = Vec::new();
    for repo in repos.values() {
        findings.push(look(repo).await);
        findings.extend(left(repo));
    }
    findings
}

/// What others cannot read of what was written in a repository.
fn left(repo: &RepoSettings) -> Option<Finding> {
    let repository = Repository::open(&repo.path).ok()?;
    let left = left_modes::look(&repository.dir)?;
    let found = format!(
        "{}: {} in {} with another owner or fewer rights than its objects folder, for example {}: other users cannot read them",
        repo.name,
        match left.count {
            1 => "1 entry is".to_string(),
            n => format!("{n} entries are"),
        },
        repository.dir.display(),
        left.first.display()
    );
    Some(Finding::warning("repository_modes", found, left.remedy))
}

async fn look(repo: &RepoSettings) -> Finding {
    let RepoSettings { name, path, base } = repo;
    let shown = path.display();
    let repository = match Repository::open(path) {
        Ok(repository) => repository,
        Err(why) => {
            let remedy = format!(
                "correct `path` under [repos.{name}]; it is relative to the folder of the configuration file"
            );
            return Finding::problem(CHECK, format!("{name}: {why}"), remedy);
        }
    };
    match repository.branch(base).await {
        Ok(Some(commit)) => {
            let commit = commit.get(..12).unwrap_or(&commit);
            Finding::ok(CHECK, format!("{name}: {shown}, branch {base} at {commit}"))
        }
        Ok(None) => Finding::problem(
            CHECK,
            format!("{name}: {shown} has no branch {base}, or the branch's commit is unreadable"),
            format!(
                "create it, or name another as `base` under [repos.{name}]: tickets on it are blocked until then"
            ),
        ),
        Err(error) => Finding::problem(
            CHECK,
            format!("{name}: {shown} cannot be read: {error}"),
            "install git, and let the user that runs the server read the repository",
        ),
    }
}
