use super::*;
use crate::outgoing::scripted::{Act, Asked, Scripted, answer};
use rustls_pki_types::PrivateKeyDer;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

const SECRET: &str = "whsec_fern";
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_999);

fn webhook(url: String) -> Webhook {
    Webhook { url, secret: SECRET.into() }
}

fn allowed(hosts: &[&str], private_addresses: bool) -> Allowed {
    Allowed { hosts: hosts.iter().map(ToString::to_string).collect(), private_addresses }
}

fn means(within: Duration, trusted: Option<RootCertStore>) -> Means {
    Means { within, now: NOW, trusted }
}

/// Tells a notice to a server that acts so, on this machine and allowed.
async fn told(act: Act, within: Duration) -> (Result<(), NotSent>, Vec<Asked>) {
    let mut server = Scripted::start(vec![act]).await;
    let allowed = allowed(&[&server.address.to_string()], true);
    let webhook = webhook(server.url("/hooks/topsecret"));
    let told = send_by(means(within, None), &webhook, &allowed, "n-1", b"{\"a\":1}").await;
    (told, server.requests())
}

fn refused(told: Result<(), NotSent>) -> String {
    match told {
        Err(NotSent::Refused(why)) => why,
        other => panic!("it was not refused: {other:?}"),
    }
}

fn later(told: Result<(), NotSent>) -> String {
    match told {
        Err(NotSent::Later(why)) => why,
        other => panic!("it is not for later: {other:?}"),
    }
}

#[tokio::test]
async fn a_receiver_can_check_who_speaks() {
    let (told, asked) = told(answer(204, "", ""), TOLD_WITHIN).await;
    assert_eq!(told, Ok(()));
    let [asked] = &asked[..] else { panic!("one call: {asked:?}") };
    assert!(asked.head.starts_with("POST /hooks/topsecret HTTP/1.1\r\n"), "{}", asked.head);
    assert_eq!(asked.header("fernery-notice-id"), Some("n-1"));
    assert_eq!(asked.header("fernery-timestamp"), Some("1700000000"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(asked.header("user-agent"), Some(concat!("fernery/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(asked.body, b"{\"a\":1}");
    // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac whsec_fern
    assert_eq!(
        asked.header("fernery-signature"),
        Some("v1=fc3fb85642276e7407f07cd1f9853349f90a16274859997ffce76eefcc007916")
    );
}

#[tokio::test]
async fn the_status_says_whether_another_try_can_help() {
    for status in [200, 201, 202, 204, 299] {
        assert_eq!(told(answer(status, "", ""), TOLD_WITHIN).await.0, Ok(()), "{status}");
    }
    for status in [400, 401, 403, 404, 410, 422] {
        let why = refused(told(answer(status, "", "no"), TOLD_WITHIN).await.0);
        assert!(why.contains(&status.to_string()) && !why.contains("topsecret"), "{why}");
    }
    for status in [408, 429, 500, 502, 503, 504] {
        let why = later(told(answer(status, "", "no"), TOLD_WITHIN).await.0);
        assert!(why.contains(&status.to_string()), "{why}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let mut elsewhere = Scripted::start(vec![answer(204, "", "")]).await;
        let location = format!("location: {}\r\n", elsewhere.url("/"));
        let why = refused(told(answer(status, &location, ""), TOLD_WITHIN).await.0);
        assert!(why.contains("redirects are not followed"), "{why}");
        assert_eq!(elsewhere.requests().len(), 0);
    }
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_times_out() {
    let (told, asked) = told(Act::Silence, Duration::from_secs(1)).await;
    let why = later(told);
    assert!(why.contains("has not answered within 1s"), "{why}");
    assert_eq!(asked.len(), 1);
}

#[tokio::test]
async fn a_notice_with_a_good_status_is_delivered_whatever_follows() {
    let cut = Act::Say(b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\nhalf".to_vec());
    assert_eq!(told(cut, TOLD_WITHIN).await.0, Ok(()));
    let long = answer(200, "", &"x".repeat(4 << 20));
    assert_eq!(told(long, TOLD_WITHIN).await.0, Ok(()));
}

#[tokio::test]
async fn an_unreachable_or_invalid_webhook_is_retried_later() {
    for bytes in ["", "HTTP/1.1 2", "SSH-2.0-OpenSSH\r\n\r\n"] {
        later(told(Act::Say(bytes.into()), TOLD_WITHIN).await.0);
    }
    let closed = Scripted::start(vec![Act::Silence]).await.address;
    let webhook = webhook(format!("http://{closed}/topsecret"));
    let why = later(send(&webhook, &allowed(&[&closed.to_string()], true), "n", b"{}").await);
    assert!(!why.contains("topsecret"), "{why}");
}

#[tokio::test]
async fn only_what_the_operator_lists_is_called() {
    let mut server = Scripted::start(vec![answer(204, "", "")]).await;
    let port = server.address.port();
    let (here, other) = (format!("http://127.0.0.1:{port}/"), port ^ 1);
    let lists = [vec![], vec!["127.0.0.1".to_string()], vec![format!("127.0.0.1:{other}")], vec!["*".into()]];
    for hosts in lists {
        let allowed = Allowed { hosts, private_addresses: true };
        let why = refused(send(&webhook(here.clone()), &allowed, "n", b"{}").await);
        assert!(why.contains(&format!("127.0.0.1:{port} is not among the hosts")), "{why}");
    }
    for (url, hosts, admits) in [
        ("https://Hooks.Example/x", "hooks.example", true),
        ("https://hooks.example:443/x", "hooks.example", true),
        ("https://hooks.example/x", "hooks.example:443", true),
        ("https://hooks.example:8443/x", "hooks.example", false),
        ("https://hooks.example:8443/x", "hooks.example:8443", true),
        ("https://a.hooks.example/", "hooks.example", false),
        ("https://hooks.example.evil.example/", "hooks.example", false),
        ("https://hooks.example./", "hooks.example", false),
        ("https://hooks.example@evil.example/", "hooks.example", false),
        ("https://[2606:4700::1111]/", "[2606:4700::1111]", true),
    ] {
        let found = admitted(&webhook(url.into()), &allowed(&[hosts], false));
        assert_eq!(found.is_ok(), admits, "{url} by {hosts}: {found:?}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_private_address_is_not_called_whatever_it_is_named() {
    let mut server = Scripted::start(vec![answer(204, "", "")]).await;
    let port = server.address.port();
    for host in
        ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"]
    {
        let named = format!("{host}:{port}");
        let told = send(&webhook(format!("https://{named}/")), &allowed(&[&named], false), "n", b"{}").await;
        match told {
            Err(NotSent::Refused(why)) => assert!(why.contains("may not call"), "{why}"),
            // Where a system does not take a number for an address.
            Err(NotSent::Later(why)) => assert!(why.contains("has no address"), "{why}"),
            Ok(()) => panic!("{host} was called"),
        }
    }
    let why = refused(
        send(&webhook(server.url("/")), &allowed(&[&server.address.to_string()], false), "n", b"{}").await,
    );
    assert!(why.contains("without TLS"), "{why}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn one_forbidden_address_forbids_the_whole_name() {
    let target = Target::parse("https://hooks.example/").expect("a URL");
    let judged = |addresses: &[&str], private| {
        let addresses: Vec<SocketAddr> = addresses.iter().map(|a| a.parse().expect("an address")).collect();
        judge(&target, &addresses, &allowed(&[], private))
    };
    assert_eq!(judged(&["8.8.8.8:443", "[2606:4700::1111]:443"], false), Ok(()));
    assert!(refused(judged(&["8.8.8.8:443", "10.0.0.1:443"], false)).contains("10.0.0.1"));
    assert_eq!(judged(&["10.0.0.1:443", "127.0.0.1:443", "[fd00::1]:443"], true), Ok(()));
    assert!(refused(judged(&["224.0.0.1:443"], true)).contains("multicast"), "nobody has it");
}

#[tokio::test]
async fn what_cannot_be_signed_or_sent_is_refused() {
    let server = Scripted::start(vec![answer(204, "", "")]).await;
    let allowed = allowed(&[&server.address.to_string()], true);
    let nameless = Webhook { url: server.url("/"), secret: String::new() };
    assert!(refused(send(&nameless, &allowed, "n", b"{}").await).contains("no secret"));
    let webhook = webhook(server.url("/"));
    assert!(refused(send(&webhook, &allowed, "n\r\nx: y", b"{}").await).contains("id"));
    assert_eq!(format!("{webhook:?}"), "Webhook(…)");
}

/// A certificate of its own for a name, and a server's side of it.
fn certificate(name: &str) -> (RootCertStore, TlsAcceptor) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(vec![name.to_string()]).expect("params");
    let certificate = params.self_signed(&key).expect("signed");
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).expect("a root");
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("a configuration");
    (roots, TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn over_tls_the_certificate_must_be_the_hosts_own() {
    for (name, trusts, fits) in
        [("localhost", true, true), ("other.example", true, false), ("localhost", false, false)]
    {
        let (roots, acceptor) = certificate(name);
        let mut server = Scripted::start_with(vec![answer(204, "", "")], Some(acceptor)).await;
        let host = format!("localhost:{}", server.address.port());
        let trusted = if trusts { roots } else { certificate(name).0 };
        let means = means(TOLD_WITHIN, Some(trusted));
        let webhook = webhook(format!("https://{host}/"));
        let told = send_by(means, &webhook, &allowed(&[&host], true), "n", b"{}").await;
        assert_eq!(told.is_ok(), fits, "{name}: {told:?}");
        assert_eq!(server.requests().len(), usize::from(fits), "{name}");
        if !fits {
            assert!(later(told).contains("certificate"), "it says why");
        }
    }
}
