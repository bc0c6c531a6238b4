//! Unit tests of `handshake.rs`: how handshakes end, on loopback sockets.

use super::super::certificates::TlsContents;
use super::super::testing::{MountedSecret, TestAuthority};
use super::*;
use crate::connections::{Connections, Timeouts};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsConnector;
use trtserver_base::budget::OpenCallLimit;

struct Pki {
    authority: TestAuthority,
    stranger: TestAuthority,
    mutual: TlsEndpoint,
}

fn pki() -> Pki {
    let (authority, stranger) = (TestAuthority::new("ours"), TestAuthority::new("theirs"));
    let server = authority.issue(2040);
    let files =
        [("tls.crt", &*server.certificate), ("tls.key", &server.key), ("ca.crt", &authority.pem())];
    let secret = MountedSecret::new(&files);
    let files = secret.files(true);
    let served = TlsContents::read(&files).unwrap().configure(&files).unwrap();
    let mutual = TlsEndpoint::new("http", Wire::Http1, served.config);
    Pki { authority, stranger, mutual }
}

/// A client that trusts `authority`, shows a certificate of `shows`, and offers a protocol.
fn client(
    authority: &TestAuthority,
    shows: Option<&TestAuthority>,
    protocol: &str,
) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder =
        builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let mut config = match shows.map(|authority| authority.issue(2040)) {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let chain = vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Whether the handshake with `client` succeeds, and how many failures of each kind were counted.
/// With `is_ended` the connection is ordered to end meanwhile.
async fn outcome<F: Future<Output = ()>>(
    endpoint: &TlsEndpoint,
    is_ended: bool,
    client: impl FnOnce(TcpStream) -> F,
) -> (bool, [u64; 4]) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connected = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let timeouts = Timeouts::default();
    let connections = Connections::new(1, 1, timeouts, OpenCallLimit::leak(usize::MAX));
    let entry = connections.add(Wire::Http1);
    let before = HandshakeFailure::ALL.map(|failure| endpoint.stats().failures(failure));
    let accepted = async {
        let mut stream = endpoint.accept(stream, entry.state()).await;
        if let Some(stream) = &mut stream {
            let _ = stream.write_all(b"hello").await;
            let _ = stream.flush().await;
        }
        stream.is_some()
    };
    let order = async {
        if is_ended {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            connections.end_all(std::time::Duration::ZERO).await;
        }
    };
    let (accepted, (), ()) = tokio::join!(accepted, client(connected), order);
    let after = HandshakeFailure::ALL.map(|failure| endpoint.stats().failures(failure));
    (accepted, std::array::from_fn(|i| after[i] - before[i]))
}

#[tokio::test]
async fn handshakes_succeed_or_are_counted_by_reason() {
    let Pki { authority, stranger, mutual } = pki();
    let name = || ServerName::try_from("localhost").unwrap();
    let shake = |connector: TlsConnector| {
        |stream: TcpStream| async move {
            if let Ok(mut stream) = connector.connect(name(), stream).await {
                let mut text = Vec::new();
                let _ = stream.read_to_end(&mut text).await;
            }
        }
    };
    let known = client(&authority, Some(&authority), "http/1.1");
    assert_eq!(outcome(&mutual, false, shake(known)).await, (true, [0; 4]));
    // Timeout, disconnected, certificate, protocol.
    let table = [
        (client(&authority, None, "http/1.1"), [0, 0, 1, 0]),
        (client(&authority, Some(&stranger), "http/1.1"), [0, 0, 1, 0]),
        (client(&stranger, Some(&authority), "http/1.1"), [0, 0, 1, 0]),
        (client(&authority, Some(&authority), "h2"), [0, 0, 0, 1]),
    ];
    for (row, (connector, want)) in table.into_iter().enumerate() {
        assert_eq!(outcome(&mutual, false, shake(connector)).await, (false, want), "row {row}");
    }
    let plain = |mut stream: TcpStream| async move {
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    };
    assert_eq!(outcome(&mutual, false, plain).await, (false, [0, 0, 0, 1]));
    let leaves = |stream: TcpStream| async move { drop(stream) };
    assert_eq!(outcome(&mutual, false, leaves).await, (false, [0, 1, 0, 0]));
    let stalls = |mut stream: TcpStream| async move {
        let _ = stream.write_all(&[0x16, 3, 1]).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    };
    assert_eq!(outcome(&mutual, true, stalls).await, (false, [1, 0, 0, 0]));
}
