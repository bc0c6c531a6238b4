//! Opens the sockets of listeners, on TCP and Unix sockets.

use super::socket::SocketListener;
pub use super::unix_socket::SocketFile;

use super::unix_socket;
use rustix::net::sockopt::set_socket_reuseport;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use tokio::net::{TcpListener, UnixListener};
use trtserver_base::error::{Error, Result};
use trtserver_config::ListenAddress;

/// Connections that wait to be accepted, as in TRTIS.
const BACKLOG: i32 = 1024;

/// A listening socket that is not served yet: connections wait in its backlog.
pub struct BoundListener {
    socket: BoundSocket,
    /// `HOST:PORT` or `unix:PATH`.
    pub address: String,
    /// `None` of a Unix socket.
    pub port: Option<u16>,
    /// File of a Unix socket, to be dropped when the server ends.
    pub file: Option<SocketFile>,
}

enum BoundSocket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl BoundListener {
    /// Must be called inside the runtime that serves it.
    pub(super) fn into_listener(self) -> io::Result<SocketListener> {
        Ok(match self.socket {
            BoundSocket::Tcp(socket) => SocketListener::Tcp(TcpListener::from_std(socket)?),
            BoundSocket::Unix(socket) => SocketListener::Unix(UnixListener::from_std(socket)?),
        })
    }
}

/// The sockets of one listener.
pub struct Sockets<'a> {
    /// Names the listener in errors.
    pub what: &'a str,
    pub addresses: &'a [ListenAddress],
    /// Port of all addresses except Unix sockets; 0 takes any free port for each address.
    pub port: u16,
    /// Other processes may listen on the port, too.
    pub reuse_port: bool,
}

impl Sockets<'_> {
    /// Opens all sockets of the listener.
    ///
    /// # Errors
    /// Names the address and the system's reason.
    pub fn bind(&self) -> Result<Vec<BoundListener>> {
        let hosts = self.addresses.iter().filter_map(|address| match address {
            ListenAddress::Host(host) => Some(self.resolve(host)),
            ListenAddress::Unix(_) => None,
        });
        let hosts = hosts.collect::<Result<Vec<SocketAddr>>>()?;
        let has_ipv4 = hosts.iter().any(SocketAddr::is_ipv4);
        let mut hosts = hosts.into_iter();
        let bound = self.addresses.iter().filter_map(|address| match address {
            ListenAddress::Host(_) => hosts.next().map(|host| self.tcp(host, has_ipv4)),
            ListenAddress::Unix(path) => Some(self.unix(path)),
        });
        bound.collect()
    }

    fn resolve(&self, host: &str) -> Result<SocketAddr> {
        let fail = |e: io::Error| self.failure(&format!("{host}:{}", self.port), &e);
        let mut found = (host, self.port).to_socket_addrs().map_err(fail)?;
        found.next().ok_or_else(|| {
            Error::unavailable(format!("Failed to start {}: '{host}' has no address", self.what))
        })
    }

    /// `has_ipv4`: the listener has an IPv4 address, too. The IPv6 wildcard then leaves IPv4 to
    /// that; alone it takes both.
    fn tcp(&self, address: SocketAddr, has_ipv4: bool) -> Result<BoundListener> {
        let open = || -> io::Result<BoundListener> {
            let domain = Domain::for_address(address);
            let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
            socket.set_reuse_address(true)?;
            if self.reuse_port {
                set_socket_reuseport(&socket, true)?;
            }
            if address.is_ipv6() {
                socket.set_only_v6(has_ipv4)?;
            }
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let listener: std::net::TcpListener = socket.into();
            let local = listener.local_addr()?;
            let (address, port) = (local.to_string(), Some(local.port()));
            Ok(BoundListener { socket: BoundSocket::Tcp(listener), address, port, file: None })
        };
        open().map_err(|e| self.failure(&address.to_string(), &e))
    }

    fn unix(&self, path: &Path) -> Result<BoundListener> {
        let address = format!("unix:{}", path.display());
        match unix_socket::listen_unix(path, BACKLOG) {
            Ok((socket, file)) => {
                let socket = BoundSocket::Unix(socket);
                Ok(BoundListener { socket, address, port: None, file: Some(file) })
            }
            Err(e) => Err(self.failure(&address, &e)),
        }
    }

    fn failure(&self, address: &str, e: &io::Error) -> Error {
        Error::unavailable(format!("Failed to start {} at {address}: {e}", self.what))
    }
}
