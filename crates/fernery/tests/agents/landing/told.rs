//! What did not land is told wherever somebody looks, with what helps.

use super::{commit_on_main, decisions, done, fits, merge, plain, status, with_check};
use crate::yard::{Yard, git};
use serde_json::{Value, json};

/// The first of the next things to do that `ticket show` names.
fn first_of_next(shown: &str) -> &str {
    let mut lines = shown.lines().skip_while(|line| *line != "next:");
    lines.nth(1).unwrap_or_else(|| panic!("{shown}")).trim()
}

#[test]
fn a_conflict_names_the_file_stops_and_offers_one_action_that_works() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    done(&yard, "t", "mock: replace greeting.txt Hello => Goodbye");
    commit_on_main(&repo, "greeting.txt", "Good morning\n");
    let tip = git(&repo, &["rev-parse", "main"]);
    fits(&yard, "t", "CONFLICTS");
    let listed = yard.server.run(["ticket", "list"]).exits(0).stdout;
    assert!(listed.contains("conflicts: greeting.txt"), "{listed}");
    let page = yard.server.run(["orient"]).exits(0).stdout;
    let reopen = "fernery ticket reopen t --note 'main changed the same lines: greeting.txt'";
    assert!(page.contains("its patch conflicts: main changed the same lines: greeting.txt"), "{page}");
    assert_eq!(page.matches(reopen).count(), 1, "{page}");
    assert!(!page.contains("fernery ticket confirm"), "{page}");
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert_eq!(
        first_of_next(&shown),
        format!("It conflicts with its base branch. Let it be worked on again: {reopen}")
    );
    assert!(!shown.contains("what is missing"), "{shown}");
    let list = yard.server.read("/v1/objectives?unlanded=true").1;
    assert_eq!(
        (list["objectives"].as_array().map(Vec::len), &list["objectives"][0]["landing"]["fit"]),
        (Some(1), &json!("CONFLICTS")),
        "{list:#}"
    );
    // It is told before anything is confirmed.
    let said = merge(&yard, "t").exits(4).stderr;
    assert!(
        said.contains("t conflicts: main changed the same lines: greeting.txt; nothing was confirmed"),
        "{said}"
    );
    assert!(
        said.contains("fernery ticket reopen t --note 'main changed the same lines: greeting.txt'"),
        "{said}"
    );
    assert_eq!(decisions(&yard.objective("t")), ["APPROVE"]);
    let said = yard.server.run(["ticket", "confirm", "t"]).exits(0).stderr;
    assert!(said.contains(reopen) && !said.contains("fernery ticket merge"), "{said}");
    let page = yard.server.run(["orient"]).exits(0).stdout;
    assert!(page.contains(reopen) && !page.to_lowercase().contains("not merged"), "{page}");
    let said = merge(&yard, "t").exits(4).stderr;
    assert!(said.contains("did not land: main changed the same lines: greeting.txt"), "{said}");
    assert_eq!((git(&repo, &["rev-parse", "main"]), status(&repo)), (tip, String::new()));
    let now = yard.objective("t");
    let pause = now["pauses"].as_array().unwrap().last().unwrap();
    assert_eq!(pause["prioritized_actions"].as_array().map(Vec::len), Some(1), "{pause:#}");
    let action = pause["prioritized_actions"][0].as_str().unwrap();
    assert!(action.starts_with("fernery ticket reopen t --note '"), "{action}");
    let words = action.strip_prefix("fernery ").unwrap();
    let note = words.split_once("--note '").unwrap().1.trim_end_matches('\'');
    yard.server.run(["ticket", "reopen", "t", "--note", note]).exits(0);
    let again = yard.until("t", "worked on again", |objective| {
        objective["context_snapshots"].as_array().is_some_and(|all| all.len() == 2)
    });
    let prompt = again["context_snapshots"][1]["full_prompt_text"].as_str().unwrap();
    assert!(prompt.contains("main changed the same lines: greeting.txt"), "{prompt}");
}

#[test]
fn the_gates_judge_the_merged_files_and_not_the_patch_alone() {
    let yard = Yard::open(&with_check("! test -f a.txt || ! test -f b.txt"));
    let repo = yard.repo();
    done(&yard, "t", "mock: write a.txt a");
    commit_on_main(&repo, "b.txt", "b\n");
    let tip = git(&repo, &["rev-parse", "main"]);
    fits(&yard, "t", "MERGES");
    let said = merge(&yard, "t").exits(4).stderr;
    assert!(said.contains("merged with main at") && said.contains("gate check (exit 1)"), "{said}");
    // The reason stays as long as the branch is where it was, and is told everywhere.
    let page = yard.server.run(["orient"]).exits(0).stdout;
    assert!(page.contains("its patch did not land: merged with main at"), "{page}");
    assert!(page.contains("fernery ticket merge t") && !page.to_lowercase().contains("not merged"), "{page}");
    let listed = yard.server.run(["ticket", "list"]).exits(0).stdout;
    assert!(listed.contains("did not land: merged with main at"), "{listed}");
    let list = yard.server.read("/v1/objectives?unlanded=true").1;
    assert_eq!(list["objectives"][0]["objective"]["objective_id"], "t", "{list:#}");
    let shown = yard.server.run(["ticket", "show", "t"]).exits(0).stdout;
    assert!(first_of_next(&shown).starts_with("It did not land: merged with main at"), "{shown}");
    assert!(shown.contains("fernery run logs t --gate check"), "{shown}");
    yard.server.run(["run", "logs", "t", "--gate", "check"]).exits(0);
    assert!(!shown.contains("git switch"), "nor does it land by hand: {shown}");
    let (_, history) = shown.split_once("WHAT\n").unwrap_or_else(|| panic!("{shown}"));
    let place = |what: &str| history.find(what).unwrap_or_else(|| panic!("no {what}: {shown}"));
    let order = ["confirmed it (", "asked for its merge (", "did not land: merged with", "paused: its patch"]
        .map(place);
    assert!(order.is_sorted(), "{shown}");
    assert!(yard.objective("t")["landing"]["why"].as_str().unwrap().contains("gate check"));
    assert_eq!(git(&repo, &["rev-parse", "main"]), tip);
}

#[test]
fn a_deleted_candidate_is_made_again_and_a_deleted_base_is_told() {
    let yard = Yard::open(&plain());
    let repo = yard.repo();
    done(&yard, "t", "mock: write new.txt new");
    git(&repo, &["branch", "-q", "-D", "azolla/t"]);
    git(&repo, &["reflog", "expire", "--expire=now", "--all"]);
    git(&repo, &["gc", "-q", "--prune=now"]);
    commit_on_main(&repo, "other.txt", "other\n");
    fits(&yard, "t", "MERGES");
    merge(&yard, "t").exits(0);
    assert_eq!(git(&repo, &["show", "main:new.txt"]), "new");
    done(&yard, "u", "mock: write u.txt u");
    git(&repo, &["switch", "-q", "-c", "elsewhere"]);
    git(&repo, &["branch", "-q", "-D", "main"]);
    // Before somebody asks for the merge, and nobody is told to switch to it.
    let gone = "repository app has no branch main any more";
    let unseen = format!("its branch cannot be looked at: {gone}");
    yard.until("u", "told", |objective| objective["landing"]["why"] == *unseen);
    for command in [&["ticket", "list"][..], &["ticket", "show", "u"], &["orient"]] {
        let said = yard.server.run(command.iter().copied()).exits(0).stdout;
        assert!(said.contains(&format!("did not land: {unseen}")) && !said.contains("git switch"), "{said}");
    }
    let said = merge(&yard, "u").exits(4).stderr;
    assert!(said.contains(gone), "{said}");
    let actions =
        yard.objective("u")["pauses"].as_array().unwrap().last().unwrap()["prioritized_actions"].clone();
    assert_eq!(actions[0], format!("It did not land: {gone}"), "{actions}");
    assert!(actions[1].as_str().unwrap().ends_with("fernery ticket merge u"), "{actions}");
    git(&repo, &["switch", "-q", "-c", "main"]);
    let again = fits(&yard, "u", "MERGES");
    assert_eq!(again["landing"]["why"], Value::Null, "it is there again: {again:#}");
    let page = yard.server.run(["orient"]).exits(0).stdout;
    assert!(
        page.contains("Confirmed and not merged: u") && page.contains("fernery ticket merge u"),
        "{page}"
    );
    merge(&yard, "u").exits(0);
    assert_eq!(git(&repo, &["show", "main:u.txt"]), "u");
}
