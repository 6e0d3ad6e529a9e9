//! The guides as they are written, and the blocks in them.

use std::path::{Path, PathBuf};

/// One fenced block: its language, the name behind it, and what stands in it.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The folder that all of Fernery is in.
pub(crate) fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All blocks of a guide, in order.
pub(crate) fn blocks(guide: &str) -> Vec<Block> {
    let path = checkout().join("docs/guides").join(guide);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let (language, name) = info.split_once(' ').unwrap_or((info, ""));
        let text: String = lines.by_ref().take_while(|line| *line != "```").flat_map(|l| [l, "\n"]).collect();
        blocks.push(Block { language: language.into(), name: name.into(), text });
    }
    blocks
}

/// The first lines of blocks that are blocks because they are indented.
pub(crate) fn indented(guide: &str) -> Vec<String> {
    let path = checkout().join("docs/guides").join(guide);
    let page = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut fenced, mut after_blank, mut found) = (false, true, Vec::new());
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        if !fenced && after_blank && line.starts_with("    ") {
            found.push(line.to_string());
        }
        after_blank = line.is_empty();
    }
    found
}

/// The block of this name.
pub(crate) fn block(guide: &str, name: &str) -> String {
    let mut named = blocks(guide).into_iter().filter(|block| block.name == name);
    let found = named.next().unwrap_or_else(|| panic!("{guide} has no block named {name}"));
    assert!(named.next().is_none(), "{guide} has two blocks named {name}");
    found.text
}
