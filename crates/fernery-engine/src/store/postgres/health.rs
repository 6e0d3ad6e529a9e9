//! Inspects a PostgreSQL server: its durability settings, its clock and its load.
//!
//! It only reads, and creates no schema. It judges nothing: `fernery doctor` judges the numbers. Each part can fail
//! alone, because a user may see one part and not another.

use super::clock as clock_kept;
use super::connection::retry::Trouble;
use super::connection::url::Target;
use super::migrate;
use super::processes;
use super::rows::{cell, instant};
use crate::clock_step::Doubt;
use crate::door;
use crate::error::{StoreError, StoreResult};
use crate::store::LivingProcess;
use fernery_core::Timestamp;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Client, Row};

/// Longer than all timeouts of a single statement: beyond this the server hangs.
const LOOK_WITHIN: Duration = Duration::from_secs(15);
/// The clock is read this often; the quickest reading counts, for it is the most exact.
const CLOCK_READINGS: usize = 5;

/// What a look found.
#[derive(Clone, Debug)]
pub struct DatabaseHealth {
    /// The server itself.
    pub server: ServerFacts,
    /// The version of the schema; `None` where nothing was made yet.
    pub schema_version: StoreResult<Option<i32>>,
    /// The database's clock; `None` where nothing was made yet.
    pub clock: StoreResult<Option<ClockReading>>,
    /// Why that clock cannot be believed; `None` where it can, or before an instant was kept.
    pub clock_doubt: StoreResult<Option<Doubt>>,
    /// Who is connected.
    pub sessions: StoreResult<Sessions>,
    /// Who follows.
    pub replication: StoreResult<Replication>,
    /// What was prepared and left.
    pub prepared: StoreResult<Prepared>,
    /// The processes that serve it, oldest first; `None` where nothing was made yet, or before there was a table of them.
    pub processes: StoreResult<Option<Vec<LivingProcess>>>,
    /// The tables that every job passes through; empty where nothing was made yet.
    pub tables: StoreResult<Vec<TableRows>>,
}

/// What the server is and promises, as a session of Fernery's has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// 150018 is 15.18.
    pub version_num: i32,
    /// The same for people.
    pub version: String,
    /// The server is a standby and accepts no writes.
    pub is_standby: bool,
    /// Whether writes reach the disk before they are answered.
    pub fsync: bool,
    /// Whether torn pages can be repaired after a crash.
    pub full_page_writes: bool,
    /// How far a commit gets before it is answered.
    pub synchronous_commit: String,
    /// The standbys that commits wait for.
    pub synchronous_standby_names: String,
    /// Connections that are not kept back for superusers.
    pub connections_max: i64,
    /// Whether the user may see the sessions of others.
    pub sees_all: bool,
}

/// One reading of the database's clock, between two of the local one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// What the database said.
    pub database_at: Timestamp,
    /// The local clock when it was asked.
    pub asked_at: Timestamp,
    /// How long the answer took.
    pub round_trip: Duration,
}

/// Who is connected, and what transactions hold back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sessions {
    /// Connections of clients, to all databases.
    pub connections: i64,
    /// The age of the oldest transaction that holds back vacuum.
    pub oldest_transaction: Duration,
    /// Whose it is.
    pub oldest_pid: Option<i32>,
    /// Sessions that are in a transaction and do nothing.
    pub idle_in_transaction: i64,
    /// How long the longest of them has done nothing.
    pub idle_longest: Duration,
}

/// Who follows the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replication {
    /// Connected standbys that commits wait for.
    pub synchronous: i64,
    /// Connected standbys that they do not wait for.
    pub asynchronous: i64,
    /// Slots that nobody reads.
    pub slots_inactive: i64,
}

/// Transactions that were prepared and left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prepared {
    /// How many.
    pub count: i64,
    /// The age of the oldest.
    pub oldest: Duration,
}

/// The rows of one table, as the server estimates them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// Its name in the schema `fernery`.
    pub name: String,
    /// Live rows.
    pub live: i64,
    /// Dead rows that are not yet vacuumed.
    pub dead: i64,
}

/// The version of the schema that this program makes.
pub fn schema_version_known() -> i32 {
    i32::try_from(migrate::MIGRATIONS.len()).unwrap_or(i32::MAX)
}

/// The oldest server that all statements run on, as `server_version_num`.
pub const SERVER_VERSION_MIN: i32 = migrate::SERVER_VERSION_MIN;

/// Connects and reads.
pub async fn look(url: &str) -> StoreResult<DatabaseHealth> {
    let target = Target::parse(url)?;
    timeout(LOOK_WITHIN, look_at(&target))
        .await
        .unwrap_or_else(|_| Err(StoreError::Unavailable("the database does not answer".into())))
}

async fn look_at(target: &Target) -> StoreResult<DatabaseHealth> {
    let (client, wire) = target.wire().await.map_err(Trouble::into_error)?;
    tokio::spawn(wire);
    // Before the session is set up, which an old server may not understand.
    let old = server_facts(&client).await?;
    if old.version_num < SERVER_VERSION_MIN {
        let unread = || StoreError::Refused("this PostgreSQL version is too old to report it".into());
        return Ok(DatabaseHealth {
            server: old,
            schema_version: Err(unread()),
            clock: Err(unread()),
            clock_doubt: Err(unread()),
            sessions: Err(unread()),
            replication: Err(unread()),
            prepared: Err(unread()),
            processes: Err(unread()),
            tables: Err(unread()),
        });
    }
    client.batch_execute(include_str!("sql/session.sql")).await.map_err(sorted)?;
    let server = server_facts(&client).await?;
    let schema_version = schema_version(&client).await;
    let made = matches!(schema_version, Ok(Some(_)));
    let since = |wanted: i32| matches!(schema_version, Ok(Some(version)) if version >= wanted);
    let (tells, keeps) = (since(processes::SINCE_SCHEMA), since(clock_kept::SINCE_SCHEMA));
    Ok(DatabaseHealth {
        server,
        clock: if made { clock(&client).await.map(Some) } else { Ok(None) },
        clock_doubt: if keeps { clock_doubt(&client).await } else { Ok(None) },
        sessions: sessions(&client).await,
        replication: replication(&client).await,
        prepared: prepared(&client).await,
        processes: if tells { living(&client).await.map(Some) } else { Ok(None) },
        tables: tables(&client).await,
        schema_version,
    })
}

async fn clock_doubt(client: &Client) -> StoreResult<Option<Doubt>> {
    Ok(clock_kept::judged(&one_row(client, clock_kept::KEPT).await?)?.1)
}

fn sorted(error: tokio_postgres::Error) -> StoreError {
    Trouble::from_driver(&error, false).into_error()
}

async fn one_row(client: &Client, sql: &str) -> StoreResult<Row> {
    client.query_one(sql, &[]).await.map_err(sorted)
}

async fn server_facts(client: &Client) -> StoreResult<ServerFacts> {
    let row = one_row(client, include_str!("sql/health_server.sql")).await?;
    Ok(ServerFacts {
        version_num: cell(&row, "version_num")?,
        version: cell(&row, "version")?,
        is_standby: cell(&row, "is_standby")?,
        fsync: cell(&row, "fsync")?,
        full_page_writes: cell(&row, "full_page_writes")?,
        synchronous_commit: cell(&row, "synchronous_commit")?,
        synchronous_standby_names: cell(&row, "synchronous_standby_names")?,
        connections_max: cell(&row, "connections_max")?,
        sees_all: cell(&row, "sees_all")?,
    })
}

async fn schema_version(client: &Client) -> StoreResult<Option<i32>> {
    let row = one_row(client, include_str!("sql/migrate_look.sql")).await?;
    let made: bool = cell(&row, "made")?;
    if !made {
        return Ok(None);
    }
    cell(&one_row(client, include_str!("sql/migrate_version.sql")).await?, 0).map(Some)
}

async fn clock(client: &Client) -> StoreResult<ClockReading> {
    let statement = client.prepare(include_str!("sql/now.sql")).await.map_err(sorted)?;
    let mut best: Option<ClockReading> = None;
    for _ in 0..CLOCK_READINGS {
        let (asked_at, watch) = (door::wall_clock(), door::stop_watch());
        let row = client.query_one(&statement, &[]).await.map_err(sorted)?;
        let reading = ClockReading { database_at: instant(&row, 0)?, asked_at, round_trip: watch.elapsed() };
        if best.is_none_or(|best| reading.round_trip < best.round_trip) {
            best = Some(reading);
        }
    }
    best.ok_or_else(|| StoreError::Corrupt("the database returned no time".into()))
}

fn seconds(row: &Row, column: &str) -> StoreResult<Duration> {
    let seconds: f64 = cell(row, column)?;
    Ok(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX))
}

async fn sessions(client: &Client) -> StoreResult<Sessions> {
    let row = one_row(client, include_str!("sql/health_sessions.sql")).await?;
    Ok(Sessions {
        connections: cell(&row, "connections")?,
        oldest_transaction: seconds(&row, "oldest_seconds")?,
        oldest_pid: cell(&row, "oldest_pid")?,
        idle_in_transaction: cell(&row, "idle_in_transaction")?,
        idle_longest: seconds(&row, "idle_seconds")?,
    })
}

async fn replication(client: &Client) -> StoreResult<Replication> {
    let row = one_row(client, include_str!("sql/health_replication.sql")).await?;
    Ok(Replication {
        synchronous: cell(&row, "synchronous")?,
        asynchronous: cell(&row, "asynchronous")?,
        slots_inactive: cell(&row, "slots_inactive")?,
    })
}

async fn prepared(client: &Client) -> StoreResult<Prepared> {
    let row = one_row(client, include_str!("sql/health_prepared.sql")).await?;
    Ok(Prepared { count: cell(&row, "prepared")?, oldest: seconds(&row, "oldest_seconds")? })
}

async fn living(client: &Client) -> StoreResult<Vec<LivingProcess>> {
    let rows = client.query(processes::ALIVE, &[&processes::alive_ms()]).await.map_err(sorted)?;
    rows.iter().map(processes::living).collect()
}

async fn tables(client: &Client) -> StoreResult<Vec<TableRows>> {
    let rows = client.query(include_str!("sql/health_tables.sql"), &[]).await.map_err(sorted)?;
    rows.iter()
        .map(|row| {
            Ok(TableRows { name: cell(row, "name")?, live: cell(row, "live")?, dead: cell(row, "dead")? })
        })
        .collect()
}
