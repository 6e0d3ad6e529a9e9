//! What a release is made of: completions, manual pages and the Debian package.

#[path = "../support/program/mod.rs"]
mod program;

mod commands;
mod deb;
