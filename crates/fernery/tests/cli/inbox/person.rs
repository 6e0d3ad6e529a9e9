//! What a person does themselves: from a thought to done.

use super::{candidates, program, short};
use crate::fresh_database::fresh_database;
use program::Server;
use serde_json::{Value, json};

fn ticket(server: &Server, id: &str) -> Value {
    server.run(["ticket", "show", id, "--json"]).exits(0).json()
}

/// Capture, look, promote, done.
fn four_commands(flags: &[&str]) {
    let server = Server::start(flags);
    server.run(["capture", "buy milk tomorrow"]).exits(0);
    let listed = server.run(["triage"]).exits(0).stdout;
    let row = listed
        .lines()
        .nth(1)
        .unwrap_or_else(|| panic!("nothing is listed right after the capture: {listed}"));
    let candidate = row.split_whitespace().next().unwrap();
    let ticket_id = server.run(["triage", "promote", candidate]).exits(0).stdout.trim().to_string();
    let done = server.run(["done", &ticket_id, "--note", "oat milk"]).exits(0).stdout;
    assert!(done.contains("buy milk") && done.ends_with(&format!("{ticket_id} is DONE\n")), "{done}");

    let seen = ticket(&server, &ticket_id);
    assert_eq!((&seen["objective"]["status"], &seen["unconfirmed"]), (&json!("DONE"), &json!(false)));
    assert_eq!(seen["objective"]["azolla_id"], "tasks");
    for (list, count) in [("decisions", 2), ("events", 1), ("workorders", 1), ("runs", 1), ("pauses", 1)] {
        assert_eq!(seen[list].as_array().unwrap().len(), count, "{list}: {seen:#}");
    }
    assert_eq!(seen["output_bundles"][0]["content"], "oat milk");
    assert_eq!(seen["runs"][0]["gate_result"], "PASS");
    assert_eq!(server.run(["done", &ticket_id]).exits(0).stdout, format!("{ticket_id} is DONE\n"));
    assert_eq!(
        ticket(&server, &ticket_id)["runs"].as_array().unwrap().len(),
        1,
        "said again, it is not done again"
    );
    assert_eq!(server.run(["orient"]).exits(0).stdout, "Nothing needs you.\n");
    server.run(["verify"]).exits(0);
}

#[test]
fn a_task_goes_from_capture_to_done_in_four_commands_on_sqlite() {
    four_commands(&[]);
}

#[test]
fn a_task_goes_from_capture_to_done_in_four_commands_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(fresh_database());
    four_commands(&["--database", &database.url()]);
}

#[test]
fn an_approved_task_waits_for_its_person_and_no_program_gets_it() {
    let server = Server::start(&[]);
    let new = server
        .run(["ticket", "new", "--azolla", "tasks", "--id", "T-1", "--title", "Sweep the yard"])
        .exits(0);
    assert_eq!(new.stderr, "it is NEW; when you have done it: fernery done T-1\n");
    let next = server.run(["ticket", "show", "T-1"]).exits(0).stdout;
    assert!(next.contains("fernery done T-1"), "{next}");
    server.run(["ticket", "approve", "T-1", "--yes"]).exits(0);
    super::until(|| (ticket(&server, "T-1")["objective"]["status"] == "IN_PROGRESS").then_some(()));
    let waits = server.run(["ticket", "show", "T-1"]).exits(0).stdout;
    assert!(waits.contains("You do it. When it is done: fernery done T-1"), "{waits}");
    let body = json!({"worker_id": "w", "streams": ["diazotroph:PERSON_DIAZOTROPH"], "max_wait_ms": 0});
    let (status, refused) = server.post("worker.token", "/internal/worker/claim", &body);
    assert_eq!((status, &refused["code"]), (403, &json!("forbidden")), "{refused}");
    server.run(["done", "T-1"]).exits(0);
    assert_eq!(ticket(&server, "T-1")["objective"]["status"], "DONE");
    let other =
        server.run(["ticket", "new", "--azolla", "mec", "--id", "T-2", "--title", "Fix the footer"]).exits(0);
    assert!(other.stderr.contains("approve"), "{other:?}");
    let program = server.run(["done", "T-2"]).exits(4);
    assert!(program.stderr.contains("a program does the work of azolla mec"), "{program:?}");
    server.run(["done", "nobody"]).exits(3);
}

#[test]
fn what_is_snoozed_is_out_of_lists_and_orient_until_then() {
    let server = Server::start(&[]);
    for (id, title) in [("T-1", "Sweep the yard"), ("T-2", "Mow the lawn")] {
        server.run(["ticket", "new", "--azolla", "tasks", "--id", id, "--title", title]).exits(0);
    }
    server.run(["capture", "paint the fence today"]).exits(0);
    let candidate = short(&candidates(&server, 1)[0]);
    assert!(server.run(["orient"]).exits(0).stdout.contains("Sweep the yard"));
    let said = server.run(["snooze", "T-1", "next", "monday"]).exits(0).stdout;
    assert!(said.contains("T-1 is out of sight until 20"), "{said}");
    server.run(["snooze", &candidate, "tomorrow"]).exits(0);
    let page = server.run(["orient"]).exits(0).stdout;
    assert!(!page.contains("Sweep") && !page.contains("fence") && page.contains("Mow the lawn"), "{page}");
    let list = server.run(["ticket", "list"]).exits(0).stdout;
    assert!(!list.contains("T-1") && list.contains("T-2"), "{list}");
    assert!(server.run(["ticket", "list", "--all"]).exits(0).stdout.contains("snoozed"));
    assert!(candidates(&server, 0).is_empty());
    server.run(["snooze", "T-1", "--off"]).exits(0);
    server.run(["snooze", &candidate, "--off"]).exits(0);
    assert_eq!(candidates(&server, 1).len(), 1);
    let page = server.run(["orient"]).exits(0).stdout;
    assert!(page.contains("Sweep") && page.contains("fence"), "{page}");
    let wrong = server.run(["snooze", "T-1", "soon"]).exits(2);
    assert!(wrong.stderr.contains("is no time; say tomorrow"), "{wrong:?}");
    assert!(
        server.run(["snooze", "nobody12", "tomorrow"]).exits(3).stderr.contains("no ticket and no candidate")
    );
    server.run(["snooze", "T-1"]).exits(2);
}

#[test]
fn lines_that_come_again_are_listed_and_stopped() {
    let server = Server::start(&[]);
    server.run(["capture", "every monday water the plants +home"]).exits(0);
    let first = candidates(&server, 1).remove(0);
    assert_eq!(
        (&first["title"], &first["metadata"]["every"]),
        (&json!("water the plants"), &json!("every monday"))
    );
    let listed = server.run(["triage", "recurring"]).exits(0).stdout;
    let row = listed.lines().nth(1).expect("a line");
    assert!(row.contains("every monday") && row.contains("water the plants +home"), "{listed}");
    let id = row.split_whitespace().next().unwrap().to_string();
    server.run(["triage", "recurring", "--stop", "nobody"]).exits(3);
    assert!(server.run(["triage", "recurring", "--stop", &id]).exits(0).stdout.contains("comes no more"));
    assert_eq!(server.run(["triage", "recurring", "--json"]).exits(0).json()["recurrences"], json!([]));
}

#[test]
fn a_candidate_that_names_a_repository_goes_to_the_azolla_that_works_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("git")
        .args(["init", "-q", "-b", "main", "web"])
        .current_dir(dir.path())
        .status();
    assert!(made.unwrap().success());
    let commit = [
        "-C",
        "web",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "one",
    ];
    assert!(
        std::process::Command::new("git").args(commit).current_dir(dir.path()).status().unwrap().success()
    );
    let server = Server::start_in(dir, &["--repos", "web=web"]);
    server.run(["capture", "fix the footer +web"]).exits(0);
    server.run(["capture", "buy milk +home"]).exits(0);
    let there = candidates(&server, 2);
    let promoted = |n: usize| {
        let id = server.run(["triage", "promote", &short(&there[n])]).exits(0).stdout.trim().to_string();
        ticket(&server, &id)["objective"].clone()
    };
    let (footer, milk) = (promoted(0), promoted(1));
    assert_eq!((&footer["azolla_id"], &footer["metadata"]["repo_ref"]), (&json!("mec"), &json!("web")));
    assert_eq!((&milk["azolla_id"], &milk["metadata"]["repo_ref"]), (&json!("tasks"), &Value::Null));
}

#[test]
fn tickets_are_found_by_label_words_and_date_and_cancelled_ones_are_out_of_the_way() {
    let server = Server::start_for_text();
    for (id, more) in [
        ("T-1", &["--title", "Fix the footer +web", "--importance", "3", "--meta", "due_at=2031-01-02"][..]),
        ("T-2", &["--title", "Water the plants", "--label", "home", "--importance", "0"]),
        (
            "T-3",
            &[
                "--title",
                "Repot",
                "--criteria",
                "The PLANTS stand in new soil",
                "--meta",
                "due_at=2030-01-02",
            ],
        ),
        ("T-4", &["--title", "Never mind"]),
    ] {
        server.run(["ticket", "new", "--id", id].into_iter().chain(more.iter().copied())).exits(0);
    }
    server.run(["ticket", "cancel", "T-4"]).exits(0);
    let ids = |args: &[&str]| {
        let page =
            server.run(["ticket", "list", "--json"].into_iter().chain(args.iter().copied())).exits(0).json();
        let id = |row: &Value| row["objective"]["objective_id"].as_str().unwrap().to_string();
        page["objectives"].as_array().unwrap().iter().map(id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&[]), ["T-3", "T-2", "T-1"]);
    assert_eq!(ids(&["--all"]), ["T-4", "T-3", "T-2", "T-1"]);
    assert_eq!(ids(&["--label", "web"]), ["T-1"]);
    assert_eq!(ids(&["--label", "+Home"]), ["T-2"]);
    assert_eq!(ids(&["--search", "plants"]), ["T-3", "T-2"]);
    assert_eq!(ids(&["--search", "soil PLANTS", "--limit", "1"]), ["T-3"]);
    assert_eq!(ids(&["--sort", "due"]), ["T-3", "T-1", "T-2"]);
    assert_eq!(ids(&["--sort", "importance"]), ["T-2", "T-3", "T-1"]);
    assert_eq!(ids(&["--sort", "importance", "--limit", "1"]), ["T-2"]);
    assert_eq!(ids(&["--sort", "age", "--limit", "2"]), ["T-3", "T-2"]);
    let shown = server.run(["ticket", "list", "--all"]).exits(0).stdout;
    let row = |id: &str| shown.lines().find(|line| line.starts_with(id)).unwrap().to_string();
    assert!(row("T-4").contains("CANCELLED") && row("T-2").contains("Water the plants +home"), "{shown}");
    let cancelled = server.run(["ticket", "show", "T-4"]).exits(0).stdout;
    assert!(cancelled.contains("CANCELLED") && !cancelled.contains("GATE_FAILED"), "{cancelled}");
    server.run(["ticket", "edit", "T-2", "--label", "garden"]).exits(0);
    assert_eq!(
        (ids(&["--label", "garden"]), ids(&["--label", "home"])),
        (vec!["T-2".into()], vec!["T-2".to_string()])
    );
    server.run(["ticket", "list", "--sort", "colour"]).exits(2);
    // What is over is behind the others, and not hidden.
    assert_eq!(ids(&["--all", "--sort", "due"]), ["T-3", "T-1", "T-2", "T-4"]);
}
