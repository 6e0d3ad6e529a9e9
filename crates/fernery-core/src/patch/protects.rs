//! Which files a gate's command relies on. A patch that changes one of them could change its own judge: `test: true` in a
//! Makefile passes everything. So the version of the base decides, unless the approved ticket allows the file.
//!
//! This covers what a command reads as an instruction. It does not cover code under test that ends the test process with 0.

use super::command_words::{is_of_module, named_files, named_modules};
use super::{Patch, path, policy};
use crate::artifact::Metadata;
use crate::limits;
use serde_json::Value;

/// The key of a ticket's metadata that names protected files which its patch may change.
pub const ALLOW: &str = "allow";

/// What is protected for one kind of project. A blueprint without `protects` protects all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Tests of any language.
    Tests,
    /// make, and tools that take its place.
    Make,
    Cargo,
    Node,
    Python,
    Go,
    /// Build tools that `fernery init` does not look for.
    Others,
}

impl Kind {
    pub const ALL: [Self; 7] =
        [Self::Tests, Self::Make, Self::Cargo, Self::Node, Self::Python, Self::Go, Self::Others];

    /// Files that tools read without being told: one that is new changes what a command does although nothing that was there
    /// is touched. They count beside every list of a gate that is not empty.
    pub const fn read_unasked(self) -> &'static [&'static str] {
        match self {
            Self::Tests => &[],
            Self::Make => &[
                "Makefile",
                "GNUmakefile",
                "BSDmakefile",
                "justfile",
                ".justfile",
                "Taskfile.yml",
                "Taskfile.yaml",
            ],
            Self::Cargo => &[
                ".cargo/",
                "build.rs",
                "rust-toolchain",
                "rust-toolchain.toml",
                "clippy.toml",
                ".clippy.toml",
                "rustfmt.toml",
                ".rustfmt.toml",
            ],
            Self::Node => &[
                "package.json",
                "node_modules/",
                ".npmrc",
                ".yarnrc",
                ".yarnrc.yml",
                ".mocharc.*",
                "jest.config.*",
                "vitest.config.*",
                "vitest.workspace.*",
                "vite.config.*",
                "babel.config.*",
                ".babelrc*",
                "tsconfig*.json",
                "eslint.config.*",
                ".eslintrc*",
                ".eslintignore",
                ".prettierrc*",
                "prettier.config.*",
                ".prettierignore",
            ],
            Self::Python => &[
                "conftest.py",
                "pytest.ini",
                ".pytest.ini",
                "pytest.toml",
                ".pytest.toml",
                "tox.ini",
                "setup.cfg",
                "pyproject.toml",
                "sitecustomize.py",
                "sitecustomize/",
                "usercustomize.py",
                "usercustomize/",
                ".python-version",
                "ruff.toml",
                ".ruff.toml",
                ".flake8",
                "mypy.ini",
                ".mypy.ini",
                ".pylintrc",
                "pylintrc",
                ".coveragerc",
            ],
            Self::Go => &["go.work", "vendor/", ".golangci.*"],
            Self::Others => &[".bazelrc", "gradle.properties", ".tool-versions"],
        }
    }

    /// What it relies on beside these.
    const fn more(self) -> &'static [&'static str] {
        match self {
            Self::Tests => &["test/", "tests/", "testdata/", "spec/", "test.sh", "tests.sh"],
            Self::Make => &["*.mk"],
            Self::Cargo => &["Cargo.toml", "nextest.toml", "tests.rs"],
            Self::Node => &["playwright.config.*", "__tests__/", "__mocks__/", "*.test.*", "*.spec.*"],
            Self::Python => &["noxfile.py", "setup.py", "test_*.py", "*_test.py"],
            Self::Go => &["go.mod", "*_test.go"],
            Self::Others => &[
                "CMakeLists.txt",
                "*.cmake",
                "meson.build",
                "build.gradle",
                "build.gradle.kts",
                "settings.gradle",
                "settings.gradle.kts",
                "gradle/",
                "gradlew",
                "pom.xml",
                ".mvn/",
                "mvnw",
                "build.sbt",
                "BUILD",
                "BUILD.bazel",
                "MODULE.bazel",
                "WORKSPACE",
                "Rakefile",
                "Gemfile",
                ".rspec",
                "composer.json",
                "phpunit.xml",
                "phpunit.xml.dist",
                "mix.exs",
            ],
        }
    }

    /// The patterns: a name is a file in any folder, one that ends in `/` a folder in any folder, one with a `/` inside a
    /// path from the root; `*` stands for any characters of a name.
    pub fn patterns(self) -> impl Iterator<Item = &'static str> {
        self.read_unasked().iter().chain(self.more()).copied()
    }
}

/// What is protected where a gate does not say.
pub fn by_default() -> impl Iterator<Item = &'static str> {
    Kind::ALL.into_iter().flat_map(Kind::patterns)
}

/// Files of all kinds that tools read without being told.
pub fn read_unasked() -> impl Iterator<Item = &'static str> {
    Kind::ALL.into_iter().flat_map(|kind| kind.read_unasked().iter().copied())
}

/// What is wrong with a pattern; `None`: nothing.
pub fn pattern_fault(pattern: &str) -> Option<&'static str> {
    let elsewhere = pattern.starts_with('/') || pattern.split('/').any(|part| part == "..");
    (pattern.is_empty() || elsewhere).then_some("is a file name, a path, or a folder that ends in /")
}

/// What the metadata of a ticket allows: one pattern, or a list of them. What is written otherwise allows nothing.
pub fn allowed_by(metadata: &Metadata) -> Result<Vec<String>, String> {
    let bad =
        || format!("names protected files: a pattern, or a list of at most {}", limits::PATCH_ALLOWED_MAX);
    let items = match metadata.get(ALLOW) {
        None => return Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= limits::PATCH_ALLOWED_MAX => items.as_slice(),
        Some(Value::Array(_)) => return Err(bad()),
        Some(one) => std::slice::from_ref(one),
    };
    items
        .iter()
        .map(|item| {
            let pattern = item.as_str().ok_or_else(bad)?;
            match pattern_fault(pattern) {
                Some(why) => Err(format!("`{}` is no pattern: a pattern {why}", path::shown(pattern))),
                None => Ok(pattern.to_string()),
            }
        })
        .collect()
}

/// Protected files that a patch touches: changes, adds or deletes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The base's version of these decides.
    pub kept: Vec<String>,
    /// The ticket allows these: the patch's version decides.
    pub allowed: Vec<String>,
}

/// What a gate's command relies on.
#[derive(Clone, Copy, Debug)]
pub struct Relied<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// What the gate names; `None` is [`by_default`].
    pub protects: Option<&'a [String]>,
}

/// Which files that a command relies on a patch touches, and which of them `allow` names. Files and modules that the command names
/// itself count beside every list; with a list of its own new files of [`read_unasked`] count too; an empty list is none at all.
pub fn touched(patch: &Patch, relied: Relied<'_>, allow: &[String]) -> Touched {
    let folded = |pattern: &str| path::folded(pattern);
    let (protects, unasked): (Vec<String>, Vec<String>) = match relied.protects {
        None => (by_default().map(folded).collect(), Vec::new()),
        Some([]) => return Touched::default(),
        Some(named) => {
            (named.iter().map(|pattern| folded(pattern)).collect(), read_unasked().map(folded).collect())
        }
    };
    let named: Vec<String> = named_files(relied.argv).iter().map(|file| folded(file)).collect();
    let modules: Vec<String> = named_modules(relied.argv).iter().map(|module| folded(module)).collect();
    let allow: Vec<String> = allow.iter().map(|pattern| folded(pattern)).collect();
    let mut touched = Touched::default();
    for file in &patch.files {
        let covered = |patterns: &[String]| patterns.iter().any(|pattern| covers(pattern, &file.folded));
        let relied_on = named.contains(&file.folded)
            || modules.iter().any(|module| is_of_module(module, &file.folded, file.before.is_none()))
            || covered(&protects)
            || (file.before.is_none() && covered(&unasked));
        let list = match (relied_on, covered(&allow)) {
            (false, _) => continue,
            (true, false) => &mut touched.kept,
            (true, true) => &mut touched.allowed,
        };
        // A file that becomes a link is in a patch twice.
        if list.last() != Some(&file.path) {
            list.push(file.path.clone());
        }
    }
    touched
}

/// Whether a path is one of those that are protected for a kind of project.
pub fn covered_by(kind: Kind, file: &str) -> bool {
    let file = path::folded(file);
    kind.patterns().any(|pattern| covers(&path::folded(pattern), &file))
}

/// As the gate `patch` reads a pattern, and with `*` in the last name. Both sides are folded.
fn covers(pattern: &str, file: &str) -> bool {
    if !pattern.contains('*') {
        return policy::covers_folded(pattern, file);
    }
    match pattern.strip_suffix('/') {
        Some(folder) => (0..file.len())
            .filter(|at| file.as_bytes()[*at] == b'/')
            .chain([file.len()])
            .any(|end| covers(folder, &file[..end])),
        None => {
            let (folder, name) = pattern.rsplit_once('/').map_or((None, pattern), |(f, n)| (Some(f), n));
            let (of, file_name) = file.rsplit_once('/').map_or(("", file), |(f, n)| (f, n));
            folder.is_none_or(|folder| folder == of) && fits(name, file_name)
        }
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::read;
    use serde_json::json;

    fn adds(paths: &[&str]) -> Patch {
        let one = |path: &&str| {
            format!(
                "diff --git a/{path} b/{path}\nnew file mode 100644\nindex {}..e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n",
                "0".repeat(40)
            )
        };
        read(&paths.iter().map(one).collect::<String>()).expect("a patch")
    }

    fn relied(protects: Option<&[String]>) -> Relied<'_> {
        Relied { argv: &[], protects }
    }

    fn kept(paths: &[&str], protects: Option<&[&str]>, allow: &[&str]) -> Vec<String> {
        let owned = |list: &[&str]| list.iter().map(|one| one.to_string()).collect::<Vec<_>>();
        let protects = protects.map(owned);
        touched(&adds(paths), relied(protects.as_deref()), &owned(allow)).kept
    }

    #[test]
    fn tests_and_build_files_of_known_kinds_are_protected_by_default() {
        let protected = [
            ".cargo/config.toml",
            "GNUmakefile",
            "a/b/conftest.py",
            "build.rs",
            "crates/x/tests/all.rs",
            "makefile",
            "package.json",
            "pkg/x_test.go",
            "rules.mk",
            "src/foo.test.ts",
            "src/test",
            "test.sh",
            "test_x.py",
        ];
        assert_eq!(kept(&protected, None, &[]), protected);
        let free = ["Cargo.lock", "contest.py", "latest/x.rs", "src/main.rs", "src/testing.rs", "x.mkd"];
        assert_eq!(kept(&free, None, &[]), [""; 0]);
    }

    #[test]
    fn new_files_that_tools_read_unasked_count_beside_a_list() {
        let new = ["sub/GNUmakefile", "conftest.py", ".cargo/config.toml", "x/build.rs", "tests/new.rs"];
        assert_eq!(kept(&new, Some(&["test.sh"]), &[]), new[..4]);
        assert_eq!(kept(&new, Some(&[]), &[]), [""; 0], "an empty list is none at all");
        // One that was there is for the list to name.
        let id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let deletes = format!(
            "diff --git a/conftest.py b/conftest.py\ndeleted file mode 100644\nindex {id}..{}\n",
            "0".repeat(40)
        );
        let patch = read(&deletes).expect("a patch");
        assert_eq!(touched(&patch, relied(Some(&["test.sh".into()])), &[]), Touched::default());
        assert_eq!(touched(&patch, relied(None), &[]).kept, ["conftest.py"]);
    }

    #[test]
    fn a_list_of_its_own_takes_the_place_of_the_default() {
        let paths = ["ci/run.sh", "sub/ci/run.sh", "test.sh", "tests/a.rs"];
        assert_eq!(kept(&paths, Some(&["ci/run.sh"]), &[]), ["ci/run.sh"]);
        assert_eq!(kept(&paths, Some(&["ci/"]), &[]), ["ci/run.sh", "sub/ci/run.sh"]);
        assert_eq!(kept(&paths, Some(&["ci/*.sh"]), &[]), ["ci/run.sh"]);
        assert_eq!(kept(&paths, Some(&["t*s/"]), &[]), ["tests/a.rs"]);
        assert_eq!(kept(&paths, Some(&[]), &[]), [""; 0]);
    }

    #[test]
    fn a_file_that_the_command_names_counts_beside_every_list() {
        let argv = ["sh", "./ci/check"].map(String::from);
        let patch = adds(&["CI/check", "check", "ci/checker", "sub/ci/check"]);
        let named = ["Makefile".to_string()];
        for protects in [None, Some(&named[..])] {
            let relied = Relied { argv: &argv, protects };
            assert_eq!(touched(&patch, relied, &[]).kept, ["CI/check"], "{protects:?}");
            assert_eq!(touched(&patch, relied, &["ci/".into()]).allowed, ["CI/check"], "{protects:?}");
        }
        assert_eq!(touched(&patch, Relied { argv: &argv, protects: Some(&[]) }, &[]), Touched::default());
    }

    #[test]
    fn a_new_file_cannot_take_the_place_of_a_tool() {
        let new = [
            ".babelrc.json",
            ".eslintrc.cjs",
            ".golangci.yml",
            ".justfile",
            ".python-version",
            ".pytest.toml",
            ".tool-versions",
            "a/tsconfig.test.json",
            "node_modules/jest/index.js",
            "sitecustomize/__init__.py",
            "vendor/x/x.go",
            "vitest.workspace.ts",
        ];
        assert_eq!(kept(&new, Some(&["test.sh"]), &[]), new);
        assert_eq!(kept(&new, None, &[]), new);
        let argv = ["python3", "-m", "pytest", "-q"].map(String::from);
        let patch = adds(&["a/pytest.py", "pytest.py", "pytest/__init__.py", "pytest_x.py"]);
        let relied = Relied { argv: &argv, protects: Some(&["test.sh".into()]) };
        assert_eq!(touched(&patch, relied, &[]).kept, ["pytest.py", "pytest/__init__.py"]);
    }

    #[test]
    fn what_the_ticket_allows_is_told_apart() {
        let (paths, allow) = (["Makefile", "tests/a.rs", "tests/b.rs"], ["tests/a.rs".to_string()]);
        let touched = touched(&adds(&paths), relied(None), &allow);
        assert_eq!(touched.kept, ["Makefile", "tests/b.rs"]);
        assert_eq!(touched.allowed, ["tests/a.rs"]);
        assert_eq!(kept(&paths, None, &["tests/", "makefile"]), [""; 0]);
    }

    #[test]
    fn stars_stand_for_any_characters_of_a_name() {
        for (pattern, name, wanted) in [
            ("*", "x", true),
            ("*.mk", "a.mk", true),
            ("*.mk", "a.mk.txt", false),
            ("*.test.*", "a.test.ts", true),
            ("*.test.*", "a.test", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "ab", false),
            ("ab*ab", "ab", false),
            ("x", "xy", false),
        ] {
            assert_eq!(fits(pattern, name), wanted, "{pattern} {name}");
        }
    }

    #[test]
    fn the_reference_has_both_lists() {
        let page = include_str!("../../../../docs/reference/protected-files.md");
        let (_, lists) = page.split_once("## The default list").expect("the default list");
        let (default, unasked) = lists.split_once("## New files").expect("the other list");
        let unasked = unasked.split("\n## ").next().unwrap_or_default();
        let named = |text: &str| text.split('`').skip(1).step_by(2).map(str::to_string).collect::<Vec<_>>();
        assert_eq!(named(default), by_default().collect::<Vec<_>>());
        assert_eq!(named(unasked), read_unasked().collect::<Vec<_>>());
    }

    #[test]
    fn a_ticket_allows_by_one_pattern_or_a_list_and_by_nothing_else() {
        let of = |value: Value| allowed_by(&[(ALLOW.to_string(), value)].into());
        assert_eq!(allowed_by(&Metadata::new()), Ok(Vec::new()));
        assert_eq!(of(json!("tests/")), Ok(vec!["tests/".to_string()]));
        assert_eq!(of(json!(["a", "b/c"])), Ok(vec!["a".to_string(), "b/c".to_string()]));
        for bad in [json!(true), json!({}), json!([1]), json!("/etc"), json!(["../x"]), json!([""])] {
            assert!(of(bad.clone()).is_err(), "{bad}");
        }
        assert!(of(json!(vec!["x"; limits::PATCH_ALLOWED_MAX])).is_ok());
        assert!(of(json!(vec!["x"; limits::PATCH_ALLOWED_MAX + 1])).is_err());
    }
}
