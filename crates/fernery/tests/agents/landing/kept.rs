//! A ticket that was reopened in vain: the run that passed before can still come home.

use super::{decisions, done, landed, merge, on_both, plain, status};
use crate::yard::{Yard, git, lay_out};

fn reopened_in_vain(flags: &[&str]) -> Yard {
    let yard = Yard::open_in_with(lay_out(&plain()), flags);
    reopen_in_vain(&yard);
    yard
}

/// Answers the run that passed before.
pub(super) fn reopen_in_vain(yard: &Yard) -> String {
    let seen = done(yard, "t", "mock: first write new.txt new\nmock: again no-change it is so already");
    yard.server.run(["ticket", "reopen", "t", "--note", "look once more"]).exits(0);
    yard.until("t", "blocked", |objective| objective["objective"]["status"] == "BLOCKED");
    seen["confirms"].as_str().unwrap_or_else(|| panic!("{seen:#}")).to_string()
}

#[test]
fn a_run_that_passed_before_a_reopening_in_vain_still_comes_home() {
    on_both(|flags| {
        let yard = reopened_in_vain(flags);
        let repo = yard.repo();
        let seen = yard.objective("t");
        let pause = seen["pauses"].as_array().unwrap().last().unwrap();
        let run = seen["runs"][0]["run_id"].as_str().unwrap();
        let keep = format!("Or keep the run that passed before: fernery ticket confirm t --run {run}");
        assert!(pause["prioritized_actions"].as_array().unwrap().iter().any(|of| *of == keep), "{pause:#}");
        let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
        assert_eq!(shown.matches("fernery ticket confirm t --run").count(), 1, "{shown}");
        // To confirm is to say which run is meant.
        let refused = yard.server.run(["ticket", "confirm", "t"]).exits(4).stderr;
        assert!(refused.contains(&format!("fernery ticket confirm t --run {run}")), "{refused}");
        // A script that merges keeps no run that was sent back.
        let refused = merge(&yard, "t").exits(4);
        assert!(refused.stdout.contains("your yes keeps this run"), "{refused:?}");
        assert!(refused.stderr.contains(&format!("fernery ticket confirm t --run {run}")), "{refused:?}");
        // Nor does one that has no terminal to be asked on: it is told what works, not to say yes.
        let refused = yard.server.run(["ticket", "merge", "t"]).exits(4).stderr;
        let works = format!("fernery ticket confirm t --run {run} && fernery ticket merge t --yes");
        assert!(refused.contains(&works) && !refused.contains("pass --yes"), "{refused}");
        assert_eq!((&seen["kept_run"], &seen["merges"]["run_id"]), (&run.into(), &run.into()));
        yard.server.run(["ticket", "confirm", "t", "--run", run]).exits(0);
        let refused = yard.server.run(["ticket", "merge", "t"]).exits(2).stderr;
        assert!(refused.contains("pass --yes"), "{refused}");
        let said = merge(&yard, "t").exits(0).stdout;
        assert!(said.contains("landed on main as commit"), "{said}");
        let now = landed(&yard, "t");
        assert_eq!(now["landing"]["run_id"], run);
        assert_eq!(decisions(&now), ["APPROVE", "REOPEN", "CONFIRM", "MERGE"]);
        assert_eq!((&now["objective"]["status"], &now["unconfirmed"]), (&"DONE".into(), &false.into()));
        assert_eq!((git(&repo, &["show", "main:new.txt"]), status(&repo)), ("new".into(), String::new()));
        assert_eq!(yard.server.read("/v1/journal/verify").1["fault"], serde_json::Value::Null);
    });
}

#[test]
fn a_run_is_not_kept_for_a_text_that_it_was_not_made_for() {
    let yard = reopened_in_vain(&[]);
    let run = yard.objective("t")["runs"][0]["run_id"].as_str().unwrap().to_string();
    yard.server.run(["ticket", "edit", "t", "--title", "Something else"]).exits(0);
    let refused = yard.server.run(["ticket", "confirm", "t", "--run", &run]).exits(4).stderr;
    assert!(refused.contains("has changed since it was approved"), "{refused}");
    // Nobody is told to keep it.
    assert_eq!(yard.objective("t")["kept_run"], serde_json::Value::Null);
    for command in [&["ticket", "confirm", "t"][..], &["ticket", "merge", "t", "--yes"]] {
        let refused = yard.server.run(command.iter().copied());
        assert!(refused.code != Some(0) && !refused.stderr.contains("--run"), "{refused:?}");
    }
    assert_eq!(yard.objective("t")["objective"]["status"], "BLOCKED");
}

#[test]
fn a_run_that_is_kept_can_be_exported_and_worked_on_again() {
    let yard = reopened_in_vain(&[]);
    let run = yard.objective("t")["runs"][0]["run_id"].as_str().unwrap().to_string();
    yard.server.run(["ticket", "confirm", "t", "--run", &run]).exits(0);
    yard.server.run(["export", "out"]).exits(0);
    let other = Yard::open(&plain());
    other.server.run(["import", yard.server.dir.path().join("out").to_str().unwrap()]).exits(0);
    assert_eq!(other.objective("t")["objective"]["status"], "DONE");
    yard.server.run(["ticket", "reopen", "t", "--note", "once more"]).exits(0);
    yard.until("t", "blocked again", |objective| {
        objective["objective"]["status"] == "BLOCKED"
            && objective["runs"].as_array().is_some_and(|runs| runs.len() == 3)
    });
}

/// Before anything is recorded.
#[test]
fn a_run_of_another_instance_is_not_merged_and_not_confirmed() {
    on_both(|flags| {
        let yard = Yard::open(&plain());
        done(&yard, "t", "mock: write new.txt new");
        yard.server.run(["export", "out"]).exits(0);
        let other = Yard::open_in_with(lay_out(&plain()), flags);
        other.server.run(["import", yard.server.dir.path().join("out").to_str().unwrap()]).exits(0);
        let before = other.objective("t");
        let refused = merge(&other, "t").exits(4).stderr;
        assert!(refused.contains("nothing was confirmed, and nothing was merged"), "{refused}");
        assert!(refused.contains("fernery ticket reopen t"), "{refused}");
        let after = other.objective("t");
        assert_eq!((decisions(&after), &after["unconfirmed"]), (decisions(&before), &true.into()));
    });
}
