//! Who can reach a server, and which settings that requires. A server that other machines can reach uses TLS, or the operator
//! says that a proxy does. Workers without a token are accepted from this machine only.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Whether the worker endpoints ask for a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerAuth {
    #[default]
    Token,
    /// Allowed on loopback only, and never for the streams of the pipeline.
    None,
}

/// The files of the certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain as PEM, the server's certificate first.
    pub cert: PathBuf,
    /// The private key as PEM; other users must not be able to read it.
    pub key: PathBuf,
}

/// The settings that decide who can reach a server.
#[derive(Clone, Copy, Debug)]
pub struct Exposure<'a> {
    pub listen: SocketAddr,
    /// Names that requests may use.
    pub allowed_hosts: &'a [String],
    /// A proxy in front of the server does TLS.
    pub insecure_http: bool,
    pub has_tls: bool,
    /// Whether the worker endpoints ask for a token.
    pub worker_auth: WorkerAuth,
}

/// A setting that is not safe in combination with the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsafeSetting {
    pub setting: &'static str,
    /// Why, and what to do instead.
    pub why: String,
}

impl Exposure<'_> {
    /// Why other machines can reach the server, in words; `None`: they cannot. A server on loopback can be reached through a proxy,
    /// or under a host name that is allowed.
    pub fn opened_by(&self) -> Option<String> {
        let listen = self.listen;
        match self.allowed_hosts.first() {
            _ if !listen.ip().is_loopback() => Some(format!("{listen} can be reached from other machines")),
            Some(name) => Some(format!("allowed_host lets others in under the name {name}")),
            None if self.insecure_http => {
                Some("insecure_http says that a proxy forwards requests of others".to_string())
            }
            None => None,
        }
    }

    /// Whether these settings are safe together.
    pub fn check(&self) -> Result<(), UnsafeSetting> {
        if let (WorkerAuth::None, Some(why)) = (self.worker_auth, self.opened_by()) {
            let why = format!(
                "`none` works on loopback only, and {why}; set it to `token` and give workers a token"
            );
            return Err(UnsafeSetting { setting: "worker_auth", why });
        }
        if !self.listen.ip().is_loopback() && !self.has_tls && !self.insecure_http {
            let why = format!(
                "{} can be reached from other machines: set tls_cert and tls_key, or insecure_http if a proxy does TLS",
                self.listen
            );
            return Err(UnsafeSetting { setting: "listen", why });
        }
        Ok(())
    }
}
