//! All calls from this process to other servers and programs.
//!
//! * `call`: one HTTP request, to addresses that the caller has checked; `address`: what kind of address it is
//! * `queries`: questions to azollas, of this instance or another
//! * [`notices`]: announces news, by webhook or program
//! * [`model`]: asks a language model

pub(crate) mod address;
mod call;
pub mod model;
pub mod notices;
pub(crate) mod queries;
#[cfg(test)]
pub(crate) mod scripted;

pub(crate) use call::{Broken, Target};
