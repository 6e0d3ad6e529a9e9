//! The settings of Redis. Its password never reaches an error, a log or a screen.

use super::database::mask;
use std::fmt;

/// Who acknowledges messages in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckBy {
    /// The server, once the outcome is durable.
    ControlPlane,
    /// The worker, after an answer with `ack: true`. The server cleans up the messages of workers that died.
    Worker,
}

/// The settings of the transport.
#[derive(Clone, PartialEq, Eq)]
pub struct TransportSettings {
    /// `redis://…`, `rediss://…` or `valkey://…`, with its password.
    pub url: String,
    /// The consumer group of all servers.
    pub group: String,
    pub ack: AckBy,
}

impl fmt::Debug for TransportSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = mask(&self.url);
        f.debug_struct("TransportSettings").field("url", &url).field("group", &self.group).finish()
    }
}

/// Checks `redis://`, `rediss://`, `valkey://` or `valkeys://`, with password and database number.
pub fn parse(text: &str) -> Result<String, String> {
    let schemes = ["redis", "rediss", "valkey", "valkeys"];
    let expected = "expected redis://[:password@]host[:port][/number] or rediss:// for TLS";
    let Some((scheme, rest)) = text.split_once("://") else { return Err(expected.into()) };
    if !schemes.contains(&scheme) {
        return Err(format!("unknown scheme {scheme:?}; {expected}"));
    }
    if rest.contains('#') {
        return Err("a # in the password must be written %23; certificates are always checked".into());
    }
    let (authority, number) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.is_empty() || host.starts_with(':') {
        return Err(format!("names no host; {expected}"));
    }
    let number = number.split_once('?').map_or(number, |(number, _)| number);
    if !number.is_empty() && number.parse::<u16>().is_err() {
        return Err("the database must be a number, as in redis://host/0".into());
    }
    // The driver finds all other mistakes, but its message may contain the password.
    redis::Client::open(text)
        .map(|_| text.to_string())
        .map_err(|_| format!("is invalid; {expected}, with the password percent-encoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_addresses_are_taken() {
        for url in
            ["redis://h", "redis://:p%40@h:6380/2", "rediss://u:p@h", "valkey://h/0", "redis://[::1]:6379/"]
        {
            assert_eq!(parse(url), Ok(url.to_string()));
        }
    }

    #[test]
    fn a_bad_address_is_refused_without_its_password() {
        for url in [
            "",
            "s3cret",
            "http://:s3cret@h",
            "redis://:s3cret@",
            "redis://:s3cret@:6379",
            "redis://:s3cret@h/x",
            "redis://:s3cret#@h",
            "redis://:s3cret@h:port",
        ] {
            let why = parse(url).unwrap_err();
            assert!(!why.contains("s3cret"), "{url}: {why}");
        }
    }
}
