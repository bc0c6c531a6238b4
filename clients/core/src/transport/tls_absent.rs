//! In place of `tls` in a client that is built without the feature `tls`.

use super::connect::AsyncSocket;
use super::no_sigpipe::NoSignal;
use crate::address::{ServerAddress, SocketTarget};
use crate::error::{Error, Result};
use crate::settings::Settings;
use std::convert::Infallible;
use std::io;
use tokio::net::TcpStream;

/// Has no value: a client without TLS.
#[derive(Clone, Debug)]
pub struct TlsClient(Infallible);

/// # Errors
/// The address needs TLS.
pub(crate) fn tls_client(address: &ServerAddress, _: &Settings) -> Result<Option<TlsClient>> {
    match &address.target {
        SocketTarget::Tcp { .. } if address.tls => Err(Error::invalid(format!(
            "{} needs TLS, and this client was built without it (feature `tls`), as that of `cargo xtask demo` is; use a \
             client of `cargo xtask build`",
            address.shown
        ))),
        _ => Ok(None),
    }
}

impl TlsClient {
    #[cfg_attr(test, allow(dead_code))] // tests of the feature call the other one
    pub(super) async fn encrypt(&self, _: NoSignal<TcpStream>) -> io::Result<Box<dyn AsyncSocket>> {
        match self.0 {}
    }
}

#[cfg(test)]
#[path = "tls_absent_tests.rs"]
mod tests;
