//! Where the database is and how to get there: the URL, read once, and the connections made from it.

use super::retry::Trouble;
use super::tls::{self, Verify};
use crate::error::{StoreError, StoreResult};
use fernery_core::percent;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use tracing::debug;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The driver's own timeout covers only the TCP connection: without this one, a server or balancer that accepts and
/// never answers would be waited for without end.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// After this long without a sign of life a peer counts as gone; the kernel's own default is hours.
const PEER_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection as the driver makes it: the half that speaks for it, to be polled.
pub(crate) type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

#[derive(Clone)]
pub(crate) struct Target {
    /// One for each server that the URL names.
    servers: Vec<Config>,
    /// The server that took the last connection; the next one is asked of it first.
    last: Arc<AtomicUsize>,
    tls: MakeRustlsConnect,
    /// Whether what its connections make claimable is told to a transport.
    pub(crate) emits: bool,
}

impl Target {
    /// Reads `postgres://user:password@host:port/database?…` with libpq's parameters. No message repeats the URL: it
    /// holds the password.
    pub(crate) fn parse(url: &str) -> StoreResult<Self> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        if !base.starts_with("postgres://") && !base.starts_with("postgresql://") {
            return Err(StoreError::Refused("a PostgreSQL URL starts with postgres://".into()));
        }
        let mut kept = Vec::new();
        let (mut ssl_mode, mut root_cert) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => ssl_mode = Some(mode.to_string()),
                Some(("sslrootcert", path)) => root_cert = Some(PathBuf::from(decoded(path)?)),
                _ => kept.push(pair),
            }
        }
        let rest = if kept.is_empty() { base.to_string() } else { format!("{base}?{}", kept.join("&")) };
        let ca_given = root_cert.is_some();
        let (mode, verify) = match ssl_mode.as_deref().unwrap_or("prefer") {
            "disable" => (SslMode::Disable, Verify::Nothing),
            "prefer" | "allow" => (SslMode::Prefer, Verify::Nothing),
            // As libpq: a certificate authority that is named is meant to be used.
            "require" if ca_given => (SslMode::Require, Verify::Authority),
            "require" => (SslMode::Require, Verify::Nothing),
            "verify-ca" => (SslMode::Require, Verify::Authority),
            "verify-full" => (SslMode::Require, Verify::AuthorityAndName),
            _ => {
                return Err(StoreError::Refused(
                    "sslmode is one of disable, prefer, require, verify-ca, verify-full".into(),
                ));
            }
        };
        let servers = each_server(&rest)
            .iter()
            .map(|url| {
                let mut config = Config::from_str(url).map_err(|e| {
                    let why =
                        std::error::Error::source(&e).map_or_else(String::new, |why| format!(": {why}"));
                    StoreError::Refused(format!("the PostgreSQL URL is invalid{why}"))
                })?;
                config.ssl_mode(mode);
                if config.get_connect_timeout().is_none() {
                    config.connect_timeout(CONNECT_TIMEOUT);
                }
                if config.get_tcp_user_timeout().is_none() {
                    config.tcp_user_timeout(PEER_TIMEOUT);
                }
                if !query.contains("keepalives_idle=") {
                    config.keepalives_idle(PEER_TIMEOUT);
                }
                if config.get_application_name().is_none() {
                    config.application_name("fernery");
                }
                Ok(config)
            })
            .collect::<StoreResult<_>>()?;
        let tls = tls::connector(verify, root_cert.as_deref())?;
        Ok(Self { servers, last: Arc::default(), tls, emits: false })
    }

    /// Makes a connection and the half that must be polled for it to move.
    pub(crate) async fn wire(&self) -> Result<(Client, Wire), Trouble> {
        let first = self.last.load(Ordering::Relaxed);
        let mut trouble = Trouble::Away("the URL names no server".into());
        for n in (0..self.servers.len()).map(|n| (first + n) % self.servers.len()) {
            match in_time(self.servers[n].connect(self.tls.clone())).await {
                Ok(Ok(wire)) => {
                    self.last.store(n, Ordering::Relaxed);
                    return Ok(wire);
                }
                Ok(Err(e)) => {
                    trouble = match Trouble::from_driver(&e, false) {
                        Trouble::Away(_) if e.as_db_error().is_none() => Trouble::Away(because(&e)),
                        trouble => trouble,
                    }
                }
                Err(silent) => trouble = silent,
            }
        }
        Err(trouble)
    }

    /// Makes a connection that is ready for use.
    pub(crate) async fn connect(&self) -> Result<Client, Trouble> {
        let (client, wire) = self.wire().await?;
        tokio::spawn(async move {
            if let Err(error) = wire.await {
                debug!(%error, "a database connection was lost");
            }
        });
        let set_up = async {
            client.batch_execute(include_str!("../sql/session.sql")).await?;
            if self.emits {
                client.batch_execute(include_str!("../sql/session_emits.sql")).await?;
            }
            Ok(())
        };
        in_time(set_up).await?.map_err(|e| Trouble::from_driver(&e, false))?;
        Ok(client)
    }
}

/// The same URL for each server that it names. The driver would not go on from one that takes its connection and says
/// nothing, as a primary that hangs does, to the next.
fn each_server(url: &str) -> Vec<String> {
    let elsewhere = ["host=", "hostaddr=", "port=", "load_balance_hosts="];
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let named = query.split('&').any(|pair| elsewhere.iter().any(|name| pair.starts_with(name)));
    match base.split_once("://") {
        Some((scheme, rest)) if !named => {
            let (authority, name) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let hosts_at = authority.rfind('@').map_or(0, |at| at + 1);
            let (login, hosts) = authority.split_at(hosts_at);
            let tail = &url[base.len()..];
            hosts.split(',').map(|host| format!("{scheme}://{login}{host}{name}{tail}")).collect()
        }
        _ => vec![url.to_string()],
    }
}

async fn in_time<T>(answer: impl Future<Output = T>) -> Result<T, Trouble> {
    let silent = |_| Trouble::Away("the database accepts connections but does not answer".into());
    timeout(ANSWERS_WITHIN, answer).await.map_err(silent)
}

/// The whole chain of causes: "error connecting to server" alone helps nobody.
fn because(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.ends_with(&next_text) {
            text = format!("{text}: {next_text}");
        }
        cause = next.source();
    }
    text
}

fn decoded(text: &str) -> StoreResult<String> {
    percent::decode(text).ok_or_else(|| {
        StoreError::Refused("a percent sign in the PostgreSQL URL is not followed by two hex digits".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libpq_understands_is_understood() {
        for good in [
            "postgres://u:p@h/db",
            "postgresql://u@h:6432/db?sslmode=disable&connect_timeout=2&application_name=a",
            "postgres://u:p%3F@h1,h2/db?target_session_attrs=read-write&sslmode=require",
            "postgres:///db?host=%2Ftmp&options=-c%20search_path%3Dx",
        ] {
            assert!(Target::parse(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn each_server_is_asked_by_itself() {
        let url = "postgres://u:p%40@h1:1,[::1]:2,h3/db?target_session_attrs=read-write";
        let rest = "db?target_session_attrs=read-write";
        let each = ["h1:1", "[::1]:2", "h3"].map(|host| format!("postgres://u:p%40@{host}/{rest}"));
        assert_eq!(each_server(url), each);
        for whole in ["postgres:///db?host=%2Ftmp,h2", "postgres://h1,h2/db?load_balance_hosts=random"] {
            assert_eq!(each_server(whole), [whole]);
        }
        assert_eq!(each_server("postgres://h"), ["postgres://h"]);
    }

    #[test]
    fn a_bad_url_is_refused_without_its_password() {
        for bad in [
            "mysql://u:secret@h/db",
            "postgres://u:secret@h/db?sslmode=maybe",
            "postgres://u:secret@h:port/db",
            "postgres://u:secret@h/db?no_such_parameter=1",
            "postgres://u:secret@h/db?sslmode=verify-full&sslrootcert=%2Fno%2Fsuch%2Ffile",
            "postgres://u:secret@h/db?sslrootcert=%2",
        ] {
            match Target::parse(bad) {
                Err(StoreError::Refused(why)) => assert!(!why.contains("secret"), "{bad}: {why}"),
                other => panic!("{bad}: {:?}", other.map(|_| ())),
            }
        }
    }
}
