//! Pinned host memory, from and to which devices copy without the driver's staging buffers.

use super::api::{Api, HOST_ALLOC_PORTABLE};
use super::context::Context;
use super::pool::PoolBytes;
use super::size_class::size_class;
use crate::error::{Code, Error, Result};
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// The pinned memory of the process. Blocks stay pinned, because pinning takes milliseconds.
pub struct PinnedPool {
    api: &'static Api,
    /// Bytes that may be pinned.
    limit: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    free: BTreeMap<usize, Vec<Address>>,
    used: u64,
    peak: u64,
    held: u64,
}

struct Address(NonNull<u8>);

// SAFETY: memory that the pool owns, used by one thread at a time.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl PinnedPool {
    pub(super) fn new(api: &'static Api, limit: u64) -> Self {
        Self { api, limit, state: Mutex::default() }
    }

    /// A block for copies to and from any device; pinned through `context`. Its contents are undefined.
    ///
    /// # Errors
    /// The pool is exhausted: the caller may copy from or to pageable memory instead.
    pub fn alloc(&'static self, context: &'static Context, bytes: usize) -> Result<PinnedMemory> {
        let class = size_class(bytes).filter(|class| *class as u64 <= self.limit);
        let class = class.ok_or_else(|| self.exhausted(bytes))?;
        let mut state = self.state.lock();
        if let Some(address) = state.free.get_mut(&class).and_then(Vec::pop) {
            return Ok(self.hand_out(&mut state, address, class, bytes));
        }
        let mut unpinned = Vec::new();
        // Free blocks of other sizes make place.
        while state.held + class as u64 > self.limit {
            let Some((&other, blocks)) = state.free.iter_mut().find(|(_, b)| !b.is_empty()) else {
                break;
            };
            unpinned.extend(blocks.pop());
            state.held -= other as u64;
        }
        let fits = state.held + class as u64 <= self.limit;
        if fits {
            state.held += class as u64;
        }
        // Pinning and unpinning take long.
        drop(state);
        let _entered = context.enter()?;
        for address in unpinned {
            self.unpin(context, address);
        }
        if !fits {
            return Err(self.exhausted(bytes));
        }
        let pinned = self.pin(context, class);
        let mut state = self.state.lock();
        match pinned {
            Ok(address) => Ok(self.hand_out(&mut state, address, class, bytes)),
            Err(e) => {
                state.held -= class as u64;
                Err(e)
            }
        }
    }

    pub fn bytes(&self) -> PoolBytes {
        let state = self.state.lock();
        PoolBytes { used: state.used, peak_used: state.peak, held: state.held }
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn hand_out(
        &'static self,
        state: &mut State,
        address: Address,
        class: usize,
        bytes: usize,
    ) -> PinnedMemory {
        state.used += class as u64;
        state.peak = state.peak.max(state.used);
        PinnedMemory { pool: self, address, class, bytes }
    }

    fn pin(&self, context: &Context, class: usize) -> Result<Address> {
        let mut address: *mut c_void = null_mut();
        // SAFETY: the context is current and the pointer is valid.
        let result = unsafe { self.api.host_alloc(&mut address, class, HOST_ALLOC_PORTABLE) };
        context.check(result)?;
        NonNull::new(address.cast())
            .map(Address)
            .ok_or_else(|| Error::internal("cuMemHostAlloc returned no memory"))
    }

    fn unpin(&self, context: &Context, address: Address) {
        // SAFETY: the block came from `cuMemHostAlloc` and is in no list.
        let result = unsafe { self.api.host_free(address.0.as_ptr().cast()) };
        if let Err(e) = context.check(result) {
            tracing::error!("cannot free pinned memory: {e}");
        }
    }

    #[cold]
    fn exhausted(&self, bytes: usize) -> Error {
        let used = self.state.lock().used;
        let message = format!(
            "pinned memory pool exhausted: {bytes} bytes requested, {used} of {} are in use \
             (--pinned-memory-pool-byte-size)",
            self.limit
        );
        Error::new(Code::ResourceExhausted, message)
    }
}

/// A block of pinned memory. It is used again after it is dropped: copies from and to it must be complete by then.
pub struct PinnedMemory {
    pool: &'static PinnedPool,
    address: Address,
    class: usize,
    bytes: usize,
}

impl PinnedMemory {
    pub fn as_ptr(&self) -> *mut u8 {
        self.address.0.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        state.used -= self.class as u64;
        state.free.entry(self.class).or_default().push(Address(self.address.0));
    }
}
