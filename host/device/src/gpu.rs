//! One GPU: what the driver says about it, and its events and memory.

use super::api::{CuPtr, CudaApi, CudaError};
use super::context::CudaContext;
use super::event::EventPool;
use super::ipc::IpcMemory;
use super::load_measure::LoadGroup;
use super::pinned::{PinnedMemory, PinnedPool};
use super::pool::{DeviceMemory, DevicePool};
use super::registered::RegisteredMemory;
use super::stream::CudaStream;
use cudarc::driver::sys::CUdevice_attribute::*;
use cudarc::driver::sys::CUuuid;
use parking_lot::Mutex;
use std::ffi::{CStr, c_char, c_int};
use std::fmt::Write;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::MemoryTag;

/// A GPU that this process sees.
pub struct GpuDevice {
    /// CUDA ordinal, which counts the visible devices only (`CUDA_VISIBLE_DEVICES`).
    pub ordinal: i32,
    pub name: String,
    pub uuid: [u8; 16],
    /// Major and minor number.
    pub compute_capability: (i32, i32),
    pub total_memory: u64,
    pub pci_bus_id: String,
    context: &'static CudaContext,
    events: &'static EventPool,
    pool: &'static DevicePool,
    pinned: &'static PinnedPool,
    /// Streams of `copy_and_wait` that no call uses.
    copies: Mutex<Vec<CudaStream>>,
    /// Instances whose streams are not destroyed.
    pub(super) open_streams: AtomicUsize,
    /// Loads in progress.
    pub(super) loads: Mutex<LoadGroup>,
}

impl GpuDevice {
    /// Asks the driver; creates no context. `keep`: bytes of free memory that its pool keeps.
    pub(super) fn find(
        api: &'static CudaApi,
        ordinal: i32,
        keep: u64,
        pinned: &'static PinnedPool,
    ) -> Result<Self, CudaError> {
        let mut device = 0;
        let mut uuid = CUuuid { bytes: [0; 16] };
        let (mut name, mut bus) = ([0; 256], [0; 64]);
        let mut total = 0;
        // SAFETY: the pointers are valid for the sizes given.
        unsafe {
            api.device_get(&mut device, ordinal)?;
            api.device_name(name.as_mut_ptr(), name.len() as c_int, device)?;
            api.device_uuid(&mut uuid, device)?;
            api.device_total_memory(&mut total, device)?;
            api.device_pci_bus_id(bus.as_mut_ptr(), bus.len() as c_int, device)?;
        }
        let attribute = |number| {
            let mut value = 0;
            // SAFETY: the pointer is valid.
            unsafe { api.device_attribute(&mut value, number, device) }.map(|()| value)
        };
        let pools = api.has_pools()
            && attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED).is_ok_and(|has| has != 0);
        let context: &'static CudaContext =
            Box::leak(Box::new(CudaContext::new(api, ordinal, device)));
        let events: &'static EventPool = Box::leak(Box::new(EventPool::new(context)));
        Ok(Self {
            ordinal,
            name: c_text(&name),
            uuid: uuid.bytes.map(|byte| byte as u8),
            compute_capability: (
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            total_memory: total as u64,
            pci_bus_id: c_text(&bus),
            context,
            events,
            pool: Box::leak(Box::new(DevicePool::new(context, events, pools, keep))),
            pinned,
            copies: Mutex::default(),
            open_streams: AtomicUsize::new(0),
            loads: Mutex::default(),
        })
    }

    pub fn context(&self) -> &'static CudaContext {
        self.context
    }

    pub fn events(&self) -> &'static EventPool {
        self.events
    }

    pub fn pool(&self) -> &'static DevicePool {
        self.pool
    }

    pub fn pinned(&self) -> &'static PinnedPool {
        self.pinned
    }

    /// Device memory, see [`DevicePool::alloc`].
    pub fn alloc(
        &self,
        bytes: usize,
        stream: &Arc<CudaStream>,
        tag: impl Into<MemoryTag>,
    ) -> Result<DeviceMemory> {
        self.pool.alloc(bytes, stream, tag.into())
    }

    /// Pinned host memory, see [`PinnedPool::alloc`].
    pub fn alloc_pinned(&self, bytes: usize, tag: impl Into<MemoryTag>) -> Result<PinnedMemory> {
        self.pinned.alloc(self.context, bytes, tag.into())
    }

    /// Pins memory of another owner, see [`RegisteredMemory`].
    ///
    /// # Errors
    /// There is no room for it, or the driver refuses: devices copy it as pageable memory.
    ///
    /// # Safety
    /// The memory, whole pages, stays mapped until the result is dropped.
    pub unsafe fn register_memory(
        &self,
        start: NonNull<u8>,
        bytes: usize,
    ) -> Result<RegisteredMemory> {
        // SAFETY: the caller's promise.
        unsafe { RegisteredMemory::pin(self.pinned, self.context, start, bytes) }
    }

    /// Opens memory of another process.
    ///
    /// # Errors
    /// The handle is invalid, of this process, or of another device; or the device is lost.
    pub fn open_ipc(&self, handle: [u8; 64]) -> Result<IpcMemory> {
        IpcMemory::open(self.context, handle)
    }

    /// Copies between host and device memory and waits for it, on a stream of its own: for tensors
    /// whose instance has none.
    ///
    /// # Safety
    /// Both ranges are valid, the source unchanged and the target unused, until the call returns.
    pub unsafe fn copy_and_wait(&self, to: CuPtr, from: CuPtr, bytes: usize) -> Result<()> {
        let mut free = self.copies.lock();
        let stream = match free.pop() {
            Some(stream) => stream,
            None => CudaStream::new(self.context, 0)?,
        };
        drop(free);
        // SAFETY: the caller's promise.
        unsafe { stream.copy(to, from, bytes)? };
        stream.settle()?;
        self.copies.lock().push(stream);
        Ok(())
    }

    /// Why the device cannot be used until the process ends; `None` for a usable device.
    pub fn lost(&self) -> Option<&str> {
        self.context.lost()
    }

    /// The error of whatever needs the device, if it is lost.
    pub fn fault(&self) -> Option<Error> {
        self.context.fault()
    }

    /// Free and total bytes, of all processes.
    pub fn memory_info(&self) -> Result<(u64, u64)> {
        let _entered = self.context.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: a context is current and the pointers are valid.
        self.context.check(unsafe { self.context.api.memory_info(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// The UUID as NVML writes it: `GPU-` and groups of 8, 4, 4, 4 and 12 digits.
    pub fn uuid_text(&self) -> String {
        let mut text = "GPU".to_owned();
        for (i, byte) in self.uuid.iter().enumerate() {
            if matches!(i, 0 | 4 | 6 | 8 | 10) {
                text.push('-');
            }
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// The compute capability as configurations write it, such as `7.5`.
    pub fn compute_capability_text(&self) -> String {
        format!("{}.{}", self.compute_capability.0, self.compute_capability.1)
    }
}

fn c_text(chars: &[c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().map(|c| *c as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map_or(String::new(), |s| s.to_string_lossy().into_owned())
}
