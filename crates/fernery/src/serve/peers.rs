//! The processes on one database: how this one describes itself, and where their settings differ.
//!
//! Pure but for [`introduction`]. Whether a process is alive is decided by the database.

use crate::config::Settings;
use crate::config::duration::show;
use fernery_core::Timestamp;
use fernery_engine::store::Process;
use fernery_engine::store::postgres::health as server_health;
use fernery_engine::store::sqlite::health as file_health;
use fernery_engine::{Database, Engine};
use std::collections::BTreeMap;

/// The settings that all processes on one database should share. Intervals of heartbeats and of the reaper may differ:
/// with the same lease each is safe by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Common {
    Version,
    SchemaVersion,
    LeaseTtl,
    Transport,
}

impl Common {
    const ALL: [Self; 4] = [Self::Version, Self::SchemaVersion, Self::LeaseTtl, Self::Transport];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::SchemaVersion => "schema_version",
            Self::LeaseTtl => "lease_ttl",
            Self::Transport => "transport",
        }
    }

    fn of(self, process: &Process) -> String {
        match self {
            Self::Version => process.version.clone(),
            Self::SchemaVersion => process.schema_version.to_string(),
            Self::LeaseTtl => show(process.lease_ttl),
            Self::Transport => process.transport.clone(),
        }
    }
}

/// A setting that differs, and which processes have which value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) what: Common,
    pub(crate) values: BTreeMap<String, Vec<String>>,
}

/// The differences between these processes in shared settings.
pub(crate) fn differences<'a>(processes: impl IntoIterator<Item = &'a Process> + Clone) -> Vec<Difference> {
    let grouped = |what: Common| {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for process in processes.clone() {
            values.entry(what.of(process)).or_default().push(process.name());
        }
        Difference { what, values }
    };
    Common::ALL.into_iter().map(grouped).filter(|difference| difference.values.len() > 1).collect()
}

/// How a process differs from its peers, in words; `None` if it does not.
pub(crate) fn differs_from(own: &Process, peers: &[&Process]) -> Option<String> {
    let mut said = Vec::new();
    for Difference { what, mut values } in differences(peers.iter().copied().chain([own])) {
        let here = what.of(own);
        values.remove(&here);
        let there: Vec<String> =
            values.into_iter().map(|(value, names)| format!("{value} at {}", names.join(", "))).collect();
        said.push(format!("{} is {here} here and {}", what.name(), there.join(", ")));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

/// How this process describes itself.
pub(crate) fn introduction(
    settings: &Settings,
    engine: &Engine,
    url: &str,
    started_at: Timestamp,
) -> Process {
    let schema_version = match settings.database {
        Database::Sqlite(_) => i32::try_from(file_health::schema_version_known()).unwrap_or(i32::MAX),
        Database::Postgres(_) => server_health::schema_version_known(),
    };
    Process {
        process_id: engine.settings().store.chance.process_id(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
        url: url.to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        schema_version,
        lease_ttl: settings.lease_ttl,
        heartbeat_interval: settings.heartbeat_interval,
        reap_interval: settings.reap_interval,
        transport: settings
            .transport
            .as_ref()
            .map_or_else(|| "none".into(), |transport| transport.identity()),
        started_at,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fernery_engine::door::Chance;
    use std::time::Duration;

    pub(crate) fn process(pid: u32, lease_ttl_s: u64, transport: &str) -> Process {
        Process {
            process_id: Chance::default().process_id(),
            host: "alpha".into(),
            pid,
            url: format!("http://127.0.0.1:{pid}"),
            version: "1.0.0".into(),
            schema_version: 5,
            lease_ttl: Duration::from_secs(lease_ttl_s),
            heartbeat_interval: Duration::from_secs(lease_ttl_s) / 3,
            reap_interval: Duration::from_secs(5),
            transport: transport.into(),
            started_at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn the_identity_of_the_transport_has_place_group_and_ack_but_no_password() {
        use crate::config::{AckBy, TransportSettings};
        let identity =
            |url: &str, ack| TransportSettings { url: url.into(), group: "workers".into(), ack }.identity();
        for url in ["redis://:s3cret@h", "rediss://u:s3cret@h:6379/0", "valkey://h/0"] {
            assert_eq!(identity(url, AckBy::ControlPlane), "redis h:6379/0 workers control-plane");
        }
        assert_eq!(identity("redis://h:6380/2", AckBy::Worker), "redis h:6380/2 workers worker");
    }

    #[test]
    fn a_process_says_what_differs_and_from_whom() {
        let (one, two, other) = (process(1, 60, "none"), process(2, 60, "redis"), process(3, 30, "none"));
        assert_eq!(differs_from(&one, &[]), None);
        assert_eq!(differs_from(&one, &[&process(9, 60, "none")]), None);
        let said = differs_from(&other, &[&one, &two]);
        let expected =
            "lease_ttl is 30s here and 60s at alpha:1, alpha:2; transport is none here and redis at alpha:2";
        assert_eq!(said.as_deref(), Some(expected));
        let newer = Process { version: "1.1.0".into(), schema_version: 6, ..process(4, 60, "none") };
        let said = differs_from(&newer, &[&one]);
        let expected =
            "version is 1.1.0 here and 1.0.0 at alpha:1; schema_version is 6 here and 5 at alpha:1";
        assert_eq!(said.as_deref(), Some(expected));
    }
}
