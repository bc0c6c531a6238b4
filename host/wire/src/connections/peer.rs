//! Who is at the other end of a connection.

use std::fmt;
use std::net::SocketAddr;
use trtserver_config::CertificateName;

/// The client of a connection.
#[derive(Clone, Debug, Default)]
pub struct ConnectionPeer {
    pub address: PeerAddress,
    /// The names in its certificate, which was verified; empty without one.
    pub certificate_names: Vec<CertificateName>,
}

impl ConnectionPeer {
    /// A unit test's.
    pub const UNKNOWN: Self = Self { address: PeerAddress::Unknown, certificate_names: Vec::new() };
}

/// Where a client connects from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerAddress {
    /// A unit test.
    #[default]
    Unknown,
    Tcp(SocketAddr),
    Unix,
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("-"),
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}
