//! The files of a listener: read as one unit, checked, and made into a rustls configuration.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use trtserver_base::regular_file::read_regular_file;
use trtserver_config::TlsFiles;
use x509_cert::Certificate;
use x509_cert::der::Decode;

/// Larger files are not certificates.
const MAX_BYTES: u64 = 4 << 20;
/// Looks at files that change meanwhile.
const MAX_READS: usize = 5;

/// The contents of the files of a listener.
pub struct TlsContents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
    hash: [u8; 32],
}

/// What is served, until when.
pub struct ServedCertificate {
    pub config: ServerConfig,
    /// When the first certificate of the chain expires, in seconds since 1970.
    pub expires_at: i64,
}

impl TlsContents {
    /// Reads the files until two looks in a row find the same: a directory that is replaced between
    /// two files would give the certificate of one set and the key of another.
    ///
    /// # Errors
    /// Names the file and why it cannot be read.
    pub fn read(files: &TlsFiles) -> Result<Self, String> {
        let mut last = Self::read_once(files)?;
        for _ in 1..MAX_READS {
            let next = Self::read_once(files)?;
            if next.hash == last.hash {
                break;
            }
            last = next;
        }
        Ok(last)
    }

    fn read_once(files: &TlsFiles) -> Result<Self, String> {
        let certificate = read_file(CERTIFICATE, &files.certificate)?;
        let key = read_file(KEY, &files.key)?;
        let client_ca =
            files.client_ca.as_deref().map(|path| read_file(CLIENT_CA, path)).transpose()?;
        let mut hasher = Sha256::new();
        for part in [Some(&certificate), Some(&key), client_ca.as_ref()].into_iter().flatten() {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let hash = hasher.finalize().into();
        Ok(Self { certificate, key, client_ca, hash })
    }

    /// Equal for equal contents.
    pub fn hash(&self) -> [u8; 32] {
        self.hash
    }

    /// The configuration of a listener, without protocol names.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn configure(&self, files: &TlsFiles) -> Result<ServedCertificate, String> {
        let chain = certificates(CERTIFICATE, &files.certificate, &self.certificate)?;
        let expires_at = first_expiry(&chain)
            .map_err(|e| format!("{}: {e}", named(CERTIFICATE, &files.certificate)))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|_| {
            format!(
                "{}: expected a private key in PEM without a password (PKCS #8, PKCS #1 or SEC 1), found none",
                named(KEY, &files.key)
            )
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| format!("TLS versions: {e}"))?;
        let builder = match (&self.client_ca, &files.client_ca) {
            (Some(pem), Some(path)) => {
                let roots = Arc::new(root_store(path, pem)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|e| format!("{}: {e}", named(CLIENT_CA, path)))?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, key).map_err(|e| match e {
            rustls::Error::InconsistentKeys(_) => format!(
                "{} does not belong to the certificate {}",
                named(KEY, &files.key),
                files.certificate.display()
            ),
            e => format!(
                "{} with key {}: {e}",
                named(CERTIFICATE, &files.certificate),
                files.key.display()
            ),
        })?;
        Ok(ServedCertificate { config, expires_at })
    }
}

const CERTIFICATE: &str = "TLS certificate";
const KEY: &str = "TLS key";
const CLIENT_CA: &str = "TLS authorities of clients";

fn named(what: &str, path: &Path) -> String {
    format!("{what} {}", path.display())
}

fn read_file(what: &str, path: &Path) -> Result<Vec<u8>, String> {
    match read_regular_file(path, MAX_BYTES) {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(bytes)) => {
            Err(format!("{}: expected at most {MAX_BYTES} bytes, found {bytes}", named(what, path)))
        }
        Err(e) => Err(format!("{}: {e}", named(what, path))),
    }
}

fn certificates(
    what: &str,
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if found.is_empty() => {
            Err(format!("{}: expected certificates in PEM, found none", named(what, path)))
        }
        Ok(found) => Ok(found),
        Err(e) => Err(format!("{}: expected certificates in PEM: {e}", named(what, path))),
    }
}

fn root_store(path: &Path, pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(CLIENT_CA, path, pem)? {
        roots.add(certificate).map_err(|e| format!("{}: {e}", named(CLIENT_CA, path)))?;
    }
    Ok(roots)
}

fn first_expiry(chain: &[CertificateDer<'_>]) -> Result<i64, String> {
    let expiry = |der: &CertificateDer<'_>| {
        let certificate = Certificate::from_der(der).map_err(|e| e.to_string())?;
        let not_after = certificate.tbs_certificate().validity().not_after;
        Ok(i64::try_from(not_after.to_unix_duration().as_secs()).unwrap_or(i64::MAX))
    };
    let all = chain.iter().map(expiry).collect::<Result<Vec<i64>, String>>()?;
    Ok(all.into_iter().min().unwrap_or_default())
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;
