//! Calls to the outside: one HTTP/1.1 request over one connection of its own.
//!
//! The caller decides. It sees the addresses of a name before a connection is made ([`address`](super::address) classifies them).
//! The connection goes to those addresses only, and certificates are checked against the name. Redirects are not followed,
//! proxies from the environment are not used, and nothing is sent twice. The caller also limits the time: dropping a call
//! closes its connection.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

/// How long to wait for a connection to one address before the next is tried.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// How many addresses of a name are tried.
const ADDRESSES_MAX: usize = 4;

/// Where a call goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Over HTTPS.
    pub(crate) secure: bool,
    /// The host as it was written, an IPv6 address in its brackets.
    pub(crate) host: String,
    /// The port, named or not.
    pub(crate) port: u16,
    authority: String,
    path: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Nothing was sent.
    Unreachable(String),
    /// The connection broke after the request was sent: it may have been carried out.
    Lost(String),
}

/// An answer whose body is still to be read.
pub(crate) struct Call {
    pub(crate) response: Response<Incoming>,
    /// The connection; it is closed when the call is dropped.
    _connection: JoinSet<()>,
}

impl Target {
    /// Reads a URL. Errors do not contain it: its path may be a secret.
    pub(crate) fn parse(url: &str) -> Result<Self, &'static str> {
        let secure = match url.split_once("://") {
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("https") => true,
            Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => false,
            _ => return Err("it begins with neither https:// nor http://"),
        };
        let uri: Uri = url.parse().map_err(|_| "it is not a URL")?;
        let authority = uri.authority().ok_or("it names no host")?.as_str();
        if authority.contains('@') {
            return Err("it carries a user or a password");
        }
        if url.contains('#') {
            return Err("it carries a fragment");
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or("it names no host")?;
        let port = match authority.strip_prefix(host) {
            Some("") => Self::default_port(secure),
            // An invalid port must not become the default port.
            Some(rest) => rest
                .strip_prefix(':')
                .and_then(|port| port.parse().ok())
                .filter(|port| *port > 0)
                .ok_or("its port is invalid")?,
            None => return Err("its host is invalid"),
        };
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let (host, authority, path) = (host.to_string(), authority.to_string(), path.to_string());
        Ok(Self { secure, host, port, authority, path })
    }

    fn default_port(secure: bool) -> u16 {
        if secure { 443 } else { 80 }
    }

    /// Whether the port is the default port of the scheme.
    pub(crate) fn has_default_port(&self) -> bool {
        self.port == Self::default_port(self.secure)
    }

    /// Whether the host is written as this machine: exactly `localhost`, or a loopback address. Other names are not resolved
    /// here.
    pub(crate) fn is_this_machine(&self) -> bool {
        let host = self.bare_host();
        host.eq_ignore_ascii_case("localhost")
            || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }

    fn bare_host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// All addresses that the host has now.
    pub(crate) async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let found = tokio::net::lookup_host((self.bare_host(), self.port)).await;
        let found: Vec<SocketAddr> =
            found.map_err(|error| format!("{} has no address: {error}", self.host))?.collect();
        if found.is_empty() { Err(format!("{} has no address", self.host)) } else { Ok(found) }
    }

    /// Posts a body to the first of these addresses that accepts a connection. `trusted` replaces the system's certificates.
    pub(crate) async fn post(
        &self,
        addresses: &[SocketAddr],
        trusted: Option<RootCertStore>,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<Call, Broken> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header(header::HOST, &self.authority)
            .header(header::USER_AGENT, concat!("fernery/", env!("CARGO_PKG_VERSION")))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request =
            request.body(Full::new(body)).map_err(|error| Broken::Unreachable(error.to_string()))?;
        let tls = if self.secure { Some(self.tls(trusted).await?) } else { None };
        let tcp = self.connect(addresses).await?;
        let Some((connector, name)) = tls else { return speak(tcp, request).await };
        let stream = connector.connect(name, tcp).await.map_err(|error| {
            let why = innermost(&error);
            Broken::Unreachable(format!("TLS connection with {} failed: {why}", self.host))
        })?;
        speak(stream, request).await
    }

    async fn connect(&self, addresses: &[SocketAddr]) -> Result<TcpStream, Broken> {
        let mut why = format!("{} has no address", self.host);
        for address in addresses.iter().take(ADDRESSES_MAX) {
            match timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => {
                    let _ = tcp.set_nodelay(true);
                    return Ok(tcp);
                }
                Ok(Err(error)) => why = format!("cannot connect to {address}: {error}"),
                Err(_) => why = format!("cannot connect to {address} within {CONNECT_WITHIN:?}"),
            }
        }
        Err(Broken::Unreachable(why))
    }

    async fn tls(
        &self,
        trusted: Option<RootCertStore>,
    ) -> Result<(TlsConnector, ServerName<'static>), Broken> {
        let unusable = |why: String| Broken::Unreachable(format!("TLS with {} failed: {why}", self.host));
        let name = ServerName::try_from(self.bare_host().to_string())
            .map_err(|_| unusable("no certificate can have this name".into()))?;
        let roots = match trusted {
            Some(roots) => roots,
            None => tokio::task::spawn_blocking(of_the_system).await.map_err(|e| unusable(e.to_string()))?,
        };
        if roots.is_empty() {
            return Err(unusable("this system has no certificates to trust; install ca-certificates".into()));
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok((TlsConnector::from(Arc::new(config)), name))
    }
}

/// Read for every call, so that a renewed store needs no restart.
fn of_the_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Call, Broken> {
    let lost = |error: hyper::Error| Broken::Lost(innermost(&error));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    let mut driving = JoinSet::new();
    driving.spawn(async move { drop(connection.await) });
    let response = sender.send_request(request).await.map_err(lost)?;
    Ok(Call { response, _connection: driving })
}

impl Call {
    /// The body; `None` if it has more than `max` bytes. The rest is then not read.
    pub(crate) async fn body(&mut self, max: usize) -> Result<Option<Vec<u8>>, Broken> {
        let mut bytes = Vec::new();
        while let Some(frame) = self.response.body_mut().frame().await {
            let frame = frame.map_err(|error| Broken::Lost(innermost(&error)))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > max {
                return Ok(None);
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Some(bytes))
    }
}

/// The root cause of an error.
fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_host_port_and_path_or_what_is_wrong_with_it() {
        let target = Target::parse("https://a.example/x/y?z=1").expect("a URL");
        assert_eq!((&*target.host, target.port, &*target.path), ("a.example", 443, "/x/y?z=1"));
        let target = Target::parse("http://[::1]:8080").expect("a URL");
        assert_eq!((target.bare_host(), target.port, &*target.path), ("::1", 8080, "/"));
        assert!(!target.has_default_port());
        for (url, why) in [
            ("", "neither"),
            ("https://a b/", "not a URL"),
            ("/path", "neither"),
            ("ftp://a.example/", "neither"),
            ("a.example:443", "neither"),
            ("https://user:secret@a.example/", "user or a password"),
            ("https://a.example/#x", "fragment"),
            ("https://a.example:99999/", "port"),
            ("https://a.example:0/", "port"),
            ("https://a.example:/", "port"),
            ("https:///x", "not a URL"),
        ] {
            let told = Target::parse(url).expect_err(url);
            assert!(told.contains(why), "{url}: {told}");
        }
    }
}
