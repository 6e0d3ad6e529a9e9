//! What Fernery does with git: it reads the operator's repository, makes private clones that borrow its objects, captures
//! what an agent left in one, and brings what passed back as one new branch.
//!
//! git is called as a program, with nothing of anybody's environment or configuration ([`call`]). It never runs in a git
//! directory that an agent could write to.

pub(crate) mod call;
pub(crate) mod candidate;
pub(crate) mod capture;
pub(crate) mod clone;
mod ground;
pub(crate) mod repository;
#[cfg(test)]
mod tests;
