//! `fernery clock confirm`: an operator confirms that the clock is right.

use super::offline::on_database;
use crate::cli::Global;
use crate::cli::config::flags::DatabaseFlag;
use crate::cli::config::in_force;
use crate::cli::failure::Outcome;
use crate::cli::screen::Screen;
use crate::config::database;
use clap::{Args, Subcommand};
use fernery_engine::StoreError;
use serde_json::json;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Clock {
    Confirm(Confirm),
}

/// Confirm that the clock is right, so that retention resumes
///
/// If the clock is more than four days ahead of the timestamps in the database, and the server was not off for so long,
/// the clock may be wrong: then nothing is deleted because of its age. Check the clock first (`date`, `timedatectl`).
/// On SQLite stop the server, confirm, and start it again; on PostgreSQL the servers resume without a restart. Doing it
/// twice does no harm.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  date && fernery clock confirm && fernery up")]
pub(in crate::cli) struct Confirm {
    #[command(flatten)]
    flag: DatabaseFlag,
}

pub(in crate::cli) fn run(command: Clock, global: &Global, screen: Screen) -> Outcome {
    let Clock::Confirm(confirm) = command;
    let (_, settings) = in_force(global, confirm.flag)?;
    let shown = database::show(&settings.database);
    let (doubt, now) = on_database(&settings.database, "confirm", async |store| {
        let doubt = store.clock_doubt().await?;
        store.confirm_clock().await?;
        Ok::<_, StoreError>((doubt, store.now().await?))
    })?;
    if screen.json {
        let line = json!({ "database": shown.to_string(), "was_in_doubt": doubt.is_some(), "now": now });
        return screen.line(&line.to_string());
    }
    let was = if doubt.is_some() { "it was in doubt; retention resumes" } else { "it was not in doubt" };
    screen.say(&format!("{shown}: the time {now} is confirmed; {was}"))
}
