//! A notice for a program: what it gets, what it does not, and that it ends.

use crate::processes::Mark;
use fernery::outgoing::notices::{NotSent, run_hook_under};
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

async fn hook(argv: &[&str], notice: &[u8], within: Duration) -> Result<(), NotSent> {
    let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
    let run = run_hook_under(Path::new(env!("CARGO_BIN_EXE_fernery")), &argv, notice, within);
    timeout(PATIENCE, run).await.expect("it ends")
}

async fn sh(script: &str, notice: &[u8], within: Duration) -> Result<(), NotSent> {
    hook(&["sh", "-c", script], notice, within).await
}

fn later(told: Result<(), NotSent>) -> String {
    match told {
        Err(NotSent::Later(why)) => why,
        other => panic!("it is not for later: {other:?}"),
    }
}

#[tokio::test]
async fn a_hook_gets_the_notice_to_the_byte_and_three_variables() {
    let folder = tempfile::tempdir().expect("a folder");
    let (notice, seen) = (format!("{{\"text\":\"{}\"}}", "é ".repeat(100_000)), folder.path().join("seen"));
    let script = r#"cat >"$0/notice" && env | cut -d= -f1 | sort >"$0/seen""#;
    let argv = ["sh", "-c", script, folder.path().to_str().expect("text")];
    assert_eq!(hook(&argv, notice.as_bytes(), PATIENCE).await, Ok(()));
    assert_eq!(std::fs::read_to_string(folder.path().join("notice")).expect("written"), notice);
    // The shell brings the last ones itself.
    for name in std::fs::read_to_string(seen).expect("written").lines() {
        assert!(["PATH", "HOME", "LANG", "PWD", "SHLVL", "_", "OLDPWD"].contains(&name), "{name}");
    }
}

#[tokio::test]
async fn a_hook_that_fails_says_why() {
    let why = later(sh("echo out; echo 'no such room\x1b[2J' >&2; exit 3", b"{}", PATIENCE).await);
    assert_eq!(why, "the hook sh exited with 3: no such room\u{fffd}[2J");
    let why = later(sh("echo only this; exit 1", b"{}", PATIENCE).await);
    assert_eq!(why, "the hook sh exited with 1: only this");
    let why = later(sh("kill -SEGV $$", b"{}", PATIENCE).await);
    assert_eq!(why, "the hook sh died of signal 11");
}

#[tokio::test]
async fn a_hook_that_writes_without_end_is_shown_in_part() {
    let why =
        later(sh("yes ééé | head -c 4900000; yes ééé | head -c 4900000 >&2; exit 1", b"{}", PATIENCE).await);
    assert!(why.len() < 1_100 && why.ends_with("ééé"), "{} bytes", why.len());
}

#[tokio::test]
async fn a_hook_that_does_not_read_is_not_waited_for() {
    assert_eq!(sh("exit 0", &vec![b' '; 1 << 20], PATIENCE).await, Ok(()));
}

#[tokio::test]
async fn a_hook_that_hangs_is_ended_with_all_that_it_started() {
    let mark = Mark::new("FERNERY_TEST_HOOK");
    let (name, value) = (mark.name(), mark.value());
    let script = format!(
        "export {name}={value}; trap '' TERM; setsid sleep 1000 & sleep 1000 & echo off >&2; wait; sleep 1000"
    );
    let why = later(sh(&script, b"{}", Duration::from_secs(2)).await);
    assert_eq!(why, "the hook sh was ended after 2s: off");
    mark.assert_gone_now();
}

#[tokio::test]
async fn a_hook_that_is_no_program_is_refused() {
    for argv in [&[][..], &[""], &["/nowhere/hook"], &["/"]] {
        match hook(argv, b"{}", PATIENCE).await {
            Err(NotSent::Refused(why)) => assert!(why.contains("hook"), "{why}"),
            other => panic!("{argv:?} was not refused: {other:?}"),
        }
    }
}
