//! Placed memory: tensor memory that the host did not allocate on its heap, with its location, its
//! owner and whether another process can change it. Regions of client shared memory, pinned and GPU
//! memory are placed memory.

use super::buffer::AlignedBuf;
use super::shared_region::SharedRegion;
use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::LedgerHolder;
use trtserver_device::GpuDevice;

/// Type of memory. Client shared memory in the host's address space is `Cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryType {
    Cpu,
    /// CPU memory that GPUs access directly.
    Pinned,
    Gpu,
}

/// Memory location: type of memory, and the device that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryLocation {
    pub memory_type: MemoryType,
    /// Device ordinal of GPU memory, 0 otherwise.
    pub device_id: i32,
}

impl MemoryLocation {
    pub const CPU: Self = Self { memory_type: MemoryType::Cpu, device_id: 0 };
    pub const PINNED: Self = Self { memory_type: MemoryType::Pinned, device_id: 0 };

    pub const fn gpu(device_id: i32) -> Self {
        Self { memory_type: MemoryType::Gpu, device_id }
    }

    /// The CPU reads and writes this memory directly.
    pub fn is_cpu_accessible(self) -> bool {
        self.memory_type != MemoryType::Gpu
    }
}

impl fmt::Display for MemoryLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.memory_type {
            MemoryType::Cpu => f.write_str("CPU memory"),
            MemoryType::Pinned => f.write_str("pinned memory"),
            MemoryType::Gpu => write!(f, "memory of GPU {}", self.device_id),
        }
    }
}

/// Owner of placed memory: frees it when dropped, and copies from and to memory that the CPU cannot
/// access.
pub trait MemoryOwner: Send + Sync {
    /// Why the content is not what was written: the client shrank the file, or the device was lost.
    /// Asked after the memory was read or written; permanent once set.
    fn fault(&self) -> Option<Error> {
        None
    }

    /// The region that the memory is, if another process can open it.
    fn shared_region(&self) -> Option<SharedRegion<'_>> {
        None
    }

    /// Pins the memory where it is, if that can be done, and finds out whether it is still there,
    /// before `device` copies from it. Called for shared memory, by the thread of an instance.
    fn prepare_upload(&self, _device: &'static GpuDevice) {}

    /// The event, as backends receive it, after which a device may access the memory; null = now.
    fn ready_event(&self) -> *const u8 {
        std::ptr::null()
    }

    /// Copies the bytes at `offset` to `to`, and waits for the copy. Called for GPU memory, never
    /// on a network thread.
    ///
    /// # Errors
    /// The device failed.
    fn read(&self, _offset: usize, _to: &mut [u8]) -> Result<()> {
        Err(Error::internal("this memory cannot be copied to the CPU"))
    }

    /// Copies `from` to the bytes at `offset`, and waits for the copy. Called for GPU memory, never
    /// on a network thread.
    ///
    /// # Errors
    /// The device failed.
    fn write(&self, _offset: usize, _from: &[u8]) -> Result<()> {
        Err(Error::internal("this memory cannot be written by the CPU"))
    }

    /// Copies `len` bytes at address `from`, in memory of any GPU, to the bytes at `offset`, and
    /// waits for the copy. Called for GPU memory, never on a network thread.
    ///
    /// # Errors
    /// The device failed.
    fn copy_from_gpu(&self, _offset: usize, _from: *const u8, _len: usize) -> Result<()> {
        Err(Error::internal("this memory cannot be written by a GPU"))
    }
}

/// A block of placed memory, freed with its last user.
pub struct PlacedMemory {
    ptr: *mut u8,
    len: usize,
    location: MemoryLocation,
    shared: bool,
    owner: Arc<dyn MemoryOwner>,
}

// SAFETY: the memory is valid on every thread, and its owner is `Send` and `Sync`.
unsafe impl Send for PlacedMemory {}
// SAFETY: the address is valid on all threads and the owner is `Sync`; code that accesses the
// memory through the address upholds the contract of that access.
unsafe impl Sync for PlacedMemory {}

impl PlacedMemory {
    /// `shared`: another process can change the content at any time.
    ///
    /// # Safety
    /// While `owner` lives, `len` bytes at `ptr` are memory of this location that may be read and
    /// written; initialised, if the CPU can access it.
    pub unsafe fn new(
        ptr: *mut u8,
        len: usize,
        location: MemoryLocation,
        shared: bool,
        owner: Arc<dyn MemoryOwner>,
    ) -> Arc<Self> {
        Arc::new(Self { ptr, len, location, shared, owner })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn location(&self) -> MemoryLocation {
        self.location
    }

    /// Another process can change the content at any time.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// See [`MemoryOwner::fault`].
    pub fn fault(&self) -> Option<Error> {
        self.owner.fault()
    }

    /// See [`MemoryOwner::ready_event`].
    pub fn ready_event(&self) -> *const u8 {
        self.owner.ready_event()
    }

    pub fn owner(&self) -> &Arc<dyn MemoryOwner> {
        &self.owner
    }
}

impl fmt::Debug for PlacedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {}", self.len, self.location)
    }
}

/// A range of placed memory.
#[derive(Clone)]
pub struct PlacedSlice {
    memory: Arc<PlacedMemory>,
    offset: usize,
    len: usize,
}

impl PlacedSlice {
    /// `None` if the range is not inside the memory.
    pub fn new(memory: &Arc<PlacedMemory>, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= memory.len).then(|| Self { memory: Arc::clone(memory), offset, len })
    }

    pub fn memory(&self) -> &Arc<PlacedMemory> {
        &self.memory
    }

    /// Offset in [`PlacedSlice::memory`].
    pub fn offset(&self) -> usize {
        self.offset
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn location(&self) -> MemoryLocation {
        self.memory.location
    }

    /// The address, on the device if it is GPU memory.
    pub fn as_ptr(&self) -> *mut u8 {
        // The range was checked, so this does not wrap; device addresses are not dereferenced here.
        self.memory.ptr.wrapping_add(self.offset)
    }

    /// `range` of this slice.
    ///
    /// # Panics
    /// The range is not inside the slice.
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {}", self.len);
        let memory = Arc::clone(&self.memory);
        Self { memory, offset: self.offset + range.start, len: range.len() }
    }

    /// The slices have bytes in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        let range = |s: &Self| (s.as_ptr().addr(), s.as_ptr().addr() + s.len);
        let ((begin, end), (other_begin, other_end)) = (range(self), range(other));
        self.location() == other.location() && begin.max(other_begin) < end.min(other_end)
    }

    /// The bytes, if the CPU can access them. Those of client shared memory may change while they
    /// are read, so what is checked must be copied first.
    pub fn readable(&self) -> Option<&[u8]> {
        if !self.location().is_cpu_accessible() {
            return None;
        }
        if self.len == 0 {
            return Some(&[]);
        }
        // SAFETY: inside the memory, which its owner keeps. Another process that writes it changes
        // the values, and every value is a valid `u8`.
        Some(unsafe { std::slice::from_raw_parts(self.as_ptr(), self.len) })
    }

    /// The bytes in CPU memory that no other process changes; a copy if this memory is shared or on
    /// a device. Not on a network thread for GPU memory, because that waits for the device.
    ///
    /// # Errors
    /// There is no memory for the copy, the memory has a fault, or the device failed.
    pub fn to_cpu(&self) -> Result<Bytes> {
        let out_of_memory = |e: super::buffer::AllocError| e.refuse("the copy of a tensor");
        match self.readable() {
            Some(_) if !self.memory.shared => Ok(Bytes::from_owner(ReadableSlice(self.clone()))),
            Some(bytes) => {
                let copy = AlignedBuf::try_copy(None, &[bytes], LedgerHolder::Input);
                let copy = copy.map_err(out_of_memory)?;
                self.memory.fault().map_or_else(|| Ok(copy.into_bytes()), Err)
            }
            None => {
                let copy = AlignedBuf::unwritten(self.len, LedgerHolder::Input);
                let mut copy = copy.map_err(out_of_memory)?;
                self.memory.owner.read(self.offset, copy.as_mut())?;
                Ok(copy.into_bytes())
            }
        }
    }

    /// Copies `from`, which is GPU memory, to the beginning of the slice. Waits for the device: not
    /// on a network thread.
    ///
    /// # Errors
    /// The device failed, or there is no memory for a copy.
    ///
    /// # Panics
    /// `from` is longer than the slice.
    pub fn copy_from_gpu(&self, from: &Self) -> Result<()> {
        assert!(from.len <= self.len, "{} bytes of {}", from.len, self.len);
        if self.location().is_cpu_accessible() {
            return self.write(&[&from.to_cpu()?]);
        }
        self.memory.owner.copy_from_gpu(self.offset, from.as_ptr(), from.len)
    }

    /// Writes `parts`, one after another, to the beginning of the slice. Not on a network thread
    /// for GPU memory.
    ///
    /// # Errors
    /// The device failed.
    ///
    /// # Panics
    /// The parts are longer than the slice.
    pub fn write(&self, parts: &[&[u8]]) -> Result<()> {
        let mut at = 0;
        for part in parts {
            assert!(part.len() <= self.len - at, "{} bytes at {at} of {}", part.len(), self.len);
            if self.location().is_cpu_accessible() {
                // SAFETY: inside the memory, which may be written; `part` may be a range of the
                // same memory.
                unsafe { self.as_ptr().add(at).copy_from(part.as_ptr(), part.len()) };
            } else {
                self.memory.owner.write(self.offset + at, part)?;
            }
            at += part.len();
        }
        Ok(())
    }
}

impl fmt::Debug for PlacedSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {} of {:?}", self.len, self.offset, self.memory)
    }
}

/// The same memory, not the same content.
impl PartialEq for PlacedSlice {
    fn eq(&self, other: &Self) -> bool {
        let place = |s: &Self| (s.as_ptr(), s.len, s.location());
        place(self) == place(other)
    }
}

impl Eq for PlacedSlice {}

/// A slice that the CPU can access and no other process changes, as owner of `Bytes`.
struct ReadableSlice(PlacedSlice);

impl AsRef<[u8]> for ReadableSlice {
    fn as_ref(&self) -> &[u8] {
        self.0.readable().unwrap_or_default()
    }
}

/// Output destination: where the client wants an output to be written, such as a range of its
/// shared memory.
#[derive(Debug, PartialEq, Eq)]
pub struct OutputMemory {
    slice: PlacedSlice,
    /// The client's name of the output, if the model that writes it has another one.
    name: Option<Arc<str>>,
}

impl OutputMemory {
    pub fn new(slice: PlacedSlice) -> Self {
        Self { slice, name: None }
    }

    /// The same for a step of an ensemble: `name` is the ensemble's name of the output.
    pub fn named_for_step(&self, name: &Arc<str>) -> Self {
        Self { slice: self.slice.clone(), name: Some(Arc::clone(name)) }
    }

    pub fn slice(&self) -> &PlacedSlice {
        &self.slice
    }

    /// The memory for an output of `len` bytes, if a backend can write it directly: the output
    /// fits, the memory is aligned to `align` bytes, and on `gpu`, or without one the CPU can
    /// access it. It is not zeroed: it holds data of the client only.
    pub fn direct(
        &self,
        len: usize,
        align: usize,
        gpu: Option<MemoryLocation>,
    ) -> Option<PlacedSlice> {
        let location = self.slice.location();
        let suits = len <= self.slice.len
            && gpu.map_or(location.is_cpu_accessible(), |gpu| gpu == location)
            && self.slice.as_ptr().addr().is_multiple_of(align);
        suits.then(|| self.slice.slice(0..len))
    }

    /// The memory for output `name` of `len` bytes: the beginning of the destination.
    ///
    /// # Errors
    /// The destination is too small.
    pub fn take(&self, name: &str, len: usize) -> Result<PlacedSlice> {
        if len > self.slice.len {
            let name = self.name.as_deref().unwrap_or(name);
            return Err(Error::internal(format!(
                "shared memory size specified with the request for output '{name}' ({} bytes) should be at least {len} bytes to \
                 hold the results",
                self.slice.len
            )));
        }
        Ok(self.slice.slice(0..len))
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
