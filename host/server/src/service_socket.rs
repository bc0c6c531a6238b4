//! Tells the service manager that started the server, such as systemd with `Type=notify`, when the
//! server is ready, reloads and stops: datagrams to the socket that `NOTIFY_SOCKET` names.

use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable that service managers set.
pub const VARIABLE: &str = "NOTIFY_SOCKET";

/// The socket of the service manager, if there is one.
pub struct ServiceSocket {
    address: Option<SocketAddr>,
    /// A reload ends with the message of readiness, which would be untrue before the first one.
    ready: AtomicBool,
}

impl ServiceSocket {
    /// `name` is the value of [`VARIABLE`]: a path, or `@` and the name of an abstract socket.
    pub fn new(name: Option<&OsStr>) -> Self {
        let name = name.filter(|name| !name.is_empty());
        let address = name.and_then(|name| match socket_address(name) {
            Ok(address) => Some(address),
            Err(e) => {
                tracing::warn!(
                    "{VARIABLE} is '{}', expected an absolute path or '@' and a name: {e}; \
                     the service manager will not learn that the server is ready",
                    name.display()
                );
                None
            }
        });
        Self { address, ready: AtomicBool::new(false) }
    }

    /// The models are loaded.
    pub fn send_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
        self.send("READY=1");
    }

    /// The server has begun to end.
    pub fn send_stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Runs a reload, of which the service manager sees begin and end.
    pub fn report_reload(&self, reload: impl FnOnce()) {
        let ready = self.ready.load(Ordering::Relaxed);
        if ready {
            let now = clock_gettime(ClockId::Monotonic);
            let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
            self.send(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
        }
        reload();
        if ready {
            self.send_ready();
        }
    }

    fn send(&self, message: &str) {
        let Some(address) = &self.address else { return };
        let sent = UnixDatagram::unbound()
            .and_then(|socket| socket.send_to_addr(message.as_bytes(), address));
        if let Err(e) = sent {
            tracing::warn!(
                "cannot send {message:?} to the service manager's socket ({VARIABLE}): {e}"
            );
        }
    }
}

fn socket_address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    }
}

#[cfg(test)]
#[path = "service_socket_tests.rs"]
mod tests;
