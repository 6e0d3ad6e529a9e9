//! One suite, every backend: what a store promises, as tests that do not know which database they run on.
//!
//! Each promise is a function over [`Backend`](support::backend::Backend); `on_every_backend!` makes a test of it for the
//! model and for each database. A test that is only told "no" also says which guard refused, and that not one byte changed:
//! a refusal for the wrong reason is how the next bug hides.
//!
//! The numbers in the docs of the tests are those of the invariants in the architecture page.

mod bulk;
mod claims;
mod clock;
mod durability;
mod endings;
mod enqueue;
mod expiry;
mod hangups;
mod leases;
mod operators;
mod processes;
mod races;
mod reading;
mod sign_ins;
mod stats;
mod streams;
mod undone;
mod waiting;
