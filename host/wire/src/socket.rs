//! Sockets of listeners and connections: TCP, with or without TLS, or Unix.

use crate::connections::PeerAddress;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use trtserver_config::CertificateName;

/// Probes of a connection whose peer does not answer, before the system closes it.
const KEEPALIVE_PROBES: u32 = 3;

/// A listening socket.
pub enum SocketListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl SocketListener {
    pub async fn accept(&self) -> io::Result<(SocketStream, PeerAddress)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                (SocketStream::Tcp(stream), PeerAddress::Tcp(address))
            }
            Self::Unix(listener) => {
                (SocketStream::Unix(listener.accept().await?.0), PeerAddress::Unix)
            }
        })
    }
}

/// The socket of a connection.
pub enum SocketStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// After the handshake. Boxed: it is much larger than the others.
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
}

impl SocketStream {
    /// Options of a new connection. `keepalive`: interval of the probes with which the system
    /// notices a peer that has vanished without closing its connection; on a Unix socket the system
    /// notices that anyway.
    pub fn configure(&self, keepalive: Option<Duration>) {
        let Self::Tcp(stream) = self else { return };
        // Responses are written in one piece, so Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        if let Some(interval) = keepalive {
            let probes = TcpKeepalive::new().with_time(interval).with_interval(interval);
            // Without it the idle timeout applies.
            let _ = SockRef::from(stream).set_tcp_keepalive(&probes.with_retries(KEEPALIVE_PROBES));
        }
    }

    /// The names in the client's certificate, once the handshake has verified it.
    pub fn certificate_names(&self) -> Vec<CertificateName> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Vec::new(),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                chain.first().map(crate::tls::certificate_names).unwrap_or_default()
            }
        }
    }

    /// Ready when the socket has something to read, or is closed. An encrypted stream has handed out
    /// what it has decrypted before.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let ready = match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.get_ref().0.poll_read_ready(cx),
        };
        ready.map(drop)
    }

    /// Bytes of the first request may have been read with the end of the handshake: the socket does
    /// not tell of them.
    pub fn may_hold_request(&self) -> bool {
        match self {
            Self::Tcp(_) | Self::Unix(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(_) => true,
        }
    }

    /// The error that the system has for the socket, such as a reset.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        match self {
            Self::Tcp(stream) => stream.take_error(),
            Self::Unix(stream) => stream.take_error(),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.get_ref().0.take_error(),
        }
    }
}

/// Calls a method of the stream inside.
macro_rules! inner {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            SocketStream::Tcp($stream) => $call,
            SocketStream::Unix($stream) => $call,
            #[cfg(feature = "tls")]
            SocketStream::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for SocketStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        inner!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for SocketStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        inner!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        inner!(self, stream => Pin::new(stream).poll_write_vectored(cx, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
