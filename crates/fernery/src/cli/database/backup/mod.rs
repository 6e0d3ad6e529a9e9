//! `fernery backup`: a verified copy of the database, complete or not at all.
//!
//! It reads the file itself, also beside a running server. The copy grows under another name in the same folder, is
//! verified and synced there, and only then gets its name.

mod target;

use self::target::{Target, Unfinished};
use crate::block_on::block_on;
use crate::cli::Global;
use crate::cli::config::flags::DatabaseFlag;
use crate::cli::config::{in_force, warn_of_unknown_env};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::screen::Screen;
use crate::config::{database, duration};
use clap::Args;
use fernery_engine::store::sqlite::backup::{self, Compared, Copied, Stop};
use fernery_engine::store::sqlite::health;
use fernery_engine::{Database, StoreError, door};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often the progress is updated.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Copy the SQLite database to FILE; the server may be running
///
/// The copy is one consistent state of the database and has every job that was acknowledged before the command was
/// called. It is verified (integrity, version, number of rows), synced to disk and readable by its owner only. It
/// appears as FILE only when all of that has succeeded. The server does not wait for it.
///
/// The data directory also holds the token files. Their secrets are not in the database; keep them, or make new tokens.
///
/// A PostgreSQL database is backed up with PostgreSQL's own tools; the command prints how.
#[derive(Debug, Args)]
#[command(after_help = "\
To restore: stop the server, delete fernery.db-wal and fernery.db-shm beside the database (they belong to the old file), \
copy FILE over fernery.db, run `fernery fence`, and start the server. `fernery fence` revokes all leases that were \
given after the backup: without it, a worker from before the restore could finish a job that is waiting again.

Examples:
  fernery backup /backup/fernery-$(date +%F).db
  fernery backup --force latest.db            replaced when the copy is complete
  fernery backup --database sqlite:/srv/jobs.db copy.db
  fernery doctor --database sqlite:copy.db    check that a copy can be opened")]
pub(in crate::cli) struct Backup {
    /// File for the copy
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    flag: DatabaseFlag,
}

pub(in crate::cli) fn run(command: Backup, global: &Global, screen: Screen) -> Outcome {
    let (_, settings) = in_force(global, command.flag)?;
    warn_of_unknown_env();
    let source = match &settings.database {
        Database::Sqlite(path) => path,
        Database::Postgres(_) => return Err(of_postgres(&settings.database, &command.file)),
    };
    match fs::metadata(source) {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Err(Failure::usage(format!("{} is not a file", source.display()))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let why = format!("no database at {}", source.display());
            return Err(Failure::not_found(why).hint("name another with --data or --database"));
        }
        Err(error) => {
            return Err(Failure::usage(format!("cannot read {}: {error}", source.display()))
                .hint("run this command as the user that runs the server"));
        }
    }
    let target = Target::check(&command.file, source, command.force)?;
    let mut ears = Ears::open()?;
    let unfinished = Unfinished::begin(&target)?;
    let watch = door::stop_watch();
    let copied = ears
        .copy(source, &unfinished, &bar(source, screen))
        .map_err(|error| explain(error, source, &target))?;
    let bytes = unfinished.finish(&target)?;
    report(&target, &copied, bytes, watch.elapsed(), screen)
}

fn report(target: &Target, copied: &Copied, bytes: u64, took: Duration, screen: Screen) -> Outcome {
    let counts = &copied.counts;
    if screen.json {
        let answer = json!({
            "file": target.path.display().to_string(),
            "bytes": bytes,
            "schema_version": copied.schema_version,
            "compared": match copied.compared {
                Compared::Exactly => "exactly",
                Compared::Kept => "kept",
            },
            "rows": {
                "jobs": counts.jobs, "ready": counts.ready, "scheduled": counts.scheduled, "leases": counts.leases,
                "attempts": counts.attempts, "dead_letters": counts.dead_letters,
                "unique_keys": counts.unique_keys, "streams": counts.streams, "tokens": counts.tokens,
            },
            "took_ms": duration::millis(took),
        });
        return screen.line(&answer.to_string());
    }
    let compared = match copied.compared {
        Compared::Exactly => "every table has as many rows as in the database",
        Compared::Kept => "every earlier job that still exists is in it; the server wrote others meanwhile",
    };
    screen.facts(&[
        ("file", target.path.display().into()),
        ("bytes", bytes.into()),
        ("jobs", format_args!("{} ({} closed attempts)", counts.jobs, counts.attempts).into()),
        ("verified", format_args!("integrity, schema version {}, {compared}", copied.schema_version).into()),
        ("took", duration::show(Duration::from_millis(took.as_millis().max(1) as u64)).into()),
    ])
}

/// Handles signals from before the first byte is written, so that none of them leaves a file behind.
struct Ears {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Ears {
    fn open() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let inside = runtime.enter();
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        drop(inside);
        Ok(Self { runtime, terminate, interrupt })
    }

    /// Copies in a thread of its own, shows how far it is, and ends it when a signal asks.
    fn copy(&mut self, source: &Path, into: &Unfinished, bar: &ProgressBar) -> Result<Copied, StoreError> {
        let (terminate, interrupt) = (&mut self.terminate, &mut self.interrupt);
        block_on(&self.runtime, async {
            let stop = Stop::default();
            let (from, to, stop_copy) = (source.to_owned(), into.path.clone(), stop.clone());
            let mut copying = tokio::task::spawn_blocking(move || backup::copy(&from, &to, &stop_copy));
            let mut look = tokio::time::interval(LOOK_EVERY);
            let copied = loop {
                tokio::select! {
                    copied = &mut copying => break copied,
                    _ = look.tick() => bar.set_position(fs::metadata(&into.path).map_or(0, |meta| meta.len())),
                    _ = terminate.recv() => stop.ask(),
                    _ = interrupt.recv() => stop.ask(),
                }
            };
            bar.finish_and_clear();
            copied.unwrap_or_else(|panic| Err(StoreError::Broken(format!("the copy panicked: {panic}"))))
        })
    }
}

/// The copy has no free pages, so its size is known in advance.
fn bar(source: &Path, screen: Screen) -> ProgressBar {
    if screen.json {
        return ProgressBar::hidden();
    }
    let bytes = size_of_copy(source).unwrap_or(0);
    let style = ProgressStyle::with_template("{bar:40} {binary_bytes}/{binary_total_bytes} copied");
    // On stderr, and only where a person looks.
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn size_of_copy(source: &Path) -> Option<u64> {
    health::look(source).ok().map(|file| file.bytes.saturating_sub(file.free_bytes))
}

fn no_space(target: &Target, needed: Option<u64>) -> Failure {
    let needed = needed.map_or_else(String::new, |bytes| format!(" (the copy needs about {bytes} bytes)"));
    Failure::failed("no_space", format!("no space left in {}{needed}", target.folder.display()))
        .hint("no partial file is left; free some space, or name a file on another disk")
}

fn explain(error: StoreError, source: &Path, target: &Target) -> Failure {
    let shown = source.display();
    match error {
        StoreError::Full(_) => no_space(target, size_of_copy(source)),
        StoreError::Refused(why) => Failure::failed("backup", format!("could not copy {shown}: {why}")),
        StoreError::Corrupt(why) | StoreError::Broken(why) => {
            Failure::failed("backup", format!("could not copy {shown}: {why}")).hint(
                "no partial file is left; try again. If it fails again, keep the file and your last \
                    good backup safe",
            )
        }
        StoreError::Busy(why) | StoreError::Unavailable(why) => {
            Failure::failed("backup", format!("could not copy {shown}: {why}")).hint(
                "no partial file is left; try again as the user that runs the server: it can read the \
                database and write next to it",
            )
        }
    }
}

/// The commands to use instead, ready to paste; the password goes into PGPASSWORD or ~/.pgpass.
fn of_postgres(database: &Database, file: &Path) -> Failure {
    let url = quoted(&database::show(database).replace(":***@", "@"));
    let file = quoted(&file.display().to_string());
    Failure::usage(format!(
        "the jobs are in PostgreSQL, whose own tools make a consistent copy while servers run:\n\
         \x20 pg_dump --format=custom --schema=fernery --file={file} --dbname={url}\n\
         \x20 pg_restore --clean --if-exists --exit-on-error --single-transaction --dbname={url} {file}   # to restore\n\
         or, for the whole cluster and point-in-time recovery:\n\
         \x20 pg_basebackup --pgdata={file} --wal-method=stream --checkpoint=fast --progress --dbname={url}\n\
         Stop all servers before a restore, and run `fernery fence` after it"
    ))
}

/// Quotes one word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
