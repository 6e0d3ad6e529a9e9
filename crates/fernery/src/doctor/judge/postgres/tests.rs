use super::super::super::finding::Level::{Ok, Problem, Warning};
use super::*;
use fernery_core::Timestamp;

fn facts() -> ServerFacts {
    ServerFacts {
        version_num: 150_018,
        version: "15.18".into(),
        is_standby: false,
        fsync: true,
        full_page_writes: true,
        synchronous_commit: "on".into(),
        synchronous_standby_names: String::new(),
        connections_max: 97,
        sees_all: true,
    }
}

fn standbys(synchronous: i64, asynchronous: i64) -> Option<Replication> {
    Some(Replication { synchronous, asynchronous, slots_inactive: 0 })
}

#[test]
fn the_real_level_of_durability_is_told() {
    let with = |change: fn(&mut ServerFacts)| {
        let mut facts = facts();
        change(&mut facts);
        facts
    };
    let named: fn(&mut ServerFacts) = |f| f.synchronous_standby_names = "a".into();
    let alone = standbys(0, 0);
    let cases: Vec<(ServerFacts, Option<Replication>, Level)> = vec![
        (facts(), alone, Ok),
        (facts(), None, Ok),
        (facts(), standbys(0, 1), Warning),
        (with(|f| f.fsync = false), alone, Problem),
        (with(|f| f.full_page_writes = false), alone, Warning),
        (with(|f| f.synchronous_commit = "off".into()), alone, Problem),
        (with(|f| f.synchronous_commit = "local".into()), alone, Ok),
        (with(|f| f.is_standby = true), alone, Problem),
        (with(named), standbys(1, 0), Ok),
        (with(named), standbys(0, 1), Problem),
        (with(named), None, Warning),
        (
            with(|f| {
                f.synchronous_standby_names = "a".into();
                f.synchronous_commit = "remote_write".into();
            }),
            standbys(1, 0),
            Warning,
        ),
        (
            with(|f| {
                f.synchronous_standby_names = "a".into();
                f.synchronous_commit = "local".into();
            }),
            standbys(1, 0),
            Warning,
        ),
    ];
    for (facts, standbys, level) in cases {
        let finding = durability(&facts, standbys);
        assert_eq!(finding.level, level, "{facts:?} {standbys:?}: {finding:?}");
    }
}

#[test]
fn an_old_server_and_another_schema_are_told() {
    for (version_num, level) in [(139_999, Problem), (140_000, Ok), (180_004, Ok)] {
        assert_eq!(version(&ServerFacts { version_num, ..facts() }).level, level);
    }
    for (found, level) in [(None, Warning), (Some(1), Warning), (Some(2), Ok), (Some(3), Problem)] {
        assert_eq!(schema(found, 2).level, level, "{found:?}");
    }
}

#[test]
fn a_clock_difference_within_the_round_trip_is_not_reported() {
    for (asked, database, round_trip, level) in [
        (100_000, 100_000, 0, Ok),
        (100_000, 100_999, 0, Ok),
        (100_000, 101_000, 0, Warning),
        (100_000, 99_000, 0, Warning),
        (100_000, 100_500, 1_000, Ok),
        (100_000, 102_000, 2_000, Ok),
        (100_000, 103_500, 2_000, Warning),
        (100_000, 160_000, 0, Problem),
        (100_000, 40_000, 0, Problem),
    ] {
        let reading = ClockReading {
            asked_at: Timestamp::from_millis(asked),
            database_at: Timestamp::from_millis(database),
            round_trip: Duration::from_millis(round_trip),
        };
        let finding = clock(reading);
        assert_eq!(finding.level, level, "{reading:?}: {finding:?}");
    }
}

#[test]
fn transactions_are_judged_by_their_age() {
    let ttl = Duration::from_secs(60);
    for (age_s, level) in [(0, Ok), (60, Ok), (61, Warning), (900, Warning), (901, Problem)] {
        let age = Duration::from_secs(age_s);
        let sessions = Sessions {
            connections: 1,
            oldest_transaction: age,
            oldest_pid: Some(7),
            idle_in_transaction: 1,
            idle_longest: age,
        };
        assert_eq!(oldest_transaction(&sessions, ttl).level, level, "{age_s}");
        assert_eq!(idle_in_transaction(&sessions, ttl).level, level, "{age_s}");
        assert_eq!(prepared(Prepared { count: 2, oldest: age }, ttl).level, level, "{age_s}");
        let none = Sessions { oldest_pid: None, idle_in_transaction: 0, ..sessions };
        assert_eq!(oldest_transaction(&none, ttl).level, Ok);
        assert_eq!(idle_in_transaction(&none, ttl).level, Ok);
        assert_eq!(prepared(Prepared { count: 0, oldest: age }, ttl).level, Ok);
    }
}

#[test]
fn dead_rows_connections_and_slots_are_told_by_their_number() {
    for (live, dead, level) in [
        (0, 20_000, Ok),
        (0, 20_001, Warning),
        (1_000_000, 150_000, Ok),
        (1_000_000, 250_000, Warning),
        (100_000, 200_001, Problem),
    ] {
        let table = TableRows { name: "ready".into(), live, dead };
        assert_eq!(dead_rows(&table).level, level, "{table:?}");
    }
    for (used, max, level) in
        [(5, 97, Ok), (77, 97, Ok), (78, 97, Warning), (94, 97, Warning), (95, 97, Problem)]
    {
        assert_eq!(connections(used, max).level, level, "{used}");
    }
    assert_eq!((slots(0).level, slots(2).level), (Ok, Warning));
}
