//! The file of a listening Unix socket: one that a dead server left behind is replaced, one that is
//! in use is not, and the server's own is removed at its end.

use rustix::fs::{FlockOperation, flock};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, File, Metadata};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How often, and at which interval, the lock of the folder is tried.
const LOCK_TRIES: u32 = 100;
const LOCK_INTERVAL: Duration = Duration::from_millis(10);

/// The file of a listening socket, removed when dropped.
pub struct SocketFile {
    path: PathBuf,
    /// Another server may have replaced the file.
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = |file: Metadata| identity(&file) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(is_ours) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Listens on `path`. The permissions of the file follow the umask.
///
/// # Errors
/// The system's reason; a socket in use, or another file, is at `path`.
pub fn listen_unix(path: &Path, backlog: i32) -> Result<(UnixListener, SocketFile)> {
    // Of two servers that start at the same time, both could find a stale file; the slower one
    // would then remove the new socket of the other.
    let _locked = lock_folder(path)?;
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let identity = identity(&fs::symlink_metadata(path)?);
    let file = SocketFile { path: path.to_owned(), identity };
    socket.listen(backlog)?;
    socket.set_nonblocking(true)?;
    Ok((socket.into(), file))
}

/// Removes the socket of a server that has ended.
fn remove_stale(path: &Path) -> Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    if !found.file_type().is_socket() {
        return Err(Error::new(ErrorKind::AlreadyExists, "the file exists and is not a socket"));
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A server whose backlog is full would hold up a blocking call.
    probe.set_nonblocking(true)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            tracing::info!("unix:{}: replacing the socket of an ended server", path.display());
            fs::remove_file(path)
        }
        Err(e) if e.kind() == ErrorKind::WouldBlock => Err(in_use()),
        Err(e) => Err(e),
        Ok(()) => Err(in_use()),
    }
}

fn in_use() -> Error {
    Error::new(ErrorKind::AddrInUse, "a running process listens on this socket")
}

/// Locks the folder of `path` until the file is dropped.
fn lock_folder(path: &Path) -> Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let named = |e: Error| Error::new(e.kind(), format!("{}: {e}", folder.display()));
    let file = File::open(folder).map_err(named)?;
    for _ in 0..LOCK_TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(Error::from) {
            Ok(()) => return Ok(file),
            Err(e) if e.kind() == ErrorKind::WouldBlock => sleep(LOCK_INTERVAL),
            Err(e) => return Err(named(e)),
        }
    }
    Err(named(Error::new(ErrorKind::WouldBlock, "another process has locked the folder")))
}

#[cfg(test)]
#[path = "unix_socket_tests.rs"]
mod tests;
