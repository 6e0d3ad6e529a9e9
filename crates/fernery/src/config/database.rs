//! Reads and shows the database URL. Its password never reaches an error, a log or a screen.

use fernery_core::percent;
use fernery_engine::Database;
use std::path::{Path, PathBuf};

/// Reads `sqlite:PATH` or `postgres://…`. A relative path is taken from `base`.
pub fn parse(text: &str, base: &Path) -> Result<Database, String> {
    if let Some(path) = text.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return if path.is_empty() {
            Err("sqlite: needs a path, as in sqlite:.fernery/fernery.db".into())
        } else if path.starts_with(':') || path.contains('?') {
            Err("sqlite: needs the path of a file, without parameters; a database in memory would not be \
                durable"
                .into())
        } else {
            Ok(Database::Sqlite(base.join(PathBuf::from(path))))
        };
    }
    let Some(rest) = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://")) else {
        return Err(match text.split_once(':') {
            // The text before the colon is a scheme only if it looks like one.
            Some((scheme, _)) if !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                format!(
                    "unknown scheme {scheme:?}; expected sqlite:PATH or postgres://user:password@host/name"
                )
            }
            _ => "expected sqlite:PATH or postgres://user:password@host/name".into(),
        });
    };
    check_postgres(rest).map_err(|why| format!("postgres URL: {why}"))?;
    Ok(Database::Postgres(text.to_string()))
}

/// Finds mistakes that the driver would report in its own words, often with the password in them.
fn check_postgres(rest: &str) -> Result<(), &'static str> {
    if rest.chars().any(|c| c.is_control() || c == ' ') {
        return Err("contains a space or a control character; percent-encode it");
    }
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, name) = address.split_once('/').unwrap_or((address, ""));
    let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    if user.contains('@') || name.contains('@') {
        return Err("an @ in the user's name or the password must be written %40, a / %2F, a ? %3F");
    }
    if hosts.is_empty()
        && !parameters.split('&').any(|p| p.starts_with("host=") || p.starts_with("hostaddr="))
    {
        return Err("names no host");
    }
    for host in hosts.split(',').filter(|_| !hosts.is_empty()) {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        if name.is_empty() {
            return Err("names no host");
        }
        if port.is_some_and(|p| !matches!(p.parse::<u16>(), Ok(1..))) {
            return Err(
                "the port is not a number from 1 to 65535; a / or # in the password must be percent-encoded",
            );
        }
        if name.contains(':') && !name.starts_with('[') {
            return Err("write an IPv6 address in brackets");
        }
    }
    if !percent::is_well_formed(user) {
        return Err("a % in the user's name or the password must be written %25");
    }
    Ok(())
}

/// The URL with every password replaced. Works on any text, also on a URL that was refused.
pub fn mask(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return if text.starts_with("sqlite:") { text.to_string() } else { "***".into() };
    };
    let (address, parameters) = match rest.rsplit_once('@') {
        // A password may contain a raw `?`, so the parameters start after the last `@`.
        Some((user, after)) => {
            let (hosts, parameters) = split_parameters(after);
            let masked = match user.split_once(':') {
                Some((name, _)) => format!("{name}:***@{hosts}"),
                None => format!("{user}@{hosts}"),
            };
            (masked, parameters)
        }
        None => {
            let (address, parameters) = split_parameters(rest);
            (address.to_string(), parameters)
        }
    };
    let parameters: Vec<_> = parameters
        .split('&')
        .map(|p| match p.split_once('=') {
            Some((key, _)) if key.to_ascii_lowercase().contains("pass") => format!("{key}=***"),
            _ => p.to_string(),
        })
        .collect();
    let parameters = parameters.join("&");
    let mark = if parameters.is_empty() { "" } else { "?" };
    format!("{scheme}://{address}{mark}{parameters}")
}

/// The URL with its password removed.
pub fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_string() };
    let (user, after) = rest.rsplit_once('@').unwrap_or(("", rest));
    let user = user.split_once(':').map_or(user, |(name, _)| name);
    let (address, parameters) = split_parameters(after);
    let secret = |parameter: &&str| parameter.to_ascii_lowercase().contains("password=");
    let parameters: Vec<&str> = parameters.split('&').filter(|p| !p.is_empty() && !secret(p)).collect();
    let at = if user.is_empty() { "" } else { "@" };
    let mark = if parameters.is_empty() { "" } else { "?" };
    format!("{scheme}://{user}{at}{address}{mark}{}", parameters.join("&"))
}

fn split_parameters(text: &str) -> (&str, &str) {
    text.split_once('?').unwrap_or((text, ""))
}

/// The database as people see it, without a password.
pub fn show(database: &Database) -> String {
    match database {
        Database::Sqlite(path) => format!("sqlite:{}", path.display()),
        Database::Postgres(url) => mask(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("postgres://fern:s3cret@db/fernery", "postgres://fern:***@db/fernery"),
            ("postgres://fern:s3:cr@et@db/fernery", "postgres://fern:***@db/fernery"),
            ("postgres://fern:s3cr?et@db/x?sslmode=require", "postgres://fern:***@db/x?sslmode=require"),
            ("postgres://db/x?user=f&password=s3cret", "postgres://db/x?user=f&password=***"),
            ("postgres://db/x?sslpassword=s3cret&a=b", "postgres://db/x?sslpassword=***&a=b"),
            ("postgres://fern@db/x", "postgres://fern@db/x"),
            ("mysql://u:s3cret@h/x", "mysql://u:***@h/x"),
            ("s3cret", "***"),
            ("sqlite:a/b.db", "sqlite:a/b.db"),
        ] {
            assert_eq!(mask(url), shown);
        }
    }

    #[test]
    fn a_url_without_its_password_is_the_same_otherwise() {
        for (url, without) in [
            ("postgres://fern:s3cret@db/x?sslmode=require", "postgres://fern@db/x?sslmode=require"),
            ("postgres://db/x?user=f&password=s3cret", "postgres://db/x?user=f"),
            ("redis://:s3cret@127.0.0.1:6379/1", "redis://127.0.0.1:6379/1"),
            ("redis://127.0.0.1", "redis://127.0.0.1"),
        ] {
            assert_eq!(without_password(url), without);
        }
    }

    #[test]
    fn usual_urls_are_taken() {
        for url in [
            "postgres://db/fernery",
            "postgresql://u:p%40ss@[::1]:5433/x",
            "postgres://a:5432,b:5433/x?target_session_attrs=read-write",
            "postgres:///x?host=/run/postgresql",
            "postgres://u:p@127.0.0.1/x?sslmode=disable",
        ] {
            assert_eq!(parse(url, Path::new("")), Ok(Database::Postgres(url.into())), "{url}");
        }
        assert_eq!(parse("sqlite:x.db", Path::new("/d")), Ok(Database::Sqlite("/d/x.db".into())));
        assert_eq!(parse("sqlite:///v/x.db", Path::new("/d")), Ok(Database::Sqlite("/v/x.db".into())));
    }

    #[test]
    fn a_bad_url_is_refused_without_its_password() {
        for url in [
            "mysql://u:s3cret@h/x",
            "u:s3cret@h/x",
            "postgres://u:s3cret@h@db/x",
            "postgres://u:s3cret/more@db/x",
            "postgres://u:s3cret@:5432/x",
            "postgres://u:s3cret@db:port/x",
            "postgres://u:s3cret@db:99999/x",
            "postgres://u:s3cret%zz@db/x",
            "postgres://u:s3 cret@db/x",
            "postgres://u:s3cret@/x",
            "sqlite:",
            "sqlite::memory:",
            "s3cret",
            "",
        ] {
            let why = parse(url, Path::new("")).unwrap_err();
            assert!(!why.contains("s3cret") && !why.contains("cret@"), "{url}: {why}");
        }
    }
}
