//! Working trees that have the branch checked out, and everything in a repository that must not run.

use super::{commit_on_main, done, landed, merge, plain, status, yard_with};
use crate::yard::{Yard, git};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The command that a remark ends with.
fn command(said: &str) -> String {
    let line = said
        .lines()
        .find(|line| line.contains("To take the merged files over: "))
        .unwrap_or_else(|| panic!("{said}"));
    line.split_once("To take the merged files over: ").unwrap().1.to_string()
}

fn types(command: &str) {
    let ran = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_tree_with_changes_in_other_files_follows_and_keeps_them() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    done(&yard, "t", "mock: write new.txt new");
    fs::write(repo.join("check.sh"), "mine\n").unwrap();
    fs::write(repo.join("staged.txt"), "s\n").unwrap();
    git(&repo, &["add", "staged.txt"]);
    let said = merge(&yard, "t").exits(0).stderr;
    assert!(said.contains("has the merged files"), "{said}");
    assert_eq!(fs::read_to_string(repo.join("new.txt")).unwrap(), "new\n");
    assert_eq!(status(&repo), " M check.sh\nA  staged.txt", "what is not committed is as it was");
    git(&repo, &["commit", "-q", "-a", "-m", "mine"]);
    assert_eq!(git(&repo, &["show", "main:new.txt"]), "new", "the next commit takes nothing back");
}

#[test]
fn a_tree_with_a_change_in_the_same_file_is_left_alone_and_the_command_takes_the_merge_over_and_keeps_it() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    let long = "x\n".repeat(20);
    commit_on_main(&repo, "greeting.txt", &format!("Hello\n{long}end\n"));
    done(&yard, "t", "mock: replace greeting.txt end => Goodbye\nmock: write new.txt new");
    let text = format!("Hello\nand mine\n{long}end\n");
    fs::write(repo.join("greeting.txt"), &text).unwrap();
    let said = merge(&yard, "t").exits(0).stderr;
    assert!(said.contains("is left as it is: it has changes that are not committed: greeting.txt"), "{said}");
    assert!(git(&repo, &["show", "main:greeting.txt"]).ends_with("Goodbye"));
    assert_eq!(fs::read_to_string(repo.join("greeting.txt")).unwrap(), text, "it is as it was");
    assert!(!repo.join("new.txt").exists());
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert!(shown.contains("is left as it is"), "{shown}");
    let seen = yard.objective("t");
    types(&command(seen["landing"]["remarks"][0].as_str().unwrap()));
    assert_eq!(status(&repo), " M greeting.txt", "only the change of its own is left");
    assert_eq!(fs::read_to_string(repo.join("new.txt")).unwrap(), "new\n");
    let now = fs::read_to_string(repo.join("greeting.txt")).unwrap();
    assert!(now.contains("mine") && now.contains("Goodbye"), "{now}");
}

#[test]
fn a_file_in_the_way_leaves_the_tree_alone() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    // Ignored files are files, too.
    fs::write(repo.join(".git/info/exclude"), "secret\n").unwrap();
    fs::write(repo.join("secret"), "mine\n").unwrap();
    done(&yard, "u", "mock: write u.txt u\nmock: write secret theirs");
    let said = merge(&yard, "u").exits(0).stderr;
    assert!(said.contains("is in the way: secret"), "{said}");
    assert_eq!(fs::read_to_string(repo.join("secret")).unwrap(), "mine\n");
}

#[test]
fn a_tree_on_another_branch_or_on_none_stays_as_it_is_and_a_linked_one_follows() {
    let yard = yard_with(&plain(), |repo| {
        git(repo, &["checkout", "-q", "--detach"]);
    });
    let repo = yard.repo();
    let linked = repo.with_file_name("linked");
    git(&repo, &["worktree", "add", "-q", linked.to_str().unwrap(), "main"]);
    done(&yard, "t", "mock: write new.txt new");
    let head = git(&repo, &["rev-parse", "HEAD"]);
    merge(&yard, "t").exits(0);
    assert_eq!((git(&repo, &["rev-parse", "HEAD"]), status(&repo)), (head, String::new()));
    assert!(!repo.join("new.txt").exists());
    assert_eq!(
        (fs::read_to_string(linked.join("new.txt")).unwrap(), status(&linked)),
        ("new\n".into(), String::new())
    );
}

/// A program that leaves a trace wherever it runs.
fn trap(path: &Path, trace: &Path) {
    fs::write(path, format!("#!/bin/sh\necho \"$0\" >>'{}'\ncat\n", trace.display())).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn no_hook_filter_or_fsmonitor_of_the_repository_runs() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    let (hooks, trace) = (repo.join(".git/hooks"), repo.with_file_name("trace"));
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "reference-transaction",
        "post-index-change",
        "post-checkout",
        "post-merge",
        "pre-commit",
        "post-commit",
        "pre-merge-commit",
        "commit-msg",
        "update",
        "post-update",
        "pre-receive",
        "post-rewrite",
    ] {
        trap(&hooks.join(hook), &trace);
    }
    let program = repo.with_file_name("program");
    trap(&program, &trace);
    let program = program.to_str().unwrap();
    let config = fs::read_to_string(repo.join(".git/config")).unwrap();
    let config = format!(
        "{config}[core]\n\tfsmonitor = {program}\n[filter \"x\"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n\
         [merge \"m\"]\n\tdriver = {program}\n[diff \"d\"]\n\ttextconv = {program}\n[gpg]\n\tprogram = {program}\n\
         [commit]\n\tgpgSign = true\n[submodule]\n\trecurse = true\n"
    );
    fs::write(repo.join(".git/config"), config).unwrap();
    done(&yard, "t", "mock: write new.txt new");
    merge(&yard, "t").exits(0);
    assert!(repo.join("new.txt").exists(), "the tree has followed");
    // Where attributes name a filter, files are not even compared.
    fs::write(repo.join(".git/info/attributes"), "greeting.txt filter=x merge=m diff=d\n").unwrap();
    done(&yard, "u", "mock: write u.txt u");
    let said = merge(&yard, "u").exits(0).stderr;
    assert!(said.contains("attributes name the filter x, for example for greeting.txt"), "{said}");
    assert!(!repo.join("u.txt").exists() && git(&repo, &["cat-file", "-t", "main:u.txt"]) == "blob");
    landed(&yard, "u");
    // The same where only a file that comes has one, and where it is set for one working tree alone.
    fs::write(repo.join(".git/info/attributes"), "*.bin filter=y\n").unwrap();
    git(&repo, &["-c", "core.hooksPath=/dev/null", "read-tree", "main"]);
    fs::write(repo.join("u.txt"), "u\n").unwrap();
    let config = fs::read_to_string(repo.join(".git/config")).unwrap();
    let format = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n";
    fs::write(repo.join(".git/config"), config + format).unwrap();
    fs::write(repo.join(".git/config.worktree"), format!("[filter \"y\"]\n\tsmudge = {program}\n")).unwrap();
    done(&yard, "v", "mock: write v.bin v");
    let said = merge(&yard, "v").exits(0).stderr;
    assert!(said.contains("attributes name the filter y, for example for v.bin"), "{said}");
    assert!(!repo.join("v.bin").exists());
    let ran = fs::read_to_string(&trace).unwrap_or_default();
    // What git ran for this test itself is not meant: it looked at one object.
    assert_eq!(ran, "", "something of the repository ran");
}
