//! System shared memory on the client's side: regions that client and server on one machine both
//! map.

use crate::error::{Error, Kind, Result};
use rustix::fs::{Mode, fstat, ftruncate};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::shm;
use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

/// A mapped POSIX shared-memory object. The one that created it removes it when it is dropped.
#[derive(Debug)]
pub struct Region {
    key: String,
    memory: NonNull<c_void>,
    len: usize,
    owned: bool,
}

// SAFETY: the mapping is memory that any thread may access; `Region` gives it out as raw pointers
// and copies only.
unsafe impl Send for Region {}
// SAFETY: a shared `Region` gives out raw pointers and copies; code that follows a pointer
// synchronises the access.
unsafe impl Sync for Region {}

impl Region {
    /// Creates the object, filled with zeros. A leading `/` of the key is optional.
    ///
    /// # Errors
    /// An object of this key exists already, the key is not valid, or there is no memory.
    pub fn create(key: &str, byte_size: usize) -> Result<Self> {
        let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
        let file = shm::open(name(key).as_str(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|e| failed("create", key, e))?;
        let sized = ftruncate(&file, byte_size as u64).map_err(|e| failed("size", key, e));
        let region = sized.and_then(|()| Self::map(key, byte_size, true, &file));
        if region.is_err() {
            let _ = shm::unlink(name(key).as_str());
        }
        region
    }

    /// Maps an object that exists.
    ///
    /// # Errors
    /// The object does not exist, or is smaller than `byte_size`.
    pub fn open(key: &str, byte_size: usize) -> Result<Self> {
        let file = shm::open(name(key).as_str(), shm::OFlags::RDWR, Mode::empty())
            .map_err(|e| failed("open", key, e))?;
        let has = fstat(&file).map_err(|e| failed("size", key, e))?.st_size;
        if usize::try_from(has).unwrap_or(0) < byte_size {
            return Err(Error::invalid(format!(
                "the shared memory `{key}` has {has} bytes, expected at least {byte_size}"
            )));
        }
        Self::map(key, byte_size, false, &file)
    }

    fn map(key: &str, len: usize, owned: bool, file: &impl std::os::fd::AsFd) -> Result<Self> {
        if len == 0 {
            return Err(Error::invalid(format!("the shared memory `{key}` would have 0 bytes")));
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe { mmap(std::ptr::null_mut(), len, access, MapFlags::SHARED, file, 0) };
        let memory = memory.map_err(|e| failed("map", key, e))?;
        let memory = NonNull::new(memory)
            .ok_or_else(|| Error::new(Kind::Internal, "mmap returned a null pointer"))?;
        Ok(Self { key: key.to_owned(), memory, len, owned })
    }

    /// The name with which it is registered at a server.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Bytes of the mapping.
    #[must_use]
    pub fn byte_size(&self) -> usize {
        self.len
    }

    /// Start of the mapping. The server may write to it at any time.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.memory.as_ptr().cast()
    }

    /// # Errors
    /// The bytes do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.check(offset, bytes.len())?;
        // SAFETY: checked above; the mapping is alive as long as `self`.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.as_ptr().add(offset), bytes.len());
        }
        Ok(())
    }

    /// A copy of the current content of the region.
    ///
    /// # Errors
    /// The range is not in the region.
    pub fn read(&self, offset: usize, len: usize) -> Result<Vec<u8>> {
        self.check(offset, len)?;
        let mut bytes = vec![0; len];
        // SAFETY: checked above; the mapping is alive as long as `self`.
        unsafe {
            std::ptr::copy_nonoverlapping(self.as_ptr().add(offset), bytes.as_mut_ptr(), len);
        }
        Ok(bytes)
    }

    fn check(&self, offset: usize, len: usize) -> Result<()> {
        if offset.checked_add(len).is_some_and(|end| end <= self.len) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{len} bytes at offset {offset} are outside the shared memory `{}` of {} bytes",
            self.key, self.len
        )))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` made, and nothing else unmaps it.
        let _ = unsafe { munmap(self.memory.as_ptr(), self.len) };
        if self.owned {
            let _ = shm::unlink(name(&self.key).as_str());
        }
    }
}

fn name(key: &str) -> String {
    if key.starts_with('/') { key.to_owned() } else { format!("/{key}") }
}

fn failed(what: &str, key: &str, error: rustix::io::Errno) -> Error {
    let error = io::Error::from(error);
    Error::invalid(format!("cannot {what} the shared memory `{key}`: {error}"))
}
