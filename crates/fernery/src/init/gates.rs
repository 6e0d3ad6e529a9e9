//! Suggests gate commands for a repository, from its own files.

use fernery_core::patch::command_words::named_files;
use fernery_core::patch::protects::Kind;
use serde_json::Value;

/// The files of a repository that say how it is tested.
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
    /// Which of the files that [`Seen::run_by_test`] names are there.
    pub(crate) scripts: Vec<String>,
}

impl Seen {
    /// Whether a command for tests was found.
    pub(crate) fn has_tests(&self) -> bool {
        !suggested(self).is_empty()
    }

    /// Files that the Makefile's target `test`, with all that it depends on, and package.json's script `test` seem to run, whether
    /// they are there or not: every word of them.
    pub(crate) fn run_by_test(&self) -> Vec<String> {
        let mut lines = self.makefile.as_deref().map(test_recipes).unwrap_or_default();
        lines.extend(self.package_json.as_deref().and_then(test_script));
        let mut found: Vec<String> = Vec::new();
        for line in &lines {
            let line = line.trim_start_matches(['@', '-', '+']);
            let parts = line.split(|c: char| c.is_whitespace() || ";&|()<>'\"`=$".contains(c));
            let words: Vec<String> = ["sh"].into_iter().chain(parts).map(str::to_string).collect();
            for file in named_files(&words) {
                if !found.contains(&file) {
                    found.push(file);
                }
            }
        }
        found
    }
}

/// A suggested gate command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suggested {
    pub(super) name: &'static str,
    pub(super) argv: &'static [&'static str],
    pub(super) env: &'static [&'static str],
    /// Whether it runs what [`Seen::run_by_test`] names.
    pub(super) runs_scripts: bool,
    /// Why it is there, and what to know about it.
    pub(super) why: &'static str,
}

/// Commands for everything that was found. A Makefile with a target `test` is the only one: it knows best.
pub(super) fn suggested(seen: &Seen) -> Vec<Suggested> {
    if seen.makefile.as_deref().is_some_and(has_test_target) {
        let why = "The Makefile has a target `test`.";
        let (argv, env) = (&["make", "test"], &["PATH"]);
        return vec![Suggested { name: "tests", argv, env, runs_scripts: true, why }];
    }
    let mut gates = Vec::new();
    if seen.cargo {
        gates.push(Suggested {
            name: "cargo-test",
            argv: &["cargo", "test", "--offline"],
            env: &["PATH", "CARGO_HOME", "RUSTUP_HOME"],
            runs_scripts: false,
            why: "There is a Cargo.toml. Gates have no network: what it depends on must be there already (`cargo fetch`).",
        });
    }
    if seen.package_json.as_deref().is_some_and(has_test_script) {
        gates.push(Suggested {
            name: "npm-test",
            argv: &["npm", "test"],
            env: &["PATH"],
            runs_scripts: true,
            why: "package.json has a script `test`. Gates see a clean checkout without node_modules and no network.",
        });
    }
    if seen.go {
        gates.push(Suggested {
            name: "go-test",
            argv: &["go", "test", "./..."],
            env: &["PATH", "GOPATH", "GOMODCACHE"],
            runs_scripts: false,
            why: "There is a go.mod.",
        });
    }
    if seen.python {
        let why = "This is a Python project.";
        let (argv, env) = (&["pytest", "-q"], &["PATH"]);
        gates.push(Suggested { name: "pytest", argv, env, runs_scripts: false, why });
    }
    gates
}

/// The protected files of a suggested command, in groups: the whole default list and the scripts that it runs. `None`: only the
/// default list, which need not be written down.
pub(super) fn protects(gate: &Suggested, seen: &Seen) -> Option<Vec<Vec<String>>> {
    let known: Vec<Vec<String>> =
        Kind::ALL.iter().map(|kind| kind.patterns().map(str::to_string).collect()).collect();
    let is_new = |script: &&String| !known.iter().flatten().any(|name| name == *script);
    let scripts: Vec<String> =
        seen.scripts.iter().filter(|_| gate.runs_scripts).filter(is_new).cloned().collect();
    (!scripts.is_empty()).then(|| [scripts].into_iter().chain(known).collect())
}

/// The targets of a Makefile rule, and the text after the colon; `None`: the line does not begin a rule.
fn rule(line: &str) -> Option<(Vec<&str>, &str)> {
    let (targets, rest) = line.split_once(':')?;
    // A recipe is indented; `:=` sets a variable.
    let is_rule = !line.starts_with(['\t', ' ', '#', '.']) && !rest.starts_with('=');
    is_rule.then(|| (targets.split_whitespace().collect(), rest.trim_start_matches(':')))
}

/// Whether a Makefile has a rule for `test`.
fn has_test_target(makefile: &str) -> bool {
    makefile.lines().filter_map(rule).any(|(targets, _)| targets.contains(&"test"))
}

/// The prerequisites and commands of `test`, and those of all targets that it depends on.
fn test_recipes(makefile: &str) -> Vec<String> {
    let makefile = makefile.replace("\\\r\n", " ").replace("\\\n", " ");
    let (mut wanted, mut lines, mut done) = (vec!["test".to_string()], Vec::new(), 0);
    while let Some(target) = wanted.get(done).cloned() {
        done += 1;
        let mut is_its = false;
        for line in makefile.lines() {
            if let Some((targets, rest)) = rule(line) {
                is_its = targets.contains(&target.as_str());
                if is_its {
                    let needed = rest.split(';').next().unwrap_or_default();
                    for needed in needed.split_whitespace().filter(|needed| *needed != "|") {
                        if !wanted.iter().any(|known| known == needed) {
                            wanted.push(needed.to_string());
                        }
                    }
                    lines.push(rest.to_string());
                }
            } else if is_its && line.starts_with('\t') {
                lines.push(line.trim().to_string());
            } else if !line.trim().is_empty() && !line.starts_with('#') {
                is_its = false;
            }
        }
    }
    lines
}

/// Whether package.json has a script `test` that is more than the one that `npm init` writes.
fn has_test_script(package_json: &str) -> bool {
    test_script(package_json).is_some()
}

fn test_script(package_json: &str) -> Option<String> {
    let package = serde_json::from_str::<Value>(package_json).ok()?;
    let script = package["scripts"]["test"].as_str()?.trim();
    let beside = |name: &str| package["scripts"][name].as_str().unwrap_or_default().to_string();
    (!script.is_empty() && !script.contains("no test specified"))
        .then(|| format!("{} ; {script} ; {}", beside("pretest"), beside("posttest")))
}
