//! A non-blocking connection of a load thread: TCP, with TLS if the server is asked over `https` or
//! `grpcs`.
//!
//! epoll reports edges only, so that a read goes on until TCP has no more bytes or the buffer is
//! full, and every event leads to a read: it also writes what TLS has to send.

use super::poll::connect_socket;
use rustls::ClientConnection;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use trtserver_client::TlsClient;

pub struct Socket {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Socket {
    /// Connects in the background.
    ///
    /// # Errors
    /// The errors of `connect`.
    pub fn open(address: SocketAddr, tls: Option<&TlsClient>) -> Result<Self, String> {
        let tcp = connect_socket(address).map_err(|e| e.to_string())?;
        let begin = |tls: &TlsClient| {
            ClientConnection::new(Arc::clone(&tls.config), tls.server_name.clone()).map(Box::new)
        };
        let tls = tls.map(begin).transpose().map_err(|e| format!("TLS: {e}"))?;
        Ok(Socket { tcp, tls })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.tcp.read(buffer),
            Some(tls) => read(tls, &mut self.tcp, buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.tcp.write(bytes),
            Some(tls) => write(tls, &mut self.tcp, bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.tcp.write_vectored(parts),
            Some(tls) => {
                let part = parts.iter().find(|part| !part.is_empty());
                part.map_or(Ok(0), |part| write(tls, &mut self.tcp, part))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read(tls: &mut ClientConnection, tcp: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    send(tls, tcp)?;
    shake_hands(tls, tcp)?;
    let mut filled = 0;
    while filled < buffer.len() {
        match tls.reader().read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => break,
            Err(e) if e.kind() == ErrorKind::WouldBlock => match receive(tls, tcp) {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) if e.kind() == ErrorKind::WouldBlock && filled > 0 => break,
                Err(e) => return Err(e),
            },
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

fn write(tls: &mut ClientConnection, tcp: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    shake_hands(tls, tcp)?;
    if !send(tls, tcp)? {
        return Err(ErrorKind::WouldBlock.into());
    }
    let taken = tls.writer().write(bytes)?;
    // What TCP does not take now is sent by a later read.
    send(tls, tcp)?;
    if taken == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
}

/// Returns once the handshake is complete; until then `WouldBlock`.
fn shake_hands(tls: &mut ClientConnection, tcp: &mut TcpStream) -> io::Result<()> {
    while tls.is_handshaking() {
        send(tls, tcp)?;
        if !receive(tls, tcp)? {
            let text = "the server closed the connection during the TLS handshake";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
        }
    }
    Ok(())
}

/// Writes what TLS has to send; false if TCP takes no more.
fn send(tls: &mut ClientConnection, tcp: &mut TcpStream) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(tcp) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // A socket that is not connected yet says NotConnected.
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                return Ok(false);
            }
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// Reads records; false at the end of the connection.
fn receive(tls: &mut ClientConnection, tcp: &mut TcpStream) -> io::Result<bool> {
    let read = loop {
        match tls.read_tls(tcp) {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::NotConnected => {
                return Err(ErrorKind::WouldBlock.into());
            }
            read => break read?,
        }
    };
    let handshake = tls.is_handshaking();
    if let Err(e) = tls.process_new_packets() {
        // The alert that tells the server why; the connection is closed in any case.
        let _ = send(tls, tcp);
        let what = if handshake { "the TLS handshake failed" } else { "TLS" };
        return Err(io::Error::new(ErrorKind::InvalidData, format!("{what}: {e}")));
    }
    Ok(read > 0)
}
