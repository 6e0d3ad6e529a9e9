//! The Redis server. If it loses data, jobs are delayed but not lost, so few findings about it are problems.

use super::super::finding::{Finding, Level, bytes};
use crate::redis::health::RedisFacts;

const CHECK: &str = "redis";
/// Older versions lack commands that are needed.
const NEEDED: (u32, u32) = (6, 2);
/// Older versions are not tested.
const TRIED: (u32, u32) = (7, 0);

/// Redis does not answer.
pub(crate) fn away(shown: &str, why: &str) -> Finding {
    Finding::problem(
        CHECK,
        format!("{shown} cannot be reached: {why}"),
        "start Redis, or correct --redis; until then jobs are claimed from the database. `redis-cli -u` \
        with the same URL says more",
    )
}

pub(crate) fn judged(shown: &str, facts: &RedisFacts) -> Vec<Finding> {
    vec![reached(shown, facts), version(facts), eviction(facts), persistence(facts)]
}

fn reached(shown: &str, facts: &RedisFacts) -> Finding {
    if facts.is_cluster {
        return Finding::problem(
            CHECK,
            format!("{shown} belongs to a Redis Cluster, which refuses to read several streams at once"),
            "use a standalone server: Redis Cluster is not supported",
        );
    }
    if facts.is_replica {
        return Finding::problem(
            CHECK,
            format!("{shown} is a replica and accepts no messages"),
            "name the primary in --redis, or an address that follows it",
        );
    }
    Finding::ok(CHECK, format!("{shown} answers"))
}

fn version(facts: &RedisFacts) -> Finding {
    let level = match facts.compatible {
        old if old < NEEDED => Level::Problem,
        old if old < TRIED => Level::Warning,
        _ => Level::Ok,
    };
    let found = format!("{} {}", facts.name, facts.version);
    Finding::at(level, "redis_version", found, "use Redis 7.0 or later, or Valkey")
}

fn eviction(facts: &RedisFacts) -> Finding {
    let limit = facts.maxmemory.map_or("no limit".into(), bytes);
    let found = format!("maxmemory-policy {}, maxmemory {limit}", facts.maxmemory_policy);
    let level = if facts.maxmemory_policy == "noeviction" { Level::Ok } else { Level::Warning };
    let found = match level {
        Level::Ok => found,
        _ => format!("{found}: when full, it may evict streams, and their messages must be sent again"),
    };
    Finding::at(level, "redis_eviction", found, "set maxmemory-policy noeviction")
}

/// Never more than a note: without persistence only time is lost.
fn persistence(facts: &RedisFacts) -> Finding {
    let copies = match facts.saves.as_deref() {
        Some("") => "no copies",
        Some(_) => "copies",
        None => "persistence unknown",
    };
    let (log, lost) = match (facts.appends, facts.saves.as_deref()) {
        (true, _) => ("appendonly yes", ""),
        (false, Some("")) => ("appendonly no", ": a restart loses all messages; they are sent again"),
        (false, _) => ("appendonly no", ": a restart loses messages; they are sent again"),
    };
    Finding::ok("redis_persistence", format!("{log}, {copies}{lost}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy() -> RedisFacts {
        RedisFacts {
            name: "Redis",
            version: "7.0.15".into(),
            compatible: (7, 0),
            maxmemory_policy: "noeviction".into(),
            appends: true,
            ..RedisFacts::default()
        }
    }

    fn levels(facts: &RedisFacts) -> Vec<Level> {
        judged("redis://h", facts).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn each_thing_that_would_hurt_is_found_by_its_own_check() {
        use Level::{Ok, Problem, Warning};
        assert_eq!(levels(&healthy()), [Ok; 4]);
        assert_eq!(levels(&RedisFacts { is_replica: true, ..healthy() }), [Problem, Ok, Ok, Ok]);
        assert_eq!(levels(&RedisFacts { is_cluster: true, ..healthy() }), [Problem, Ok, Ok, Ok]);
        assert_eq!(levels(&RedisFacts { compatible: (6, 0), ..healthy() }), [Ok, Problem, Ok, Ok]);
        assert_eq!(levels(&RedisFacts { compatible: (6, 2), ..healthy() }), [Ok, Warning, Ok, Ok]);
        let evicts = RedisFacts { maxmemory_policy: "allkeys-lru".into(), ..healthy() };
        assert_eq!(levels(&evicts), [Ok, Ok, Warning, Ok]);
        assert_eq!(levels(&RedisFacts { appends: false, ..healthy() }), [Ok; 4]);
    }

    #[test]
    fn persistence_that_is_off_is_noted() {
        let note = |appends, saves: Option<&str>| {
            persistence(&RedisFacts { appends, saves: saves.map(Into::into), ..healthy() }).found
        };
        assert_eq!(note(true, Some("")), "appendonly yes, no copies");
        assert!(note(false, Some("")).contains("loses all messages"));
        assert!(note(false, Some("60 1")).contains("loses messages"));
        assert!(note(false, None).contains("unknown"));
    }
}
