//! What holds on every backend, in one binary: each links the engine, SQLite and TLS anew, and that takes longer than
//! compiling the tests.

/// Makes a test of each promise, on the model and on each database.
macro_rules! on_every_backend {
    ($($promise:ident),+ $(,)?) => {
        on_backend!(on_model, Model, $($promise),+);
        on_both_backends!($($promise),+);
    };
}

/// Makes a test of each promise, on each database.
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

mod conformance;
mod differential;
mod pipeline;
mod support;
