//! Every kind of command that orient prints is carried out, and changes the very thing that it is about.

use super::{candidates, program, terminal::typed_to};
use program::Server;
use serde_json::{Value, json};
use std::process::Command;

/// The commands on the page, by title.
fn suggested(server: &Server, title: &str) -> String {
    let page = server.run(["orient", "--json"]).exits(0).json();
    let items = page["manifest"]["facts"]["items"].as_array().unwrap().clone();
    let item = items.iter().find(|item| item["title"] == title);
    let item = item.unwrap_or_else(|| panic!("{title} is not on the page: {items:#?}"));
    item["command"].as_str().unwrap().to_string()
}

/// Types a suggestion as it is printed; where it asks, the answer is yes.
fn carry_out(server: &Server, command: &str, more: &[&str]) {
    let mut words = command.split(' ');
    assert_eq!(words.next(), Some("fernery"), "{command}");
    server.run(words.chain(more.iter().copied())).exits(0);
}

fn seen(server: &Server, id: &str) -> Value {
    server.run(["ticket", "show", id, "--json"]).exits(0).json()
}

fn status(server: &Server, id: &str) -> String {
    seen(server, id)["objective"]["status"].as_str().unwrap().to_string()
}

fn new(server: &Server, id: &str, more: &[&str]) -> String {
    let title = format!("Title of {id}");
    server
        .run(["ticket", "new", "--id", id, "--title", &title].into_iter().chain(more.iter().copied()))
        .exits(0);
    title
}

fn repository(dir: &std::path::Path, name: &str) {
    for args in [
        &["init", "-q", "-b", "main", name][..],
        &[
            "-C",
            name,
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "one",
        ],
    ] {
        assert!(Command::new("git").args(args).current_dir(dir).status().unwrap().success());
    }
}

#[test]
fn suggestions_about_repositories_lead_to_an_approval_that_is_not_refused() {
    let dir = tempfile::tempdir().unwrap();
    repository(dir.path(), "web");
    let server = Server::start_in(dir, &["--repos", "web=web"]);
    // `ticket new` would name the only repository by itself; a program may name none.
    let title = "Title of T-1";
    let body = json!({"objective_id": "T-1", "azolla_id": "mec", "title": title});
    assert_eq!(server.post("operator.token", "/v1/objectives", &body).0, 201);
    let edit = suggested(&server, title);
    assert_eq!(edit, "fernery ticket edit T-1 --meta repo_ref=web");
    carry_out(&server, &edit, &[]);
    assert_eq!(seen(&server, "T-1")["objective"]["metadata"]["repo_ref"], "web");
    let approve = suggested(&server, title);
    assert_eq!(approve, "fernery ticket approve T-1");
    carry_out(&server, &approve, &["--yes"]);
    assert_ne!(status(&server, "T-1"), "NEW");
    let without = Server::start(&[]);
    let title = new(&without, "T-1", &["--azolla", "mec"]);
    let command = suggested(&without, &title);
    assert_eq!(command, "fernery ticket cancel T-1");
    carry_out(&without, &command, &[]);
    assert_eq!(seen(&without, "T-1")["objective"]["blocked_reason"], "cancelled");
}

#[test]
fn suggestions_about_blockers_results_and_dates_change_what_they_are_about() {
    let server = Server::start_for_text();
    let title = new(&server, "T-1", &[]);
    server.run(["ticket", "block", "T-1", "--description", "Which colour?"]).exits(0);
    let command = suggested(&server, &title);
    assert_eq!(command, "fernery ticket unblock T-1 --blocker b1");
    carry_out(&server, &command, &[]);
    assert_eq!(status(&server, "T-1"), "NEW");
    for what in ["Which colour?", "Which size?"] {
        server.run(["ticket", "block", "T-1", "--description", what]).exits(0);
    }
    let command = suggested(&server, &title);
    assert_eq!(command, "fernery ticket unblock T-1 --all");
    carry_out(&server, &command, &[]);
    assert_eq!(status(&server, "T-1"), "NEW");
    server.run(["ticket", "block", "T-1", "--description", "Say it: fernery ticket edit T-1"]).exits(0);
    assert_eq!(suggested(&server, &title), "fernery ticket edit T-1");
    typed_to(
        &server,
        &["ticket", "edit", "T-1"],
        80,
        "sed -i 's/^# Title of T-1$/# Said/'",
        &["expect T-1 is BLOCKED"],
    );
    assert_eq!(seen(&server, "T-1")["objective"]["title"], "Said");
    carry_out(&server, &suggested(&server, "Said"), &[]);
    assert_eq!(status(&server, "T-1"), "NEW", "edited, it can be unblocked");

    carry_out(&server, &suggested(&server, "Said"), &["--yes"]);
    let claimed = super::until(|| server.claim("diazotroph:TEXT_DIAZOTROPH"));
    let body = json!({"worker_id": "w1", "job_id": claimed["job_id"], "attempt_id": claimed["attempt_id"],
        "lease_token": claimed["lease_token"], "result": {"title": "t", "content": "c", "notes": "", "metadata": {}}});
    let (code, told) = server.post("worker.token", "/internal/worker/complete", &body);
    assert_eq!(code, 200, "{told}");
    super::until(|| (status(&server, "T-1") == "DONE").then_some(()));
    let command = suggested(&server, "Said");
    assert_eq!(command, "fernery ticket confirm T-1");
    carry_out(&server, &command, &[]);
    assert_eq!(seen(&server, "T-1")["unconfirmed"], false);

    let title = new(&server, "T-2", &["--meta", "due_at=2020-01-01"]);
    carry_out(&server, &suggested(&server, &title), &["--yes"]);
    super::until(|| (status(&server, "T-2") == "IN_PROGRESS").then_some(()));
    let command = suggested(&server, &title);
    assert_eq!(command, "fernery snooze T-2 tomorrow");
    carry_out(&server, &command, &[]);
    assert!(seen(&server, "T-2")["snoozed_until"].is_string());
}

#[test]
fn suggestions_about_the_inbox_and_what_is_yours_change_what_they_are_about() {
    let server = Server::start(&[]);
    server.run(["capture", "call the plumber today"]).exits(0);
    server.run(["capture", "read the paper"]).exits(0);
    candidates(&server, 2);
    let command = suggested(&server, "call the plumber");
    assert!(command.starts_with("fernery triage promote "), "{command}");
    carry_out(&server, &command, &[]);
    assert_eq!(candidates(&server, 1)[0]["title"], "read the paper");
    let command = suggested(&server, "call the plumber");
    assert!(command.starts_with("fernery done tasks-"), "{command}");
    carry_out(&server, &command, &[]);
    assert_eq!(status(&server, command.rsplit(' ').next().unwrap()), "DONE");
    assert_eq!(suggested(&server, "1 candidate waits in the inbox"), "fernery triage");
    typed_to(&server, &["triage"], 80, "", &["expect [q]uit", "send d", "expect 1 discarded"]);
    candidates(&server, 0);
    assert_eq!(server.run(["orient"]).exits(0).stdout, "Nothing needs you.\n");
}

#[test]
fn an_azolla_that_was_not_seen_is_named_and_nothing_is_said_to_need_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let config = format!("[registry.office]\nurl = \"http://{address}\"\nazolla_id = \"mec\"\n");
    std::fs::write(dir.path().join("fernery.toml"), config).unwrap();
    let server = Server::start_in(dir, &[]);
    let page = server.run(["orient"]).exits(0).stdout;
    assert!(!page.contains("Nothing needs you") && page.contains("office did not answer"), "{page}");
    assert!(page.contains("not seen: office at http://"), "{page}");
    server.run(["ticket", "new", "--azolla", "tasks", "--title", "Sweep the yard"]).exits(0);
    let page = server.run(["orient"]).exits(0).stdout;
    assert!(page.contains("Sweep the yard") && page.contains("not seen: office at http://"), "{page}");
}
