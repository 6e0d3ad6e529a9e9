//! What `fernery demo` starts from: a repository with a test that fails, a blueprint, a configuration and a ticket. All of it
//! is compiled in, and nothing here reads or writes a file.

use fernery_exec::sandbox::Tier;

/// The settings of the demo's server.
pub(crate) const CONFIG: &str = include_str!("fernery.toml");
const BLUEPRINT: &str = include_str!("azolla.toml");

/// The files of the repository.
pub(crate) const REPOSITORY: [(&str, &str); 2] =
    [("greet.sh", include_str!("greet.sh")), ("test.sh", include_str!("test.sh"))];

pub(crate) const TICKET: &str = "demo-1";
/// Which azolla the ticket belongs to.
pub(crate) const AZOLLA: &str = "demo";
/// Which repository it is about, by its name in the configuration.
pub(crate) const REPO_REF: &str = "greeter";
pub(crate) const TITLE: &str = "Greet everybody, also those without a name";

/// The acceptance criteria. The first attempt fulfils only half of them, so that a gate fails.
pub(crate) const CRITERIA: &str = "\
- `sh test.sh` passes

A scripted agent does not think. These lines tell it what to do, on its first attempt and on those after a failure:

mock: first fix greet.sh Hello, $1 => Hello, $1!
mock: again fix greet.sh Hello, $1! => Hello, ${1:-world}!
";

/// A note that the scripted agent understands, for those who reopen the ticket.
pub(crate) const NOTE: &str = "mock: fix greet.sh whoever is named => everybody";

/// The blueprint; it names a sandbox only if the caller chose one.
pub(crate) fn blueprint(sandbox: Option<Tier>) -> String {
    let Some(tier) = sandbox else { return BLUEPRINT.to_string() };
    let mut text = String::new();
    for line in BLUEPRINT.lines() {
        text.push_str(line);
        text.push('\n');
        if line.starts_with("profile = ") || line.starts_with("argv = ") {
            text.push_str(&format!("sandbox = \"{tier}\"\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_core::blueprint::{Blueprint, Gate};

    fn read(sandbox: Option<Tier>) -> Blueprint {
        let others = |name: &str| (name == "mec").then(|| fernery_core::blueprint::MEC_TOML.to_string());
        Blueprint::parse(&blueprint(sandbox), &others).expect("the demo's blueprint is right")
    }

    #[test]
    fn containment_is_left_to_the_machine_unless_a_person_says_otherwise() {
        for wanted in [None, Some(Tier::Unconfined), Some(Tier::Landlock)] {
            let blueprint = read(wanted);
            assert_eq!(blueprint.executor().expect("it has one").sandbox, wanted);
            let gates = blueprint.gates.iter().filter_map(|gate| match gate {
                Gate::Command { sandbox, .. } => Some(*sandbox),
                _ => None,
            });
            assert_eq!(gates.collect::<Vec<_>>(), [wanted]);
        }
    }
}
