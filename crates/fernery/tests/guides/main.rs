//! Every program and every command of `docs/guides` is run here, so that no guide can lie.

mod agents;
mod contract;
mod embed;
mod operate;
mod pages;
mod python;
mod readme;
mod shell;

#[path = "../../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "only a part of it is used")]
mod fresh_database;

#[path = "../../../fernery-engine/tests/support/port.rs"]
mod port;

#[path = "../support/program/mod.rs"]
mod program;

use fernery_core::blueprint::Blueprint;
use pages::{blocks, checkout};
use shell::Shell;

const GUIDES: [&str; 10] = [
    "first-queue.md",
    "worker-in-any-language.md",
    "operate.md",
    "embed.md",
    "run-tickets.md",
    "run-agents.md",
    "sandbox.md",
    "inbox.md",
    "own-azolla.md",
    "dashboard.md",
];

#[test]
fn every_guide_is_known_here_and_every_program_in_it_has_a_name() {
    let folder = checkout().join("docs/guides");
    let mut found: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    found.sort();
    let mut known = GUIDES;
    known.sort_unstable();
    assert_eq!(found, known);
    for guide in GUIDES {
        assert_eq!(pages::indented(guide), [""; 0], "{guide}: nobody runs a block without a language");
        let mut names = Vec::new();
        for block in blocks(guide) {
            // What is only looked at: pictures, and files whose text stands for itself.
            if matches!(block.language.as_str(), "text" | "ini" | "caddy") {
                continue;
            }
            let known = matches!(block.language.as_str(), "sh" | "python" | "rust" | "sql" | "json" | "toml");
            assert!(known && !block.name.is_empty(), "{guide}: nobody runs this: {block:?}");
            let prefixes = [
                "first-queue:",
                "operate:",
                "operate-postgres:",
                "tickets:",
                "agents:",
                "inbox:",
                "own:",
                "dashboard:",
            ];
            let run = prefixes.iter().any(|prefix| block.name.starts_with(prefix));
            assert!(block.language != "sh" || run, "{guide}: no shell runs {}", block.name);
            assert!(!names.contains(&block.name), "{guide}: two blocks named {}", block.name);
            names.push(block.name);
        }
    }
}

#[test]
fn rust_programs_are_the_examples_that_are_compiled_and_tested() {
    let mut compared = 0;
    for block in GUIDES.iter().flat_map(|guide| blocks(guide)).filter(|block| block.language == "rust") {
        let example = std::fs::read_to_string(checkout().join(&block.name));
        assert_eq!(block.text, example.unwrap_or_else(|e| panic!("{}: {e}", block.name)));
        compared += 1;
    }
    assert_eq!(compared, 3);
}

#[test]
fn the_first_queue_works_line_by_line() {
    let mut shell = Shell::open(&[]);
    let worker = pages::block("first-queue.md", "first-queue:worker.py");
    std::fs::write(shell.dir.path().join("worker.py"), worker).unwrap();
    let mut seen = 0;
    shell.run_guide("first-queue.md", "first-queue:", |name, said, _| {
        let expected: &[&str] = match name {
            "curl" => &[r#""status":"QUEUED""#, r#""duplicate":false"#],
            "waiting" => &["QUEUED", "mail    2 "],
            "wait" => &["SUCCEEDED", r#""sent":true"#, "mary@example.org"],
            "python-worker" => &["SUCCEEDED", r#"{"words":3}"#],
            "fail" => &["DEAD", "FileNotFoundError", "words"],
            "redrive" => &["SUCCEEDED", r#"{"words":3}"#, "FAILED"],
            "explain" => &["it has succeeded"],
            _ => &[],
        };
        seen += expected.len();
        for text in expected {
            let squeezed = said.replace(": ", ":").replace(", ", ",");
            assert!(said.contains(text) || squeezed.contains(text), "{name}: no {text} in: {said}");
        }
    });
    assert_eq!(seen, 16, "no block was renamed away from what is expected of it");
}

#[test]
fn a_ticket_becomes_a_gated_run_line_by_line() {
    let mut shell = Shell::open(&[]);
    let blueprint = pages::block("run-tickets.md", "tickets:hello.toml");
    let prompts = pages::block("run-tickets.md", "tickets:prompts");
    std::fs::write(shell.dir.path().join("hello.toml"), format!("{blueprint}\n{prompts}")).unwrap();
    let mut seen = 0;
    shell.run_guide("run-tickets.md", "tickets:", |name, said, _| {
        let expected: &[&str] = match name {
            "start" => &["hello.toml: ok"],
            "show" => &["DONE", "says-hello", "PASS"],
            "export" => &["2 run_records", "digest "],
            "import" => &["tickets is in: ", "DONE", "says-hello"],
            _ => &[],
        };
        seen += expected.len();
        for text in expected {
            assert!(said.contains(text), "{name}: no {text} in: {said}");
        }
    });
    assert_eq!(seen, 9);
}

#[test]
fn a_line_becomes_a_ticket_and_a_morning_line_by_line() {
    let mut shell = Shell::open(&[]);
    let mut seen = 0;
    shell.run_guide("inbox.md", "inbox:", |name, said, _| {
        let expected: &[&str] = match name {
            "triage" => {
                &["call the plumber", "read the paper on leases", "(A) renew the passport", "passport"]
            }
            "recurring" => &["every monday"],
            "done" => &["fernery done passport", "passport is DONE", "confirmed it"],
            "orient" => &["fernery triage promote", "fernery triage"],
            _ => &[],
        };
        seen += expected.len();
        for text in expected {
            assert!(said.contains(text), "{name}: no {text} in: {said}");
        }
    });
    assert_eq!(seen, 10, "no block was renamed away from what is expected of it");
    for (name, more) in [("inbox:tasks.toml", "Europe/Vienna"), ("inbox:model.toml", "qwen3")] {
        let text = pages::block("inbox.md", name);
        let blueprint =
            Blueprint::parse(&text, &|_| None).unwrap_or_else(|flaws| panic!("{name}: {flaws:?}"));
        assert!(blueprint.to_json().contains(more), "{name}");
    }
    let settings = pages::block("inbox.md", "inbox:registry");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("fernery.toml"), settings).unwrap();
    let shown = program::run_in(dir.path(), ["config"]).exits(0);
    assert!(shown.stdout.contains("office=https://office.example:8080;azolla_id=mec"), "{}", shown.stdout);
}

#[test]
fn a_link_to_the_pages_is_printed_and_a_stream_redacted() {
    let mut shell = Shell::open(&[]);
    let mut seen = 0;
    shell.run_guide("dashboard.md", "dashboard:", |name, said, _| {
        let expected: &[&str] = match name {
            "open" => &[".localhost:", "/open/fernl_"],
            "redact" => &["salaries: viewers do not see what its jobs hold"],
            _ => &[],
        };
        seen += expected.len();
        for text in expected {
            assert!(said.contains(text), "{name}: no {text} in: {said}");
        }
    });
    assert_eq!(seen, 3);
}

#[test]
fn a_third_kind_of_azolla_is_one_file() {
    let mut shell = Shell::open(&[]);
    let blueprint = pages::block("own-azolla.md", "own:reading.toml");
    std::fs::write(shell.dir.path().join("reading.toml"), blueprint).unwrap();
    let mut seen = 0;
    shell.run_guide("own-azolla.md", "own:", |name, said, _| {
        let expected: &[&str] = match name {
            "start" => &["reading.toml: ok"],
            "run" => &["Read example.org", "ask Jo about the other paper"],
            _ => &[],
        };
        seen += expected.len();
        for text in expected {
            assert!(said.contains(text), "{name}: no {text} in: {said}");
        }
    });
    assert_eq!(seen, 3);
}
