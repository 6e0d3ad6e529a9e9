//! In which order a person reads the files of a patch: first what could do the most harm.

use super::protects::{self, Relied};
use super::{Body, FileChange, Mode, Patch};

/// Why a file comes early; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// A gate or a build relies on it.
    Protected,
    /// It decides what other people's code comes in.
    Dependencies,
    /// A test that goes.
    TestDeleted,
    /// It can be executed, leads elsewhere, or cannot be read.
    Unusual,
    Plain,
}

impl Risk {
    /// In a few words; nothing for a plain file.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Protected => "gates rely on it",
            Self::Dependencies => "dependencies",
            Self::TestDeleted => "deletes a test",
            Self::Unusual => "executable, link or binary",
            Self::Plain => "",
        }
    }
}

/// Files by which the package managers of common languages are told what to install.
const MANIFESTS: [&str; 27] = [
    "cargo.toml",
    "cargo.lock",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lockb",
    "bun.lock",
    "deno.lock",
    "pyproject.toml",
    "poetry.lock",
    "uv.lock",
    "pipfile",
    "pipfile.lock",
    "setup.py",
    "go.mod",
    "go.sum",
    "gemfile",
    "gemfile.lock",
    "composer.json",
    "composer.lock",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "mix.lock",
    "flake.lock",
];

/// The places of a patch's files in the order in which to read them, each with its risk. `gates` are the commands that judge it; where
/// none is known, what gates rely on by default counts.
pub fn in_reading_order(patch: &Patch, gates: &[Relied<'_>]) -> Vec<(usize, Risk)> {
    let default = [Relied { argv: &[], protects: None }];
    let gates = if gates.is_empty() { &default[..] } else { gates };
    let relied: Vec<String> =
        gates.iter().flat_map(|gate| protects::touched(patch, *gate, &[]).kept).collect();
    let mut order: Vec<(usize, Risk)> =
        patch.files.iter().enumerate().map(|(nth, file)| (nth, risk(file, &relied))).collect();
    order.sort_by_key(|(nth, risk)| (*risk, *nth));
    order
}

fn risk(file: &FileChange, relied: &[String]) -> Risk {
    let name = file.path.rsplit('/').next().unwrap_or_default().to_lowercase();
    let is_manifest =
        MANIFESTS.contains(&name.as_str()) || (name.starts_with("requirements") && name.ends_with(".txt"));
    let unusual = |mode: Option<Mode>| matches!(mode, Some(Mode::Executable | Mode::Symlink));
    // A manifest is protected too, and says more by its own name; so does a test that goes.
    if is_manifest {
        Risk::Dependencies
    } else if file.after.is_none() && is_test(&file.path) {
        Risk::TestDeleted
    } else if relied.contains(&file.path) {
        Risk::Protected
    } else if unusual(file.after) && file.before != file.after || matches!(file.body, Body::Binary { .. }) {
        Risk::Unusual
    } else {
        Risk::Plain
    }
}

fn is_test(path: &str) -> bool {
    protects::covered_by(protects::Kind::Tests, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(path: &str, mode: &str) -> String {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode {mode}\nindex {0}..{1}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n",
            "0".repeat(40),
            "1".repeat(40)
        )
    }

    fn deleted(path: &str) -> String {
        format!(
            "diff --git a/{path} b/{path}\ndeleted file mode 100644\nindex {1}..{0}\n--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
            "0".repeat(40),
            "1".repeat(40)
        )
    }

    #[test]
    fn what_could_do_harm_comes_first() {
        let text = [
            added("src/a.rs", "100644"),
            added("tool", "100755"),
            deleted("tests/old.rs"),
            added("Cargo.lock", "100644"),
            added("Makefile", "100644"),
            added("tests/new.rs", "100644"),
        ]
        .concat();
        let patch = super::super::read(&text).unwrap();
        let order = |gates: &[Relied<'_>]| -> Vec<(String, Risk)> {
            let order = in_reading_order(&patch, gates).into_iter();
            order.map(|(nth, risk)| (patch.files[nth].path.clone(), risk)).collect()
        };
        let named = |all: &[(&str, Risk)]| -> Vec<(String, Risk)> {
            all.iter().map(|(path, risk)| (path.to_string(), *risk)).collect()
        };
        assert_eq!(
            order(&[]),
            named(&[
                ("Makefile", Risk::Protected),
                ("tests/new.rs", Risk::Protected),
                ("Cargo.lock", Risk::Dependencies),
                ("tests/old.rs", Risk::TestDeleted),
                ("tool", Risk::Unusual),
                ("src/a.rs", Risk::Plain),
            ])
        );
        let words = |all: &[&str]| -> Vec<String> { all.iter().map(|word| word.to_string()).collect() };
        let (check, tool, own) = (words(&["sh", "check.sh"]), words(&["sh", "tool"]), words(&["src/"]));
        let gates =
            [&check, &tool].map(|argv| Relied { argv: argv.as_slice(), protects: Some(own.as_slice()) });
        assert_eq!(
            order(&gates),
            named(&[
                ("src/a.rs", Risk::Protected),
                ("tool", Risk::Protected),
                ("Makefile", Risk::Protected),
                ("Cargo.lock", Risk::Dependencies),
                ("tests/old.rs", Risk::TestDeleted),
                ("tests/new.rs", Risk::Plain),
            ]),
            "the gates of the run say what they rely on; a new file that tools read unasked counts beside it"
        );
    }
}
