//! What is written in the operator's repository has the owner and the modes that git itself would give it there.

use super::{done, fits, merge, plain};
use crate::program::run_in;
use crate::yard::{Yard, git, lay_out};
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// A user that has nothing on a machine.
const OTHER: u32 = 61_234;

fn all(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|of| of.is_dir()) {
            found.extend(all(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

/// Agents that are another user (where the tests are root) commit on top of what was merged, twice: they can read it.
#[test]
fn agents_of_another_user_can_read_what_was_merged_before() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    for n in 1..=3 {
        let id = format!("t{n}");
        let seen = done(
            &yard,
            &id,
            &format!(
                "mock: write dir{n}/{id}.txt {id}\nmock: commit step\nmock: append dir{n}/{id}.txt more"
            ),
        );
        assert_eq!(seen["runs"].as_array().map(Vec::len), Some(1), "{seen:#}");
        fits(&yard, &id, "MERGES");
        merge(&yard, &id).exits(0);
    }
    assert_eq!(git(&repo, &["show", "main:dir3/t3.txt"]), "t3\nmore");
    for path in all(&repo.join(".git/objects")).iter().chain(&all(&repo.join(".git/refs"))) {
        let meta = path.metadata().unwrap();
        let wanted = if meta.is_dir() { 0o755 } else { 0o444 };
        assert_eq!(meta.mode() & wanted, wanted, "{}: {:o}", path.display(), meta.mode());
    }
    let file = repo.join("dir3/t3.txt").metadata().unwrap().mode() & 0o777;
    assert_eq!(file, 0o644, "the working tree, too");
    let told = run_in(yard.server.dir.path(), ["doctor", "--repos", "app=repo#main", "--json"]).stdout;
    assert!(!told.contains("repository_modes"), "{told}");
}

#[test]
fn a_server_that_is_root_writes_as_the_owner_of_the_repository() {
    // Only root can be somebody else.
    if !geteuid().is_root() {
        return;
    }
    let dir = lay_out(&plain());
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let repo = dir.path().join("repo");
    git(&repo, &["config", "core.sharedRepository", "group"]);
    for path in all(&repo) {
        chown(path, Some(OTHER), Some(OTHER)).unwrap();
    }
    let yard = Yard::open_in(dir);
    for n in 1..=2 {
        let id = format!("t{n}");
        done(&yard, &id, &format!("mock: write dir{n}/{id}.txt {id}"));
        fits(&yard, &id, "MERGES");
        merge(&yard, &id).exits(0);
    }
    for path in all(&repo) {
        let meta = path.symlink_metadata().unwrap();
        assert_eq!((meta.uid(), meta.gid()), (OTHER, OTHER), "{}", path.display());
    }
    assert_eq!(fs::read_to_string(repo.join("dir2/t2.txt")).unwrap(), "t2\n", "the working tree followed");
    let tip = fs::read_to_string(repo.join(".git/refs/heads/main")).unwrap();
    let object = repo.join(".git/objects").join(&tip[..2]).join(tip[2..].trim_end());
    assert_eq!(object.metadata().unwrap().mode() & 0o440, 0o440, "git itself shares it with the group");
}

#[test]
fn doctor_names_what_an_earlier_version_left_and_its_command_mends_it() {
    let dir = lay_out(&plain());
    let repo = dir.path().join("repo");
    let tip = git(&repo, &["rev-parse", "main"]);
    let folder = repo.join(".git/objects").join(&tip[..2]);
    let object = folder.join(&tip[2..]);
    fs::set_permissions(&object, fs::Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let doctor = || {
        let told = run_in(dir.path(), ["doctor", "--repos", "app=repo#main", "--json"]).json();
        let all = told["findings"].as_array().or(told.as_array()).cloned().unwrap_or_default();
        all.into_iter().find(|finding| finding["check"] == "repository_modes")
    };
    let finding = doctor().expect("it is found");
    assert!(finding["found"].to_string().contains(&tip[..2]), "{finding}");
    let remedy = finding["remedy"].as_str().unwrap_or_else(|| panic!("{finding}"));
    assert!(std::process::Command::new("sh").args(["-c", remedy]).status().unwrap().success(), "{remedy}");
    assert_eq!(doctor(), None, "{remedy}");
    assert_eq!(object.metadata().unwrap().mode() & 0o444, 0o444);
}
