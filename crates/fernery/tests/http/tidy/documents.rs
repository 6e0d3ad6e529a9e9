//! What the documents point at is there.

use super::{files, none, read, root};
use std::collections::BTreeSet;

/// The documents that are read from the tree.
fn documents() -> Vec<String> {
    let top = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "CHANGELOG.md"];
    let is_one =
        |path: &String| top.contains(&path.as_str()) || (path.starts_with("docs/") && path.ends_with(".md"));
    let found: Vec<String> = files().into_iter().filter(is_one).collect();
    assert!(found.len() > 10, "{found:?}");
    found
}

/// The lines of a document that are prose, with their numbers: blocks of code are shown, not meant.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut shown = false;
    let mut found = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            shown = !shown;
        } else if !shown {
            found.push((n + 1, line));
        }
    }
    found
}

/// The targets of `[words](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// What stands between backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The name under which a page links to a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for document in documents() {
        let text = read(&document);
        for (line, words) in prose(&text) {
            for target in
                links(words).filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
            {
                seen += 1;
                let (path, heading) =
                    target.split_once('#').map_or((target, None), |(path, it)| (path, Some(it)));
                let folder = root().join(&document).parent().expect("a folder").to_path_buf();
                let file = if path.is_empty() { root().join(&document) } else { folder.join(path) };
                let is_there = match heading {
                    None => file.exists(),
                    Some(heading) => std::fs::read_to_string(&file).is_ok_and(|text| {
                        let headings = prose(&text).into_iter().filter(|(_, line)| line.starts_with('#'));
                        headings
                            .map(|(_, line)| anchor(line.trim_start_matches('#').trim()))
                            .any(|it| it == heading)
                    }),
                };
                if !is_there {
                    broken.push(format!("{document}:{line}: {target}"));
                }
            }
        }
    }
    assert!(seen > 100, "links are found: {seen}");
    none(&broken, "these lead nowhere:");
}

/// Names of files that other people's projects have.
const ELSEWHERE: &[&str] = &["build.rs"];

/// Whether a code span names a source file of the tree, however much of its path is said.
fn names_a_source(span: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_.-".contains(c);
    span.chars().all(plain)
        && !span.starts_with('/')
        && !ELSEWHERE.contains(&span)
        && (span.ends_with(".rs") || span.ends_with(".sql"))
}

/// Whether a code span is a path from the top of the tree.
fn names_a_path(span: &str, tops: &BTreeSet<&str>) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_.-".contains(c);
    span.chars().all(plain)
        && span.split_once('/').is_some_and(|(top, within)| tops.contains(top) && !within.is_empty())
}

#[test]
fn every_file_that_is_named_is_there() {
    let files = files();
    let tops: BTreeSet<&str> =
        files.iter().filter_map(|path| path.split_once('/')).map(|(top, _)| top).collect();
    let is_there = |span: &str| {
        let ending = format!("/{span}");
        root().join(span).exists() || files.iter().any(|path| path.ends_with(&ending))
    };
    let mut named = Vec::new();
    for document in documents() {
        for (line, words) in prose(&read(&document)) {
            let spans = spans(words).filter(|span| names_a_source(span) || names_a_path(span, &tops));
            named.extend(spans.map(|span| (document.clone(), line, span.to_string())));
        }
    }
    // Comments of the sources name their neighbours, too.
    for source in files.iter().filter(|path| path.starts_with("crates/") && path.ends_with(".rs")) {
        let text = read(source);
        let comments = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
        for (n, words) in comments {
            let spans = spans(words).filter(|span| names_a_source(span));
            named.extend(spans.map(|span| (source.clone(), n + 1, span.to_string())));
        }
    }
    assert!(named.len() > 50, "names of files are found: {}", named.len());
    let gone = named.iter().filter(|(.., span)| !is_there(span));
    let gone: Vec<String> = gone.map(|(file, line, span)| format!("{file}:{line}: {span}")).collect();
    none(&gone, "these are not in the tree:");
}

/// Every path that the map of ARCHITECTURE.md shows by its indentation; the rooms of a crate are in its `src`.
fn map() -> Vec<String> {
    let text = read("ARCHITECTURE.md");
    let (_, after) = text.split_once("## The map").expect("the map");
    let block = after.split("```").nth(1).expect("the map is a block").split_once('\n').expect("lines").1;
    let mut above: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for line in block.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let names = line.trim_start().split("  ").next().expect("a name");
        // Deeper than any room: the line above goes on.
        if depth > above.len() {
            continue;
        }
        above.truncate(depth);
        for name in names.split(", ").filter(|name| !name.starts_with('*')) {
            found.push(format!("{}{name}", above.concat()));
        }
        let is_crate = above.len() == 1 && above[0] == "crates/";
        above.push(if is_crate { format!("{names}src/") } else { names.to_string() });
    }
    assert!(found.len() > 50, "{found:?}");
    found
}

#[test]
fn the_map_shows_every_room_and_no_other() {
    let map = map();
    let mut wrong: Vec<String> = map.iter().filter(|path| !root().join(path).exists()).cloned().collect();
    for file in files() {
        let parts: Vec<&str> = file.split('/').collect();
        if let ["crates", name, "src", room, _, ..] = parts[..] {
            let room = format!("crates/{name}/src/{room}/");
            if !map.contains(&room) && !wrong.contains(&room) {
                wrong.push(room);
            }
        }
    }
    none(&wrong, "the map of ARCHITECTURE.md and the tree differ here:");
}
