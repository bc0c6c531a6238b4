//! Device memory, allocated and freed in the order of a stream: by the driver's memory pool, or by
//! free lists of our own where the driver has none.

use super::api::{CuPool, CuPtr};
use super::context::CudaContext;
use super::event::EventPool;
use super::free_lists::FreeLists;
use super::stream::CudaStream;
use cudarc::driver::sys::CUmemPool_attribute::*;
use cudarc::driver::sys::{
    CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation, CUmemLocationType,
    CUmemPoolProps,
};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use trtserver_base::error::{Error, Result};
use trtserver_base::ledger::{LedgerHolder, LedgerOwner, LedgerTable, MemoryTag};

/// The memory pool of a device.
pub struct DevicePool {
    context: &'static CudaContext,
    /// Free bytes that the pool keeps; more are given back to the driver.
    keep: u64,
    source: OnceLock<PoolSource>,
    lists: FreeLists,
    used: AtomicU64,
    peak: AtomicU64,
    /// `used`, by owner and holder.
    tagged: LedgerTable,
}

/// Where the memory comes from.
enum PoolSource {
    Driver(DriverPool),
    Lists,
}

struct DriverPool(CuPool);

// SAFETY: a handle of the driver, whose functions may be called on any thread.
unsafe impl Send for DriverPool {}
// SAFETY: the driver accepts calls with one pool handle from several threads at once.
unsafe impl Sync for DriverPool {}

/// Bytes of a memory pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolBytes {
    /// Bytes in blocks that are in use.
    pub used: u64,
    pub peak_used: u64,
    /// Taken from the driver: in use, or free and kept.
    pub held: u64,
}

impl DevicePool {
    pub(super) fn new(
        context: &'static CudaContext,
        events: &'static EventPool,
        driver_has_pools: bool,
        keep: u64,
    ) -> Self {
        let source = OnceLock::new();
        if !driver_has_pools {
            let _ = source.set(PoolSource::Lists);
        }
        Self {
            context,
            keep,
            source,
            lists: FreeLists::new(context, events, keep),
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            tagged: LedgerTable::new(),
        }
    }

    /// Memory for work that is queued on `stream` from now on, entered under `tag`. Its contents
    /// are undefined.
    ///
    /// # Errors
    /// The device has too little free memory, or is lost.
    pub fn alloc(
        &'static self,
        bytes: usize,
        stream: &Arc<CudaStream>,
        tag: MemoryTag,
    ) -> Result<DeviceMemory> {
        let _entered = self.context.enter()?;
        // The driver has no empty blocks.
        let taken = bytes.max(1);
        let address = match self.source()? {
            PoolSource::Driver(pool) => {
                let mut address = 0;
                // SAFETY: pool and stream are alive, the pointer is valid.
                let result = unsafe {
                    self.context.api.pool_alloc(&mut address, taken, pool.0, stream.handle())
                };
                self.context.check(result).map_err(|e| self.explain(bytes, e))?;
                address
            }
            PoolSource::Lists => {
                self.lists.alloc(taken, stream).map_err(|e| self.explain(bytes, e))?
            }
        };
        let used = self.used.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.peak.fetch_max(used, Ordering::Relaxed);
        self.tagged.add(tag, bytes);
        Ok(DeviceMemory { pool: self, stream: Arc::clone(stream), address, bytes, tag })
    }

    /// Bytes in use of an owner and holder.
    pub fn owner_bytes(&self, owner: LedgerOwner, holder: LedgerHolder) -> usize {
        self.tagged.bytes(owner, holder)
    }

    pub fn bytes(&self) -> PoolBytes {
        let held = match self.source.get() {
            None => 0,
            Some(PoolSource::Lists) => self.lists.held(),
            Some(PoolSource::Driver(pool)) => self.reserved(pool),
        };
        PoolBytes {
            used: self.used.load(Ordering::Relaxed),
            peak_used: self.peak.load(Ordering::Relaxed),
            held,
        }
    }

    /// Gives the free memory back to the driver.
    pub fn trim(&self) {
        let Ok(_entered) = self.context.enter() else { return };
        match self.source.get() {
            None => {}
            Some(PoolSource::Lists) => self.lists.trim(),
            Some(PoolSource::Driver(pool)) => {
                // SAFETY: the pool is alive.
                let _ = self.context.check(unsafe { self.context.api.pool_trim(pool.0, 0) });
            }
        }
    }

    fn reserved(&self, pool: &DriverPool) -> u64 {
        let mut bytes = 0u64;
        let Ok(_entered) = self.context.enter() else { return 0 };
        // SAFETY: the pool is alive, and the attribute is of 64 bits.
        let result = unsafe {
            let value = (&raw mut bytes).cast::<c_void>();
            self.context.api.pool_get(pool.0, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, value)
        };
        result.map_or(0, |()| bytes)
    }

    fn source(&self) -> Result<&PoolSource> {
        if let Some(source) = self.source.get() {
            return Ok(source);
        }
        // Two threads may both create a pool; one that loses is empty and stays unused.
        let created = PoolSource::Driver(self.create()?);
        Ok(self.source.get_or_init(|| created))
    }

    /// A pool of our own: a framework that uses the device's default pool changes nothing in this
    /// one.
    fn create(&self) -> Result<DriverPool> {
        let props = CUmemPoolProps {
            allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: self.context.device,
            },
            win32SecurityAttributes: null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        let (mut pool, mut keep) = (null_mut(), self.keep);
        // SAFETY: the pointers are valid, and the attribute is of 64 bits.
        self.context.check(unsafe { self.context.api.pool_create(&mut pool, &props) })?;
        let keep = (&raw mut keep).cast::<c_void>();
        // SAFETY: the pool was just created, and `keep` points to a local variable of 64 bits, as
        // the attribute requires.
        let set =
            unsafe { self.context.api.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, keep) };
        self.context.check(set)?;
        Ok(DriverPool(pool))
    }

    #[cold]
    fn explain(&self, bytes: usize, e: Error) -> Error {
        let used = self.used.load(Ordering::Relaxed);
        let message =
            format!("{}; {bytes} bytes requested, the server's pool uses {used}", e.message);
        Error::new(e.code, message)
    }

    fn free(&self, address: CuPtr, bytes: usize, stream: &Arc<CudaStream>) {
        self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
        // A lost device gives nothing back before the process ends.
        let Ok(_entered) = self.context.enter() else { return };
        match self.source.get() {
            Some(PoolSource::Driver(_)) => {
                // SAFETY: the block is in use and nothing uses it after this point of the stream.
                let freed = unsafe { self.context.api.free_async(address, stream.handle()) };
                if let Err(e) = self.context.check(freed) {
                    tracing::error!("cannot free {bytes} bytes: {e}");
                }
            }
            _ => self.lists.free(address, bytes.max(1), stream),
        }
    }
}

/// A block of device memory. Dropping it frees it in the order of the stream that it was allocated
/// for, or of
/// [`DeviceMemory::release_on`]: all other work that uses the memory must be complete by then, or that stream must wait
/// for it.
pub struct DeviceMemory {
    pool: &'static DevicePool,
    stream: Arc<CudaStream>,
    address: CuPtr,
    bytes: usize,
    tag: MemoryTag,
}

impl DeviceMemory {
    pub fn address(&self) -> CuPtr {
        self.address
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub fn context(&self) -> &'static CudaContext {
        self.pool.context
    }

    /// The stream that orders the release.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// Frees the memory in the order of another stream, whose work uses it last.
    pub fn release_on(&mut self, stream: &Arc<CudaStream>) {
        self.stream = Arc::clone(stream);
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.pool.tagged.remove(self.tag, self.bytes);
        self.pool.free(self.address, self.bytes, &self.stream);
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
