//! Whatever leaves this process for somewhere else.
//!
//! * `call`: one HTTP request, to addresses that its caller has seen before; `address`: what kind of address that is
//! * `queries`: questions to azollas, of this instance or another
//! * [`notices`]: tells that there is something new, by webhook or program
//! * [`model`]: asks a language model

pub(crate) mod address;
mod call;
pub mod model;
pub mod notices;
pub(crate) mod queries;
#[cfg(test)]
pub(crate) mod scripted;

pub(crate) use call::{Broken, Target};
