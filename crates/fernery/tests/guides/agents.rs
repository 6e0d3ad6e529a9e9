//! The commands of `run-agents.md`, with the scripted agent, and what it says of the others.

use super::pages::{block, checkout};
use super::shell::Shell;
use fernery_core::blueprint::{Blueprint, MEC_TOML};
use fernery_core::profile::Profile;

const GUIDE: &str = "run-agents.md";

#[test]
fn an_agent_works_on_a_ticket_line_by_line() {
    // No agent of the tester's is logged in here: it would be the one that `init` takes, and cost money.
    let home = tempfile::tempdir().unwrap();
    let profiles: Vec<Profile> = Profile::names().filter_map(Profile::builtin).collect();
    let keys = profiles.iter().flat_map(|profile| &profile.secrets).map(|key| (key.as_str(), ""));
    let environment: Vec<_> = keys.chain([("HOME", home.path().to_str().unwrap())]).collect();
    let mut shell = Shell::open(&environment);
    let mut seen = 0;
    shell.run_guide(GUIDE, "agents:", |name, said, _| {
        let expected: &[&str] = match name {
            "agent" => &["claude ", "mock ", "state       ok"],
            "init" => &["repository app, base branch main", "azolla.toml: ok", "listening on "],
            "ticket" => &["tests: make test", "hello-1 is approved and TODO"],
            "read" => &[
                "tests: FAIL `make test`",
                "tests: PASS `make test`",
                "hello-1 is DONE",
                "+Hello",
                "write greeting.txt",
            ],
            "merge" => &["landed on main", " Greet in English\n", "\nHello"],
            "question" => &["which colour shall it be?", "colour-1 is answered and TODO", "colour-1 is DONE"],
            "after" => &["hello-2 is DONE", "landed on main"],
            "down" => &["stopped the server"],
            "trash" => &["its work was handed in"],
            _ => &[],
        };
        seen += expected.len();
        for text in expected {
            assert!(said.contains(text), "{name}: no {text} in: {said}");
        }
    });
    assert_eq!(seen, 23, "no block was renamed away from what is expected of it");
}

#[test]
fn the_guide_tells_of_every_agent_what_its_profile_says() {
    let page = std::fs::read_to_string(checkout().join("docs/guides").join(GUIDE)).unwrap();
    let mut agents = 0;
    for profile in Profile::names().filter_map(Profile::builtin).filter(|profile| !profile.install.is_empty())
    {
        let login = profile.login.first().expect("it has a login");
        let row = format!("| `{}` | {} | `~/{login}` |", profile.name, profile.install);
        assert!(page.contains(&row), "no row {row}");
        agents += 1;
    }
    assert_eq!(agents, 6);
}

#[test]
fn what_it_may_cost_is_part_of_a_blueprint() {
    let parts = [block(GUIDE, "agents:envelope"), block(GUIDE, "agents:land")];
    let text = format!("extends = \"mec\"\nazolla_id = \"app\"\n{}", parts.join("\n"));
    let blueprint = Blueprint::parse(&text, &|name| (name == "mec").then(|| MEC_TOML.to_string())).unwrap();
    assert_eq!(blueprint.envelope.cost_usd_micros, Some(5_000_000));
}
