//! One suite, every backend: what a store promises, as tests that do not know which database they run on.
//!
//! Each promise is a function over [`Backend`](support::backend::Backend); `on_every_backend!` makes a test of it for the
//! model and for each database. A test that is only told "no" also says which guard refused, and that not one byte changed:
//! a refusal for the wrong reason is how the next bug hides.
//!
//! The numbers in the docs of the tests are those of the invariants in the architecture page.

/// Makes a test of each promise, on each backend.
macro_rules! on_every_backend {
    ($($promise:ident),+ $(,)?) => {
        on_backend!(on_model, Model, $($promise),+);
        on_backend!(on_sqlite, Sqlite, $($promise),+);
        on_backend!(on_postgres, Postgres, $($promise),+);
    };
}

macro_rules! on_backend {
    ($module:ident, $backend:ident, $($promise:ident),+) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $promise() {
                    super::$promise::<crate::support::backend::$backend>().await;
                }
            )+
        }
    };
}

mod claims;
mod durability;
mod endings;
mod enqueue;
mod hangups;
mod leases;
mod operators;
mod processes;
mod races;
mod reading;
#[path = "../support/mod.rs"]
mod support;
mod waiting;
