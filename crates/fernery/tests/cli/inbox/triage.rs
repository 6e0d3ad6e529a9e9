//! `fernery triage`, each act by its own command.

use super::{candidates, id, program, short};
use program::Server;
use serde_json::{Value, json};

fn show(server: &Server, candidate: &Value) -> Value {
    server.run(["triage", "show", &short(candidate), "--json"]).exits(0).json()
}

#[test]
fn candidates_are_listed_promoted_edited_merged_and_discarded() {
    let server = Server::start(&[]);
    for text in ["(A) fix the footer +web due:2030-01-02", "second", "third", "fourth", "fifth"] {
        server.run(["capture", text]).exits(0);
    }
    let there = candidates(&server, 5);
    let listed = server.run(["triage", "list"]).exits(0).stdout;
    let first = listed.lines().nth(1).unwrap();
    for part in [&id(&there[0]), "WAITING", "2030-01-02", "fix the footer"] {
        assert!(first.contains(part), "{part}: {listed}");
    }
    assert_eq!(server.run(["triage"]).exits(0).stdout, listed, "what is no terminal gets the list");
    let one = server.run(["triage", "--json", "list", "--limit", "1"]).exits(0).json();
    assert_eq!(one["candidates"].as_array().unwrap().len(), 1);
    assert_eq!(server.run(["triage", "--azolla", "task_management", "list"]).exits(0).stdout, listed);
    assert!(server.run(["triage", "--azolla", "mec", "show", "x"]).exits(2).stderr.contains("must follow"));
    let shown = server.run(["triage", "show", &short(&there[0])]).exits(0).stdout;
    for part in ["(A) fix the footer +web due:2030-01-02", "from cli", "+web", "0 (most)", &id(&there[0])] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    let promoted = server.run(["triage", "promote", &short(&there[0])]).exits(0);
    let ticket = promoted.stdout.trim().to_string();
    assert!(promoted.stderr.contains(&format!("fernery done {ticket}")), "{promoted:?}");
    let made = server.run(["ticket", "show", &ticket, "--json"]).exits(0).json()["objective"].clone();
    assert_eq!((&made["status"], &made["title"]), (&json!("NEW"), &json!("fix the footer")));
    assert_eq!(show(&server, &there[0])["objective_id"], json!(ticket));
    let again = server.run(["triage", "promote", &short(&there[0])]).exits(4);
    assert!(again.stderr.contains("already promoted") && again.stderr.contains(&ticket), "{again:?}");

    let edit = |args: &[&str]| {
        let all = ["triage", "edit", &short(&there[1])].into_iter().map(String::from).collect::<Vec<_>>();
        server.run(all.into_iter().chain(args.iter().map(|a| (*a).to_string())))
    };
    edit(&["--title", "Second!", "--importance", "0", "--due", "2030-05-06", "--meta", "n:=1"]).exits(0);
    let edited = show(&server, &there[1]);
    assert_eq!((&edited["title"], &edited["importance"]), (&json!("Second!"), &json!(0)));
    assert_eq!((&edited["metadata"]["due_at"], &edited["metadata"]["n"]), (&json!("2030-05-06"), &json!(1)));
    edit(&["--unset", "due_at", "--criteria", "- so", "--urgency", "4"]).exits(0);
    let edited = show(&server, &there[1]);
    assert_eq!((&edited["metadata"]["due_at"], &edited["metadata"]["n"]), (&Value::Null, &json!(1)));
    assert_eq!((&edited["acceptance_criteria"], &edited["urgency"]), (&json!("- so"), &json!(4)));
    for (wrong, said) in [
        (&["--due", "soon"][..], "is no date: say friday"),
        (&["--urgency", "7"], "0 (most)"),
        (&[], "name a change"),
    ] {
        let refused = edit(wrong).exits(2);
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    edit(&["--title", " "]).exits(2);
    edit(&["--due", "friday"]).exits(0);
    let due_at = show(&server, &there[1])["metadata"]["due_at"].as_str().unwrap().to_string();
    assert!(due_at.parse::<fernery_core::Timestamp>().is_ok(), "{due_at}");

    let unasked = server.run(["triage", "merge", &id(&there[1]), &short(&there[2])]).exits(2);
    assert!(unasked.stderr.contains("--yes"), "{unasked:?}");
    let merged = server
        .run(["triage", "merge", &id(&there[1]), &short(&there[2]), &short(&there[3]), "--yes"])
        .exits(0);
    assert!(merged.stdout.contains("2 candidates merged into"), "{merged:?}");
    assert_eq!(show(&server, &there[1])["captures"].as_array().unwrap().len(), 3);
    let gone = server.run(["triage", "discard", &short(&there[2])]).exits(4);
    assert!(gone.stderr.contains("already merged"), "{gone:?}");
    let discarded = server.run(["triage", "discard", &short(&there[4]), "--note", "done"]).exits(0);
    assert!(discarded.stdout.contains("is discarded"), "{discarded:?}");
    server.run(["triage", "restore", &short(&there[4])]).exits(0);
    assert_eq!(show(&server, &there[4])["status"], "WAITING");
    server.run(["triage", "restore", &short(&there[2])]).exits(4);
    server.run(["triage", "discard", &short(&there[4])]).exits(0);
    let journal = server.run(["journal", "list"]).exits(0).stdout;
    for act in ["promoted", "merged", "discarded", "restored", "edited_candidate"] {
        assert!(journal.contains(act), "{act}: {journal}");
    }
    assert_eq!(candidates(&server, 1)[0]["title"], "Second!");
    let all = server.run(["triage", "list", "--all"]).exits(0).stdout;
    for word in ["PROMOTED", "MERGED", "DISCARDED", "WAITING"] {
        assert!(all.contains(word), "{word}: {all}");
    }
}

#[test]
fn wrong_names_change_nothing_and_end_with_the_code_that_tells_why() {
    let server = Server::start(&[]);
    for text in ["one", "two"] {
        server.run(["capture", text]).exits(0);
    }
    let there = candidates(&server, 2);
    let (one, two) = (short(&there[0]), short(&there[1]));
    for act in [
        &["show", "nobody12"][..],
        &["promote", "nobody12"],
        &["discard", &one, "nobody12"],
        &["merge", &one, "nobody12"],
    ] {
        let refused = server.run(["triage"].iter().chain(act)).exits(3);
        assert!(refused.stderr.contains("fernery triage list"), "{refused:?}");
    }
    server.run(["triage", "show", "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f"]).exits(3);
    server.run(["triage", "show", "a/b"]).exits(2);
    server.run(["triage", "merge", &one, &one, "--yes"]).exits(2);
    server.run(["triage", "promote", &one, &two, "--id", "T-1"]).exits(2);
    let nowhere = server.run(["triage", "promote", &one, "--azolla", "nowhere"]).exits(2);
    assert!(nowhere.stderr.contains("there are: mec"), "{nowhere:?}");
    let standing = server.run(["triage", "promote", &one, "--azolla", "task_management"]).exits(4);
    assert!(standing.stderr.contains("does not work on tickets"), "{standing:?}");
    assert_eq!(candidates(&server, 2).len(), 2);
    let both = server.run(["triage", "promote", &one, &two, &one]).exits(0);
    assert_eq!(both.stdout.lines().count(), 2, "{both:?}");
    server.run(["triage", "promote", &one, "--id", "T-1", "--json"]).exits(4);
}

#[test]
fn imported_lines_that_are_held_are_told_beside_held_captures() {
    let server = Server::start(&[]);
    server.run(["capture", "every monday water the plants"]).exits(0);
    candidates(&server, 1);
    server.run(["export", "out"]).exits(0);
    let other = Server::start(&[]);
    other.run(["import", server.dir.path().join("out").to_str().unwrap()]).exits(0);
    let said = other.run(["triage", "list"]).exits(0).stderr;
    assert!(said.contains("1 imported recurring line is held: fernery triage release"), "{said}");
    other.run(["triage", "release"]).exits(0);
    let said = other.run(["triage", "list"]).exits(0).stderr;
    assert!(!said.contains("held"), "{said}");
}
