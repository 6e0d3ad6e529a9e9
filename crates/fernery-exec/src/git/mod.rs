//! What Fernery does with git: it reads the operator's repository, makes private clones that borrow its objects, takes
//! the patch of an agent's work, and brings a patch that passed back as one new branch.
//!
//! git is called as a program, without anybody's environment or configuration ([`call`]). It never runs in a git
//! directory that an agent could write to.

pub mod applied_patch;
pub mod call;
pub mod clone;
mod ground;
pub mod repository;
pub(crate) mod take_patch;
#[cfg(test)]
mod tests;
