//! A region: a part of a shared-memory object under the name that a client gave it.

use super::guard::WindowLimit;
use super::key;
use super::window::{MapError, MappedWindow};
use crate::shared_region::{RegionObservers, RegionSource, SharedRegion};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, open, statat};
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use trtserver_base::error::Error;
use trtserver_device::GpuDevice;

/// A registered region: a mapped part of a POSIX shared-memory object. Offset and length are in
/// bytes.
pub struct SystemRegion {
    name: Box<str>,
    key: Box<str>,
    offset: u64,
    len: usize,
    window: MappedWindow,
    /// For the processes of isolated models, which are notified when the region is dropped.
    file: OwnedFd,
    number: u64,
    observers: RegionObservers,
}

/// Why a region cannot be opened.
#[derive(Clone, Debug, PartialEq)]
pub enum OpenError {
    /// The key names no object that this process may read and write.
    Object(String),
    /// The region is empty, or not in the object as a whole.
    Range { object: u64 },
    /// The system refuses the mapping.
    Map(String),
    /// A limit of all regions together.
    Limit(String),
}

/// For messages that have named the region.
impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(why) | Self::Map(why) | Self::Limit(why) => f.write_str(why),
            Self::Range { object } => {
                write!(f, "the region is empty or not within the {object} bytes of its object")
            }
        }
    }
}

impl SystemRegion {
    /// Opens and maps `len` bytes at `offset` of the object `key`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(name: &str, key: &str, offset: u64, len: u64) -> Result<Self, OpenError> {
        Self::from_descriptor(name, key, open_object(key)?, offset, len)
    }

    /// As [`SystemRegion::open`], of an object that is open already: in the process of an isolated
    /// model, which has the descriptor from the server.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn from_descriptor(
        name: &str,
        key: &str,
        file: OwnedFd,
        offset: u64,
        len: u64,
    ) -> Result<Self, OpenError> {
        let stat = fstat(&file).map_err(|e| OpenError::Object(e.to_string()))?;
        let object = regular_size(&stat)?;
        let inside = len > 0 && offset.checked_add(len).is_some_and(|end| end <= object);
        let len = usize::try_from(len).ok().filter(|_| inside);
        let len = len.ok_or(OpenError::Range { object })?;
        let window = MappedWindow::map(file.as_fd(), offset, len).map_err(|e| match e {
            MapError::System(e) => OpenError::Map(e.to_string()),
            MapError::Full(WindowLimit::Windows(limit)) => {
                OpenError::Limit(format!("the server maps at most {limit} regions"))
            }
            MapError::Full(WindowLimit::Bytes(limit)) => OpenError::Limit(format!(
                "the server maps at most {limit} bytes of all regions together"
            )),
        })?;
        let (name, key) = (name.into(), key.into());
        let (number, observers) = (0, RegionObservers::default());
        Ok(Self { name, key, offset, len, window, file, number, observers })
    }

    /// The region under its number in a registry.
    pub(super) fn with_number(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The object, as the client wrote it.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Where the region begins in the object.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: the registry refuses empty regions.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first byte. `len()` bytes may be read and written as long as the region exists. Clients
    /// may change them at any time, so what is checked must be copied first.
    pub fn ptr(&self) -> NonNull<u8> {
        self.window.ptr()
    }

    /// Pins the window, for copies to and from any device, when it is called first; false if it is
    /// not pinned. Takes milliseconds then.
    pub(super) fn pin(&self, device: &'static GpuDevice) -> bool {
        self.window.pin(device, |e| {
            tracing::debug!("shared memory region '{}' is not pinned: {e}", self.name);
        })
    }

    /// The region as the process of an isolated model opens it.
    pub fn shared_region(&self) -> SharedRegion<'_> {
        let Self { name, key, offset, file, number, observers, .. } = self;
        let source = RegionSource::File { file: file.as_fd(), offset: *offset, key };
        SharedRegion { number: *number, name, source, observers }
    }

    /// The error of a request that used the region, if pages were missing since it was opened. The
    /// region stays unusable: a client that repairs its object registers it again.
    pub fn fault(&self) -> Option<Error> {
        self.window.is_faulted().then(|| self.fault_error())
    }

    /// As [`SystemRegion::fault`], for a system call that failed with EFAULT, of which the guard
    /// does not know: looks at the size of the object.
    pub fn recheck(&self) -> Option<Error> {
        let object = fstat(&self.file).map_or(0, |stat| stat.st_size as u64);
        if object < self.offset + self.len as u64 {
            self.window.set_faulted();
        }
        self.fault()
    }

    fn fault_error(&self) -> Error {
        missing_pages(&self.name, &self.key, self.offset, self.len as u64)
    }
}

/// The error of requests that use a region whose object lacks pages.
pub fn missing_pages(name: &str, key: &str, offset: u64, len: u64) -> Error {
    Error::invalid(format!(
        "shared memory region '{name}' cannot be used any more: object '{key}' lacks pages of the {len} bytes at offset {offset} that \
         were registered, because it was made shorter or the system has no memory for it; unregister the region"
    ))
}

impl Drop for SystemRegion {
    fn drop(&mut self) {
        self.observers.notify(self.number);
    }
}

/// Opens the file of an object as `shm_open` does, for reading and writing.
fn open_object(key: &str) -> Result<OwnedFd, OpenError> {
    let path = key::key_path(key).map_err(|why| OpenError::Object(why.to_owned()))?;
    let failed = |e: rustix::io::Errno| OpenError::Object(e.to_string());
    // Opening a device may have an effect. The name may mean something else when it is opened, so
    // `from_descriptor` checks what was opened; a FIFO must not block until then.
    regular_size(&statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?)?;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    open(&path, flags, Mode::empty()).map_err(failed)
}

/// The size of a regular file.
fn regular_size(stat: &Stat) -> Result<u64, OpenError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(stat.st_size as u64),
        found => Err(OpenError::Object(format!("not a shared-memory object but a {found:?}"))),
    }
}

#[cfg(test)]
#[path = "region_tests.rs"]
mod tests;
