//! TOML files that people write, read with the place of everything, so that every mistake is told at once and where it is.
//!
//! What the files mean is said where they belong: [`blueprint`](crate::blueprint), [`profile`](crate::profile), and the
//! configuration in the binary.

mod reader;
pub(crate) mod tree;
mod words;

pub use reader::{Fields, Found, Reader};
pub use tree::{Entry, Node, Place, Shape, Table};

use serde::Serialize;
use std::fmt;

/// Reads the text of one file that extends no other. Whoever calls this bounds its size.
pub fn open(text: &str) -> Result<(Reader, Fields), Vec<Flaw>> {
    let (table, sources) = tree::read_alone(text)?;
    let reader = Reader::new(sources);
    let fields = reader.file(table);
    Ok((reader, fields))
}

/// Something that is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flaw {
    /// Its line, from one.
    pub line: usize,
    /// Its column in characters, from one.
    pub column: usize,
    /// The key it is about, like `gates[2].argv`; empty if it is about the file.
    pub path: String,
    pub message: String,
}

impl Flaw {
    /// With the name of its file in front, in the form that editors know how to jump to.
    pub fn in_file(&self, file: &dyn fmt::Display) -> String {
        format!("{file}:{self}")
    }
}

/// `LINE:COLUMN: key: what is wrong`.
impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}
