//! TLS towards the database: how much of the server's certificate is checked.

use crate::error::{StoreError, StoreResult};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    /// Nothing: the connection is encrypted, to whoever answers.
    Nothing,
    /// That a known authority signed the certificate.
    Authority,
    /// That, and that it names this host.
    AuthorityAndName,
}

pub(crate) fn connector(verify: Verify, root_cert: Option<&Path>) -> StoreResult<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let refused = |e: &dyn std::fmt::Display| StoreError::Refused(format!("TLS cannot be set up: {e}"));
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| refused(&e))?;
    let authority = match verify {
        Verify::Nothing => None,
        _ => {
            let roots = Arc::new(roots(root_cert)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
            Some(verifier.build().map_err(|e| refused(&e))?)
        }
    };
    let verifier: Arc<dyn ServerCertVerifier> = match (verify, authority) {
        (Verify::AuthorityAndName, Some(authority)) => authority,
        (_, authority) => Arc::new(NameUnchecked { authority, provider }),
    };
    Ok(MakeRustlsConnect::new(
        builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth(),
    ))
}

fn roots(file: Option<&Path>) -> StoreResult<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) if path.as_os_str() != "system" => {
            let refused = |e: &dyn std::fmt::Display| {
                StoreError::Refused(format!("cannot use sslrootcert {}: {e}", path.display()))
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| refused(&e))? {
                roots.add(certificate.map_err(|e| refused(&e))?).map_err(|e| refused(&e))?;
            }
            if roots.is_empty() {
                return Err(refused(&"it contains no certificate"));
            }
        }
        _ => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(StoreError::Refused(
                    "the system has no trusted certificates; name a file with sslrootcert".into(),
                ));
            }
        }
    }
    Ok(roots)
}

/// Checks less than a browser would, as the URL asks for. The handshake itself is always checked: whoever answers holds
/// the key of the certificate it shows.
#[derive(Debug)]
struct NameUnchecked {
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for NameUnchecked {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last: whoever gets this far is signed by the authority.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
