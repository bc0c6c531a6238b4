//! Opens the sockets of listeners, on TCP and Unix sockets.

use super::socket::SocketListener;
pub use super::unix_socket::SocketFile;

use super::unix_socket;
use rustix::net::sockopt::set_socket_reuseport;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use tokio::net::{TcpListener, UnixListener};
use trtserver_base::error::{Error, Result};
use trtserver_config::ListenAddress;

/// Connections that wait to be accepted, as in TRTIS.
const BACKLOG: i32 = 1024;

/// The socket of a listener. Clients are refused until it listens; then connections wait in its
/// backlog until it is served.
pub struct BoundListener {
    socket: BoundSocket,
    what: &'static str,
    /// `HOST:PORT` or `unix:PATH`.
    pub address: String,
    /// `None` of a Unix socket.
    pub port: Option<u16>,
    /// File of a Unix socket, to be dropped when the server ends.
    pub file: Option<SocketFile>,
}

enum BoundSocket {
    Tcp(Socket),
    /// Not opened before it listens: other servers would take its file for a dead one.
    UnixPath(PathBuf),
    Unix(std::os::unix::net::UnixListener),
}

impl BoundListener {
    /// Lets clients connect.
    ///
    /// # Errors
    /// Names the address and the system's reason.
    pub fn listen(&mut self) -> Result<()> {
        let listened = match &self.socket {
            BoundSocket::Tcp(socket) => socket.listen(BACKLOG),
            BoundSocket::Unix(_) => Ok(()),
            BoundSocket::UnixPath(path) => {
                unix_socket::listen_unix(path, BACKLOG).map(|(socket, file)| {
                    self.socket = BoundSocket::Unix(socket);
                    self.file = Some(file);
                })
            }
        };
        listened.map_err(|e| failure(self.what, &self.address, &e))
    }

    /// Must be called inside the runtime that serves it.
    pub(super) fn into_listener(self) -> io::Result<SocketListener> {
        Ok(match self.socket {
            BoundSocket::Tcp(socket) => SocketListener::Tcp(TcpListener::from_std(socket.into())?),
            BoundSocket::Unix(socket) => SocketListener::Unix(UnixListener::from_std(socket)?),
            BoundSocket::UnixPath(_) => return Err(io::ErrorKind::NotConnected.into()),
        })
    }
}

/// The sockets of one listener.
pub struct Sockets<'a> {
    /// Names the listener in errors.
    pub what: &'static str,
    pub addresses: &'a [ListenAddress],
    /// Port of all addresses except Unix sockets; 0 takes any free port for each address.
    pub port: u16,
    /// Other processes may listen on the port, too.
    pub reuse_port: bool,
}

impl Sockets<'_> {
    /// Opens all sockets of the listener. None listens yet.
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
            ListenAddress::Unix(path) => Some(Ok(self.unix(path))),
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
            let local = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
            let (address, port) = (local.to_string(), Some(local.port()));
            let socket = BoundSocket::Tcp(socket);
            Ok(BoundListener { socket, what: self.what, address, port, file: None })
        };
        open().map_err(|e| self.failure(&address.to_string(), &e))
    }

    fn unix(&self, path: &Path) -> BoundListener {
        let address = format!("unix:{}", path.display());
        let socket = BoundSocket::UnixPath(path.to_owned());
        BoundListener { socket, what: self.what, address, port: None, file: None }
    }

    fn failure(&self, address: &str, e: &io::Error) -> Error {
        failure(self.what, address, e)
    }
}

fn failure(what: &str, address: &str, e: &io::Error) -> Error {
    let advice = match e.kind() {
        io::ErrorKind::AddrInUse => {
            "; another program listens there, perhaps another server: choose another port or address"
        }
        io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need the capability CAP_NET_BIND_SERVICE, and a socket's directory the right to write: \
             choose another port or address"
        }
        io::ErrorKind::AddrNotAvailable => "; this machine does not have that address",
        _ => "",
    };
    Error::unavailable(format!("Failed to start {what} at {address}: {e}{advice}"))
}
