//! Which certificates to trust over HTTPS: those that the caller names, otherwise those of the system.

use super::ClientError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// The configuration of a connection; certificates are read only for HTTPS.
pub(super) fn config(secure: bool, ca: Option<&Path>) -> Result<ClientConfig, ClientError> {
    let mut roots = RootCertStore::empty();
    match ca {
        _ if !secure => {}
        Some(path) => {
            let refused = |why: String| ClientError::BadCa(format!("{}: {why}", path.display()));
            for certificate in CertificateDer::pem_file_iter(path).map_err(|e| refused(e.to_string()))? {
                let certificate = certificate.map_err(|e| refused(e.to_string()))?;
                roots.add(certificate).map_err(|e| refused(e.to_string()))?;
            }
            if roots.is_empty() {
                return Err(refused("it contains no certificate".into()));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| ClientError::BadCa(e.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
