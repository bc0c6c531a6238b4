//! Opens connections: TCP, Unix sockets, TLS.

use super::no_sigpipe::NoSignal;
use super::{TlsClient, tls_client};
use crate::address::{ServerAddress, SocketTarget};
use crate::error::{Error, Kind, Result, innermost_error};
use crate::settings::Settings;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

pub(crate) trait AsyncSocket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> AsyncSocket for T {}

/// A connection without encryption.
pub(crate) enum PlainSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

const FIRST_RETRY: Duration = Duration::from_millis(50);
const LONGEST_RETRY: Duration = Duration::from_secs(2);

pub(crate) struct SocketConnector {
    target: SocketTarget,
    encryption: Option<TlsClient>,
    timeout: Duration,
    retries: u32,
    pub authority: String,
}

impl SocketConnector {
    pub fn new(address: &ServerAddress, settings: &Settings) -> Result<Self> {
        Ok(Self {
            target: address.target.clone(),
            encryption: tls_client(address, settings)?,
            timeout: settings.connect_timeout,
            retries: settings.connect_retries,
            authority: address.authority.clone(),
        })
    }

    pub fn is_encrypted(&self) -> bool {
        self.encryption.is_some()
    }

    /// A new connection. Nothing was sent if this fails, so trying again is safe.
    pub async fn connect(&self) -> Result<Box<dyn AsyncSocket>> {
        self.retried(|| self.connect_once()).await
    }

    /// A new connection without encryption.
    pub async fn connect_plain(&self) -> Result<PlainSocket> {
        self.retried(|| self.connect_plain_once()).await
    }

    async fn retried<T, F>(&self, once: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut pause = FIRST_RETRY;
        let mut attempts = 0;
        loop {
            let attempt = tokio::time::timeout(self.timeout, once()).await;
            let error = match attempt {
                Ok(Ok(io)) => return Ok(io),
                Ok(Err(error)) => error,
                Err(_) => {
                    let limit = self.timeout.as_secs_f64();
                    Error::new(
                        Kind::Connect,
                        format!("cannot connect: no connection within {limit} seconds"),
                    )
                }
            };
            if attempts == self.retries {
                return Err(error);
            }
            attempts += 1;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_RETRY);
        }
    }

    async fn connect_once(&self) -> Result<Box<dyn AsyncSocket>> {
        let stream = match self.connect_plain_once().await? {
            PlainSocket::Unix(stream) => return Ok(Box::new(NoSignal(stream))),
            PlainSocket::Tcp(stream) => NoSignal(stream),
        };
        let Some(encryption) = &self.encryption else { return Ok(Box::new(stream)) };
        encryption.encrypt(stream).await.map_err(|e| {
            let why = innermost_io(&e);
            Error::new(Kind::Connect, format!("the TLS handshake failed: {why}"))
        })
    }

    async fn connect_plain_once(&self) -> Result<PlainSocket> {
        let refused = |e: &io::Error| {
            Error::new(Kind::Connect, format!("cannot connect: {}", innermost_io(e)))
        };
        match &self.target {
            SocketTarget::Unix(path) => {
                UnixStream::connect(path).await.map(PlainSocket::Unix).map_err(|e| refused(&e))
            }
            SocketTarget::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await;
                let stream = stream.map_err(|e| refused(&e))?;
                stream.set_nodelay(true).map_err(|e| refused(&e))?;
                Ok(PlainSocket::Tcp(stream))
            }
        }
    }
}

/// "Connection refused" without "(os error 111)".
fn innermost_io(error: &io::Error) -> String {
    let text = innermost_error(error);
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
