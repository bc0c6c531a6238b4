//! Connects to an address as the server prints it: `HOST:PORT` or `unix:PATH`.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// A new connection. What the test kit calls on a `TcpStream` works on any stream socket, so a Unix
/// socket is one, too.
pub fn connect(address: &str) -> io::Result<TcpStream> {
    if let Some(path) = address.strip_prefix("unix:") {
        return Ok(TcpStream::from(OwnedFd::from(UnixStream::connect(path)?)));
    }
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
