//! `[land]`: confirmed tickets land by themselves, in order; conflicts wait for a person, or are worked on again as often as the
//! approved blueprint says.

use super::{decisions, done, landed, landing_by, status};
use crate::yard::{Yard, git};
use serde_json::{Value, json};

fn confirm(yard: &Yard, id: &str, seen: &Value) -> Value {
    let run = seen["runs"].as_array().unwrap().last().unwrap()["run_id"].clone();
    yard.post(&format!("/v1/objectives/{id}/confirm"), json!({"run_id": run}))
}

#[test]
fn confirmed_tickets_land_in_the_order_of_confirmation() {
    let yard = Yard::open(&landing_by("on = \"confirm\""));
    let repo = yard.repo();
    let seen: Vec<(String, Value)> = (1..=3)
        .map(|n| {
            let id = format!("t{n}");
            let seen = done(&yard, &id, &format!("mock: write {id}.txt {id}"));
            (id, seen)
        })
        .collect();
    for (id, seen) in seen.iter().rev() {
        let said = confirm(&yard, id, seen);
        assert_eq!(said["landing"]["state"], "WANTED", "{said:#}");
    }
    for (id, _) in &seen {
        assert_eq!(decisions(&landed(&yard, id)), ["APPROVE", "CONFIRM", "MERGE"]);
    }
    let log = git(&repo, &["log", "--format=%B", "--reverse", "main"]);
    let order: Vec<&str> = log.lines().filter_map(|line| line.strip_prefix("Objective: ")).collect();
    assert_eq!(order, ["t3", "t2", "t1"]);
    assert_eq!(status(&repo), "");
}

#[test]
fn a_conflict_in_the_queue_waits_for_a_person_and_lets_the_next_one_land() {
    let yard = Yard::open(&landing_by("on = \"confirm\""));
    let repo = yard.repo();
    let scripts = [("a", "append greeting.txt a"), ("b", "append greeting.txt b"), ("c", "write c.txt c")];
    let seen = scripts.map(|(id, script)| (id, done(&yard, id, &format!("mock: {script}"))));
    for (id, seen) in &seen {
        confirm(&yard, id, seen);
    }
    landed(&yard, "a");
    landed(&yard, "c");
    let stopped = yard.until("b", "stopped", |objective| objective["landing"]["state"] == "OPEN");
    assert_eq!(stopped["landing"]["files"], json!(["greeting.txt"]));
    let pause = stopped["pauses"].as_array().unwrap().last().unwrap();
    let actions = pause["prioritized_actions"].as_array().unwrap();
    assert!(
        actions.len() == 1 && actions[0].as_str().unwrap().starts_with("fernery ticket reopen b --note"),
        "{pause}"
    );
    assert_eq!(git(&repo, &["show", "main:greeting.txt"]), "Hello\na");
    let shown = yard.server.run(["ticket", "show", "b"]).exits(0).stdout;
    let reopen = "fernery ticket reopen b --note 'main changed the same lines: greeting.txt'";
    assert!(shown.contains(reopen), "{shown}");
    let page = yard.server.run(["orient"]).exits(0).stdout;
    assert!(page.contains("its patch conflicts") && page.contains(reopen), "{page}");
}

#[test]
fn a_conflict_is_worked_on_again_by_itself_as_often_as_was_approved_and_within_the_same_envelope() {
    let yard = Yard::open(&landing_by("on = \"confirm\"\nrework = 1"));
    let repo = yard.repo();
    let first = done(&yard, "a", "mock: append greeting.txt a");
    // The second time it starts from its own patch on the new base, and resolves what is in conflict.
    let script = "mock: first append greeting.txt b\nmock: again write greeting.txt Hello\\na\\nb";
    let second = done(&yard, "b", script);
    confirm(&yard, "a", &first);
    confirm(&yard, "b", &second);
    landed(&yard, "a");
    let again = yard.until("b", "done again", |objective| {
        objective["runs"].as_array().is_some_and(|runs| runs.len() == 2)
            && objective["objective"]["status"] == "DONE"
    });
    assert_eq!(again["unconfirmed"], true, "a person looks at the new patch");
    assert_eq!(again["spent"]["attempts"], 2, "one envelope for both");
    let reopened = &again["decisions"][3];
    assert_eq!((&reopened["kind"], &reopened["who"]), (&json!("REOPEN"), &json!("fernery")));
    let prompt = again["context_snapshots"][1]["full_prompt_text"].as_str().unwrap();
    assert!(prompt.contains("main changed the same lines: greeting.txt"), "{prompt}");
    assert_eq!(again["output_bundles"][1]["metadata"]["started_from"]["conflicts"], json!(["greeting.txt"]));
    confirm(&yard, "b", &again);
    landed(&yard, "b");
    assert_eq!(git(&repo, &["show", "main:greeting.txt"]), "Hello\na\nb");
    assert_eq!(
        git(&repo, &["rev-list", "--count", "main"]),
        "3",
        "one commit for each ticket, whatever came before it"
    );
    assert_eq!(status(&repo), "");
}
