//! SQL that can be read, pasted and trusted without its caller.

use super::{files, none, read};
use std::collections::BTreeMap;

fn with_ending(ending: &str) -> BTreeMap<String, String> {
    // What an older version left is data.
    let is_left = |path: &String| path.starts_with("crates/fernery/tests/cli/upgrade/");
    let of_crates = |path: &String| path.starts_with("crates/") && path.ends_with(ending) && !is_left(path);
    let found: BTreeMap<_, _> =
        files().into_iter().filter(of_crates).map(|path| (path.clone(), read(&path))).collect();
    assert!(found.len() > 100, "{found:?}");
    found
}

#[test]
fn every_statement_opens_with_its_promise() {
    let is_silent = |text: &str| {
        let promise = text.lines().next().and_then(|line| line.strip_prefix("-- ")).unwrap_or_default();
        promise.split_whitespace().count() < 2
    };
    let silent = with_ending(".sql").into_iter().filter(|(_, text)| is_silent(text)).map(|(path, _)| path);
    none(&silent.collect::<Vec<_>>(), "a .sql file begins with `-- ` and what it reads or writes, and when:");
}

#[test]
fn no_statement_is_glued_from_parts() {
    let is_glued = |text: &str| {
        let dense: String = text.split_whitespace().collect();
        let mut parts =
            dense.split("concat!(include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
        parts.any(|first| first.ends_with(".sql"))
    };
    let glued = with_ending(".rs").into_iter().filter(|(_, text)| is_glued(text)).map(|(path, _)| path);
    none(&glued.collect::<Vec<_>>(), "a statement is one whole file, which can be pasted:");
}

/// The rule is in Rust; a statement that needs it has a copy of the prefix, and says of what.
#[test]
fn a_statement_that_names_the_streams_of_workorders_says_where_the_rule_is() {
    let prefix = fernery_core::names::RESERVED_STREAM_PREFIX;
    let is_dumb = |path: &str, text: &str| {
        !path.contains("/migrations/") && text.contains(prefix) && !text.contains("StreamName::is_workorders")
    };
    let dumb =
        with_ending(".sql").into_iter().filter(|(path, text)| is_dumb(path, text)).map(|(path, _)| path);
    none(&dumb.collect::<Vec<_>>(), "say in a comment that the rule is StreamName::is_workorders:");
}

/// Three ways to find a job, one way to take it.
#[test]
fn the_claims_of_postgresql_differ_only_in_how_they_pick() {
    let take = |text: &str| {
        let (_, take) = text.split_once("), sized AS MATERIALIZED (").expect("what is picked is sized");
        let (take, _) = take.rsplit_once("CROSS JOIN LATERAL (SELECT payload").expect("and handed out");
        take.to_string()
    };
    let all = with_ending(".sql");
    let claims: Vec<_> = ["claim.sql", "claim_hinted.sql", "claim_hinted_later.sql"]
        .map(|name| all.iter().find(|(path, _)| path.ends_with(&format!("postgres/sql/{name}"))))
        .map(|found| found.expect("a claim"))
        .into();
    let first = take(claims[0].1);
    let other = claims.iter().filter(|(_, text)| take(text) != first).map(|(path, _)| (*path).clone());
    none(&other.collect::<Vec<_>>(), "these take a job in another way than claim.sql:");
}
