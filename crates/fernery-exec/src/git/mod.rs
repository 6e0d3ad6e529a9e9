//! What Fernery does with git: it reads the operator's repository, makes private clones that borrow its objects, takes
//! the patch of an agent's work, brings a patch that passed back as one new branch, and lands a patch that an operator
//! wants on its base branch ([`landing`]).
//!
//! git is called as a program, without anybody's environment or configuration ([`call`]). It never runs in a git
//! directory that an agent could write to.

pub mod applied_patch;
pub mod call;
pub mod clone;
pub mod difference;
mod ground;
pub mod landing;
pub mod left_modes;
pub mod merging;
pub mod owner;
pub mod repository;
pub(crate) mod start;
pub(crate) mod take_patch;
#[cfg(test)]
mod tests;
pub mod ticket_branch;
pub mod work_tree;
