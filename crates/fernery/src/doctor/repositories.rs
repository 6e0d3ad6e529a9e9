//! Whether the repositories that tickets may name are there, can be read, and have their base branch.

use super::Finding;
use crate::config::{RepoSettings, Repos};
use fernery_exec::git::repository::Repository;

const CHECK: &str = "repository";

pub(super) async fn examine(repos: &Repos) -> Vec<Finding> {
    let mut findings = Vec::new();
    for repo in repos.values() {
        findings.push(look(repo).await);
    }
    findings
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
