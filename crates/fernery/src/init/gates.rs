//! Which commands would judge a repository's patches, from what it says of itself.

use serde_json::Value;

/// What of a repository's files tells how it is tested.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// There is a Cargo.toml.
    pub(crate) cargo: bool,
    /// The text of package.json.
    pub(crate) package_json: Option<String>,
    /// The text of a Makefile.
    pub(crate) makefile: Option<String>,
    /// There is a pyproject.toml, setup.cfg, tox.ini or pytest.ini.
    pub(crate) python: bool,
    /// There is a go.mod.
    pub(crate) go: bool,
}

/// A command that would judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suggested {
    pub(super) name: &'static str,
    pub(super) argv: &'static [&'static str],
    pub(super) env: &'static [&'static str],
    /// Why it is there, and what to know about it.
    pub(super) why: &'static str,
}

/// Commands for all that was seen. A Makefile that can test knows best: it is the only one then.
pub(super) fn suggested(seen: &Seen) -> Vec<Suggested> {
    if seen.makefile.as_deref().is_some_and(has_test_target) {
        let why = "The Makefile has a target `test`.";
        return vec![Suggested { name: "tests", argv: &["make", "test"], env: &["PATH"], why }];
    }
    let mut gates = Vec::new();
    if seen.cargo {
        gates.push(Suggested {
            name: "cargo-test",
            argv: &["cargo", "test", "--offline"],
            env: &["PATH", "CARGO_HOME", "RUSTUP_HOME"],
            why: "There is a Cargo.toml. Gates have no network: what it depends on must be there already (`cargo fetch`).",
        });
    }
    if seen.package_json.as_deref().is_some_and(has_test_script) {
        gates.push(Suggested {
            name: "npm-test",
            argv: &["npm", "test"],
            env: &["PATH"],
            why: "package.json has a script `test`. Gates see a clean checkout without node_modules and no network.",
        });
    }
    if seen.go {
        gates.push(Suggested {
            name: "go-test",
            argv: &["go", "test", "./..."],
            env: &["PATH", "GOPATH", "GOMODCACHE"],
            why: "There is a go.mod.",
        });
    }
    if seen.python {
        let why = "This is a Python project.";
        gates.push(Suggested { name: "pytest", argv: &["pytest", "-q"], env: &["PATH"], why });
    }
    gates
}

/// Whether a Makefile has a rule for `test`.
fn has_test_target(makefile: &str) -> bool {
    makefile.lines().any(|line| match line.split_once(':') {
        // A recipe is indented; `:=` sets a variable.
        Some((targets, rest)) => {
            !line.starts_with(['\t', ' ', '#', '.'])
                && !rest.starts_with('=')
                && targets.split_whitespace().any(|target| target == "test")
        }
        None => false,
    })
}

/// Whether package.json has a script `test` that is more than the one that `npm init` writes.
fn has_test_script(package_json: &str) -> bool {
    let Ok(package) = serde_json::from_str::<Value>(package_json) else { return false };
    let script = package["scripts"]["test"].as_str().map(str::trim);
    script.is_some_and(|script| !script.is_empty() && !script.contains("no test specified"))
}
