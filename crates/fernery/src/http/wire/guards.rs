//! Checks on every request before authentication: sizes, framing, and whether a web page is behind it.
//!
//! A web page can make a browser send requests to a loopback address, and by DNS rebinding even read the answers. So
//! the Host header must name this server, a write must not come from another site, and no CORS header is ever sent.

use super::framing::Head;
use crate::http::problem::{Code, Refusal, Refused};
use fernery_core::percent::decode_query;
use http::header::{HOST, ORIGIN, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Method};
use std::net::{IpAddr, SocketAddr};

/// Bytes of a request's URI.
const URI_BYTES_MAX: usize = 8 << 10;
/// Bytes of all headers of a request.
const HEADER_BYTES_MAX: usize = 32 << 10;

/// Refuses a head that is too big. (More than 100 headers never get here.)
pub fn sizes(parts: &Parts) -> Result<(), Refused> {
    let uri = parts.uri.path().len() + parts.uri.query().map_or(0, str::len);
    if uri > URI_BYTES_MAX {
        return Err(Refusal::new(Code::UriTooLong, Code::UriTooLong.title()));
    }
    let bytes: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > HEADER_BYTES_MAX {
        return Err(Refusal::new(Code::HeadersTooLarge, Code::HeadersTooLarge.title()));
    }
    Ok(())
}

/// Refuses a request that states its length in two ways. The parser drops one of them, so this looks at the raw bytes
/// (`head`). The parser also takes every list of encodings that ends in `chunked`, where another parser may take the
/// first.
pub fn framing(headers: &HeaderMap, head: Option<Head>) -> Result<(), Refused> {
    let refuse = |detail: &str| Err(Refusal::new(Code::BadRequest, detail));
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let encoding = encodings.next();
    if encodings.next().is_some()
        || encoding.is_some_and(|it| !it.as_bytes().eq_ignore_ascii_case(b"chunked"))
    {
        return refuse("the only supported Transfer-Encoding is chunked, given once");
    }
    match head {
        Some(head) if head.encoding && head.length => {
            refuse("a request has either Content-Length or Transfer-Encoding, not both")
        }
        Some(head) if head.encoding == encoding.is_some() => Ok(()),
        None if encoding.is_none() => Ok(()),
        _ => refuse("cannot determine where this request begins; send it on a new connection"),
    }
}

/// Refuses a token in the URL: URLs end up in logs and histories.
pub fn no_token_in_query(query: Option<&str>) -> Result<(), Refused> {
    let Some(query) = query else { return Ok(()) };
    let secret = query.split('&').any(|part| {
        let name = part.split('=').next().unwrap_or_default();
        let name = decode_query(name).unwrap_or_default().to_ascii_lowercase();
        matches!(name.as_str(), "token" | "access_token")
    });
    if secret { Err(Refusal::new(Code::TokenInQuery, Code::TokenInQuery.title())) } else { Ok(()) }
}

/// Names that every server on this machine has, whatever its port. A browser sends cookies of such a name to all of them.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Under which kind of name a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// The name that only this server has on this machine.
    Own,
    /// A name that every server on this machine has.
    Loopback,
    /// A name or an address that the operator gave the server.
    Named,
}

/// The host names of this server.
#[derive(Debug)]
pub struct Hosts {
    names: Vec<String>,
    /// The name of the pages for browsers on this machine.
    own: String,
    /// The server listens on every address, so any address may be its own. A rebinding attack needs a name.
    any_address: bool,
}

impl Hosts {
    /// Loopback names, the address listened on, what the operator adds, and `own`.
    pub fn new(listen: SocketAddr, allowed: &[String], own: &str) -> Self {
        let mut names: Vec<String> = LOOPBACK.iter().map(|name| name.to_string()).collect();
        names.push(own.to_ascii_lowercase());
        names.push(match listen.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        });
        names.extend(allowed.iter().map(|name| name.to_ascii_lowercase()));
        Self { names, own: own.to_ascii_lowercase(), any_address: listen.ip().is_unspecified() }
    }

    /// The name of the pages for browsers on this machine. It is told only to those who have shown a secret.
    pub fn own(&self) -> &str {
        &self.own
    }

    /// Under which kind of name a request came that [`Hosts::check`] let in.
    pub fn place(&self, parts: &Parts) -> Result<(HostKind, String), Refused> {
        let authority = authority(parts)?.to_ascii_lowercase();
        let name = without_port(&authority);
        let address = || name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let loopback = LOOPBACK.contains(&name) || address().is_ok_and(|ip| ip.is_loopback());
        let place = match name == self.own {
            true => HostKind::Own,
            false if loopback => HostKind::Loopback,
            false => HostKind::Named,
        };
        Ok((place, authority))
    }

    /// Refuses a request for another host.
    pub fn check(&self, parts: &Parts) -> Result<(), Refused> {
        let authority = authority(parts)?;
        let name = without_port(authority);
        let known = self.names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        if known || (self.any_address && address) {
            return Ok(());
        }
        let detail = "the Host header does not name this server; --allowed-host adds a name";
        Err(Refusal::new(Code::Misdirected, detail))
    }
}

fn authority(parts: &Parts) -> Result<&str, Refused> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(Refusal::new(Code::BadRequest, "there are two Host headers"));
    }
    let text = match (parts.uri.authority(), host) {
        (Some(authority), _) => Some(authority.as_str()),
        (None, Some(host)) => host.to_str().ok(),
        (None, None) => None,
    };
    text.ok_or_else(|| Refusal::new(Code::BadRequest, "the request has no Host header"))
}

/// Whatever is not a port stays, and makes a name that nobody has: `localhost:80@evil.com` is `evil.com`.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    }
}

/// Refuses a write that a page of another site sent.
pub fn same_site(parts: &Parts) -> Result<(), Refused> {
    if matches!(parts.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let site = header("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
    let origin = match parts.headers.get(ORIGIN).map(|value| value.to_str().unwrap_or("?")) {
        None => true,
        Some(origin) => {
            let authority = authority(parts)?;
            let sent_from = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
            sent_from.is_some_and(|from| from.eq_ignore_ascii_case(authority))
        }
    };
    if site && origin { Ok(()) } else { Err(Refusal::new(Code::CrossSite, Code::CrossSite.title())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::post("/v1/jobs");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_names_of_this_server_are_answered() {
        let hosts =
            Hosts::new("127.0.0.1:8080".parse().unwrap(), &["Fern.example".to_string()], "x1.localhost");
        for good in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "[::1]:8080",
            "fern.example:443",
            "X1.localhost:80",
        ] {
            assert!(hosts.check(&parts(&[("host", good)])).is_ok(), "{good}");
        }
        for bad in [
            "evil.com",
            "localhost.evil.com",
            "x2.localhost",
            "127.0.0.2",
            "",
            "10.0.0.1:8080",
            "localhost:80@evil.com",
            "localhost:x",
        ] {
            assert_eq!(hosts.check(&parts(&[("host", bad)])).unwrap_err().code, Code::Misdirected, "{bad}");
        }
        let everywhere = Hosts::new("0.0.0.0:8080".parse().unwrap(), &[], "x1.localhost");
        assert!(everywhere.check(&parts(&[("host", "10.0.0.1:8080")])).is_ok());
        assert!(everywhere.check(&parts(&[("host", "evil.com")])).is_err());
    }

    #[test]
    fn a_name_that_other_servers_share_is_told_from_one_of_its_own() {
        let hosts =
            Hosts::new("0.0.0.0:8080".parse().unwrap(), &["fern.example".to_string()], "x1.localhost");
        let place = |host| hosts.place(&parts(&[("host", host)])).unwrap().0;
        assert_eq!(place("x1.localhost:8080"), HostKind::Own);
        for shared in ["localhost:8080", "127.0.0.1", "127.8.8.8:8080", "[::1]:8080"] {
            assert_eq!(place(shared), HostKind::Loopback, "{shared}");
        }
        assert_eq!(place("fern.example"), HostKind::Named);
        assert_eq!(place("10.0.0.1:8080"), HostKind::Named);
    }

    #[test]
    fn a_page_of_another_site_cannot_write() {
        let check = |headers: &[(&str, &str)]| same_site(&parts(headers)).is_ok();
        assert!(check(&[("host", "localhost:80")]));
        assert!(check(&[("host", "localhost:80"), ("origin", "http://localhost:80")]));
        assert!(!check(&[("host", "localhost:80"), ("origin", "http://evil.com")]));
        assert!(!check(&[("host", "localhost:80"), ("origin", "null")]));
        assert!(!check(&[("host", "localhost:80"), ("sec-fetch-site", "cross-site")]));
        assert!(!check(&[("host", "localhost:80"), ("sec-fetch-site", "same-site")]));
    }

    #[test]
    fn a_token_in_the_url_is_refused_however_it_is_spelt() {
        for bad in ["token=x", "a=1&access_token=x", "TOKEN", "%74oken=x"] {
            assert!(no_token_in_query(Some(bad)).is_err(), "{bad}");
        }
        assert!(no_token_in_query(Some("tokens=1")).is_ok());
    }
}
