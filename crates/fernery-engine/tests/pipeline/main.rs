//! The pipeline's promises, on both databases: tests that do not know which one they run on.
//!
//! The numbers in the docs of the tests are those of the invariants in the architecture page.

/// Makes a test of each promise, on each backend.
macro_rules! on_both_backends {
    ($($promise:ident),+ $(,)?) => {
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

mod acts;
mod batches;
mod deadlines;
mod desk;
mod envelopes;
mod hands;
mod history;
mod inbox;
mod inbox_property;
mod journal;
mod manifests;
mod pages;
mod paths;
mod property;
mod races;
mod repeats;
mod sight;
mod stranded;
#[path = "../support/mod.rs"]
mod support;
mod walk;
mod world;
