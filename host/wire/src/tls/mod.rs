//! TLS of listeners: certificates from files, handshakes, and new files without a restart.
//!
//! Each listener has a [`TlsEndpoint`] with a rustls configuration that is read once for each
//! connection, so that certificate, key and authorities of clients change together and open
//! connections keep what they began with. [`TlsReloader`] replaces it when the files change.
//!
//! What comes after the handshake is the path of plain text: `SocketStream` has a variant for an
//! encrypted stream.

mod certificates;
mod client_names;
mod handshake;
mod reload;

pub use client_names::certificate_names;
pub use handshake::TlsEndpoint;
pub use reload::TlsReloader;

use crate::connections::Wire;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::tls_stats::TlsStats;
use trtserver_config::TlsFiles;

/// A listener that is served with TLS.
pub struct TlsListener<'a> {
    /// Its name in the log and the metrics.
    pub name: &'static str,
    pub wire: Wire,
    pub files: &'a TlsFiles,
}

/// TLS of all listeners that have it.
#[derive(Clone, Default)]
pub struct TlsListeners {
    endpoints: Vec<Arc<TlsEndpoint>>,
}

impl TlsListeners {
    /// Reads the files of the listeners. Those with the same files share them.
    ///
    /// # Errors
    /// Names the file that cannot be used.
    pub fn open(listeners: &[TlsListener<'_>]) -> Result<(Self, TlsReloader)> {
        let (mut this, mut reloader) = (Self::default(), TlsReloader::default());
        for listener in listeners {
            let endpoint = reloader
                .add(listener)
                .map_err(|e| Error::invalid(format!("{} listener: {e}", listener.name)))?;
            this.endpoints.push(endpoint);
        }
        Ok((this, reloader))
    }

    /// `None`: the listener has no TLS.
    pub fn endpoint(&self, listener: &str) -> Option<Arc<TlsEndpoint>> {
        self.endpoints.iter().find(|endpoint| endpoint.stats().listener == listener).cloned()
    }

    /// What each listener counts.
    pub fn stats(&self) -> Vec<Arc<TlsStats>> {
        self.endpoints.iter().map(|endpoint| Arc::clone(endpoint.stats())).collect()
    }
}

#[cfg(test)]
mod testing;
