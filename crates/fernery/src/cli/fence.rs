//! `fernery fence`: after a restore, before the server is started again.

use super::Global;
use super::failure::{Failure, Outcome};
use super::screen::Screen;
use super::setting_flags::DatabaseFlag;
use super::settings::in_force;
use crate::config::database;
use clap::Args;
use fernery_engine::store::{postgres, sqlite};
use fernery_engine::{Database, StoreError, open_store};
use serde_json::json;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// After a restore: make sure that nobody from before can write.
///
/// A database that comes from a backup has forgotten every claim made since. This raises every claim_version beyond all
/// that can have been given out, and hands every leased job back to its stream: workers from before get 409 lease_lost,
/// the jobs they held are claimed anew. Run it before the server is started; on PostgreSQL also beside one, where workers
/// lose what they hold. Doing it twice does no harm.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cp backup.db .fernery/fernery.db && rm -f .fernery/fernery.db-wal .fernery/fernery.db-shm
  fernery fence && fernery up")]
pub(super) struct Fence {
    #[command(flatten)]
    flag: DatabaseFlag,
}

pub(super) fn run(fence: Fence, global: &Global, screen: Screen) -> Outcome {
    let (_, settings) = in_force(global, fence.flag)?;
    let shown = database::show(&settings.database);
    let failed = |error: StoreError| Failure::failed("database", format!("{shown}: {error}"));
    // Opening makes what is not there, and an empty database is fenced in no time: the mistake would go unseen.
    let empty = || {
        let why = format!("there is nothing of Fernery's in {shown}: nothing to fence");
        Failure::failed("database", why).hint("was the restore whole?")
    };
    if let Database::Sqlite(path) = &settings.database {
        is_there(path)?;
        if sqlite::health::look(path).map_err(failed)?.schema_version == 0 {
            return Err(empty());
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let freed = runtime.block_on(async {
        if let Database::Postgres(url) = &settings.database {
            let found = postgres::health::look(url).await.map_err(failed)?;
            if found.schema_version.map_err(failed)?.is_none() {
                return Err(empty());
            }
        }
        let store =
            open_store(&settings.database, Default::default(), Default::default()).await.map_err(failed)?;
        let freed = store.fence().await.map_err(failed);
        store.close().await;
        freed
    })?;
    if screen.json {
        return screen.line(&json!({ "database": shown.to_string(), "leases_freed": freed }).to_string());
    }
    screen.line(&format!("fenced {shown}: {freed} leases freed, every claim_version raised"))
}

fn is_there(file: &Path) -> Outcome {
    let shown = file.display();
    match fs::metadata(file) {
        Ok(meta) if meta.is_file() => Ok(()),
        Ok(_) => Err(Failure::usage(format!("{shown} is not a file"))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let why = format!("there is no database at {shown}: nothing to fence");
            Err(Failure::not_found(why).hint("--data or --database name another"))
        }
        Err(error) => Err(Failure::usage(format!("cannot read {shown}: {error}"))
            .hint("run it as the user that runs the server")),
    }
}
