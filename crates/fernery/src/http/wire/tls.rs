//! TLS from two PEM files, checked when the server starts rather than when the first client fails.

use crate::config::TlsFiles;
use fernery_core::Timestamp;
use fernery_engine::door;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

/// Reads and checks both files.
pub fn acceptor(files: &TlsFiles) -> io::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| refuse(&files.cert, &error.to_string()))?;
    let Some(own) = chain.first() else { return Err(refuse(&files.cert, "it contains no certificate")) };
    let (from, until) =
        validity(own).ok_or_else(|| refuse(&files.cert, "its first certificate cannot be read"))?;
    let now = door::wall_clock();
    if now >= until {
        return Err(refuse(&files.cert, &format!("the certificate expired at {until}")));
    }
    if now < from {
        return Err(refuse(&files.cert, &format!("the certificate is not valid before {from}")));
    }
    let mode =
        std::fs::metadata(&files.key).map_err(|e| refuse(&files.key, &e.to_string()))?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(refuse(&files.key, "everybody can read the key; set its mode to 0600"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|e| refuse(&files.key, &e.to_string()))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| {
            refuse(&files.key, &format!("the key does not belong to the certificate: {error}"))
        })?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn refuse(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {what}", path.display()))
}

/// The validity of a certificate. Parses only as much of the DER encoding as is needed.
fn validity(certificate: &[u8]) -> Option<(Timestamp, Timestamp)> {
    const SEQUENCE: u8 = 0x30;
    const VERSION: u8 = 0xa0;
    let (tag, certificate, _) = element(certificate)?;
    let (inner_tag, mut fields, _) = element(certificate)?;
    if tag != SEQUENCE || inner_tag != SEQUENCE {
        return None;
    }
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (SEQUENCE, dates, _) = element(fields)? else { return None };
    let (from_tag, from, rest) = element(dates)?;
    let (until_tag, until, _) = element(rest)?;
    Some((instant(from_tag, from)?, instant(until_tag, until)?))
}

/// The first element's tag and content, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

fn instant(tag: u8, text: &[u8]) -> Option<Timestamp> {
    const UTC_TIME: u8 = 0x17;
    const GENERALIZED_TIME: u8 = 0x18;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match tag {
        // Two-digit years: 50 to 99 are in the last century.
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_string(),
        _ => return None,
    };
    let part = |from: usize, to: usize| text.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    if year >= "9998" {
        return Some(Timestamp::from_millis(i64::MAX));
    }
    if year < "1970" {
        return Some(Timestamp::from_millis(0));
    }
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()
}
