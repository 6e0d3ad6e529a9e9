//! What git writes about any change of a tree, the gate for patches reads; and what it reads, git applies.

use fernery_core::patch::{Body, Mode, read};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

const ROUNDS: u64 = 40;

fn git(folder: &Path, args: &[&str]) -> Vec<u8> {
    let ran = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "core.autocrlf=false"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(ran.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout
}

fn name(random: &mut StdRng) -> String {
    let names =
        ["a", "b.txt", "with space", "ü", "日本", "tab\"quote", "x/y", "x/z z", "x", "long/er/path", "e"];
    names[random.random_range(0..names.len())].to_string()
}

/// Puts something at a path, or takes away what is there.
fn change(tree: &Path, random: &mut StdRng) {
    let path = tree.join(name(random));
    let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
    if path.is_dir() && !is_link {
        fs::remove_dir_all(&path).expect("removed");
    } else if is_link && random.random_bool(0.5) {
        fs::remove_file(&path).expect("removed");
    }
    let is_there = fs::symlink_metadata(&path).is_ok();
    let no_folder = |above: &Path| fs::symlink_metadata(above).is_ok_and(|found| !found.is_dir());
    if path.ancestors().skip(1).any(|above| above.starts_with(tree) && no_folder(above)) {
        return;
    }
    if is_there && random.random_bool(0.3) {
        return fs::remove_file(&path).expect("removed");
    }
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    match random.random_range(0..6) {
        0 if !is_there => symlink("a", &path).expect("a link"),
        _ if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) => {}
        1 => fs::write(&path, "").expect("written"),
        2 => {
            let bytes: Vec<u8> = (0..random.random_range(1..3_000_u32)).map(|n| (n * 7 % 11) as u8).collect();
            fs::write(&path, [&[0][..], &bytes].concat()).expect("written");
        }
        3 if is_there => {
            let mode = if random.random_bool(0.5) { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        }
        _ => {
            let lines: Vec<String> = (0..random.random_range(0..60_u32))
                .map(|n| format!("line {}", n + random.random_range(0..2)))
                .collect();
            let end = if random.random_bool(0.5) { "\n" } else { "" };
            fs::write(&path, lines.join(if random.random_bool(0.2) { "\r\n" } else { "\n" }) + end)
                .expect("written");
        }
    }
}

#[test]
fn the_reader_accepts_git_patches_and_git_applies_what_it_accepts() {
    let (mut files, mut binary, mut links) = (0, 0, 0);
    for seed in 0..ROUNDS {
        let mut random = StdRng::seed_from_u64(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let tree = folder.path();
        git(tree, &["init", "-q", "."]);
        for _ in 0..8 {
            change(tree, &mut random);
        }
        git(tree, &["add", "-A"]);
        git(tree, &["commit", "-q", "--allow-empty", "-m", "base"]);
        for _ in 0..8 {
            change(tree, &mut random);
        }
        git(tree, &["add", "-A"]);
        let diff = [
            "diff",
            "--cached",
            "--binary",
            "--full-index",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
        ];
        let written = git(tree, &diff);
        let touched = git(tree, &["diff", "--cached", "--name-only", "--no-renames", "-z"]);
        let mut touched: Vec<&str> =
            std::str::from_utf8(&touched).expect("UTF-8").split_terminator('\0').collect();
        if touched.is_empty() {
            continue;
        }
        let text = String::from_utf8(written).expect("UTF-8");
        let patch = read(&text).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}\n{text}"));
        let mut paths: Vec<&str> = patch.files.iter().map(|file| file.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        touched.sort_unstable();
        assert_eq!(paths, touched, "seed {seed}");
        files += paths.len();
        binary += patch.files.iter().filter(|file| matches!(file.body, Body::Binary { .. })).count();
        links += patch.files.iter().filter(|file| file.after == Some(Mode::Symlink)).count();
        let tree_after = git(tree, &["write-tree"]);
        git(tree, &["reset", "-q", "--hard"]);
        fs::write(folder.path().join(".git/p"), &text).expect("written");
        git(tree, &["apply", "--index", ".git/p"]);
        assert_eq!(git(tree, &["write-tree"]), tree_after, "seed {seed}");
    }
    assert!(files > 100 && binary > 10 && links > 3, "too little was tried: {files} {binary} {links}");
}
