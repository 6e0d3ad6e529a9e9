//! Rework: an attempt starts from what the one before it left, its patch is still judged as a whole, and its branch moves on.

use crate::fresh_database::fresh_database;
use crate::yard::{GATES, Yard, blueprint, git, lay_out};
use serde_json::Value;
use std::fs;

/// Gates with a command that says what is missing, and twenty lines and more before that.
pub(crate) fn checked(check: &str) -> String {
    let argv = format!("argv = [\"sh\", \"-c\", {}]", serde_json::json!(check));
    let command =
        format!("{{ kind = \"command\", name = \"check\", {argv}, timeout = \"20s\", protects = [] }}");
    GATES.replace("}]\n", &format!("}}, {command}]\n"))
}

pub(crate) fn is_done(objective: &Value, runs: usize) -> bool {
    objective["objective"]["status"] == "DONE"
        && objective["runs"].as_array().is_some_and(|all| all.len() == runs)
}

fn prompt(objective: &Value, nth: usize) -> &str {
    objective["context_snapshots"][nth]["full_prompt_text"].as_str().unwrap()
}

fn patch(objective: &Value, nth: usize) -> &str {
    objective["output_bundles"][nth]["content"].as_str().unwrap()
}

/// The last line of evidence, which is about the branch.
fn branch_said(objective: &Value, nth: usize) -> &str {
    let evidence = objective["runs"][nth]["evidence"].as_array().unwrap().last().unwrap();
    assert_eq!(evidence["gate"], "branch", "{objective:#}");
    evidence["log_tail"].as_str().unwrap()
}

/// From a failed gate to a passing one, then reopened twice.
fn built_on_the_last_candidate(more: &[&str]) {
    let gates = checked(
        "for n in $(seq 30); do echo line $n; done; test -e two.txt || { echo two.txt is missing; exit 3; }",
    );
    let of = blueprint(&gates).replace("gate_failures = 0", "gate_failures = 1");
    let yard = Yard::open_in_with(lay_out(&of), more);
    yard.ticket("yard", "t", "mock: first write one.txt 1\nmock: again write two.txt 2");
    let done = yard.until("t", "done", |objective| is_done(objective, 2));
    // The second attempt had the first one's file, and its patch has both.
    assert_eq!(patch(&done, 0).matches("+++ b/").count(), 1);
    assert!(
        patch(&done, 1).contains("+++ b/one.txt") && patch(&done, 1).contains("+++ b/two.txt"),
        "{done:#}"
    );
    let rework = &done["context_snapshots"][1]["metadata"]["rework"];
    assert_eq!(rework["output_id"], done["output_bundles"][0]["output_id"]);
    assert_eq!(
        (&rework["patch"], &rework["passed"]),
        (&done["output_bundles"][0]["content"], &Value::Bool(false))
    );
    assert_eq!(done["output_bundles"][1]["metadata"]["started_from"]["how"], "candidate");
    let told = prompt(&done, 1);
    for part in [
        "two.txt is missing",
        "line 30",
        "## What the attempt before this one changed",
        "one.txt (new, +1 −0)",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!prompt(&done, 0).contains("before this one"));
    // What failed is shown with the end of its log, and the whole is kept.
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert!(shown.contains("| line 12\n") && shown.contains("| two.txt is missing\n"), "{shown}");
    assert!(!shown.contains("| line 11\n"), "only the last twenty: {shown}");
    let failed = done["runs"][0]["run_id"].as_str().unwrap();
    let shown = yard.server.run(["run", "show", failed]).exits(0).stdout;
    assert!(shown.contains("| line 12\n") && shown.contains("--gate check"), "{shown}");
    let log = yard.server.run(["run", "logs", failed, "--gate", "check"]).exits(0).stdout;
    let refused = yard.server.run(["run", "logs", failed, "--gate", "nope"]).exits(3).stderr;
    assert!(refused.contains("has no gate nope; it has: ") && refused.contains("check"), "{refused}");
    assert!(log.starts_with("line 1\n") && log.ends_with("line 30\ntwo.txt is missing\n"), "{log}");
    // Reopened, it builds on that; the branch moves forward.
    let first = git(&yard.repo(), &["rev-parse", "azolla/t"]);
    yard.server.run(["ticket", "reopen", "t", "--note", "mock: write three.txt 3"]).exits(0);
    let done = yard.until("t", "reopened", |objective| is_done(objective, 3));
    assert!(
        ["one", "two", "three"].iter().all(|name| patch(&done, 2).contains(&format!("b/{name}.txt"))),
        "{done:#}"
    );
    assert_eq!(git(&yard.repo(), &["rev-parse", "azolla/t^"]), first);
    assert_eq!(yard.branches(), ["refs/heads/azolla/t"]);
    assert_eq!(
        branch_said(&done, 2),
        format!(
            "azolla/t at {}\nnote: on top of commit {first}, of an earlier attempt",
            git(&yard.repo(), &["rev-parse", "azolla/t"])
        )
    );
    // What the rework changed, and nothing else; by number and by id.
    let since = yard.server.run(["run", "diff", "t", "--since", "2"]).exits(0).stdout;
    assert!(
        since.contains("+++ b/three.txt") && !since.contains("one.txt") && !since.contains("two.txt"),
        "{since}"
    );
    let since = yard.server.run(["run", "diff", "t", "--since", failed, "--stat", "--json"]).exits(0).json();
    assert_eq!((&since["insertions"], &since["deletions"]), (&2.into(), &0.into()), "{since}");
    yard.server.run(["run", "diff", "t", "--since", "4"]).exits(3);
    // From scratch there is nothing of all this, and the branch still moves forward.
    let second = git(&yard.repo(), &["rev-parse", "azolla/t"]);
    yard.server.run(["ticket", "reopen", "t", "--from-scratch", "--note", "mock: write two.txt 2"]).exits(0);
    let done = yard.until("t", "from scratch", |objective| is_done(objective, 4));
    assert_eq!(done["context_snapshots"][3]["metadata"].get("rework"), None);
    let (whole, told) = (patch(&done, 3), prompt(&done, 3));
    assert!(
        whole.contains("b/two.txt")
            && !whole.contains("b/three.txt")
            && told.contains("mock: write two.txt 2")
    );
    assert_eq!(git(&yard.repo(), &["rev-parse", "azolla/t^"]), second);
    git(&yard.repo(), &["fsck", "--strict"]);
    for run in done["runs"].as_array().unwrap() {
        yard.server.run(["run", "replay", run["run_id"].as_str().unwrap()]).exits(0);
    }
}

#[test]
fn an_attempt_builds_on_what_the_one_before_it_left_on_sqlite() {
    built_on_the_last_candidate(&[]);
}

#[test]
fn an_attempt_builds_on_what_the_one_before_it_left_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(fresh_database());
    built_on_the_last_candidate(&["--database", &database.url()]);
}

#[test]
fn a_reopened_ticket_whose_patch_stays_the_same_does_not_pass() {
    let yard = Yard::open(&blueprint(GATES).replace("gate_failures = 0", "gate_failures = 1"));
    yard.ticket("yard", "t", "mock: write one.txt 1");
    yard.until("t", "done", |objective| is_done(objective, 1));
    yard.server.run(["ticket", "reopen", "t", "--note", "and a second one"]).exits(0);
    let blocked = yard.until("t", "blocked", |objective| objective["objective"]["status"] == "BLOCKED");
    let outcome = |nth: usize| blocked["output_bundles"][nth]["metadata"]["outcome"].clone();
    assert_eq!((outcome(1), outcome(2)), ("NO_CHANGE".into(), "NO_CHANGE".into()), "{blocked:#}");
    let why = blocked["objective"]["blocked_on"][0]["description"].as_str().unwrap();
    assert!(why.starts_with("this attempt made the same patch"), "{why}");
}

#[test]
fn a_base_that_moved_is_merged_and_conflicts_are_left_to_the_agent() {
    let yard = Yard::open(&blueprint(GATES).replace("gate_failures = 0", "gate_failures = 1"));
    let repo = yard.repo();
    let commits = |name: &str, text: &str| {
        fs::write(repo.join(name), text).unwrap();
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-q", "-m", "moves"]);
        git(&repo, &["rev-parse", "main"])
    };
    yard.ticket("yard", "t", "mock: first write greeting.txt Hi\nmock: first write new.txt new");
    yard.until("t", "done", |objective| is_done(objective, 1));
    // Another file changed: both are there.
    let tip = commits("other.txt", "other\n");
    yard.server.run(["ticket", "reopen", "t", "--note", "mock: append new.txt more"]).exits(0);
    let done = yard.until("t", "merged", |objective| is_done(objective, 2));
    assert_eq!(done["output_bundles"][1]["metadata"]["started_from"]["how"], "merged");
    assert_eq!(done["output_bundles"][1]["metadata"]["base_sha"], *tip);
    assert!(!patch(&done, 1).contains("other.txt") && patch(&done, 1).contains("+Hi"), "{done:#}");
    assert_eq!(git(&repo, &["show", "azolla/t:other.txt"]), "other");
    assert_eq!(git(&repo, &["merge-base", "main", "azolla/t"]), tip, "a merge sees what is in it already");
    // The same line changed: the agent gets both sides. One that resolves nothing fails the patch gate, with the file.
    commits("greeting.txt", "Good day\n");
    yard.server.run(["ticket", "reopen", "t", "--note", "mock: again append new.txt more still"]).exits(0);
    let failed = yard.until("t", "with markers", |objective| {
        objective["runs"].as_array().is_some_and(|all| all.len() >= 3)
    });
    let started = &failed["output_bundles"][2]["metadata"]["started_from"];
    assert_eq!(started["how"], "conflicts", "{failed:#}");
    assert_eq!(started["conflicts"], serde_json::json!(["greeting.txt"]));
    assert!(patch(&failed, 2).contains("+<<<<<<< fernery-base\n"), "{}", patch(&failed, 2));
    let why = failed["runs"][2]["gate_reason"].as_str().unwrap();
    assert!(why.contains("gate patch: it leaves conflict markers") && why.contains("greeting.txt"), "{why}");
    yard.until("t", "blocked", |objective| objective["objective"]["status"] == "BLOCKED");
    // Told so, it resolves them.
    yard.server.run(["ticket", "edit", "t", "--criteria", "mock: write greeting.txt Good morning"]).exits(0);
    yard.server.run(["ticket", "unblock", "t", "--all"]).exits(0);
    yard.server.run(["ticket", "approve", "t", "--yes"]).exits(0);
    let done = yard.until("t", "resolved", |objective| objective["objective"]["status"] == "DONE");
    let last = done["runs"].as_array().unwrap().len() - 1;
    assert!(patch(&done, last).contains("-Good day\n+Good morning\n"), "{}", patch(&done, last));
    assert_eq!(yard.branches(), ["refs/heads/azolla/t"]);
    assert_eq!(git(&repo, &["show", "azolla/t:greeting.txt"]), "Good morning");
}

#[test]
fn a_branch_that_somebody_else_has_touched_is_left_alone() {
    let yard = Yard::open(&blueprint(GATES));
    let repo = yard.repo();
    let reopened = |id: &str, runs: usize, note: &str| {
        yard.server.run(["ticket", "reopen", id, "--note", note]).exits(0);
        yard.until(id, "reopened", |objective| is_done(objective, runs))
    };
    // Checked out: moving it would change what that working tree is of.
    yard.ticket("yard", "seen", "mock: first write a.txt 1");
    yard.until("seen", "done", |objective| is_done(objective, 1));
    git(&repo, &["switch", "-q", "azolla/seen"]);
    let kept = git(&repo, &["rev-parse", "azolla/seen"]);
    let done = reopened("seen", 2, "mock: append a.txt 2");
    assert!(branch_said(&done, 1).starts_with("azolla/seen-2 at "), "{done:#}");
    assert!(branch_said(&done, 1).contains("azolla/seen is checked out in a working tree"), "{done:#}");
    assert_eq!(
        (git(&repo, &["rev-parse", "azolla/seen"]), git(&repo, &["status", "--short"])),
        (kept, String::new())
    );
    // From then on that one moves.
    let second = git(&repo, &["rev-parse", "azolla/seen-2"]);
    let done = reopened("seen", 3, "mock: append a.txt 3");
    assert!(branch_said(&done, 2).starts_with("azolla/seen-2 at "), "{done:#}");
    assert!(!branch_said(&done, 2).contains("azolla/seen is"), "{done:#}");
    assert_eq!(git(&repo, &["rev-parse", "azolla/seen-2^"]), second);
    // With a commit of somebody's.
    git(&repo, &["switch", "-q", "main"]);
    yard.ticket("yard", "theirs", "mock: first write b.txt 1");
    yard.until("theirs", "done", |objective| is_done(objective, 1));
    git(&repo, &["switch", "-q", "azolla/theirs"]);
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    let mine = git(&repo, &["rev-parse", "azolla/theirs"]);
    git(&repo, &["switch", "-q", "main"]);
    let done = reopened("theirs", 2, "mock: append b.txt 2");
    assert!(branch_said(&done, 1).contains("azolla/theirs has commits of somebody else"), "{done:#}");
    assert_eq!(git(&repo, &["rev-parse", "azolla/theirs"]), mine);
    // Deleted: its name is free again.
    git(&repo, &["branch", "-D", "azolla/theirs-2"]);
    git(&repo, &["branch", "-D", "azolla/theirs"]);
    let done = reopened("theirs", 3, "mock: append b.txt 3");
    assert!(branch_said(&done, 2).starts_with("azolla/theirs at "), "{done:#}");
}
