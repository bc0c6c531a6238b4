//! In place of `tls` in a server that is built without the feature `tls`.

use crate::connections::{ConnectionState, Wire};
use crate::socket::SocketStream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use trtserver_base::error::{Error, Result};
use trtserver_base::tls_stats::TlsStats;
use trtserver_config::TlsFiles;

/// A listener that should be served with TLS.
pub struct TlsListener<'a> {
    pub name: &'static str,
    #[cfg_attr(test, allow(dead_code))] // only the feature reads it
    pub wire: Wire,
    pub files: &'a TlsFiles,
}

/// Has no value: a server without TLS.
pub struct TlsEndpoint(Infallible);

/// No listener has TLS.
#[derive(Clone, Default)]
pub struct TlsListeners;

/// Nothing to read.
#[derive(Default)]
pub struct TlsReloader;

impl TlsListeners {
    /// # Errors
    /// A listener should have TLS.
    pub fn open(listeners: &[TlsListener<'_>]) -> Result<(Self, TlsReloader)> {
        match listeners.first() {
            None => Ok((Self, TlsReloader)),
            Some(listener) => Err(Error::invalid(format!(
                "{} listener: TLS certificate {} cannot be used, because this server was built without TLS, as that of \
                 `cargo xtask demo` is; use a server of `cargo xtask build`",
                listener.name,
                listener.files.certificate.display()
            ))),
        }
    }

    pub fn endpoint(&self, _: &str) -> Option<Arc<TlsEndpoint>> {
        None
    }

    pub fn stats(&self) -> Vec<Arc<TlsStats>> {
        Vec::new()
    }
}

impl TlsReloader {
    #[cfg_attr(test, allow(dead_code))] // tests of the feature call the other one
    pub async fn run(self, _: Option<Duration>, _: Arc<Notify>) {}
}

impl TlsEndpoint {
    #[cfg_attr(test, allow(dead_code))] // tests of the feature call the other one
    pub async fn accept(&self, _: TcpStream, _: &ConnectionState) -> Option<SocketStream> {
        match self.0 {}
    }
}

#[cfg(test)]
#[path = "tls_absent_tests.rs"]
mod tests;
