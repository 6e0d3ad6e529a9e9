//! `fernery fence`: after a restore, before the server is started again.

use super::offline::on_database;
use crate::cli::Global;
use crate::cli::config::flags::DatabaseFlag;
use crate::cli::config::in_force;
use crate::cli::failure::Outcome;
use crate::cli::screen::{Screen, counted};
use crate::config::database;
use clap::Args;
use serde_json::json;

/// After a restore: revoke all leases, so that no earlier worker can write
///
/// A restored database does not know the claims that were made after the backup. This command raises every
/// claim_version above all that can have been given out, and puts every leased job back into its stream: earlier
/// workers get 409 lease_lost, and their jobs are claimed again. Run it before you start the server. On PostgreSQL it
/// also works next to a running server; its workers then lose their leases. Doing it twice does no harm.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cp backup.db .fernery/fernery.db
  rm -f .fernery/fernery.db-wal .fernery/fernery.db-shm
  fernery fence && fernery up")]
pub(in crate::cli) struct Fence {
    #[command(flatten)]
    flag: DatabaseFlag,
}

pub(in crate::cli) fn run(fence: Fence, global: &Global, screen: Screen) -> Outcome {
    let (_, settings) = in_force(global, fence.flag)?;
    let shown = database::show(&settings.database);
    let freed = on_database(&settings.database, "fence", async |store| store.fence().await)?;
    if screen.json {
        return screen.line(&json!({ "database": shown.to_string(), "leases_freed": freed }).to_string());
    }
    let revoked = counted(freed, "lease");
    screen.say(&format!("fenced {shown}: {revoked} revoked, every claim_version raised"))
}
