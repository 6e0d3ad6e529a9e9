//! Tickets from the command line, against a real server: written down, approved, followed, and refused in order.

use crate::program;
use crate::program::{Server, fernery, run_in};
use serde_json::{Value, json};
use std::process::Stdio;

fn show(server: &Server, id: &str) -> Value {
    server.run(["ticket", "show", id, "--json"]).exits(0).json()
}

/// What the server's own machine has beside the database.
fn keep_head(server: &Server, head: &Value) {
    std::fs::write(server.data().join("journal.head"), head.to_string()).unwrap();
}

/// Looks until the workers of the server have come so far.
#[allow(clippy::disallowed_methods, reason = "another process gives no signal to wait for")]
fn until(server: &Server, id: &str, is_so: impl Fn(&Value) -> bool) {
    let by = fernery_engine::door::stop_watch() + std::time::Duration::from_secs(60);
    while !is_so(&show(server, id)) {
        assert!(fernery_engine::door::stop_watch() < by, "{}", show(server, id));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_patch_of_no_repository_is_refused_at_its_approval_with_what_to_do() {
    let server = Server::start(&[]);
    server.run(["ticket", "new", "--id", "T", "--title", "x", "--meta", "repo_ref=web"]).exits(0);
    let refused = server.run(["ticket", "approve", "T", "--yes"]).exits(4);
    assert!(refused.stderr.contains("this server has none: run `fernery init`"), "{refused:?}");
    let refused = server.run(["ticket", "approve", "T", "--yes", "--json"]).exits(4).json();
    assert_eq!(refused["code"], "no_repository", "{refused}");
    let read = show(&server, "T");
    assert_eq!((&read["objective"]["status"], &read["decisions"]), (&json!("NEW"), &json!([])));
}

#[test]
fn without_a_repository_a_ticket_is_a_task_and_due_when_a_person_says() {
    let server = Server::start(&[]);
    let made =
        server.run(["ticket", "new", "--id", "T", "--title", "buy milk", "--due", "in 3 days"]).exits(0);
    assert!(made.stderr.contains("when you have done it: fernery done T"), "{made:?}");
    let due = |id: &str| {
        let objective = show(&server, id)["objective"].clone();
        assert_eq!(objective["azolla_id"], "tasks");
        objective["metadata"]["due_at"].as_str().unwrap().to_string()
    };
    let at = due("T");
    assert!(at.ends_with("T23:59:59.000Z"), "{at}");
    let shown = server.run(["ticket", "show", "T"]).exits(0).stdout;
    assert!(shown.contains("due in 3 days: ") && !shown.contains("due_at"), "{shown}");
    let text = "---\nid: U\nimportance: 0\ndue: tomorrow 9:00\n---\n# Pay\n";
    server.run_with_stdin(&["ticket", "new", "-"], text).exits(0);
    assert!(due("U").ends_with("T09:00:00.000Z"), "{}", due("U"));
    let listed = server.run(["ticket", "list"]).exits(0).stdout;
    assert!(listed.contains("due in 3 days"), "{listed}");
    let listed = server.run(["ticket", "list", "--sort", "due"]).exits(0).stdout;
    assert!(listed.lines().next().unwrap().contains("DUE") && listed.contains(&at), "{listed}");
    let listed = server.run(["ticket", "list", "--sort", "importance"]).exits(0).stdout;
    assert!(listed.contains("IMPORTANCE") && listed.contains("0 (urgency 2)"), "{listed}");
    server.run(["ticket", "edit", "T", "--due", "2030-01-02"]).exits(0);
    assert_eq!(due("T"), "2030-01-02T23:59:59.000Z");
    for (args, said) in [
        (&["ticket", "edit", "T", "--due", "soon"][..], "due: \"soon\" is no date: say friday"),
        (&["ticket", "edit", "T", "--meta", "due_at=tomorrow"], "is no instant: use --due"),
        (&["ticket", "new", "--title", "x", "--meta", "due_at=tomorrow"], "is no instant: use --due"),
        (&["ticket", "edit", "T", "--after", "U"], "only `ticket new` can make a ticket wait"),
    ] {
        let refused = server.run(args.iter().copied()).exits(2).stderr;
        assert!(refused.contains(said), "{args:?}: {refused}");
    }
    let refused =
        server.run_with_stdin(&["ticket", "edit", "U", "-"], "---\nurgency: 1\ndue: soon\n---\n").exits(2);
    assert!(refused.stderr.contains("stdin:3: due: \"soon\""), "{refused:?}");
    server.run(["ticket", "edit", "T", "--unset", "due_at"]).exits(0);
    assert_eq!(show(&server, "T")["objective"]["metadata"].get("due_at"), None);
}

#[test]
fn a_ticket_is_written_down_approved_and_followed() {
    let server = Server::start_for_text();
    let made = server
        .run([
            "ticket",
            "new",
            "--title",
            "Fix the footer",
            "--criteria",
            "- it\n- works",
            "--meta",
            "repo_ref=web",
            "--meta",
            "n:=1",
            "--importance",
            "0",
        ])
        .exits(0);
    let id = made.stdout.trim().to_string();
    assert!(id.starts_with("mec-"), "{made:?}");
    assert!(made.stderr.contains(&format!("fernery ticket approve {id}")), "{made:?}");
    let read = show(&server, &id);
    assert_eq!(read["objective"]["metadata"], json!({ "repo_ref": "web", "n": 1 }));
    assert_eq!((&read["objective"]["importance"], &read["objective"]["urgency"]), (&json!(0), &json!(2)));

    let nobody = server.run(["ticket", "approve", &id]).exits(2);
    assert!(nobody.stderr.contains("--digest"), "{nobody:?}");
    let digest = read["approval"]["digest"].as_str().unwrap().to_string();
    server.run(["objective", "edit", &id, "--title", "Fix the footer on phones", "--unset", "n"]).exits(0);
    let changed = server.run(["ticket", "approve", &id, "--digest", &digest]).exits(4);
    assert!(
        changed.stderr.contains("changed /title: \"Fix the footer\" → \"Fix the footer on phones\""),
        "{changed:?}"
    );
    let changed = server.run(["ticket", "approve", &id, "--digest", &digest, "--json"]).exits(4);
    assert_eq!((&changed.json()["code"], changed.stderr.as_str()), (&json!("changed"), ""));
    let approved = server.run(["ticket", "approve", &id, "--yes", "--note", "go"]).exits(0).stdout;
    let now = show(&server, &id);
    assert!(approved.contains(now["decision"]["digest"].as_str().unwrap()), "{approved}");
    assert!(approved.contains("- works") && approved.contains("is approved and TODO"), "{approved}");
    assert_eq!(
        server.run(["ticket", "approve", &id, "--yes", "--json"]).exits(0).json()["decision"],
        now["decision"]
    );

    let shown = server.run(["ticket", "show", &id]).exits(0).stdout;
    for part in ["Fix the footer on phones", "approved it", ": go", "operator", "next:"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Its executor is elsewhere, and nobody is there: it stays so.
    until(&server, &id, |ticket| ticket["objective"]["status"] == "IN_PROGRESS");
    let listed = server.run(["ticket", "list", "--status", "in_progress"]).exits(0).stdout;
    assert!(listed.contains(&id) && listed.contains("IN_PROGRESS"), "{listed}");
    assert!(!server.run(["ticket", "list", "--status", "done"]).exits(0).stdout.contains(&id));
    let page = server.run(["ticket", "list", "--azolla", "mec", "--json"]).exits(0).json();
    assert_eq!(page["objectives"][0]["objective"]["objective_id"], id.as_str());
}

#[test]
fn a_ticket_comes_as_markdown_from_stdin_or_the_editor() {
    let server = Server::start(&[]);
    let text = "---\nid: WEB-1\nurgency: 0\nrepo_ref: web\n---\n# Name the field\n\n- it is named\n";
    let made = server.run_with_stdin(&["ticket", "new", "-"], text).exits(0);
    assert_eq!(made.stdout.trim(), "WEB-1");
    let read = show(&server, "WEB-1")["objective"].clone();
    assert_eq!(
        (&read["title"], &read["acceptance_criteria"]),
        (&json!("Name the field"), &json!("- it is named"))
    );
    assert_eq!((&read["urgency"], &read["metadata"]), (&json!(0), &json!({ "repo_ref": "web" })));
    server.run_with_stdin(&["ticket", "edit", "WEB-1", "-"], "# Name every field\n").exits(0);
    let read = show(&server, "WEB-1")["objective"].clone();
    assert_eq!(
        (&read["title"], &read["acceptance_criteria"]),
        (&json!("Name every field"), &json!("- it is named"))
    );
    for (bad, said) in
        [("---\nurgency: 9\n---\n# T", "stdin:2: urgency:"), ("", "a title"), ("---\nx\n", "stdin:2: ")]
    {
        let answer = server.run_with_stdin(&["ticket", "new", "-"], bad).exits(2);
        assert!(answer.stderr.contains(said), "{bad:?} {answer:?}");
    }
    let taken = server.run(["ticket", "new", "--id", "WEB-1", "--title", "Another"]).exits(4);
    assert!(taken.stderr.contains("already used for something else"), "{taken:?}");

    // On a terminal the editor opens.
    let mut command = program::started_by("script");
    let program = fernery();
    let call = format!("{} ticket new", program.get_program().to_str().unwrap());
    command.args(["-qec", &call, "/dev/null"]).current_dir(server.dir.path());
    command.env("EDITOR", "sed -i 's/^# $/# From the editor/'").env_remove("VISUAL").stdin(Stdio::null());
    let output = command.output().expect("script starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let listed = server.run(["ticket", "list"]).exits(0).stdout;
    assert!(listed.contains("From the editor"), "{listed}");
}

#[test]
fn a_ticket_with_something_in_its_way_stops_after_its_approval_and_goes_on() {
    let server = Server::start_for_text();
    let text = "---\nid: T\nblocked_on: the API key\n---\n# Paint it\n";
    let colour = ["ticket", "new", "-", "--blocked-on", "design-decision: which colour?"];
    server.run_with_stdin(&colour, text).exits(0);
    let approved = server.run(["ticket", "approve", "T", "--yes"]).exits(0);
    assert!(
        approved.stderr.contains("still blocked by: b1, b2")
            && approved.stdout.contains("T is approved and TODO")
    );
    until(&server, "T", |ticket| ticket["objective"]["status"] == "BLOCKED");
    let shown = server.run(["ticket", "show", "T"]).exits(0).stdout;
    assert!(
        shown.contains("Resolve b2 (which colour?), then: fernery ticket unblock T --blocker b2"),
        "{shown}"
    );
    let edited =
        server.run_with_stdin(&["ticket", "edit", "T", "-"], "---\nblocked_on: x\n---\n# T\n").exits(2);
    assert!(edited.stderr.contains("fernery ticket block"), "{edited:?}");
    server.run(["ticket", "unblock", "T", "--blocker", "b1", "--blocker", "b2"]).exits(0);
    until(&server, "T", |ticket| ticket["objective"]["status"] == "IN_PROGRESS");
}

#[test]
fn acts_end_with_the_code_that_scripts_can_tell_apart() {
    let server = Server::start(&[]);
    let made = server.run(["ticket", "new", "--azolla", "mec", "--id", "T", "--title", "x"]).exits(0);
    assert!(made.stderr.contains("cannot be approved yet: azolla mec makes patches"), "{made:?}");
    let wrong = server.run(["ticket", "confirm", "T"]).exits(4);
    assert!(wrong.stderr.contains("T is NEW") && wrong.stderr.contains("no run"), "{wrong:?}");
    let wrong = server.run(["ticket", "confirm", "T", "--run", "r"]).exits(4);
    assert!(
        wrong.stderr.contains("T is NEW") && wrong.stderr.contains("approve, edit, block, cancel"),
        "{wrong:?}"
    );
    server.run(["ticket", "reopen", "T", "--note", "x"]).exits(4);
    let blocked =
        server.run(["ticket", "block", "T", "--description", "Which?", "--kind", "design-decision"]).exits(0);
    assert!(blocked.stdout.contains("T is BLOCKED"), "{blocked:?}");
    let shown = server.run(["ticket", "show", "T"]).exits(0).stdout;
    assert!(shown.contains("fernery ticket unblock T --blocker b1") && shown.contains("Which?"), "{shown}");
    let paused = server.run(["pause", "list"]).exits(0).stdout;
    assert!(paused.contains("a person blocked it") && !paused.contains("GATE_FAILED"), "{paused}");
    server.run(["ticket", "unblock", "T", "--blocker", "b9"]).exits(4);
    assert!(server.run(["ticket", "unblock", "T", "--blocker", "b1"]).exits(0).stdout.contains("T is NEW"));
    assert!(server.run(["ticket", "cancel", "T", "--note", "no"]).exits(0).stdout.contains("T is cancelled"));
    for act in [
        &["show"][..],
        &["approve", "--yes"],
        &["confirm"],
        &["cancel"],
        &["edit", "--title", "x"],
        &["unblock", "--all"],
        &["block", "--description", "x"],
        &["reopen", "--note", "x"],
        &["approve"],
        &["answer", "x"],
    ] {
        let args = ["ticket", act[0], "nobody"].into_iter().chain(act[1..].iter().copied());
        server.run(args).exits(3);
    }
    for args in [&["run", "show", "nobody"][..], &["run", "replay", "nobody"], &["azolla", "show", "nobody"]]
    {
        server.run(args).exits(3);
    }
    let nowhere = server.run(["ticket", "new", "--title", "x", "--azolla", "nowhere"]).exits(2);
    assert!(nowhere.stderr.contains("there are: mec"), "{nowhere:?}");
    assert_eq!(
        server.run(["run", "replay", "--all", "--json"]).exits(0).json(),
        json!({ "runs": 0, "differ": [] })
    );
    assert!(server.run(["run", "list"]).exits(0).stdout.starts_with("RUN "));
    assert!(server.run(["azolla", "list"]).exits(0).stdout.contains("mec"));
    assert!(server.run(["azolla", "show", "mec"]).exits(0).stdout.contains("\"gates\""));
    let journal = server.run(["journal", "list"]).exits(0).stdout;
    for act in ["created", "blocked", "unblocked", "cancelled", "blueprint_in_force"] {
        assert!(journal.contains(act), "{act}: {journal}");
    }
    let dir = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["ticket", "new"][..], "--title"),
        (&["ticket", "new", "file.md"], "possible values: -"),
        (&["ticket", "new", "--title", "x", "--meta", "k"], "key=text"),
        (&["ticket", "new", "--title", "x", "--urgency", "5"], "0 (most) to 4"),
        (&["ticket", "show", "a/b"], "an id has 1 to 64"),
        (&["ticket", "approve", "x", "--digest", "abc"], "64 digits"),
        (&["ticket", "list", "--status", "lost"], "NEW, TODO"),
        (&["run", "replay"], "<ID>"),
    ] {
        let answer = if said == "--title" { server.run(args) } else { run_in(dir.path(), args) };
        let answer = answer.exits(2);
        assert!(answer.stderr.contains(said), "{args:?} {answer:?}");
    }
}

#[test]
fn verify_compares_the_chain_with_what_was_kept_beside_it() {
    let server = Server::start(&[]);
    server.run(["ticket", "new", "--id", "T", "--title", "x"]).exits(0);
    let whole = server.run(["verify", "--json"]).exits(0).json();
    assert_eq!(whole["fault"], Value::Null, "{whole}");
    let hash = "0".repeat(64);
    // The server writes its own there until all is sealed.
    let cut = || {
        keep_head(&server, &json!({ "place": 1_000_000, "hash": hash }));
        server.run(["verify", "--json"]).json()["fault"]
            .as_str()
            .is_some_and(|fault| fault.contains("truncated"))
    };
    assert!((0..20).any(|_| cut()), "{:?}", server.run(["verify"]));
    let cut = server.run(["verify"]).exits(1);
    assert!(cut.stderr.contains("truncated"), "{cut:?}");
    let nonsense = || {
        keep_head(&server, &json!("nonsense"));
        server.run(["verify"]).stderr.contains("not a valid head file")
    };
    assert!((0..20).any(|_| nonsense()), "{:?}", server.run(["verify"]));
}

#[test]
fn an_export_is_one_file_per_artifact_with_nothing_but_its_fields() {
    let server = Server::start_for_text();
    server.run(["ticket", "new", "--id", "T", "--title", "x", "--meta", "n:=1.50"]).exits(0);
    server.run(["ticket", "approve", "T", "--yes"]).exits(0);
    until(&server, "T", |ticket| ticket["objective"]["status"] == "IN_PROGRESS");
    server.run(["ticket", "cancel", "T"]).exits(0);
    until(&server, "T", |ticket| ticket["pauses"].as_array().is_some_and(|pauses| !pauses.is_empty()));
    let out = server.run(["export", "out"]).exits(0).stdout;
    assert!(out.contains(" 2 objectives") && out.contains("3 blueprints"), "{out}");
    let root = server.dir.path().join("out");
    let read =
        |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let objective: fernery_core::artifact::Objective =
        serde_json::from_str(&read("objectives/T.json")).unwrap();
    assert_eq!(json!(objective), show(&server, "T")["objective"]);
    assert_eq!(read("objectives/T.json").trim_end(), fernery_core::canonical::text_of(&objective));
    let decisions: Vec<_> = std::fs::read_dir(root.join("decisions")).unwrap().collect();
    assert_eq!(decisions.len(), 1);
    let pause: fernery_core::artifact::PauseState =
        serde_json::from_str(&read("pause_states/T.1.json")).unwrap();
    assert_eq!(pause.objective_id.as_str(), "T");
    for file in std::fs::read_dir(root.join("blueprints")).unwrap() {
        let path = file.unwrap().path();
        let digest = fernery_core::canonical::Digest::of_bytes(&std::fs::read(&path).unwrap());
        assert_eq!(path.file_stem().unwrap().to_str().unwrap(), digest.to_string());
    }
    assert!(std::fs::read_dir(root.join("journal")).unwrap().count() >= 4);
    assert!(server.run(["export", "out"]).exits(2).stderr.contains("not empty"));
}

#[test]
fn labels_are_one_word_everywhere_and_their_case_does_not_matter() {
    let server = Server::start(&[]);
    let new =
        ["ticket", "new", "--azolla", "tasks", "--id", "T-1", "--title", "Paint it +Home", "--label", "home"];
    server.run(new.into_iter().chain(["--label", "+garden"])).exits(0);
    let labels = |id: &str| {
        server.run(["ticket", "show", id, "--json"]).exits(0).json()["objective"]["metadata"]["labels"]
            .clone()
    };
    assert_eq!(labels("T-1"), json!(["home", "garden"]));
    server.run(["ticket", "edit", "T-1", "--label", "GARDEN", "--title", "Paint it +home +shed"]).exits(0);
    assert_eq!(labels("T-1"), json!(["home", "garden", "shed"]), "an edited title has labels too");
    for label in ["shed", "+Shed", "#SHED"] {
        let found = server.run(["ticket", "list", "--label", label]).exits(0).stdout;
        assert!(found.contains("Paint it"), "{label}: {found}");
    }
    for wrong in ["two words", "7up", ""] {
        for command in [
            &["ticket", "new", "--azolla", "tasks", "--title", "t", "--label", wrong][..],
            &["ticket", "edit", "T-1", "--label", wrong],
            &["ticket", "list", "--label", wrong],
        ] {
            let refused = server.run(command.iter().copied()).exits(2).stderr;
            assert!(refused.contains("a label is one word"), "{command:?}: {refused}");
        }
    }
    let (status, told) = server.read("/v1/objectives?label=two%20words");
    assert_eq!(status, 422, "{told}");
    let shown = server.run(["ticket", "show", "T-1"]).exits(0).stdout;
    assert_eq!(shown.matches("+home").count(), 2, "in the title and among the labels, once each: {shown}");
}

#[test]
fn pauses_that_wait_for_nobody_are_listed_only_if_all_are_asked_for() {
    let server = Server::start(&[]);
    for id in ["T-1", "T-2"] {
        server.run(["ticket", "new", "--azolla", "tasks", "--id", id, "--title", "x"]).exits(0);
        server.run(["ticket", "block", id, "--description", "Which?"]).exits(0);
    }
    server.run(["ticket", "unblock", "T-1"]).exits(0);
    let waiting = server.run(["pause", "list"]).exits(0).stdout;
    assert!(waiting.contains("T-2") && !waiting.contains("T-1"), "{waiting}");
    let all = server.run(["pause", "list", "--all"]).exits(0).stdout;
    assert!(all.contains("T-1") && all.contains("T-2"), "{all}");
    server.run(["ticket", "cancel", "T-2"]).exits(0);
    assert!(!server.run(["pause", "list"]).exits(0).stdout.contains("T-2"));
}

#[test]
fn what_is_said_of_a_cancelled_ticket_and_of_open_blockers_fits_what_can_be_done() {
    let server = Server::start_for_text();
    server.run(["ticket", "new", "--id", "T", "--title", "x"]).exits(0);
    for blocker in ["one", "two"] {
        server.run(["ticket", "block", "T", "--description", blocker, "--blocker", blocker]).exits(0);
    }
    server.run(["ticket", "unblock", "T", "--blocker", "one"]).exits(0);
    let shown = server.run(["ticket", "show", "T"]).exits(0).stdout;
    assert!(shown.contains("blocked on two (two)") && shown.contains("unblock T --blocker two"), "{shown}");
    assert!(!shown.contains("unblock T --blocker one"), "{shown}");
    server.run(["ticket", "cancel", "T", "--note", "nobody wants it"]).exits(0);
    let shown = server.run(["ticket", "show", "T"]).exits(0).stdout;
    assert!(shown.contains("CANCELLED") && shown.contains("cancelled it: nobody wants it"), "{shown}");
    assert!(shown.contains("unblocked it (one): it is BLOCKED"), "{shown}");
    let followed = server.run(["ticket", "show", "T", "-f"]).exits(1).stdout;
    assert!(followed.contains("T is CANCELLED") && !followed.contains("T is BLOCKED"), "{followed}");
    for act in [&["ticket", "approve", "T", "--yes"][..], &["ticket", "reopen", "T", "--note", "x"]] {
        let answer = server.run(act.iter().copied()).exits(4);
        let refused = answer.stderr;
        assert!(refused.contains("T is cancelled;") && refused.contains("unblock T --all"), "{refused}");
        assert_eq!(answer.stdout, "", "what cannot be approved is not shown for it");
    }
    let refused = server.run(["snooze", "T", "tomorrow"]).exits(4).stderr;
    assert!(refused.contains("T is cancelled;"), "{refused}");
    let edited = server.run(["ticket", "edit", "T", "--title", "y"]).exits(0).stderr;
    assert!(edited.contains("your change is kept") && edited.contains("unblock T --all"), "{edited}");
    let listed = server.run(["ticket", "list", "--status", "cancelled"]).exits(0).stdout;
    assert!(listed.contains("CANCELLED") && listed.contains('T'), "{listed}");
    server.run(["ticket", "new", "--id", "U", "--title", "other"]).exits(0);
    server.run(["ticket", "block", "U", "--description", "why"]).exits(0);
    let listed = server.run(["ticket", "list", "--status", "CANCELLED"]).exits(0).stdout;
    assert!(!listed.contains("other"), "{listed}");
}
