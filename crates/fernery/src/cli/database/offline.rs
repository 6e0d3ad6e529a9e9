//! Work on a database without a server: a SQLite file must be free, PostgreSQL need not be.

use crate::block_on::block_on;
use crate::cli::failure::{Failure, Outcome};
use crate::config::database;
use fernery_engine::store::{Store, postgres, sqlite};
use fernery_engine::{Database, StoreError, open_store};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Opens an existing database, does `work` on it and closes it. `what` is the verb for messages.
pub(super) fn on_database<T>(
    database: &Database,
    what: &str,
    work: impl AsyncFnOnce(&dyn Store) -> Result<T, StoreError>,
) -> Result<T, Failure> {
    let shown = database::show(database);
    let failed = |error: StoreError| Failure::failed("database", format!("{shown}: {error}"));
    // Opening would create a missing database, and the work on an empty one succeeds at once: the mistake would go
    // unnoticed.
    let empty = || {
        let why = format!("{shown} has no Fernery schema: nothing to {what}");
        Failure::failed("database", why).hint("was the restore complete?")
    };
    if let Database::Sqlite(path) = database {
        is_there(path, what)?;
        if sqlite::health::look(path).map_err(failed)?.schema_version == 0 {
            return Err(empty());
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    block_on(&runtime, async {
        if let Database::Postgres(url) = database {
            let found = postgres::health::look(url).await.map_err(failed)?;
            if found.schema_version.map_err(failed)?.is_none() {
                return Err(empty());
            }
        }
        let store = open_store(database, Default::default(), Default::default()).await.map_err(failed)?;
        let done = work(&*store).await.map_err(failed);
        store.close().await;
        done
    })
}

fn is_there(file: &Path, what: &str) -> Outcome {
    let shown = file.display();
    match fs::metadata(file) {
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(_) => Err(Failure::usage(format!("{shown} is not a file"))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let why = format!("no database at {shown}: nothing to {what}");
            Err(Failure::not_found(why).hint("name another with --data or --database"))
        }
        Err(error) => Err(Failure::usage(format!("cannot read {shown}: {error}"))
            .hint("run this command as the user that runs the server")),
    }
}
