//! `fernery doctor`: measures, then judges.
//!
//! Measuring is in `machine`, `process`, `repositories`, `sandbox`, and in `health` of the two stores and of the transport.
//! Judging is in `judge`: pure functions from numbers to findings. Nothing here writes to a database, creates one, or takes
//! a server's lock, so it is safe at any time. A database that does not answer is a finding like any other.

mod finding;
mod judge;
mod machine;
mod process;
mod repositories;
mod sandbox;

pub(crate) use finding::{Finding, Level};
pub(crate) use process::Caller;

use crate::config::{Settings, database};
use crate::http::token_path;
use crate::redis::health as redis_health;
use fernery_client::wire::Role;
use fernery_engine::store::postgres::health as server_health;
use fernery_engine::store::sqlite::health as file_health;
use fernery_engine::{Database, StoreError, door};
use judge::machine::Private;
use judge::peers;
use judge::process::{Expected, Holder};
use judge::settings::Intervals;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Checks everything that `fernery up` needs.
pub(crate) async fn examine(settings: &Settings, caller: &Caller) -> Vec<Finding> {
    let process = process::ask_own(settings, caller).await;
    let named = process::ask_named(&process, caller).await;
    let (backend, holder) = match &settings.database {
        Database::Sqlite(path) => ("sqlite", holder(path)),
        Database::Postgres(_) => ("postgres", Holder::Many),
    };
    let version = env!("CARGO_PKG_VERSION");
    let mut findings = vec![
        Finding::ok("fernery_version", format!("fernery {version}")),
        Finding::ok("data", format!("{} ({})", settings.data.display(), caller.data_origin)),
    ];
    match &settings.database {
        Database::Sqlite(path) => findings.extend(sqlite(path, &settings.data, holder.pid().is_some())),
        Database::Postgres(url) => {
            findings.extend(postgres(url, &database::show(&settings.database), settings.lease_ttl).await);
        }
    }
    if let Some(transport) = &settings.transport {
        findings.extend(redis(&transport.url).await);
    }
    let expected = Expected { version, backend, holder: &holder };
    findings.push(judge::process::own(&process, expected));
    findings.extend(named.map(|named| judge::process::named(&named, expected)));
    if let Some(operator) = process::ask_as_operator(&process, settings, caller).await {
        findings.push(judge::process::token(&operator.token, operator.works));
        findings.extend(judge::process::edited(&operator.edited));
    }
    findings.push(judge::settings::leases(Intervals {
        lease_ttl: settings.lease_ttl,
        heartbeat: settings.heartbeat_interval,
        reap: settings.reap_interval,
    }));
    findings.extend(machine::disk_space(&folders(settings)));
    findings.push(machine::file_limit(holder.pid()));
    findings.extend(machine::modes(&settings.data));
    findings.extend(repositories::examine(&settings.repos).await);
    findings.extend(sandbox::examine(settings).await);
    findings
}

fn holder(database: &Path) -> Holder {
    match file_health::served_by(database) {
        Ok(Some(pid)) => Holder::Process(pid),
        Ok(None) => Holder::Nobody,
        Err(error) => Holder::Unknown(error.to_string()),
    }
}

fn folders(settings: &Settings) -> Vec<PathBuf> {
    let mut folders = vec![machine::nearest_folder(&settings.data)];
    if let Database::Sqlite(path) = &settings.database {
        folders.push(machine::nearest_folder(path));
    }
    folders
}

/// Findings about the database file and its file system.
fn sqlite(path: &Path, data: &Path, served: bool) -> Vec<Finding> {
    let mut findings =
        vec![Finding::ok("sqlite_version", format!("SQLite {}", file_health::sqlite_version()))];
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => findings.extend(sqlite_file(path, served)),
        Ok(_) => findings.push(Finding::problem(
            "database",
            format!("{} is not a file", path.display()),
            "name the file in --database sqlite:PATH",
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => findings.push(no_file(path, data)),
        Err(error) => findings.push(unreadable(path, &error)),
    }
    let folder = machine::nearest_folder(path);
    if let Err(StoreError::Refused(why)) = file_health::refused_folder(&folder.join("fernery.db")) {
        findings.push(Finding::problem(
            "file_system",
            why,
            "move the database to a local disk, or use PostgreSQL",
        ));
    } else {
        findings.extend(machine::syncing(&folder));
    }
    findings
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> Finding {
    Finding::problem(
        "database",
        format!("{} cannot be read: {why}", path.display()),
        "run this command as the user that runs the server; if it is not a Fernery database, name another \
        in --database",
    )
}

fn damaged(path: &Path, why: &StoreError) -> Finding {
    Finding::problem(
        "database",
        format!("{} is damaged: {why}", path.display()),
        "keep the file, stop the server, restore the last backup and run `fernery fence`; if it never was a \
        Fernery database, name another in --database",
    )
}

/// There is no database file. Token files in the data directory mean that there was one.
fn no_file(path: &Path, data: &Path) -> Finding {
    let found = format!("no database at {}", path.display());
    if token_path(data, Role::Operator).exists() {
        return Finding::problem(
            "database",
            format!("{found}, but a server has used {}", data.display()),
            "if it was moved, name it in --database; if it was lost, restore a backup; `fernery up` would \
            start with an empty one",
        );
    }
    Finding::warning("database", found, "`fernery up` makes it")
}

fn sqlite_file(path: &Path, served: bool) -> Vec<Finding> {
    let (file, habits) = match (file_health::look(path), file_health::server_habits()) {
        (Ok(file), Ok(habits)) => (file, habits),
        (Err(error @ (StoreError::Corrupt(_) | StoreError::Broken(_))), _) => {
            return vec![damaged(path, &error)];
        }
        (Err(error), _) | (_, Err(error)) => return vec![unreadable(path, &error)],
    };
    let kept =
        judge::sqlite::Kept { journal_mode: &file.journal_mode, synchronous: habits.synchronous, served };
    let mut findings = vec![
        Finding::ok("database", format!("sqlite:{} can be read", path.display())),
        judge::sqlite::schema(file.schema_version, file_health::schema_version_known(), served),
        judge::sqlite::durability(kept),
    ];
    findings.extend(file.newest_at.map(|newest| judge::sqlite::clock(newest, door::wall_clock())));
    findings.extend(file.clock_doubt.as_ref().map(judge::clock::step));
    findings.push(judge::sqlite::wal_size(file.wal_bytes, habits.wal_limit_bytes, served));
    findings.push(judge::sqlite::free_pages(file.bytes, file.free_bytes));
    findings.extend(machine::file_mode(path, "database_file", Private::Database));
    findings
}

/// Findings about a PostgreSQL server. `shown` is its URL without the password.
async fn postgres(url: &str, shown: &str, lease_ttl: Duration) -> Vec<Finding> {
    use judge::postgres as judge;
    let seen = match server_health::look(url).await {
        Ok(seen) => seen,
        Err(error) => {
            return vec![Finding::problem(
                "database",
                format!("{shown} cannot be reached: {error}"),
                "start PostgreSQL, or correct --database; `psql` with the same URL says more",
            )];
        }
    };
    let mut findings =
        vec![Finding::ok("database", format!("{shown} answers")), judge::version(&seen.server)];
    if seen.server.version_num < server_health::SERVER_VERSION_MIN {
        return findings;
    }
    // Without the right to see other sessions, nothing can be said about what they hold.
    let sees_all = seen.server.sees_all;
    let standbys = seen.replication.as_ref().ok().copied().filter(|_| sees_all);
    findings.push(match seen.schema_version {
        // A server with the same user could not read it either.
        Err(StoreError::Refused(why)) => Finding::problem("schema", why, OWN_SCHEMA),
        version => {
            told("schema", version, |version| judge::schema(version, server_health::schema_version_known()))
        }
    });
    findings.push(judge::durability(&seen.server, standbys));
    if let Some(clock) = seen.clock.transpose() {
        findings.push(told("clock", clock, judge::clock));
    }
    match &seen.clock_doubt {
        Ok(doubt) => findings.extend(doubt.as_ref().map(super::doctor::judge::clock::step)),
        Err(error) => findings.push(unknown("clock_step", error)),
    }
    let max = seen.server.connections_max;
    match seen.sessions {
        Ok(sessions) => {
            findings.push(judge::connections(sessions.connections, max));
            if sees_all {
                findings.push(judge::oldest_transaction(&sessions, lease_ttl));
                findings.push(judge::idle_in_transaction(&sessions, lease_ttl));
            } else {
                findings.push(Finding::warning(
                    "oldest_transaction",
                    "unknown: this user cannot see other users' sessions",
                    "let a superuser `GRANT pg_read_all_stats` to Fernery's user and ask again",
                ));
            }
        }
        Err(error) => findings.push(unknown("connections", &error)),
    }
    if let Some(processes) = seen.processes.transpose() {
        findings.extend(match processes {
            Ok(processes) => peers::judged(&processes),
            Err(error) => vec![unknown("processes", &error)],
        });
    }
    findings.push(told("prepared_transactions", seen.prepared, |left| judge::prepared(left, lease_ttl)));
    findings.push(told("replication_slots", seen.replication, |found| judge::slots(found.slots_inactive)));
    match seen.tables {
        Ok(tables) => findings.extend(tables.iter().map(judge::dead_rows)),
        Err(error) => findings.push(unknown("dead_rows", &error)),
    }
    findings
}

/// Findings about the Redis server.
async fn redis(url: &str) -> Vec<Finding> {
    let shown = database::mask(url);
    match redis_health::look(url).await {
        Ok(facts) => judge::redis::judged(&shown, &facts),
        Err(why) => vec![judge::redis::away(&shown, &why)],
    }
}

/// The finding about one part, or that the part could not be read.
fn told<T>(check: &'static str, part: Result<T, StoreError>, judged: impl FnOnce(T) -> Finding) -> Finding {
    part.map_or_else(|error| unknown(check, &error), judged)
}

fn unknown(check: &'static str, error: &StoreError) -> Finding {
    Finding::warning(check, format!("unknown: {error}"), OWN_SCHEMA)
}

const OWN_SCHEMA: &str = "give Fernery's user the missing rights: it should own the schema fernery";
