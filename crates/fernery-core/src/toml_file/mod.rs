//! TOML files that people write, read with the place of everything, so that every mistake is told at once and where it is.
//!
//! What the files mean is said where they belong: [`blueprint`](crate::blueprint), [`profile`](crate::profile).

mod reader;
pub(crate) mod tree;
mod words;

pub(crate) use reader::{Fields, Found, Reader};
pub(crate) use tree::Place;

use serde::Serialize;
use std::fmt;

/// Something that is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flaw {
    /// Its line, from one.
    pub line: usize,
    /// Its column in characters, from one.
    pub column: usize,
    /// The key it is about, like `gates[2].argv`; empty if it is about the file.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}
