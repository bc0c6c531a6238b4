//! The handshake of a connection, which ends in time or is given up.

use crate::connections::{ConnectionState, Wire};
use crate::socket::SocketStream;
use arc_swap::ArcSwap;
use rustls::{AlertDescription, Error as TlsError, ServerConfig};
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use trtserver_base::tls_stats::{HandshakeFailure, TlsStats};

/// TLS of one listener.
pub struct TlsEndpoint {
    /// Read once for each connection.
    config: ArcSwap<ServerConfig>,
    wire: Wire,
    stats: Arc<TlsStats>,
}

impl TlsEndpoint {
    pub(super) fn new(listener: &'static str, wire: Wire, config: ServerConfig) -> Self {
        let config = ArcSwap::from_pointee(with_protocol(config, wire));
        Self { config, wire, stats: Arc::new(TlsStats::new(listener)) }
    }

    /// Connections from now on use this configuration.
    pub(super) fn replace(&self, config: &ServerConfig) {
        self.config.store(Arc::new(with_protocol(config.clone(), self.wire)));
    }

    pub fn stats(&self) -> &Arc<TlsStats> {
        &self.stats
    }

    /// Shakes hands, until `state` is ordered to end. `None`: it failed, which is counted.
    pub async fn accept(&self, stream: TcpStream, state: &ConnectionState) -> Option<SocketStream> {
        let peer = stream.peer_addr();
        let acceptor = TlsAcceptor::from(self.config.load_full());
        let (failure, why) = match until_ordered(acceptor.accept(stream), state).await {
            Some(Ok(stream)) => return Some(SocketStream::Tls(Box::new(stream))),
            Some(Err(e)) => (failure_kind(&e), e.to_string()),
            None => {
                let why = "closed at the timeout, at the limit of handshakes, or at shutdown";
                (HandshakeFailure::Timeout, why.to_owned())
            }
        };
        self.stats.count_failure(failure);
        let peer = peer.map_or_else(|_| "a client".to_owned(), |peer| peer.to_string());
        tracing::debug!("{}: TLS handshake with {peer} failed: {why}", self.stats.listener);
        None
    }
}

/// `None`: the connection was ordered to end first.
async fn until_ordered<F: Future>(handshake: F, state: &ConnectionState) -> Option<F::Output> {
    let mut handshake = pin!(handshake);
    let mut registered = false;
    poll_fn(move |cx| {
        if !registered {
            // Before the order is read: one that comes later finds the waker.
            state.set_waker(cx.waker().clone());
            registered = true;
        }
        if state.is_ended() {
            return Poll::Ready(None);
        }
        handshake.as_mut().poll(cx).map(Some)
    })
    .await
}

/// A listener speaks one protocol: a client that offers others only is refused in the handshake.
fn with_protocol(mut config: ServerConfig, wire: Wire) -> ServerConfig {
    let name: &[u8] = match wire {
        Wire::Http1 => b"http/1.1",
        Wire::Http2 => b"h2",
    };
    config.alpn_protocols = vec![name.to_vec()];
    config
}

fn failure_kind(e: &io::Error) -> HandshakeFailure {
    let Some(e) = e.get_ref().and_then(|e| e.downcast_ref::<TlsError>()) else {
        return match e.kind() {
            ErrorKind::InvalidData => HandshakeFailure::Protocol,
            _ => HandshakeFailure::Disconnected,
        };
    };
    match e {
        TlsError::InvalidCertificate(_) | TlsError::NoCertificatesPresented => {
            HandshakeFailure::Certificate
        }
        TlsError::AlertReceived(alert) => match alert {
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA => HandshakeFailure::Certificate,
            AlertDescription::CloseNotify | AlertDescription::UserCanceled => {
                HandshakeFailure::Disconnected
            }
            _ => HandshakeFailure::Protocol,
        },
        _ => HandshakeFailure::Protocol,
    }
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
