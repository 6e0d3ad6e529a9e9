use super::*;
use fernery_core::blueprint::{Blueprint, Gate};

fn written(folder: &str, agent: Option<&str>, seen: Seen) -> Blueprint {
    let repository = Repository { folder, base: "main", agent, seen };
    Blueprint::parse(&blueprint(&repository), &|_| None).unwrap_or_else(|flaws| panic!("{flaws:#?}"))
}

fn commands(seen: Seen) -> Vec<String> {
    let commands = written("x", None, seen).gates.into_iter().filter_map(|gate| match gate {
        Gate::Command { argv, .. } => Some(argv.join(" ")),
        _ => None,
    });
    commands.collect()
}

#[test]
fn any_folder_gives_a_name() {
    for (folder, name) in [
        ("fernery", "fernery"),
        ("My App (2)", "My-App--2"),
        (".dotfiles", "dotfiles"),
        ("_x_", "x_"),
        ("日本", "repo"),
        ("", "repo"),
        ("mec", "repo-mec"),
        ("a\"]\nb", "a---b"),
        (&"y".repeat(100), &"y".repeat(64)),
    ] {
        assert_eq!(name_of(folder), name, "{folder:?}");
        assert_eq!(written(folder, Some("claude"), Seen::default()).azolla_id.as_str(), name);
    }
}

#[test]
fn the_blueprint_has_the_agent_that_was_found_or_a_mock() {
    for (found, profile) in [(Some("codex"), "codex"), (None, "mock")] {
        let blueprint = written("x", found, Seen::default());
        assert_eq!(blueprint.executor().unwrap().agent.as_ref().unwrap().name, profile);
        let gates: Vec<_> = blueprint.gates.iter().map(Gate::name).collect();
        assert_eq!(gates, ["schema", "outcome", "size", "patch", "applies"]);
    }
}

#[test]
fn gates_are_suggested_from_what_is_seen() {
    let npm = |script: &str| Seen {
        package_json: Some(format!("{{\"scripts\":{{\"test\":{script:?}}}}}")),
        ..Seen::default()
    };
    let make = |text: &str| Seen { makefile: Some(text.to_string()), cargo: true, ..Seen::default() };
    assert_eq!(commands(Seen { cargo: true, ..Seen::default() }), ["cargo test --offline"]);
    assert_eq!(commands(npm("vitest run")), ["npm test"]);
    for none in ["", "echo \"Error: no test specified\" && exit 1"] {
        assert!(commands(npm(none)).is_empty(), "{none}");
    }
    assert!(commands(Seen { package_json: Some("{".into()), ..Seen::default() }).is_empty());
    for makefile in ["test:\n\tgo\n", "all test: x\n", "test : a b\n", "test::\n"] {
        assert_eq!(commands(make(makefile)), ["make test"], "{makefile}");
    }
    for makefile in ["test := 1\n", "\ttest: x\n", "# test: x\n", "tests:\n", ".PHONY: test\n"] {
        assert_eq!(commands(make(makefile)), ["cargo test --offline"], "{makefile}");
    }
    let both = Seen { cargo: true, python: true, go: true, ..Seen::default() };
    assert_eq!(commands(both), ["cargo test --offline", "go test ./...", "pytest -q"]);
}

#[test]
fn the_configuration_names_the_blueprint_and_the_repository() {
    let repository =
        Repository { folder: "My App", base: "feature/\"x\"", agent: None, seen: Seen::default() };
    let text = config(&repository, "azolla.toml");
    let read: toml::Table = text.parse().unwrap();
    assert_eq!(read["azolla"].as_array().unwrap()[0].as_str(), Some("azolla.toml"));
    let repo = &read["repos"]["My-App"];
    assert_eq!((repo["path"].as_str(), repo["base"].as_str()), (Some("."), Some("feature/\"x\"")));
    assert_eq!(read.len(), 2);
}
