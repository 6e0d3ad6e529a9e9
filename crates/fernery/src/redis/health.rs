//! What a Redis server says about itself, for `fernery doctor`. Nothing is written.

use super::link::{self, Link};
use fernery_engine::transport::Away;
use redis::{Value, cmd};
use std::collections::HashMap;

/// The facts about a Redis server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RedisFacts {
    /// Redis or Valkey.
    pub(crate) name: &'static str,
    /// Its own version.
    pub(crate) version: String,
    /// Major and minor version of the Redis that it is compatible with.
    pub(crate) compatible: (u32, u32),
    /// It is part of a cluster.
    pub(crate) is_cluster: bool,
    pub(crate) is_replica: bool,
    /// Maximum bytes; `None`: no limit.
    pub(crate) maxmemory: Option<u64>,
    /// What it does at the limit.
    pub(crate) maxmemory_policy: String,
    /// It keeps an append-only file (AOF).
    pub(crate) appends: bool,
    /// When it writes snapshots (RDB); `None` if it does not say.
    pub(crate) saves: Option<String>,
}

/// Asks the server at `url`.
pub(crate) async fn look(url: &str) -> Result<RedisFacts, String> {
    let link = Link::new(url)?;
    let mut connection = link.connect().await.map_err(|Away(why)| why)?;
    let mut commands = link::commands();
    commands.add_command(cmd("INFO").to_owned());
    // Many providers forbid CONFIG.
    commands.add_command(cmd("CONFIG").arg("GET").arg("save").to_owned());
    let answers = link::answers(&mut connection, &commands).await.map_err(|Away(why)| why)?;
    let mut answers = answers.into_iter();
    let info = match answers.next() {
        Some(Value::BulkString(text)) => String::from_utf8_lossy(&text).into_owned(),
        Some(Value::VerbatimString { text, .. }) => text,
        Some(Value::ServerError(error)) => return Err(error.to_string()),
        _ => return Err("it answered INFO with an unknown form".into()),
    };
    Ok(facts(&info, answers.next()))
}

fn facts(info: &str, save: Option<Value>) -> RedisFacts {
    let known: HashMap<&str, &str> =
        info.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
    let text = |key: &str| known.get(key).copied().unwrap_or_default();
    let compatible = text("redis_version");
    let mut numbers = compatible.split('.').map(|part| part.parse().unwrap_or(0));
    let (name, version) = match known.get("valkey_version") {
        Some(version) => ("Valkey", *version),
        None => ("Redis", compatible),
    };
    RedisFacts {
        name,
        version: version.to_string(),
        compatible: (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)),
        is_cluster: text("redis_mode") == "cluster" || text("cluster_enabled") == "1",
        is_replica: text("role") == "slave",
        maxmemory: text("maxmemory").parse().ok().filter(|bytes| *bytes > 0),
        maxmemory_policy: text("maxmemory_policy").to_string(),
        appends: text("aof_enabled") == "1",
        saves: match save {
            Some(Value::Array(parts)) => match parts.into_iter().nth(1) {
                Some(Value::BulkString(text)) => Some(String::from_utf8_lossy(&text).into_owned()),
                _ => None,
            },
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_info_and_missing_ones_stay_unknown() {
        let info = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\nredis_mode:standalone\r\n\
                    maxmemory:1048576\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\nrole:slave\r\n";
        let save =
            Value::Array(vec![Value::BulkString(b"save".to_vec()), Value::BulkString(b"60 1".to_vec())]);
        let found = facts(info, Some(save));
        assert_eq!((found.name, found.version.as_str(), found.compatible), ("Valkey", "8.0.1", (7, 2)));
        assert!(found.is_replica && found.appends && !found.is_cluster);
        assert_eq!((found.maxmemory, found.maxmemory_policy.as_str()), (Some(1 << 20), "allkeys-lru"));
        assert_eq!(found.saves.as_deref(), Some("60 1"));
        let nothing = facts("", Some(Value::Nil));
        assert_eq!((nothing.compatible, nothing.saves), ((0, 0), None));
    }
}
