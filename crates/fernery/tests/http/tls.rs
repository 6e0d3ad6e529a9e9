//! TLS: what is refused at the start, and that the rest works.

use crate::server;
use crate::server::TestServer;
use fernery::http::{ServeSettings, TlsFiles, serve};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

fn write(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
    path
}

/// A certificate of its own for `localhost`, from the first day of one year to that of another, and its key.
fn made(years: (i32, i32)) -> (rcgen::Certificate, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_string()]).expect("params");
    params.not_before = rcgen::date_time_ymd(years.0, 1, 1);
    params.not_after = rcgen::date_time_ymd(years.1, 1, 1);
    (params.self_signed(&key).expect("signed"), key.serialize_pem())
}

fn settings(cert: PathBuf, key: PathBuf) -> ServeSettings {
    let tls = Some(TlsFiles { cert, key });
    ServeSettings { tls, ..ServeSettings::new("127.0.0.1:0".parse().expect("an address")) }
}

#[tokio::test]
async fn a_certificate_that_cannot_work_is_refused_at_the_start() {
    let server = TestServer::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str, mode: u32| write(folder.path(), name, text, mode);
    let (good, key) = made((2020, 2090));
    let (expired, expired_key) = made((2020, 2021));
    let (early, early_key) = made((2080, 2090));
    let good = write("good.pem", &good.pem(), 0o644);
    let key_path = write("key.pem", &key, 0o600);
    let cases = [
        (good.clone(), write("other.pem", &expired_key, 0o600), "does not belong to"),
        (write("expired.pem", &expired.pem(), 0o644), write("expired.key", &expired_key, 0o600), "expired"),
        (write("early.pem", &early.pem(), 0o644), write("early.key", &early_key, 0o600), "not valid before"),
        (good, write("open.pem", &key, 0o644), "everybody can read"),
        (write("empty.pem", "", 0o644), key_path.clone(), "no certificate"),
        (folder.path().join("missing.pem"), key_path, "missing.pem"),
    ];
    for (cert, key, words) in cases {
        let refused = serve(settings(cert, key), server.engine.clone()).await.expect_err(words);
        assert!(refused.to_string().contains(words), "{refused}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_trusts_the_certificate_is_served() {
    let server = TestServer::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (cert, key) = made((2020, 2090));
    let files = (write(folder.path(), "c", &cert.pem(), 0o644), write(folder.path(), "k", &key, 0o640));
    let running = serve(settings(files.0, files.1), server.engine.clone()).await.expect("a server");
    assert!(running.url().starts_with("https://127.0.0.1:"));

    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = tokio::net::TcpStream::connect(running.local_addr).await.expect("a connection");
    let name = "localhost".try_into().expect("a name");
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.expect("a handshake");
    let bearer = format!("Bearer {}", server.operator);
    let asked = server::request("GET", "/v1/whoami", &[("authorization", &bearer)], "");
    stream.write_all(asked.as_bytes()).await.expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("an answer");
    let answer = server::parse(&text);
    assert_eq!((answer.status, answer.json()["role"].as_str()), (200, Some("operator")));

    // Plain HTTP to a TLS port gets nothing, and costs nothing.
    let mut plain = tokio::net::TcpStream::connect(running.local_addr).await.expect("a connection");
    plain.write_all(asked.as_bytes()).await.expect("sent");
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest).await;
    assert!(!String::from_utf8_lossy(&rest).contains("HTTP/1.1 200"));
    running.shutdown().await;
    server.stop().await;
}
