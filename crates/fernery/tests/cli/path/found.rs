//! Where the data directory is found, and whose is not used.

use super::Detached;
use crate::program::{fernery, run_in};
use std::fs;
use std::path::Path;

fn capture(folder: &Path, own: &Path) -> crate::program::Answer {
    fernery()
        .current_dir(folder)
        .env("XDG_DATA_HOME", own)
        .args(["capture", "buy milk"])
        .output()
        .unwrap()
        .into()
}

#[test]
fn a_capture_works_from_anywhere_and_the_users_own_server_gets_it() {
    let dir = tempfile::tempdir().unwrap();
    let (own, here) = (dir.path().join("own"), dir.path().join("some/where"));
    fs::create_dir_all(&here).unwrap();
    let first = capture(&here, &own).exits(0);
    assert!(first.stderr.contains(&format!("{}/fernery/captures", own.display())), "{first:?}");
    assert!(!here.join(".fernery").exists());
    // A server that is started anywhere else serves the same directory.
    let elsewhere = dir.path().join("else");
    fs::create_dir(&elsewhere).unwrap();
    let with_own = |args: &[&str]| -> crate::program::Answer {
        fernery().current_dir(&elsewhere).env("XDG_DATA_HOME", &own).args(args).output().unwrap().into()
    };
    let up = with_own(&["up", "--detach", "--listen", "127.0.0.1:0"]).exits(0).stderr;
    let told = up.contains(own.to_str().unwrap()) && up.contains("fernery up --data .fernery");
    assert!(told && up.matches("data directory").count() == 1, "{up}");
    let config = with_own(&["config", "--json"]).exits(0).json();
    assert_eq!(config["settings"]["data"]["source"], "the user's own data folder");
    let found = with_own(&["doctor", "--json"]).json();
    let of = |check: &str| found.as_array().unwrap().iter().find(|row| row["check"] == check).cloned();
    assert!(
        of("data").unwrap()["found"].as_str().unwrap().ends_with("(the user's own data folder)"),
        "{found}"
    );
    capture(&here, &own).exits(0);
    let captured = |n| {
        move |answer: &serde_json::Value| answer["candidates"].as_array().is_some_and(|all| all.len() == n)
    };
    let listed =
        crate::program::patience::eventually(|| captured(2)(&with_own(&["triage", "list", "--json"]).json()));
    with_own(&["down"]).exits(0);
    assert!(listed, "both captures became candidates");
}

#[test]
fn the_nearest_folder_above_wins_and_a_named_one_wins_over_it() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b/c");
    fs::create_dir_all(&deep).unwrap();
    let server = Detached::start(dir.path(), &[]);
    let root = dir.path().canonicalize().unwrap();
    let config = run_in(&deep, ["config", "--json"]).exits(0).json();
    assert_eq!(config["settings"]["data"]["value"], root.join(".fernery").to_str().unwrap());
    assert_eq!(config["settings"]["data"]["source"], format!("found upward, in {}", root.display()));
    run_in(&deep, ["job", "enqueue", "--stream", "s", "--payload", "{}"]).exits(0);
    fs::create_dir(deep.parent().unwrap().join(".fernery")).unwrap();
    let nearer = run_in(&deep, ["job", "list"]).exits(1);
    assert!(nearer.stderr.contains("a/b/.fernery"), "{nearer:?}");
    run_in(&deep, ["job", "list", "--data", root.join(".fernery").to_str().unwrap()]).exits(0);
    drop(server);
}

#[test]
fn what_belongs_to_another_user_is_neither_read_nor_served() {
    let dir = tempfile::tempdir().unwrap();
    let (here, root) = (dir.path().join("a"), dir.path().canonicalize().unwrap());
    fs::create_dir_all(&here).unwrap();
    fs::create_dir(root.join(".fernery")).unwrap();
    fs::write(root.join("fernery.toml"), "listen = \"nonsense\"\n").unwrap();
    let give = |path: &str, uid| {
        let given = std::os::unix::fs::chown(root.join(path), Some(uid), Some(uid));
        given.expect("this test gives files to another user: run it as root");
    };
    // Root decides about everything; another user who runs this sees nothing of root's.
    give(".fernery", 12_345);
    give("fernery.toml", 12_345);
    let config = run_in(&here, ["config", "--json"]).exits(0);
    assert_eq!(config.json()["file"], serde_json::Value::Null);
    assert_eq!(config.json()["settings"]["data"]["value"], ".fernery");
    for (path, flag) in [(".fernery", "--data"), ("fernery.toml", "--config")] {
        let said = format!(
            "{} belongs to another user and is not used; if you trust it, name it with {flag}",
            root.join(path).display()
        );
        assert!(config.stderr.contains(&said), "{config:?}");
    }
    let refused = run_in(&root, ["up"]).exits(2);
    assert!(refused.stderr.contains(".fernery in this folder belongs to another user"), "{refused:?}");
    // Named, it is used; and after `sudo` so is what belongs to the caller.
    run_in(&here, ["config", "--config", "../fernery.toml", "--data", "../.fernery"]).exits(2);
    let mut command = fernery();
    let behind = command.env("SUDO_UID", "12345").current_dir(&here).args(["config"]).output().unwrap();
    assert!(String::from_utf8_lossy(&behind.stderr).contains("nonsense"), "the file is read");
}

/// A data directory that came with somebody else's files names a server of theirs.
#[test]
fn a_server_elsewhere_that_no_process_here_has_named_gets_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (data, below) = (dir.path().join(".fernery"), dir.path().join("src"));
    fs::create_dir_all(&data).unwrap();
    fs::create_dir_all(&below).unwrap();
    fs::write(data.join("url"), "http://server.invalid:8080\n").unwrap();
    fs::write(data.join("operator.token"), "theirs\n").unwrap();
    let mut command = fernery();
    command.current_dir(&below).env("FERNERY_TOKEN", "mine").args(["ticket", "list"]);
    let refused = crate::program::Answer::from(command.output().unwrap());
    assert!(refused.stderr.contains("no server runs on it here"), "{refused:?}");
    assert!(refused.stderr.contains("--url http://server.invalid:8080"), "{refused:?}");
}
