//! The PostgreSQL server.

use super::super::finding::{Finding, Level, span};
use fernery_engine::store::postgres::health::{
    ClockReading, Prepared, Replication, SERVER_VERSION_MIN, ServerFacts, Sessions, TableRows,
};
use std::time::Duration;

/// A transaction older than this many leases keeps so many dead rows that claims become slow.
const LEASES_TOO_OLD: u32 = 15;
/// So many dead rows do not slow down claims noticeably.
const DEAD_FEW: i64 = 20_000;
/// So many dead rows make claims slow.
const DEAD_MANY: i64 = 200_000;

/// Whether this version runs all statements.
pub(crate) fn version(facts: &ServerFacts) -> Finding {
    let found = format!("PostgreSQL {}", facts.version);
    let level = if facts.version_num < SERVER_VERSION_MIN { Level::Problem } else { Level::Ok };
    let remedy = format!("use PostgreSQL {} or later", SERVER_VERSION_MIN / 10_000);
    Finding::at(level, "postgres_version", found, remedy)
}

/// Whether the database has the schema version of this program.
pub(crate) fn schema(found: Option<i32>, known: i32) -> Finding {
    const CHECK: &str = "schema";
    match found {
        None => Finding::warning(CHECK, "there is no schema fernery yet", "`fernery up` makes it"),
        Some(found) if found == known => Finding::ok(CHECK, format!("schema version {found}")),
        Some(found) if found > known => Finding::problem(
            CHECK,
            format!("schema version {found}, this program makes {known}"),
            "use the newer version that made it: this one refuses to open it",
        ),
        Some(found) => Finding::warning(
            CHECK,
            format!("schema version {found}, this program makes {known}"),
            "`fernery up` migrates it; take a pg_dump before, because there is no way back",
        ),
    }
}

/// What an acknowledged commit survives. `standbys` is `None` if this user may not see them.
pub(crate) fn durability(facts: &ServerFacts, standbys: Option<Replication>) -> Finding {
    const CHECK: &str = "durability";
    let names = &facts.synchronous_standby_names;
    let found = format!(
        "fsync={}, full_page_writes={}, synchronous_commit={}, synchronous_standby_names='{names}'",
        on_off(facts.fsync),
        on_off(facts.full_page_writes),
        facts.synchronous_commit,
    );
    let says = |more: &str| format!("{found}: {more}");
    if facts.is_standby {
        return Finding::problem(
            CHECK,
            says("the server is a standby and accepts no writes"),
            "name the primary in --database; with several hosts add target_session_attrs=read-write",
        );
    }
    if !facts.fsync {
        return Finding::problem(
            CHECK,
            says("a crash of the machine can lose jobs or the whole database"),
            "set fsync = on in postgresql.conf and restart PostgreSQL",
        );
    }
    if facts.synchronous_commit == "off" {
        return Finding::problem(
            CHECK,
            says("a crash can lose acknowledged jobs"),
            "do not set synchronous_commit = off for Fernery's connections",
        );
    }
    if !names.is_empty() {
        if let Some(Replication { synchronous: 0, .. }) = standbys {
            return Finding::problem(
                CHECK,
                says("no synchronous standby is connected, so commits hang"),
                "start the standby, or empty synchronous_standby_names and reload",
            );
        }
        if facts.synchronous_commit == "local" {
            return Finding::warning(
                CHECK,
                says("synchronous standbys are named, but commits do not wait for them"),
                "set synchronous_commit = on, or empty synchronous_standby_names",
            );
        }
        if facts.synchronous_commit == "remote_write" {
            return Finding::warning(
                CHECK,
                says("a standby has received a commit, but may not have synced it"),
                "set synchronous_commit = on",
            );
        }
    }
    if !facts.full_page_writes {
        return Finding::warning(
            CHECK,
            says("a crash of the machine can leave a torn page"),
            "set full_page_writes = on, unless the file system prevents torn pages (ZFS)",
        );
    }
    match standbys {
        None if !names.is_empty() => Finding::warning(
            CHECK,
            says("this user cannot see whether a standby is connected"),
            "let a superuser `GRANT pg_read_all_stats` to Fernery's user and ask again",
        ),
        Some(Replication { synchronous: 0, asynchronous, .. }) if asynchronous > 0 => Finding::warning(
            CHECK,
            says(
                "synced on this server only: after a failover the standby may lack the last acknowledged jobs",
            ),
            "name a standby in synchronous_standby_names if that matters, and reload",
        ),
        Some(Replication { synchronous, .. }) if synchronous > 0 => {
            Finding::ok(CHECK, says("a commit is synced here and on a standby before it is answered"))
        }
        _ => Finding::ok(CHECK, says("a commit is synced on this server before it is answered")),
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// How far the database's clock is from this machine's clock. The database's clock is authoritative.
pub(crate) fn clock(reading: ClockReading) -> Finding {
    let half = reading.round_trip / 2;
    let half_ms = i64::try_from(half.as_millis()).unwrap_or(i64::MAX);
    let local = reading.asked_at.as_millis().saturating_add(half_ms);
    let apart = reading.database_at.as_millis().saturating_sub(local);
    // The round trip makes the reading uncertain by half its duration.
    let sure = apart.unsigned_abs().saturating_sub(half.as_millis() as u64);
    let level = match sure {
        0..1_000 => Level::Ok,
        1_000..60_000 => Level::Warning,
        _ => Level::Problem,
    };
    let found = format!(
        "the database's clock is {} {} this machine's, to within {}",
        span(Duration::from_millis(apart.unsigned_abs())),
        if apart < 0 { "behind" } else { "ahead of" },
        span(half + Duration::from_millis(1)),
    );
    let remedy = "synchronize both clocks with NTP: leases are safe, because only the database's clock \
        counts, but scheduled jobs start by that clock, and timestamps in logs and rows differ";
    Finding::at(level, "clock", found, remedy)
}

/// The level of a transaction of this age; it should be short.
fn age_level(age: Duration, lease_ttl: Duration) -> Level {
    match age {
        _ if age > lease_ttl * LEASES_TOO_OLD => Level::Problem,
        _ if age > lease_ttl => Level::Warning,
        _ => Level::Ok,
    }
}

/// Whether a transaction holds back vacuum. Every renewal of a lease leaves a dead row, and vacuum removes none that is
/// younger than the oldest transaction.
pub(crate) fn oldest_transaction(sessions: &Sessions, lease_ttl: Duration) -> Finding {
    const CHECK: &str = "oldest_transaction";
    let Some(pid) = sessions.oldest_pid else {
        return Finding::ok(CHECK, "no other transaction is open");
    };
    let found = format!("the oldest open transaction began {} ago", span(sessions.oldest_transaction));
    let remedy = format!(
        "it prevents vacuum from removing dead tuples, and claims become slow: see what it does in \
        pg_stat_activity, and end it with SELECT pg_terminate_backend({pid})"
    );
    Finding::at(age_level(sessions.oldest_transaction, lease_ttl), CHECK, found, remedy)
}

/// Whether a session is idle inside a transaction.
pub(crate) fn idle_in_transaction(sessions: &Sessions, lease_ttl: Duration) -> Finding {
    const CHECK: &str = "idle_in_transaction";
    if sessions.idle_in_transaction == 0 {
        return Finding::ok(CHECK, "no session is idle in a transaction");
    }
    let found = format!(
        "{} idle in a transaction, the longest for {}",
        count(sessions.idle_in_transaction, "session is", "sessions are"),
        span(sessions.idle_longest)
    );
    let remedy = "set idle_in_transaction_session_timeout for the users of that program (Fernery's own sessions have 5 s)";
    Finding::at(age_level(sessions.idle_longest, lease_ttl), CHECK, found, remedy)
}

/// Whether prepared transactions were left behind.
pub(crate) fn prepared(prepared: Prepared, lease_ttl: Duration) -> Finding {
    const CHECK: &str = "prepared_transactions";
    if prepared.count == 0 {
        return Finding::ok(CHECK, "none");
    }
    let found = format!(
        "{} prepared transactions are open, the oldest for {}",
        count(prepared.count, "transaction is", "transactions are"),
        span(prepared.oldest)
    );
    let remedy = "Fernery uses no prepared transactions: find them in pg_prepared_xacts and COMMIT PREPARED \
        or ROLLBACK PREPARED each; they hold back vacuum and survive a restart";
    Finding::at(age_level(prepared.oldest, lease_ttl), CHECK, found, remedy)
}

fn count(n: i64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// Whether vacuum keeps up with a table that every job uses.
pub(crate) fn dead_rows(table: &TableRows) -> Finding {
    let TableRows { name, live, dead } = table;
    let level = match *dead {
        dead if dead > DEAD_MANY && dead > *live => Level::Problem,
        dead if dead > DEAD_FEW && dead > live / 5 => Level::Warning,
        _ => Level::Ok,
    };
    let found = format!("fernery.{name}: about {dead} dead tuples and {live} live ones");
    let remedy = format!(
        "vacuum cannot keep up: end old transactions first, make sure that autovacuum is on, then run \
        VACUUM fernery.{name}"
    );
    Finding::at(level, "dead_rows", found, remedy)
}

/// Whether there are connections left.
pub(crate) fn connections(used: i64, max: i64) -> Finding {
    let level = match max - used {
        left if left < 3 => Level::Problem,
        _ if used * 5 > max * 4 => Level::Warning,
        _ => Level::Ok,
    };
    let remedy = "raise max_connections and restart PostgreSQL, or use a pooler for the other programs: \
        each Fernery server takes up to 11 connections";
    Finding::at(level, "connections", format!("{used} of {max} connections in use"), remedy)
}

/// Whether a replication slot that nobody reads keeps the write-ahead log.
pub(crate) fn slots(inactive: i64) -> Finding {
    const CHECK: &str = "replication_slots";
    if inactive == 0 {
        return Finding::ok(CHECK, "no unused replication slot");
    }
    Finding::warning(
        CHECK,
        format!("{} unused", count(inactive, "replication slot is", "replication slots are")),
        "start their consumers, or drop each with pg_drop_replication_slot: they keep WAL until the disk is \
        full, and may hold back vacuum",
    )
}

#[cfg(test)]
mod tests;
