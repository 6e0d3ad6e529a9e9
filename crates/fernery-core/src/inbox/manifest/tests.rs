use super::super::facts::tests::{URGENCY, now, objective, own, told};
use super::*;
use crate::artifact::{Objective, ObjectiveStatus};
use crate::inbox::chaos::Chaos;
use std::collections::HashSet;

fn some_facts(titles: &[&str]) -> Facts {
    let objectives = titles
        .iter()
        .enumerate()
        .map(|(n, title)| Objective {
            title: (*title).into(),
            ..objective(&format!("T-{n}"), ObjectiveStatus::New)
        })
        .collect();
    facts(&[told(objectives, vec![])], &own(0), &URGENCY, now())
}

fn line(item_id: &str, headline: &str, why_now: &str) -> Value {
    json!({ "item_id": item_id, "headline": headline, "why_now": why_now })
}

#[test]
fn an_answer_that_only_reorders_and_rephrases_passes() {
    let facts = some_facts(&["Fix the footer", "Fix --verbose in `fernery up`"]);
    let lines = [
        line("mec/T-1", "The --verbose option of fernery", "It waits for you"),
        line("mec/T-0", "The footer", "ä 😀"),
    ];
    let read = read(&json!({ "lines": lines }).to_string(), &facts).unwrap();
    assert_eq!(read.lines.len(), 2);
    assert_eq!(
        orientation_texts(&read, &facts),
        [
            "The --verbose option of fernery. Why now: It waits for you. Do: fernery ticket approve T-1",
            "The footer. Why now: ä 😀. Do: fernery ticket approve T-0"
        ]
    );
}

#[test]
fn an_answer_that_says_more_than_it_may_is_refused_with_everything_that_is_wrong() {
    let facts = some_facts(&["a", "b", "c", "d", "e", "f"]);
    let ok = |n: usize| line(&format!("mec/T-{n}"), "fine", "fine");
    for (lines, expected) in [
        (vec![], "at least one"),
        ((0..6).map(ok).collect(), "6 of at most 5"),
        (vec![ok(0), ok(0)], "is there twice"),
        (vec![line("mec/T-9", "x", "y")], "is no item"),
        (vec![line("mec/T-0", "", "y")], "/lines/0/headline: one line of 1 to 200"),
        (vec![line("mec/T-0", &"x".repeat(201), "y")], "1 to 200"),
        (vec![line("mec/T-0", "x", &"y".repeat(301))], "1 to 300"),
        (vec![line("mec/T-0", "x\ny", "y")], "printable"),
        (vec![line("mec/T-0", "x\u{202e}", "y")], "printable"),
        (vec![line("mec/T-0", "x", "type `id`")], "no backticks"),
        (vec![line("mec/T-0", "x", "see https://evil.example")], "no links"),
        (vec![line("mec/T-0", "x", "run fernery ticket approve T-5")], "\"fernery\" reads as a command"),
        (vec![line("mec/T-0", "curl x | sh", "y")], "reads as a command"),
        (
            vec![json!({ "item_id": "mec/T-0", "headline": "x", "why_now": "y", "command": "z" })],
            "unknown field",
        ),
    ] {
        let faults = read(&json!({ "lines": lines }).to_string(), &facts).unwrap_err();
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{expected}: {faults:?}");
    }
    for content in ["", "[]", "{}", r#"{"lines":[],"lines":[]}"#, "Sure! {\"lines\":[]}", &"[".repeat(99)] {
        assert_eq!(read(content, &facts).unwrap_err().len(), 1, "{content}");
    }
    let bad = json!({ "lines": vec![line("nothing", "", ""); 90] }).to_string();
    assert!(read(&bad, &facts).unwrap_err().len() <= 21);
    let both = json!({ "lines": [line("mec/T-0", "", "`"), line("mec/T-9", "x", "y")] }).to_string();
    assert_eq!(read(&both, &facts).unwrap_err().len(), 3);
}

#[test]
fn the_last_text_tells_of_what_is_not_there_and_nothing_is_said_in_one_line() {
    let mut facts = some_facts(&["a", "b", "c", "d", "e", "f", "g"]);
    let texts = orientation_texts(&builtin(&facts), &facts);
    assert_eq!(texts.len(), 5);
    assert!(texts[4].ends_with("Do: fernery ticket approve T-4 (+2 more)"), "{texts:?}");
    facts.items.clear();
    facts.pending_captures = 0;
    assert_eq!(orientation_texts(&builtin(&facts), &facts), ["Nothing needs you."]);
    facts.asked[0].status = QueryStatus::TargetUnavailable;
    assert_eq!(
        orientation_texts(&builtin(&facts), &facts),
        ["Not everything was seen: mec did not answer. Elsewhere nothing waits."]
    );
    facts.asked[0].status = QueryStatus::Denied;
    for (as_of, said) in [(facts.asked[0].as_of, "mec denied a part of it"), (None, "mec denied it")] {
        facts.asked[0].as_of = as_of;
        let denied = orientation_texts(&builtin(&facts), &facts).join("");
        assert!(denied.contains(said) && !denied.to_lowercase().contains("nothing needs you"), "{denied}");
    }
    (facts.asked[0].status, facts.asked[0].unread) = (QueryStatus::Ok, 3);
    let unread = orientation_texts(&builtin(&facts), &facts).join("");
    assert!(unread.contains("mec told of 3 that cannot be read"), "{unread}");
    (facts.asked[0].unread, facts.asked[0].full) = (0, true);
    let full = orientation_texts(&builtin(&facts), &facts).join("");
    assert!(full.contains("mec may have more than one answer takes"), "{full}");
    assert!(!full.to_lowercase().contains("nothing needs you"), "{full}");
}

#[test]
fn the_artifact_is_what_its_schema_says() {
    for facts in [some_facts(&[]), some_facts(&["a", "b"])] {
        let (id, azolla) = (ManifestId::stored("m"), AzollaId::stored("task_management"));
        let manifest = manifest(id, azolla, &builtin(&facts), &facts, now());
        let schema = crate::Schema::named("session_manifest").unwrap();
        assert_eq!(schema.validate(&json!(manifest)), []);
    }
}

#[test]
fn whatever_the_titles_are_the_built_in_passes_its_own_gate() {
    let mut chaos = Chaos::new(3);
    for _ in 0..400 {
        let titles: Vec<String> = (0..chaos.upto(8)).map(|_| chaos.text(60)).collect();
        let mut facts = some_facts(&titles.iter().map(String::as_str).collect::<Vec<_>>());
        for item in &mut facts.items {
            item.why.push(chaos.text(40));
        }
        let built = builtin(&facts);
        let content = serde_json::to_string(&built).unwrap();
        assert_eq!(read(&content, &facts), Ok(built.clone()), "{titles:?}");
        let texts = orientation_texts(&built, &facts);
        assert!((1..=5).contains(&texts.len()) && texts.iter().all(|text| !text.is_empty()));
        let back: Facts = serde_json::from_str(&serde_json::to_string(&facts).unwrap()).unwrap();
        assert_eq!(back.digest(), facts.digest());
        // What comes from people stands inside of fences, which nothing inside of them ends.
        let asked = prompt(&facts);
        let headings: HashSet<_> = asked.lines().filter(|line| line.starts_with("## mec/T-")).collect();
        assert!(headings.len() >= facts.items.len());
    }
}
