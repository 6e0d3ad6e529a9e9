//! Checks in `Cargo.lock` that this crate links no server and no database, and that each of our crates depends only on
//! those below it.

use std::collections::{BTreeMap, BTreeSet};

/// Servers and databases must not be linked into a program that starts other people's programs.
const BANNED: [&str; 10] = [
    "fernery",
    "fernery-client",
    "fernery-engine",
    "http",
    "hyper",
    "libsqlite3-sys",
    "redis",
    "rusqlite",
    "rustls",
    "tokio-postgres",
];

/// The packages of `Cargo.lock`, each with what it depends on. Versions do not matter here.
fn packages() -> BTreeMap<String, BTreeSet<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    let lock: toml::Table = std::fs::read_to_string(path).expect("Cargo.lock").parse().expect("TOML");
    let mut packages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in lock["package"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name").to_string();
        let listed = package.get("dependencies").and_then(toml::Value::as_array).into_iter().flatten();
        // An entry is a name, and a version where there are several.
        let names = listed.filter_map(|entry| entry.as_str()?.split(' ').next().map(str::to_string));
        packages.entry(name).or_default().extend(names);
    }
    packages
}

/// All that a package is built from.
fn built_from(package: &str, packages: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let (mut found, mut left) = (BTreeSet::new(), vec![package.to_string()]);
    while let Some(name) = left.pop() {
        for needed in packages.get(&name).into_iter().flatten() {
            if found.insert(needed.clone()) {
                left.push(needed.clone());
            }
        }
    }
    found
}

#[test]
fn no_server_and_no_database_is_built_in_here() {
    let found = built_from("fernery-exec", &packages());
    assert!(found.contains("tokio") && found.contains("mio"), "the whole tree is looked at: {found:?}");
    let banned: Vec<&str> = BANNED.into_iter().filter(|name| found.contains(*name)).collect();
    assert!(banned.is_empty(), "fernery-exec is built from {banned:?}");
}

#[test]
fn each_crate_knows_those_of_ours_that_lie_below_it_and_no_others() {
    let packages = packages();
    for (package, below) in [
        ("fernery-core", &[][..]),
        ("fernery-door", &["fernery-core"]),
        ("fernery-exec", &["fernery-core", "fernery-door"]),
        ("fernery-client", &["fernery-core", "fernery-door"]),
        ("fernery-engine", &["fernery-core", "fernery-door"]),
    ] {
        let found = built_from(package, &packages);
        let ours: Vec<&String> = found.iter().filter(|name| name.starts_with("fernery")).collect();
        assert_eq!(ours, below, "{package}");
    }
}
