//! Sends a notice as a signed call to a URL. The operator of the server decides which hosts may be called; the author of a
//! blueprint, who chooses the URL, does not.
//!
//! A name is resolved once. All of its addresses are checked, and the connection goes to one of them: a name that resolves
//! differently a moment later has no effect.

use super::NotSent;
use crate::outgoing::address::{Reach, reach};
use crate::outgoing::{Broken, Target};
use bytes::Bytes;
use fernery_core::Timestamp;
use fernery_engine::door;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, HeaderValue, StatusCode};
use sha2::Sha256;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tokio_rustls::rustls::RootCertStore;

/// How long a call may take, from resolving the name to the end of the answer.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read, so that a receiver is not cut off in the middle of an ordinary one.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Who is told.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its path may be a secret: no error contains it.
    pub url: String,
    /// The secret that calls are signed with.
    pub secret: String,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhook(…)")
    }
}

/// The hosts that the operator of the server allows. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Hosts, each `host` (on the port of the scheme) or `host:port`; an IPv6 address in brackets. A name does
    /// not cover its subdomains.
    pub hosts: Vec<String>,
    /// Whether private and loopback addresses, and calls without TLS, are allowed.
    pub private_addresses: bool,
}

/// What a test may replace.
struct Means {
    within: Duration,
    now: Timestamp,
    /// Certificates to trust instead of the system's.
    trusted: Option<RootCertStore>,
}

/// Sends `body` to a webhook.
pub async fn send(webhook: &Webhook, allowed: &Allowed, notice_id: &str, body: &[u8]) -> Result<(), NotSent> {
    let means = Means { within: TOLD_WITHIN, now: door::wall_clock(), trusted: None };
    send_by(means, webhook, allowed, notice_id, body).await
}

async fn send_by(
    means: Means,
    webhook: &Webhook,
    allowed: &Allowed,
    notice_id: &str,
    body: &[u8],
) -> Result<(), NotSent> {
    let target = admitted(webhook, allowed)?;
    let headers = signed(webhook, notice_id, means.now, body)?;
    let body = Bytes::copy_from_slice(body);
    let call = async {
        let addresses = target.addresses().await.map_err(NotSent::Later)?;
        judge(&target, &addresses, allowed)?;
        target.post(&addresses, means.trusted, headers, body).await.map_err(|broken| {
            let (Broken::Unreachable(why) | Broken::Lost(why)) = broken;
            NotSent::Later(format!("cannot reach {}: {why}", target.host))
        })
    };
    let ends_at = tokio::time::Instant::now() + means.within;
    let mut call = tokio::time::timeout_at(ends_at, call).await.unwrap_or_else(|_| {
        let within = means.within;
        Err(NotSent::Later(format!("{} has not answered within {within:?}", target.host)))
    })?;
    // The status alone decides: even if the rest of the answer is lost, an accepted notice is not sent again.
    let _ = tokio::time::timeout_at(ends_at, call.body(ANSWER_BYTES_MAX)).await;
    meaning(&target.host, call.response.status())
}

/// The target of the call, if its host name is allowed.
fn admitted(webhook: &Webhook, allowed: &Allowed) -> Result<Target, NotSent> {
    let refused = |why: String| Err(NotSent::Refused(why));
    let target = match Target::parse(&webhook.url) {
        Ok(target) => target,
        Err(why) => return refused(format!("the webhook's URL cannot be used: {why}")),
    };
    let named = format!("{}:{}", target.host, target.port);
    let listed = allowed.hosts.iter().any(|host| {
        host.eq_ignore_ascii_case(&named)
            || target.has_default_port() && host.eq_ignore_ascii_case(&target.host)
    });
    if !listed {
        return refused(format!("{named} is not among the hosts that webhooks may call"));
    }
    if !target.secure && !allowed.private_addresses {
        return refused(format!("{named} would be called without TLS; use https"));
    }
    Ok(target)
}

/// Whether all addresses of a name may be called; one forbidden address forbids the whole name.
fn judge(target: &Target, addresses: &[SocketAddr], allowed: &Allowed) -> Result<(), NotSent> {
    for address in addresses {
        let kind = match reach(address.ip()) {
            Reach::Public => continue,
            Reach::Nearby(_) if allowed.private_addresses => continue,
            Reach::Nearby(kind) | Reach::Nowhere(kind) => kind,
        };
        let (host, address) = (&target.host, address.ip());
        return Err(NotSent::Refused(format!(
            "{host} resolves to {address}, which webhooks may not call ({kind})"
        )));
    }
    Ok(())
}

fn signed(
    webhook: &Webhook,
    notice_id: &str,
    now: Timestamp,
    body: &[u8],
) -> Result<Vec<(HeaderName, HeaderValue)>, NotSent> {
    let unusable = |what: &str| NotSent::Refused(what.to_string());
    if webhook.secret.is_empty() {
        return Err(unusable("the webhook has no secret to sign with"));
    }
    let timestamp = (now.as_millis() / 1_000).to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(webhook.secret.as_bytes())
        .map_err(|_| unusable("the webhook's secret cannot be used"))?;
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    let signature = fernery_core::hex(&mac.finalize().into_bytes());
    let header = |name, value: &str| {
        let value = HeaderValue::from_str(value).map_err(|_| unusable("the notice's id cannot be sent"))?;
        Ok((HeaderName::from_static(name), value))
    };
    Ok(vec![
        header("fernery-notice-id", notice_id)?,
        header("fernery-timestamp", &timestamp)?,
        header("fernery-signature", &format!("v1={signature}"))?,
    ])
}

fn meaning(host: &str, status: StatusCode) -> Result<(), NotSent> {
    let said = format!("{host} answered {}", status.as_u16());
    match status {
        _ if status.is_success() => Ok(()),
        _ if status.is_redirection() => {
            Err(NotSent::Refused(format!("{said}: redirects are not followed; use the target URL")))
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Err(NotSent::Later(said)),
        _ if status.is_client_error() => Err(NotSent::Refused(said)),
        _ => Err(NotSent::Later(said)),
    }
}

#[cfg(test)]
mod tests;
