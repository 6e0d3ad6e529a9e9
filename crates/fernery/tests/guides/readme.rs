//! What the README tells to paste works when it is pasted.

use crate::pages::Block;
use crate::program::{Server, fernery};
use crate::shell::Shell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[test]
fn the_curl_tour_goes_from_enqueue_to_complete() {
    let readme = include_str!("../../../../README.md");
    let (_, rest) = readme.split_once("```sh\n").expect("a block to paste");
    let (tour, _) = rest.split_once("```").expect("its end");
    let server = Server::start(&[]);
    let tour = tour.replace("http://127.0.0.1:8080", &server.url);
    assert!(tour.contains(&server.url) && tour.lines().count() == 10, "ten lines: {tour}");
    let ran = Command::new("bash")
        .args(["-e", "-c", &tour])
        .current_dir(server.data().parent().expect("where it was started"))
        .output()
        .expect("bash and curl");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{ran:?}");
    let answers: Vec<serde_json::Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let [enqueued, claimed, beat, completed, job] = &answers[..] else { panic!("{said}") };
    assert_eq!(enqueued["job_id"], claimed["job_id"]);
    assert_eq!(
        (&beat["ok"], &completed["ok"], &completed["ack"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert_eq!((&job["status"], &job["result"]), (&"SUCCEEDED".into(), &serde_json::json!({ "sent": true })));
}

#[test]
fn a_repository_is_set_up_by_pasting_four_lines() {
    let readme = include_str!("../../../../README.md");
    let (_, rest) = readme.split_once("```sh readme:path\n").expect("a block to paste");
    let (text, _) = rest.split_once("```").expect("its end");
    // No agent of the tester's is logged in here: it would be the one that `init` takes.
    let home = tempfile::tempdir().unwrap();
    let mut shell = Shell::open(&[("HOME", home.path().to_str().unwrap())]);
    let block = |text: &str| Block { language: "sh".into(), name: "readme:path".into(), text: text.into() };
    let repository = "git init --quiet --initial-branch main . && touch Makefile && git add Makefile && \
                      git -c user.name=me -c user.email=me@localhost commit --quiet --message first\n";
    shell.run(&block(repository));
    let said = shell.run(&block(text));
    for part in ["azolla.toml", "listening on ", "NEW", "Say hello"] {
        assert!(said.contains(part), "no {part}: {said}");
    }
    shell.run(&block("fernery down\n"));
}

/// Without figures, which are others each time.
fn shape(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[test]
fn the_first_command_shows_what_the_readme_shows() {
    let readme = include_str!("../../../../README.md");
    let (_, rest) = readme.split_once("\n    cargo run --release -- ").expect("a first command");
    let (first, rest) = rest.split_once('\n').expect("its end");
    assert_eq!(first, "demo");
    let dir = tempfile::tempdir().unwrap();
    let ran = fernery().current_dir(dir.path()).args([first, "--yes"]).output().expect("the program starts");
    assert!(ran.status.success(), "{ran:?}");
    let said = shape(&String::from_utf8(ran.stdout).unwrap());
    let (_, rest) = rest.split_once("```text\n").expect("a picture");
    let (picture, _) = rest.split_once("```").expect("its end");
    let (asked, picture) = picture.split_once('\n').expect("more than one line");
    assert_eq!(asked, "approve demo-1 as shown? [y/N] y", "what --yes answers");
    // Three dots stand for what was left out.
    let mut left = said.as_str();
    for part in picture.split(['\n', '…']).map(shape) {
        let (_, after) = left.split_once(part.trim()).unwrap_or_else(|| panic!("no {part:?} in {said}"));
        left = after;
    }
}

/// `docs/conformance.md` names tests that are there, and every statement has its number and its tests.
#[test]
fn every_statement_of_the_protocol_has_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/conformance.md")).expect("the page");
    let (mut last, mut rows, mut sources) = (BTreeMap::new(), 0, BTreeMap::new());
    for line in page.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<&str> = line.trim_end_matches(" |").split(" | ").collect();
        let [number, says, tests] = cells[..] else { panic!("three cells: {line}") };
        if number == "no." {
            continue;
        }
        rows += 1;
        let (document, nth) = number.split_at(1);
        let before = last.insert(document.to_string(), nth.to_string());
        let due = before.map_or(1, |before| before.parse::<u32>().expect("a number") + 1);
        assert_eq!(nth, due.to_string(), "{number} is out of turn");
        assert!(says.ends_with('.') && says.len() > 15, "{number} says nothing: {says}");
        let named: Vec<&str> = tests.split(", ").collect();
        for test in named {
            let name = test.strip_prefix('`').and_then(|test| test.strip_suffix('`')).unwrap_or("");
            let (file, function) = name.split_once("::").unwrap_or_else(|| panic!("{number}: {test}"));
            let source = sources.entry(file.to_string()).or_insert_with(|| {
                std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{number}: {file}: {e}"))
            });
            let there =
                source.contains(&format!("fn {function}(")) || source.contains(&format!("fn {function}<"));
            assert!(there, "{number}: there is no test {function} in {file}");
        }
    }
    let documents: Vec<&str> = last.keys().map(String::as_str).collect();
    assert_eq!(documents, ["A", "B", "C", "D", "E"]);
    assert!(rows > 100, "{rows} statements");
    assert!(page.contains("\n## Where we differ on purpose\n"));
}
