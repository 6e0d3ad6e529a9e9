//! A patch line by line.

use crate::limits;
use std::fmt;

/// What is wrong with a patch, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The line, from 1 on.
    pub line: usize,
    pub why: String,
}

impl Flaw {
    pub(super) fn new(line: usize, why: impl Into<String>) -> Self {
        Self { line, why: why.into() }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

pub(super) struct Lines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    /// Every line ends, and none is beyond what a reader can bear.
    pub(super) fn new(patch: &'a str) -> Result<Self, Flaw> {
        if patch.trim().is_empty() {
            return Err(Flaw::new(1, "the patch is empty"));
        }
        let mut last = 0;
        for (n, line) in patch.split_inclusive('\n').enumerate() {
            last = n + 1;
            if line.len() > limits::PATCH_LINE_BYTES_MAX {
                let most = limits::PATCH_LINE_BYTES_MAX;
                return Err(Flaw::new(last, format!("has {} bytes; {most} are allowed", line.len())));
            }
        }
        if !patch.ends_with('\n') {
            return Err(Flaw::new(last, "is cut off: it does not end"));
        }
        Ok(Self { rest: patch, number: 1 })
    }

    /// The number of the line that comes next.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn peek(&self) -> Option<&'a str> {
        self.rest.split_once('\n').map(|(line, _)| line)
    }

    pub(super) fn next(&mut self) -> Option<&'a str> {
        let (line, rest) = self.rest.split_once('\n')?;
        self.rest = rest;
        self.number += 1;
        Some(line)
    }
}
