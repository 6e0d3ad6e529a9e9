//! Resolves and checks all settings before anything starts. A flag wins over the environment, the environment over the
//! file, the file over the default.
//!
//! Every value is kept as text with its source. So a refusal can name the flag, the variable or the line, and
//! `fernery config` shows exactly what `fernery up` would use.

pub mod database;
pub mod duration;
mod exposure;
pub mod file;
pub mod found;
mod given;
pub mod redis;
pub mod registry;
pub mod repos;
mod sources;
pub mod table;

pub use exposure::{Exposure, TlsFiles, UnsafeSetting, WorkerAuth};
pub use given::{Given, Source};
pub use redis::{AckBy, TransportSettings};
pub use registry::{Registry, Visitors};
pub use repos::{RepoSettings, Repos};
pub use sources::{InForce, Inputs};

use fernery_core::limits;
use fernery_engine::{Database, EngineSettings};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The commented file with every default in it.
pub const DEFAULT_FILE: &str = include_str!("config/fernery.toml");

/// The file that is read if none is named: in the current folder, or the nearest one above.
pub const DEFAULT_PATH: &str = "fernery.toml";

/// Why the configuration was refused, one mistake per line. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub String);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Human,
    /// One JSON object a line.
    Json,
}

/// All settings, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The configuration file that was read.
    pub file: Option<PathBuf>,
    pub listen: SocketAddr,
    pub data: PathBuf,
    pub database: Database,
    /// How messages are sent through Redis; `None`: Redis is not used.
    pub transport: Option<TransportSettings>,
    /// How long a lease lasts without a heartbeat.
    pub lease_ttl: Duration,
    /// How often workers are told to send a heartbeat.
    pub heartbeat_interval: Duration,
    /// How often the reaper looks for expired leases.
    pub reap_interval: Duration,
    /// How long finished jobs are kept.
    pub retention: Duration,
    /// How long dead jobs are kept; `None`: forever.
    pub dead_letter_retention: Option<Duration>,
    /// Host names that requests may use.
    pub allowed_hosts: Vec<String>,
    pub azollas: Vec<PathBuf>,
    /// Repositories that tickets may name.
    pub repos: Repos,
    /// Azollas of other servers that may be asked.
    pub registry: Registry,
    /// Azollas of other servers that may ask here.
    pub visitors: Visitors,
    /// Hosts that webhooks may go to.
    pub notice_hosts: Vec<String>,
    /// Whether webhooks may go to private addresses.
    pub notice_private: bool,
    /// Whether workers need a token.
    pub worker_auth: WorkerAuth,
    /// Requests per second for each token; `None`: no limit.
    pub requests_per_second: Option<NonZeroU32>,
    /// Certificate and key for HTTPS; `None`: plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Plain HTTP is allowed on other addresses than loopback.
    pub insecure_http: bool,
    /// A level, or a list of `target=level`.
    pub log_level: String,
    pub log_format: LogFormat,
}

impl InForce {
    fn row(&self, key: &str) -> &Given {
        self.rows.iter().find(|row| row.setting.key == key).expect("every key of the table has a row")
    }

    /// The folder that relative paths of this row start from.
    fn base(&self, row: &Given) -> &Path {
        match (&row.source, &self.file) {
            (Source::File { .. }, Some(file)) => file.parent().unwrap_or(Path::new("")),
            _ => Path::new(""),
        }
    }

    fn path(&self, key: &str) -> Result<Option<PathBuf>, ConfigError> {
        let row = self.row(key);
        match row.values.first() {
            None => Ok(None),
            Some(text) if text.is_empty() || text.contains('\0') => Err(row.refused("expected a path")),
            Some(text) => Ok(Some(self.base(row).join(text))),
        }
    }

    /// Whether somebody named the data directory, or it was found above or in the user's own data folder.
    pub fn data_is_settled(&self) -> bool {
        self.row("data").source != Source::Default
    }

    /// Whether nobody named the data directory, and it is not below the current folder.
    pub fn data_is_found(&self) -> bool {
        matches!(self.row("data").source, Source::Found { .. })
    }

    /// How the data directory was chosen.
    pub fn data_origin(&self) -> String {
        self.row("data").origin()
    }

    /// The data directory alone: all that a command needs to find its server.
    pub fn data(&self) -> Result<PathBuf, ConfigError> {
        Ok(self.path("data")?.unwrap_or_default())
    }

    /// Checks each value, then how the values fit together. All wrong values are reported at once.
    pub fn check(&self) -> Result<Settings, ConfigError> {
        let mut wrong: Vec<String> = self.wrong_values().into_iter().flatten().map(|error| error.0).collect();
        // The default of `database` is a file in `data`.
        wrong.dedup();
        if !wrong.is_empty() {
            return Err(ConfigError(wrong.join("\n")));
        }
        let data = self.data()?;
        let database = self.database()?;
        let (lease_ttl, heartbeat_interval, reap_interval) = self.intervals()?;
        let (cert, key) = (self.path("tls_cert")?, self.path("tls_key")?);
        let tls = match (cert, key) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert, key }),
            (None, None) => None,
            (Some(_), None) => return Err(self.row("tls_cert").refused("needs tls_key too")),
            (None, Some(_)) => return Err(self.row("tls_key").refused("needs tls_cert too")),
        };
        let settings = Settings {
            file: self.file.clone(),
            listen: self.listen()?,
            data,
            transport: self.transport(&database)?,
            database,
            lease_ttl,
            heartbeat_interval,
            reap_interval,
            retention: self.row("retention").duration()?,
            dead_letter_retention: self.row("dead_letter_retention").maybe_duration()?,
            allowed_hosts: self.allowed_hosts()?,
            azollas: self.azollas()?,
            repos: self.repos()?,
            registry: self.registry()?,
            visitors: self.visitors()?,
            notice_hosts: self.row("notices.hosts").values.clone(),
            notice_private: self.switch("notices.private")?,
            worker_auth: self.worker_auth()?,
            requests_per_second: self.requests_per_second()?,
            tls,
            insecure_http: self.switch("insecure_http")?,
            log_level: self.log_level()?,
            log_format: self.log_format()?,
        };
        self.check_exposure(&settings)?;
        Ok(settings)
    }

    /// The mistakes in values that can be checked one by one, in the order of the table.
    fn wrong_values(&self) -> [Option<ConfigError>; 23] {
        let lease_ttl = self.lease_ttl();
        // With a wrong one, the others can only be checked against the longest.
        let ttl = *lease_ttl.as_ref().unwrap_or(&limits::LEASE_TTL_MAX);
        [
            self.listen().err(),
            self.data().err(),
            self.database().err(),
            self.redis_url().err(),
            self.transport_group().err(),
            self.transport_ack().err(),
            lease_ttl.err(),
            self.heartbeat_interval(ttl).err(),
            self.reap_interval(ttl).err(),
            self.row("retention").duration().err(),
            self.row("dead_letter_retention").maybe_duration().err(),
            self.repos().err(),
            self.registry().err(),
            self.visitors().err(),
            self.switch("notices.private").err(),
            self.allowed_hosts().err(),
            self.worker_auth().err(),
            self.requests_per_second().err(),
            self.path("tls_cert").err(),
            self.path("tls_key").err(),
            self.switch("insecure_http").err(),
            self.log_level().err(),
            self.log_format().err(),
        ]
    }

    fn database(&self) -> Result<Database, ConfigError> {
        let row = self.row("database");
        match row.values.first() {
            None => Ok(Database::Sqlite(self.data()?.join("fernery.db"))),
            Some(text) => database::parse(text, self.base(row)).map_err(|why| row.refused(why)),
        }
    }

    fn worker_auth(&self) -> Result<WorkerAuth, ConfigError> {
        self.row("worker_auth").choice(&[("token", WorkerAuth::Token), ("none", WorkerAuth::None)])
    }

    fn log_format(&self) -> Result<LogFormat, ConfigError> {
        self.row("log_format").choice(&[("human", LogFormat::Human), ("json", LogFormat::Json)])
    }

    fn listen(&self) -> Result<SocketAddr, ConfigError> {
        let row = self.row("listen");
        let text = row.text();
        let numeric = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_string(),
        };
        numeric.parse().map_err(|_| {
            row.refused(format_args!(
                "expected an IP address and a port, as in 127.0.0.1:8080, [::1]:8080 or localhost:0, not {text:?}"
            ))
        })
    }

    fn transport(&self, database: &Database) -> Result<Option<TransportSettings>, ConfigError> {
        let (ack, group, url) = (self.transport_ack()?, self.transport_group()?, self.redis_url()?);
        let Some(url) = url else { return Ok(None) };
        if matches!(database, Database::Sqlite(_)) {
            return Err(self.row("redis").refused(
                "Redis works only with PostgreSQL: set database to postgres://…, or remove this setting (a \
                server on SQLite needs no Redis)",
            ));
        }
        Ok(Some(TransportSettings { url, group, ack }))
    }

    fn transport_ack(&self) -> Result<AckBy, ConfigError> {
        self.row("transport.ack").choice(&[("control-plane", AckBy::ControlPlane), ("worker", AckBy::Worker)])
    }

    fn transport_group(&self) -> Result<String, ConfigError> {
        let row = self.row("transport.group");
        let name = row.text();
        match (1..=100).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic()) {
            true => Ok(name.to_string()),
            false => Err(row.refused("expected 1 to 100 visible ASCII characters")),
        }
    }

    fn redis_url(&self) -> Result<Option<String>, ConfigError> {
        let row = self.row("redis");
        row.values.first().map(|text| redis::parse(text).map_err(|why| row.refused(why))).transpose()
    }

    fn intervals(&self) -> Result<(Duration, Duration, Duration), ConfigError> {
        let ttl = self.lease_ttl()?;
        Ok((ttl, self.heartbeat_interval(ttl)?, self.reap_interval(ttl)?))
    }

    fn lease_ttl(&self) -> Result<Duration, ConfigError> {
        let row = self.row("lease_ttl");
        let ttl = row.duration()?;
        match (limits::LEASE_TTL_MIN..=limits::LEASE_TTL_MAX).contains(&ttl) {
            true => Ok(ttl),
            false => Err(row.refused(format_args!("must be 1s to 600s, not {}", duration::show(ttl)))),
        }
    }

    fn heartbeat_interval(&self, ttl: Duration) -> Result<Duration, ConfigError> {
        let row = self.row("heartbeat_interval");
        let heartbeat = if row.values.is_empty() { ttl / 3 } else { row.duration()? };
        if heartbeat > ttl / 2 {
            return Err(row.refused(format_args!(
                "{} is more than half of lease_ttl ({}): one lost heartbeat would cost the lease",
                duration::show(heartbeat),
                duration::show(ttl)
            )));
        }
        Ok(heartbeat)
    }

    fn reap_interval(&self, ttl: Duration) -> Result<Duration, ConfigError> {
        let row = self.row("reap_interval");
        let reap =
            if row.values.is_empty() { EngineSettings::default_reap_interval(ttl) } else { row.duration()? };
        if reap > ttl {
            return Err(row.refused(format_args!(
                "{} is longer than lease_ttl ({}): the reaper would find expired leases too late",
                duration::show(reap),
                duration::show(ttl)
            )));
        }
        Ok(reap)
    }

    fn azollas(&self) -> Result<Vec<PathBuf>, ConfigError> {
        let row = self.row("azolla");
        let base = self.base(row);
        Ok(row.values.iter().map(|file| base.join(file)).collect())
    }

    fn repos(&self) -> Result<Repos, ConfigError> {
        let row = self.row("repos");
        repos::parse(&row.values, self.base(row)).map_err(|why| row.refused(why))
    }

    fn switch(&self, key: &str) -> Result<bool, ConfigError> {
        self.row(key).choice(&[("true", true), ("false", false), ("1", true), ("0", false)])
    }

    fn registry(&self) -> Result<Registry, ConfigError> {
        let row = self.row("registry");
        registry::parse(&row.values, self.base(row)).map_err(|why| row.refused(why))
    }

    fn visitors(&self) -> Result<Visitors, ConfigError> {
        let row = self.row("visitors");
        registry::parse_visitors(&row.values).map_err(|why| row.refused(why))
    }

    fn allowed_hosts(&self) -> Result<Vec<String>, ConfigError> {
        let row = self.row("allowed_host");
        for name in &row.values {
            let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
            let address = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
            if !address && (name.is_empty() || name.len() > 253 || !name.bytes().all(plain)) {
                return Err(row.refused(format_args!(
                    "{name:?} is not a host name; expected one like fernery.example, without scheme and port"
                )));
            }
        }
        Ok(row.values.clone())
    }

    fn requests_per_second(&self) -> Result<Option<NonZeroU32>, ConfigError> {
        let row = self.row("requests_per_second");
        let Some(text) = row.values.first() else { return Ok(None) };
        let max = limits::REQUESTS_PER_SECOND_MAX;
        match text.parse::<NonZeroU32>() {
            Ok(number) if number.get() <= max => Ok(Some(number)),
            _ => Err(row.refused(format_args!("expected a whole number from 1 to {max}, not {text:?}"))),
        }
    }

    fn log_level(&self) -> Result<String, ConfigError> {
        let row = self.row("log_level");
        for part in row.text().split(',') {
            let level = part.split_once('=').map_or(part, |(_, level)| level);
            if !["off", "error", "warn", "info", "debug", "trace"].contains(&level) {
                return Err(row.refused(format_args!(
                    "expected error, warn, info, debug or trace, alone or as target=level, not {level:?}"
                )));
            }
        }
        Ok(row.text().to_string())
    }

    fn check_exposure(&self, settings: &Settings) -> Result<(), ConfigError> {
        let exposure = Exposure {
            listen: settings.listen,
            allowed_hosts: &settings.allowed_hosts,
            insecure_http: settings.insecure_http,
            has_tls: settings.tls.is_some(),
            worker_auth: settings.worker_auth,
        };
        exposure.check().map_err(|UnsafeSetting { setting, why }| self.row(setting).refused(why))
    }
}

#[cfg(test)]
mod tests;
