//! TLS settings made into a rustls connector.

use super::connect::AsyncSocket;
use super::no_sigpipe::NoSignal;
use crate::address::{ServerAddress, SocketTarget};
use crate::error::{Error, Result};
use crate::settings::{Protocol, Settings, Tls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The settings of TLS connections to one server, for rustls.
#[derive(Clone, Debug)]
pub struct TlsClient {
    /// Certificates, keys and protocols.
    pub config: Arc<ClientConfig>,
    /// The name that the certificate must have.
    pub server_name: ServerName<'static>,
}

/// `None` for plain connections.
pub(crate) fn tls_client(
    address: &ServerAddress,
    settings: &Settings,
) -> Result<Option<TlsClient>> {
    match &address.target {
        SocketTarget::Tcp { host, .. } if address.tls => {
            let default = Tls::default();
            settings.tls.as_ref().unwrap_or(&default).client(host, address.protocol).map(Some)
        }
        _ => Ok(None),
    }
}

impl TlsClient {
    pub(super) async fn encrypt(
        &self,
        stream: NoSignal<TcpStream>,
    ) -> io::Result<Box<dyn AsyncSocket>> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        Ok(Box::new(connector.connect(self.server_name.clone(), stream).await?))
    }
}

impl Tls {
    /// TLS for programs with connections of their own.
    ///
    /// # Errors
    /// A certificate, key or name is invalid; the message says which.
    pub fn client(&self, host: &str, protocol: Protocol) -> Result<TlsClient> {
        let name = self.server_name.as_deref().unwrap_or(host).to_owned();
        let server_name = ServerName::try_from(name).map_err(|e| wrong("server name", e))?;
        Ok(TlsClient { config: Arc::new(client_config(self, protocol)?), server_name })
    }
}

fn client_config(tls: &Tls, protocol: Protocol) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| wrong("versions", e))?;
    let builder = if tls.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
    } else {
        builder.with_root_certificates(root_store(tls)?)
    };
    let mut config = match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => {
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| wrong("key", e))?;
            builder
                .with_client_auth_cert(read_certificates("certificate", certificate)?, key)
                .map_err(|e| wrong("certificate", e))?
        }
        (None, None) => builder.with_no_client_auth(),
        _ => return Err(wrong("certificate", "a certificate and its key belong together")),
    };
    config.alpn_protocols = vec![match protocol {
        Protocol::Http => b"http/1.1".to_vec(),
        Protocol::Grpc => b"h2".to_vec(),
    }];
    Ok(config)
}

fn wrong(what: &str, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("TLS {what}: {why}"))
}

fn read_certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let all: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|e| wrong(what, e))?;
    if all.is_empty() {
        return Err(wrong(what, "no certificate in the PEM text"));
    }
    Ok(all)
}

fn root_store(tls: &Tls) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = &tls.authorities {
        for certificate in read_certificates("authorities", pem)? {
            roots.add(certificate).map_err(|e| wrong("authorities", e))?;
        }
        return Ok(roots);
    }
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if roots.is_empty() {
        return Err(wrong("authorities", "this system has none; name a file of certificates"));
    }
    Ok(roots)
}

/// Verifies signatures, but not whose certificate it is.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
