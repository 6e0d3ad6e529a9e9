//! The git commands for those who merge by hand: each set is run, and brings exactly the patch that was reviewed.

use super::{commit_on_main, done, fits, landed, landing_by, status};
use crate::rework::is_done;
use crate::yard::{Yard, git};
use std::path::Path;
use std::process::Command;

/// How the branch of a ticket came about.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Past {
    /// By one attempt.
    Plain,
    /// By two, on one base.
    Reworked,
    /// By two, and the base moved between them.
    ReworkedOnANewBase,
}

/// Runs what a person would type, who has no editor to answer with.
fn types(repo: &Path, commands: &[String]) {
    let mut sh = Command::new("sh");
    sh.current_dir(repo).args(["-c", &commands.join(" && ")]).env("GIT_EDITOR", "false");
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        sh.env(format!("{name}_NAME"), "o").env(format!("{name}_EMAIL"), "o@localhost");
    }
    let ran = sh.output().unwrap();
    assert!(ran.status.success(), "{commands:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

fn merged_by_hand(how: &str, past: Past, moved: bool) {
    let about = format!("{how}, {past:?}, base moved: {moved}");
    let yard = Yard::open(&landing_by(how));
    let repo = yard.repo();
    if past == Past::Plain {
        done(&yard, "t", "mock: write ok.txt ok");
    } else {
        done(
            &yard,
            "t",
            "mock: first write pw.txt hunter2\nmock: again delete pw.txt\nmock: again write ok.txt ok",
        );
        if past == Past::ReworkedOnANewBase {
            commit_on_main(&repo, "between.txt", "between\n");
        }
        yard.server.run(["ticket", "reopen", "t", "--note", "take the password out"]).exits(0);
        yard.until("t", "its second run", |objective| is_done(objective, 2));
    }
    if moved {
        commit_on_main(&repo, "other.txt", "other\n");
    }
    let before = git(&repo, &["rev-parse", "main"]);
    let seen = fits(&yard, "t", "MERGES");
    let commands: Vec<String> = serde_json::from_value(seen["landing"]["by_hand"].clone()).unwrap();
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert!(shown.contains(&commands.join(" && ")), "{about}: {shown}");
    types(&repo, &commands);
    assert_eq!(git(&repo, &["diff", "--name-status", &before, "main"]), "A\tok.txt", "{about}");
    assert_eq!(git(&repo, &["show", "main:ok.txt"]), "ok", "{about}");
    assert_eq!(git(&repo, &["log", "--format=%h", "-S", "hunter2", "main"]), "", "{about}: {commands:?}");
    let parents = git(&repo, &["log", "-1", "--format=%P", "main"]);
    let wanted = if how.contains("commit") { 2 } else { 1 };
    assert_eq!(parents.split(' ').count(), wanted, "{about}: {commands:?}");
    assert!(parents.starts_with(&before), "{about}");
    assert!(git(&repo, &["log", "-3", "--format=%s", "main"]).contains("Do it"), "{about}");
    assert_eq!(status(&repo), "", "{about}");
    landed(&yard, "t");
}

#[test]
fn the_commands_of_a_fast_forward_bring_the_reviewed_patch() {
    for past in [Past::Plain, Past::Reworked, Past::ReworkedOnANewBase] {
        merged_by_hand("merge = \"ff\"", past, false);
        merged_by_hand("merge = \"ff\"", past, true);
    }
}

#[test]
fn the_commands_of_a_merge_commit_bring_the_reviewed_patch() {
    for past in [Past::Plain, Past::Reworked, Past::ReworkedOnANewBase] {
        merged_by_hand("merge = \"commit\"", past, false);
        merged_by_hand("merge = \"commit\"", past, true);
    }
}
