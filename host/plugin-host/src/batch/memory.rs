//! Memory of outputs: allocated by the host, or donated by the backend.

use super::gpu::{DeviceOutput, GpuInstance};
use bytes::Bytes;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::MemoryTag;
use trtserver_plugin_api::abi::host::Release;
use trtserver_plugin_api::abi::types::{self, Buf, memory_type};
use trtserver_request::TensorData;
use trtserver_request::buffer;
use trtserver_request::buffer::{AlignedBuf, AllocError};
use trtserver_request::memory::{MemoryLocation, MemoryType, PlacedSlice};

/// A location, for backends.
pub fn abi_memory(location: MemoryLocation) -> types::Memory {
    let memory_type = match location.memory_type {
        MemoryType::Cpu => memory_type::CPU,
        MemoryType::Pinned => memory_type::PINNED,
        MemoryType::Gpu => memory_type::GPU,
    };
    types::Memory { memory_type, device_id: location.device_id }
}

/// The GPU of the instance, if a backend prefers its memory.
pub fn preferred_gpu(
    preferred: types::Memory,
    gpu: Option<&Arc<GpuInstance>>,
) -> Option<&Arc<GpuInstance>> {
    if preferred.memory_type != memory_type::GPU {
        return None;
    }
    gpu.filter(|gpu| abi_memory(gpu.location()) == preferred)
}

/// An output's bytes while the plugin may still write them.
pub enum OutputStorage {
    Ours(AlignedBuf),
    /// The output's destination.
    Placed(PlacedSlice),
    Donated(Bytes),
    Device(Box<DeviceOutput>),
    /// Taken until it is written, and copied to the CPU unless it stays.
    Copying(usize),
}

impl OutputStorage {
    /// Host memory for the backend to write, entered under `tag`; on the GPU of the instance if
    /// that is preferred.
    ///
    /// # Errors
    /// Out of memory.
    pub fn allocate(
        name: &str,
        bytes: u64,
        preferred: types::Memory,
        gpu: Option<&Arc<GpuInstance>>,
        tag: MemoryTag,
    ) -> Result<(Self, Buf)> {
        if let Some(gpu) = preferred_gpu(preferred, gpu) {
            let output = gpu.alloc_output(bytes, tag);
            let named =
                |e: Error| Error { message: format!("output '{name}': {}", e.message), ..e };
            let output = output.map_err(named)?;
            let buf = output.buf();
            return Ok((Self::Device(Box::new(output)), buf));
        }
        let block = usize::try_from(bytes).map_err(|_| AllocError::System(usize::MAX));
        let block = block.and_then(|bytes| AlignedBuf::zeroed(bytes, tag));
        let mut block = block.map_err(|e| out_of_memory(name, e))?;
        let ptr = block.as_mut_ptr();
        let buf = Buf {
            ptr,
            bytes,
            memory: types::Memory::CPU,
            ready: std::ptr::null_mut(),
            memory_handle: 0,
        };
        Ok((Self::Ours(block), buf))
    }

    /// The destination of an output, for the backend to write directly.
    pub fn destination(slice: PlacedSlice, tag: MemoryTag) -> (Self, Buf) {
        if !slice.location().is_cpu_accessible() {
            let output = DeviceOutput::in_destination(slice, tag);
            let buf = output.buf();
            return (Self::Device(Box::new(output)), buf);
        }
        let (ptr, bytes) = (slice.as_ptr(), slice.len() as u64);
        let memory = abi_memory(slice.location());
        let buf = Buf { ptr, bytes, memory, ready: std::ptr::null_mut(), memory_handle: 0 };
        (Self::Placed(slice), buf)
    }

    /// Donated memory, see [`Donation::bytes`].
    ///
    /// # Errors
    /// Out of memory for the copy, or the instance has no GPU to read the memory.
    pub fn adopt(
        name: &str,
        donation: &mut Option<Donation>,
        parts: &[Buf],
        gpu: Option<&Arc<GpuInstance>>,
        tag: MemoryTag,
    ) -> Result<Self> {
        if parts.iter().any(|p| p.memory.memory_type > memory_type::PINNED) {
            if gpu.is_none() {
                return Err(Error::unsupported(format!(
                    "output '{name}' was donated in memory of a device; an instance without a GPU reads CPU memory only"
                )));
            }
            let output = DeviceOutput::donated(parts, donation.take(), tag);
            return Ok(Self::Device(Box::new(output)));
        }
        let data = Donation::bytes(donation, parts, tag).map_err(|e| out_of_memory(name, e))?;
        Ok(Self::Donated(data))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Ours(block) => block.len(),
            Self::Placed(slice) => slice.len(),
            Self::Donated(bytes) => bytes.len(),
            Self::Device(output) => output.len(),
            Self::Copying(len) => *len,
        }
    }

    pub fn is_on_device(&self) -> bool {
        matches!(self, Self::Device(_))
    }

    /// Takes an output in device memory, for [`GpuInstance::download`].
    pub fn take_device_output(&mut self) -> Option<DeviceOutput> {
        if !self.is_on_device() {
            return None;
        }
        let len = self.len();
        match std::mem::replace(self, Self::Copying(len)) {
            Self::Device(output) => Some(*output),
            _ => None,
        }
    }

    /// Puts the next written output in, if this one was taken.
    pub fn put_written(&mut self, written: &mut impl Iterator<Item = TensorData>) {
        if matches!(self, Self::Copying(_))
            && let Some(data) = written.next()
        {
            *self = data.into();
        }
    }

    /// The finished output; not written any more.
    ///
    /// # Errors
    /// It was not copied from the device.
    pub fn into_data(self) -> Result<TensorData> {
        match self {
            Self::Ours(block) => Ok(block.into_bytes().into()),
            Self::Placed(slice) => Ok(slice.into()),
            Self::Donated(bytes) => Ok(bytes.into()),
            Self::Device(_) | Self::Copying(_) => {
                Err(Error::internal("an output was not copied from GPU memory"))
            }
        }
    }
}

impl From<TensorData> for OutputStorage {
    fn from(data: TensorData) -> Self {
        match data {
            TensorData::Cpu(bytes) => Self::Donated(bytes),
            TensorData::Placed(slice) => Self::Placed(slice),
        }
    }
}

/// Memory donated by a backend. Its release function is called exactly once, when the last user
/// drops it.
pub struct Donation {
    release: Release,
    ctx: *mut u8,
    view: *const u8,
    len: usize,
    /// What `len` bytes are entered under, once they are an output.
    tag: Option<MemoryTag>,
}

// SAFETY: by the interface the release may be called on any thread, and the memory is read-only
// from then on.
unsafe impl Send for Donation {}
// SAFETY: shared access only reads the donated memory, which the backend does not change until its
// release.
unsafe impl Sync for Donation {}

impl Donation {
    pub fn new(release: Release, ctx: *mut u8) -> Self {
        Self { release, ctx, view: std::ptr::null(), len: 0, tag: None }
    }

    /// The memory in `parts` as one piece, without a copy if it is one part. If it was copied,
    /// `donation` stays for the caller to drop when no lock is held, because that calls the
    /// backend. The parts were checked by [`size_of_parts`].
    ///
    /// # Errors
    /// There is no memory for the copy.
    fn bytes(
        donation: &mut Option<Self>,
        parts: &[Buf],
        tag: MemoryTag,
    ) -> Result<Bytes, AllocError> {
        match parts {
            [] => Ok(Bytes::new()),
            // Not in a child process: outputs must be in its arena.
            [one] if !buffer::uses_arena() => {
                // The caller passes a donation that was not taken yet.
                let Some(mut whole) = donation.take() else { return Ok(Bytes::new()) };
                (whole.view, whole.len) = (one.ptr, one.bytes as usize);
                whole.tag = Some(tag);
                tag.add_small(whole.len);
                Ok(Bytes::from_owner(whole))
            }
            several => {
                // SAFETY: each part is readable memory until the release.
                let slices: Vec<&[u8]> = several
                    .iter()
                    .filter(|p| p.bytes > 0)
                    .map(|p| unsafe {
                        std::slice::from_raw_parts(p.ptr.cast_const(), p.bytes as usize)
                    })
                    .collect();
                Ok(AlignedBuf::try_copy(None, &slices, tag)?.into_bytes())
            }
        }
    }
}

impl AsRef<[u8]> for Donation {
    fn as_ref(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: by the interface the memory is valid until its release.
        unsafe { std::slice::from_raw_parts(self.view, self.len) }
    }
}

impl Drop for Donation {
    fn drop(&mut self) {
        if let Some(tag) = self.tag {
            tag.remove_small(self.len);
        }
        if let Some(release) = self.release.func {
            // SAFETY: exactly once, by construction.
            unsafe { release(self.ctx) };
        }
    }
}

fn out_of_memory(name: &str, error: AllocError) -> Error {
    error.refuse(&format!("output '{name}'"))
}

/// Total bytes of all parts.
///
/// # Errors
/// The sum exceeds the address space, or a part with bytes is null.
pub fn size_of_parts(name: &str, parts: &[Buf]) -> Result<u64> {
    let bytes = parts.iter().try_fold(0u64, |sum, p| sum.checked_add(p.bytes));
    let Some(bytes) = bytes.filter(|n| isize::try_from(*n).is_ok()) else {
        return Err(Error::internal(format!("output '{name}' was donated with an invalid size")));
    };
    if parts.iter().any(|p| p.ptr.is_null() && p.bytes > 0) {
        return Err(Error::internal(format!("output '{name}' was donated as a null pointer")));
    }
    Ok(bytes)
}
