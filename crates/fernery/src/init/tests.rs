use super::*;
use fernery_core::blueprint::{Blueprint, Gate};
use fernery_core::patch::protects::by_default;

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
fn the_envelope_leaves_room_for_the_retries() {
    let Blueprint { envelope, retry, budget, .. } = written("x", None, Seen::default());
    let runs = retry.gate_failures + 1;
    assert!(envelope.attempts.unwrap() > runs, "the last failure is the gate's, not the envelope's");
    assert!(envelope.wall_time.unwrap() >= budget * runs);
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

/// What the first command relies on; `None`: the default list.
fn protected(seen: Seen) -> Option<Vec<String>> {
    let gates = written("x", None, seen).gates.into_iter();
    let mut lists = gates
        .filter_map(|gate| if let Gate::Command { protects, .. } = gate { Some(protects) } else { None });
    lists.next().unwrap()
}

#[test]
fn no_suggested_gate_protects_less_than_the_default() {
    let makefile = "lib.sh:\n\t./build.sh\ntest: build | ci/prepare\n\n\t@./ci/check --all\n# why\n\tsh check.sh; ./x \\\n\t\ty.c\n\
                    CC := cc\nbuild: deps\n\tcmake -P ci/build.cmake\ndeps: ; ./ci/deps\nclean:\n\tsh clean.sh\n";
    let mut make = Seen { makefile: Some(makefile.into()), ..Seen::default() };
    let run = make.run_by_test();
    for script in ["ci/prepare", "ci/check", "check.sh", "x", "y.c", "ci/build.cmake", "ci/deps"] {
        assert!(run.iter().any(|name| name == script), "{script}: {run:?}");
    }
    for other in ["build.sh", "clean.sh", "lib.sh"] {
        assert!(!run.iter().any(|name| name == other), "{other}: {run:?}");
    }
    assert_eq!(protected(make.clone()), None, "nothing of it is there");
    make.scripts = vec!["ci/check".into(), "Makefile".into()];
    let of_make = protected(make.clone()).unwrap();
    assert_eq!(of_make[0], "ci/check");
    assert_eq!(of_make[1..], by_default().collect::<Vec<_>>());
    let text = blueprint(&Repository { folder: "x", base: "main", agent: None, seen: make });
    assert!(text.lines().all(|line| line.chars().count() <= 130), "{text}");
    for seen in [Seen { python: true, ..Seen::default() }, Seen { cargo: true, ..Seen::default() }] {
        assert_eq!(protected(seen), None);
    }
    let package = r#"{"scripts": {"test": "node ./scripts/run.js /abs/test.sh", "pretest": "sh ci/pre"}}"#;
    let mut node = Seen { package_json: Some(package.into()), cargo: true, ..Seen::default() };
    let run = node.run_by_test();
    assert!(run.contains(&"scripts/run.js".into()) && run.contains(&"ci/pre".into()), "{run:?}");
    node.scripts = vec!["scripts/run.js".into()];
    assert_eq!(protected(node.clone()), None, "cargo runs no script");
    node.cargo = false;
    assert_eq!(protected(node).unwrap()[0], "scripts/run.js");
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
