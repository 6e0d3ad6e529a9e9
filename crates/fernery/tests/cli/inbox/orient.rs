//! `fernery orient`: one page that says what needs you.

use super::{candidates, program};
use program::{Server, run_in};
use serde_json::json;

#[test]
fn orient_says_what_needs_you_and_what_to_type() {
    let server = Server::start_for_text();
    let none = server.run(["orient", "--last"]).exits(3);
    assert!(none.stderr.contains("no manifest yet") && none.stderr.contains("`fernery orient`"), "{none:?}");
    let nothing = server.run(["orient"]).exits(0);
    assert_eq!(nothing.stdout, "Nothing needs you.\n", "{nothing:?}");
    let still = server.run(["orient"]).exits(0).stdout;
    assert!(still.starts_with("Nothing needs you. (nothing has changed since 20"), "{still}");
    assert_eq!(still.lines().count(), 1);

    server.run(["capture", "buy milk"]).exits(0);
    candidates(&server, 1);
    for n in 1..=7 {
        let (id, title) = (format!("T-{n}"), format!("Ticket {n}"));
        server.run(["ticket", "new", "--id", &id, "--title", &title, "--importance", "0"]).exits(0);
    }
    server.run(["ticket", "block", "T-7", "--description", "Which colour?"]).exits(0);
    let page = server.run(["orient"]).exits(0).stdout;
    let lines: Vec<_> = page.lines().collect();
    assert_eq!(lines[0], "1. Ticket 7", "{page}");
    assert!(lines[1].contains("Which colour?"), "{page}");
    assert_eq!(lines[2], "   fernery ticket unblock T-7 --blocker b1", "{page}");
    assert_eq!(lines.iter().filter(|line| line.trim_start().starts_with("fernery ")).count(), 5, "{page}");
    assert!(page.contains("+3 more") && page.contains("mec ") && page.contains(" ago"), "{page}");
    assert!(!page.contains("built by") && !page.contains("nothing has changed"), "{page}");

    let why = server.run(["orient", "--why"]).exits(0).stdout;
    assert!(why.contains("= needs one answer 50 + ") && why.contains("importance 24"), "{why}");
    assert!(why.contains("nothing has changed since"), "{why}");
    let last = server.run(["orient", "--last"]).exits(0).stdout;
    assert_eq!(last.lines().collect::<Vec<_>>()[..lines.len() - 1], lines[..lines.len() - 1], "{last}");
    let read = server.run(["orient", "--json"]).exits(0).json();
    assert_eq!(read["unchanged"], true);
    assert_eq!(read["manifest"]["prioritized_orientation"].as_array().unwrap().len(), 5, "{read}");
    let last = server.run(["orient", "--last", "--json"]).exits(0).json();
    assert_eq!(last["manifest"]["manifest_id"], read["manifest"]["manifest_id"]);
    // What it took to make the page is listed if somebody asks for all.
    let runs = server.run(["run", "list"]).exits(0);
    assert!(
        !runs.stdout.contains("operator-continuity") && runs.stderr.contains("--all lists them too"),
        "{runs:?}"
    );
    assert!(server.run(["run", "list", "--all"]).exits(0).stdout.contains("operator-continuity"));
}

#[test]
fn orient_reports_what_it_cannot_do() {
    let server = Server::start(&[]);
    let no_such = server.run(["orient", "--azolla", "nowhere"]).exits(3);
    assert!(no_such.stderr.contains("no azolla with the id nowhere"), "{no_such:?}");
    let not_it = server.run(["orient", "--azolla", "mec"]).exits(4);
    assert!(not_it.stderr.contains("no orientation"), "{not_it:?}");
    let soon = server.run(["orient", "--timeout", "1ms", "--json"]).exits(1).json();
    assert_eq!(soon["code"], json!("still_waiting"), "{soon}");
    assert!(soon["message"].as_str().unwrap().contains("--last"), "{soon}");
    server.run(["orient"]).exits(0);
    let dir = tempfile::tempdir().unwrap();
    assert!(run_in(dir.path(), ["orient"]).exits(1).stderr.contains("fernery up"));
}
