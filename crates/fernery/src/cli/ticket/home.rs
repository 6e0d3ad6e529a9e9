//! Where a new ticket belongs, as far as that can be known: its azolla and its repository.

use crate::cli::failure::Outcome;
use crate::outgoing::Target;
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::{AzollaList, AzollaSummary, RepoView};
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::BUILTIN;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The built-in azolla for work on repositories.
const MEC: &str = "mec";
/// The built-in azolla of what people do themselves.
const TASKS: &str = "tasks";

/// What a server takes tickets for, seen from a folder.
pub(in crate::cli) struct Home {
    list: AzollaList,
    /// The folder that the command runs in; `None` if the server is on another machine.
    here: Option<PathBuf>,
}

/// What was not said.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) enum Unsaid {
    /// It can only be this.
    Known(String),
    /// It can be any of these.
    Several(Vec<String>),
    /// Nothing is needed, or nobody here knows.
    Open,
}

impl Unsaid {
    fn of(mut names: Vec<String>) -> Self {
        match names.len() {
            0 => Self::Open,
            1 => Self::Known(names.remove(0)),
            _ => Self::Several(names),
        }
    }

    pub(in crate::cli) fn known(&self) -> Option<&str> {
        match self {
            Self::Known(name) => Some(name),
            _ => None,
        }
    }
}

impl Home {
    pub(in crate::cli) async fn ask(client: &Client) -> Outcome<Self> {
        let list = client.get::<AzollaList>("/v1/azollas", &Query::new(), Duration::ZERO).await?.read()?;
        let is_here = Target::parse(client.url()).is_ok_and(|server| server.is_this_machine());
        let here = is_here.then(|| std::env::current_dir().ok()?.canonicalize().ok()).flatten();
        Ok(Self { list, here })
    }

    /// The azolla of a ticket that names none. Where there is no repository to work on, and the ticket names none either, it is
    /// something that a person does.
    pub(in crate::cli) fn azolla(&self, names_repo: bool) -> Unsaid {
        let is_usable = |azolla: &&AzollaSummary| !azolla.needs_repository || !self.list.repos.is_empty();
        let all = self.azollas();
        let usable: Vec<_> = all.iter().copied().filter(is_usable).collect();
        let has_tasks = || self.list.azollas.iter().any(|of| of.hosted && of.azolla_id.as_str() == TASKS);
        if usable.is_empty() && !names_repo && has_tasks() {
            return Unsaid::Known(TASKS.to_string());
        }
        let names = |found: &[&AzollaSummary]| found.iter().map(|of| of.azolla_id.to_string()).collect();
        match Unsaid::of(names(if usable.is_empty() { &all } else { &usable })) {
            // `fernery init` gives a repository and its azolla the same name.
            Unsaid::Several(names) => match self.around().filter(|repo| names.contains(&repo.name)) {
                Some(repo) => Unsaid::Known(repo.name.clone()),
                None => Unsaid::Several(names),
            },
            found => found,
        }
    }

    /// Hosted azollas that work on tickets. Of the built-in ones only `mec`: the others are named by those who mean them.
    fn azollas(&self) -> Vec<&AzollaSummary> {
        let is_meant = |azolla: &&AzollaSummary| {
            let id = azolla.azolla_id.as_str();
            azolla.hosted
                && azolla.takes_tickets
                && (id == MEC || !BUILTIN.iter().any(|(name, _)| *name == id))
        };
        self.list.azollas.iter().filter(is_meant).collect()
    }

    /// The repository of a ticket that names none.
    pub(in crate::cli) fn repo(&self, azolla: &str) -> Unsaid {
        let needs = self.list.azollas.iter().any(|of| of.azolla_id.as_str() == azolla && of.needs_repository);
        match self.around() {
            _ if !needs => Unsaid::Open,
            Some(repo) => Unsaid::Known(repo.name.clone()),
            None => Unsaid::of(self.list.repos.iter().map(|repo| repo.name.clone()).collect()),
        }
    }

    /// The repository whose folder this is, or that this is inside of, or whose linked working tree it is.
    fn around(&self) -> Option<&RepoView> {
        let here = self.here.as_deref()?;
        let tree = WorkTree::around(here);
        let depth = |repo: &RepoView| {
            let folder = Path::new(repo.path.as_deref()?).canonicalize().ok()?;
            let root = match &tree {
                _ if here.starts_with(&folder) => folder,
                Some(tree) if tree.is_of(&folder) => tree.root.clone(),
                _ => return None,
            };
            Some(root.components().count())
        };
        let found = self.list.repos.iter().filter_map(|repo| Some((depth(repo)?, repo)));
        found.max_by_key(|(depth, _)| *depth).map(|(_, repo)| repo)
    }

    /// Whether the server has this azolla, and which ones it has.
    pub(in crate::cli) fn lacks(&self, azolla: &AzollaId) -> Option<String> {
        let all = &self.list.azollas;
        if all.iter().any(|of| of.azolla_id == *azolla) {
            return None;
        }
        let known: Vec<&str> =
            all.iter().filter(|of| of.takes_tickets).map(|of| of.azolla_id.as_str()).collect();
        Some(format!("azolla: {azolla} does not exist; tickets can be for {}", known.join(", ")))
    }

    /// The lines of a form that are known, and a choice of those that are not.
    pub(in crate::cli) fn lines(&self, azolla: Option<&AzollaId>, names_repo: bool) -> String {
        let line = |key: &str, unsaid: &Unsaid| match unsaid {
            Unsaid::Known(name) => format!("{key}: {name}\n"),
            Unsaid::Open => String::new(),
            Unsaid::Several(names) => {
                let each: String = names.iter().map(|name| format!("# {key}: {name}\n")).collect();
                format!("# Choose one of these, without the #:\n{each}")
            }
        };
        let azolla = azolla.map_or_else(|| self.azolla(names_repo), |named| Unsaid::Known(named.to_string()));
        let repo = match azolla.known() {
            Some(azolla) if !names_repo => self.repo(azolla),
            _ => Unsaid::Open,
        };
        line("azolla", &azolla) + &line("repo_ref", &repo)
    }
}

/// The working tree of git that a folder is in.
struct WorkTree {
    root: PathBuf,
    /// What all working trees of its repository share.
    git_dir: PathBuf,
}

impl WorkTree {
    fn around(folder: &Path) -> Option<Self> {
        let root = folder.ancestors().find(|at| at.join(".git").exists())?;
        Some(Self { root: root.to_path_buf(), git_dir: shared_git_dir(&root.join(".git"))? })
    }

    /// Whether a folder is the repository itself, or another working tree of it.
    fn is_of(&self, folder: &Path) -> bool {
        folder == self.git_dir || shared_git_dir(&folder.join(".git")).is_some_and(|of| of == self.git_dir)
    }
}

/// The git directory behind `.git`, which is a file in a linked working tree.
fn shared_git_dir(dot_git: &Path) -> Option<PathBuf> {
    if dot_git.is_dir() {
        return dot_git.canonicalize().ok();
    }
    let line = std::fs::read_to_string(dot_git).ok()?;
    let own = dot_git.parent()?.join(line.lines().next()?.strip_prefix("gitdir: ")?);
    // A submodule has a git directory of its own, and no such file in it.
    let common = std::fs::read_to_string(own.join("commondir")).unwrap_or_else(|_| ".".into());
    own.join(common.trim_end()).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn home(azollas: &[(&str, bool)], repos: &[(&str, &str)], here: &str) -> Home {
        let azolla = |(id, needs): &(&str, bool)| {
            json!({"azolla_id": id, "description": "", "category": "EXECUTION", "digest": "0".repeat(64), "hosted": true,
                "takes_tickets": *id != "task_management", "needs_repository": needs})
        };
        let repo = |(name, path): &(&str, &str)| json!({"name": name, "base": "main", "path": path});
        let list = json!({"azollas": azollas.iter().map(azolla).collect::<Vec<_>>(),
            "repos": repos.iter().map(repo).collect::<Vec<_>>()});
        Home { list: serde_json::from_value(list).unwrap(), here: Some(here.into()) }
    }

    fn known(name: &str) -> Unsaid {
        Unsaid::Known(name.into())
    }

    #[test]
    fn what_is_the_only_one_need_not_be_said() {
        let one = home(&[("app", true), ("task_management", false)], &[("app", "/")], "/");
        assert_eq!((one.azolla(false), one.repo("app")), (known("app"), known("app")));
        assert_eq!(one.lines(None, false), "azolla: app\nrepo_ref: app\n");
        // Without a repository nobody can work for `mec`.
        let text = home(&[("mec", true), ("docs", false)], &[], "/");
        assert_eq!((text.azolla(false), text.repo("docs")), (known("docs"), Unsaid::Open));
        let bare = home(&[("mec", true)], &[], "/");
        assert_eq!((bare.azolla(false), bare.repo("mec")), (known("mec"), Unsaid::Open));
    }

    #[test]
    fn without_a_repository_a_ticket_is_a_task_unless_it_names_one() {
        let bare = home(&[("mec", true), ("tasks", false)], &[], "/");
        assert_eq!((bare.azolla(false), bare.azolla(true)), (known("tasks"), known("mec")));
        assert_eq!(bare.lines(None, false), "azolla: tasks\n");
        let other = home(&[("mec", true), ("tasks", false), ("docs", false)], &[], "/");
        assert_eq!(other.azolla(false), known("docs"), "what somebody has set up is meant");
        let with = home(&[("mec", true), ("tasks", false)], &[("app", "/")], "/");
        assert_eq!(with.azolla(false), known("mec"));
    }

    fn git(at: &Path, args: &[&str]) {
        let said = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(args)
            .current_dir(at)
            .output()
            .unwrap();
        assert!(said.status.success(), "{said:?}");
    }

    #[test]
    fn a_linked_working_tree_elsewhere_is_known_as_its_repository() {
        let outer = tempfile::tempdir().unwrap();
        let at = |name: &str| outer.path().canonicalize().unwrap().join(name);
        for name in ["web", "shop"] {
            git(outer.path(), &["init", "-q", name]);
            git(&at(name), &["commit", "-q", "--allow-empty", "-m", "one"]);
        }
        git(outer.path(), &["clone", "-q", "--bare", "shop", "shop.git"]);
        git(&at("web"), &["worktree", "add", "-q", "../trees/web-fix"]);
        git(&at("shop.git"), &["worktree", "add", "-q", "-b", "fix", "../trees/shop-fix"]);
        std::fs::create_dir(at("trees/web-fix/src")).unwrap();
        let seen = |here: &str, web: &str, shop: &str| {
            let (web, shop) = (at(web), at(shop));
            let repos = [("web", web.to_str().unwrap()), ("shop", shop.to_str().unwrap())];
            home(&[("mec", true)], &repos, at(here).to_str().unwrap()).repo("mec")
        };
        assert_eq!(seen("trees/web-fix", "web", "shop.git"), known("web"));
        assert_eq!(seen("trees/web-fix/src", "web", "shop.git"), known("web"));
        assert_eq!(seen("trees/shop-fix", "web", "shop.git"), known("shop"), "of a bare repository");
        assert_eq!(seen("web", "trees/web-fix", "shop"), known("web"), "the linked one may be configured");
        assert!(matches!(seen("trees", "web", "shop.git"), Unsaid::Several(_)));
    }

    #[test]
    fn the_folder_says_which_repository_is_meant() {
        let outer = tempfile::tempdir().unwrap();
        let (web, shop) = (outer.path().join("web"), outer.path().join("web/shop"));
        std::fs::create_dir_all(shop.join("src")).unwrap();
        let at = |here: &Path| {
            let repos = [("web", web.to_str().unwrap()), ("shop", shop.to_str().unwrap())];
            home(&[("web", true), ("shop", true)], &repos, here.canonicalize().unwrap().to_str().unwrap())
        };
        let inner = at(&shop.join("src"));
        assert_eq!((inner.azolla(false), inner.repo("web")), (known("shop"), known("shop")));
        assert_eq!(at(&web).repo("web"), known("web"));
        let outside = at(outer.path());
        let both = || Unsaid::Several(vec!["web".into(), "shop".into()]);
        assert_eq!((outside.azolla(false), outside.repo("web")), (both(), both()));
        let lines = outside.lines(None, false);
        assert_eq!(lines, "# Choose one of these, without the #:\n# azolla: web\n# azolla: shop\n");
    }
}
