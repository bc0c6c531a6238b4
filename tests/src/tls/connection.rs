//! A TLS connection of a client, one step at a time.

use super::{Authority, Certificate};
use crate::http1::Response;
use crate::process::TIMEOUT;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

/// What a client shows of itself.
pub type ClientIdentity<'a> = Option<&'a Certificate>;

/// A client that trusts `authority` and offers these protocols. It resumes no sessions, so that
/// each connection sees the server's certificate.
pub fn client_config(
    authority: &Authority,
    identity: ClientIdentity<'_>,
    protocols: &[&str],
) -> Arc<ClientConfig> {
    let make = || -> Result<ClientConfig, Box<dyn std::error::Error>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes())?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = vec![CertificateDer::from_pem_slice(own.chain.as_bytes())?];
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes())?;
                builder.with_client_auth_cert(chain, key)?
            }
        };
        config.resumption = rustls::client::Resumption::disabled();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(config)
    };
    Arc::new(make().unwrap_or_else(|e| panic!("TLS of a client: {e}")))
}

/// An HTTP/1.1 connection over TLS.
pub struct TlsConnection(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl TlsConnection {
    /// Shakes hands.
    ///
    /// # Errors
    /// The server refuses, or is not trusted.
    pub fn open(address: &str, config: &Arc<ClientConfig>) -> io::Result<Self> {
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        let mut stream = StreamOwned::new(session, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self(BufReader::new(stream)))
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.get_mut().write_all(bytes.as_ref())?;
        self.0.get_mut().flush()
    }

    /// Reads one response; `None` if the server closes the connection instead.
    pub fn response(&mut self) -> io::Result<Option<Response>> {
        Response::read(&mut self.0)
    }

    /// Sends a request and reads its response.
    pub fn call(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<Response> {
        self.send(bytes)?;
        let closed = || io::Error::new(io::ErrorKind::UnexpectedEof, "closed without a response");
        self.response()?.ok_or_else(closed)
    }

    /// The server's certificate, DER.
    pub fn certificate(&self) -> Vec<u8> {
        let chain = self.0.get_ref().conn.peer_certificates().unwrap_or_default();
        chain.first().map(|first| first.to_vec()).unwrap_or_default()
    }

    /// The protocol that was agreed on.
    pub fn protocol(&self) -> Option<String> {
        let name = self.0.get_ref().conn.alpn_protocol()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Closes the sending side, and says so if `announced`.
    pub fn finish(&mut self, announced: bool) {
        let stream = self.0.get_mut();
        if announced {
            stream.conn.send_close_notify();
            let _ = stream.conn.complete_io(&mut stream.sock);
        }
        let _ = stream.sock.shutdown(Shutdown::Write);
    }
}
