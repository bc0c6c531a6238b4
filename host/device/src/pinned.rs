//! Pinned host memory, from and to which devices copy without the driver's staging buffers.

use super::api::{CudaApi, HOST_ALLOC_PORTABLE};
use super::context::CudaContext;
use super::pool::PoolBytes;
use super::size_class::size_class;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_base::error::{Code, Error, Result};
use trtserver_base::ledger::{LedgerHolder, LedgerOwner, LedgerTable, MemoryTag};

/// The pinned memory of the process. Blocks stay pinned, because pinning takes milliseconds.
pub struct PinnedPool {
    api: &'static CudaApi,
    /// Bytes that may be pinned.
    limit: u64,
    state: Mutex<PinnedPoolState>,
    /// Size of a block that a thread wanted which must not wait for pinning; 0 = none.
    wanted: AtomicUsize,
    /// `PinnedPoolState::used`, by owner and holder.
    tagged: LedgerTable,
}

#[derive(Default)]
struct PinnedPoolState {
    free: BTreeMap<usize, Vec<PinnedAddress>>,
    used: u64,
    peak: u64,
    held: u64,
    /// Part of `used`: memory of other owners.
    registered: u64,
}

struct PinnedAddress(NonNull<u8>);

// SAFETY: memory that the pool owns, used by one thread at a time.
unsafe impl Send for PinnedAddress {}
// SAFETY: a shared `PinnedAddress` is only a number; the pool gives the memory at it to one user at
// a time.
unsafe impl Sync for PinnedAddress {}

impl PinnedPool {
    pub(super) fn new(api: &'static CudaApi, limit: u64) -> Self {
        let (state, wanted) = (Mutex::default(), AtomicUsize::new(0));
        Self { api, limit, state, wanted, tagged: LedgerTable::new() }
    }

    /// A block for copies to and from any device; pinned through `context`, entered under `tag`.
    /// Its contents are undefined.
    ///
    /// # Errors
    /// The pool is exhausted: the caller may copy from or to pageable memory instead.
    pub fn alloc(
        &'static self,
        context: &'static CudaContext,
        bytes: usize,
        tag: MemoryTag,
    ) -> Result<PinnedMemory> {
        let class = size_class(bytes).filter(|class| *class as u64 <= self.limit);
        let class = class.ok_or_else(|| self.exhausted(bytes))?;
        if let Some(block) = self.take_free(class, bytes, tag) {
            return Ok(block);
        }
        // Before bytes are counted as held: a device that is lost refuses here.
        let _entered = context.enter()?;
        let (fits, unpinned) = self.make_place(class);
        // Pinning and unpinning take long, so no lock is held.
        for address in unpinned {
            self.unpin(context, address);
        }
        if !fits {
            return Err(self.exhausted(bytes));
        }
        let pinned = self.pin(context, class);
        let mut state = self.state.lock();
        match pinned {
            Ok(address) => Ok(self.hand_out(&mut state, address, (class, bytes), tag)),
            Err(e) => {
                state.held -= class as u64;
                Err(e)
            }
        }
    }

    /// A block that is pinned already. Without one, the next [`PinnedPool::pin_wanted`] adds one of
    /// this size. For threads that must not wait for the driver.
    pub fn take_pinned(&'static self, bytes: usize, tag: MemoryTag) -> Option<PinnedMemory> {
        let class = size_class(bytes).filter(|class| *class as u64 <= self.limit)?;
        let taken = self.take_free(class, bytes, tag);
        if taken.is_none() {
            self.wanted.store(bytes, Ordering::Relaxed);
        }
        taken
    }

    /// Pins the block that [`PinnedPool::take_pinned`] lacked last, if the limit leaves room for it.
    pub fn pin_wanted(&'static self, context: &'static CudaContext) {
        if self.wanted.load(Ordering::Relaxed) == 0 {
            return;
        }
        let bytes = self.wanted.swap(0, Ordering::Relaxed);
        let Some(class) = size_class(bytes).filter(|_| bytes > 0) else { return };
        let Ok(_entered) = context.enter() else { return };
        let mut state = self.state.lock();
        if state.held + class as u64 > self.limit {
            return;
        }
        state.held += class as u64;
        drop(state);
        // A block that is free by now would be missing for the next request in its place.
        let pinned = self.pin(context, class);
        let mut state = self.state.lock();
        match pinned {
            Ok(address) => state.free.entry(class).or_default().push(address),
            // It costs speed only.
            Err(_) => state.held -= class as u64,
        }
    }

    fn take_free(
        &'static self,
        class: usize,
        bytes: usize,
        tag: MemoryTag,
    ) -> Option<PinnedMemory> {
        let mut state = self.state.lock();
        let address = state.free.get_mut(&class)?.pop()?;
        Some(self.hand_out(&mut state, address, (class, bytes), tag))
    }

    /// Counts a new block of this size as held, in place of free blocks of other sizes, which the
    /// caller unpins. False if it does not fit.
    fn make_place(&self, class: usize) -> (bool, Vec<PinnedAddress>) {
        let mut state = self.state.lock();
        let mut unpinned = Vec::new();
        while state.held + class as u64 > self.limit {
            let Some((&other, blocks)) = state.free.iter_mut().find(|(_, b)| !b.is_empty()) else {
                return (false, unpinned);
            };
            unpinned.extend(blocks.pop());
            state.held -= other as u64;
        }
        state.held += class as u64;
        (true, unpinned)
    }

    /// Counts memory of another owner as used and held. It may be half of what the limit allows, so
    /// that there is room for blocks.
    pub(super) fn count_registered(&self, context: &CudaContext, bytes: usize) -> Result<()> {
        let most = self.limit / 2;
        let mut state = self.state.lock();
        let registered = state.registered;
        if registered.saturating_add(bytes as u64) > most {
            let message = format!(
                "{bytes} bytes beside {registered} of other regions are more than {most}, half of \
                 --pinned-memory-pool-byte-size"
            );
            return Err(Error::new(Code::ResourceExhausted, message));
        }
        state.registered += bytes as u64;
        drop(state);
        let (fits, unpinned) = self.make_place(bytes);
        for address in unpinned {
            self.unpin(context, address);
        }
        let mut state = self.state.lock();
        if !fits {
            state.registered -= bytes as u64;
            drop(state);
            return Err(self.exhausted(bytes));
        }
        state.used += bytes as u64;
        state.peak = state.peak.max(state.used);
        Ok(())
    }

    pub(super) fn forget_registered(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.registered -= bytes as u64;
        state.used -= bytes as u64;
        state.held -= bytes as u64;
    }

    pub fn bytes(&self) -> PoolBytes {
        let state = self.state.lock();
        PoolBytes { used: state.used, peak_used: state.peak, held: state.held }
    }

    /// Bytes in use of an owner and holder.
    pub fn owner_bytes(&self, owner: LedgerOwner, holder: LedgerHolder) -> usize {
        self.tagged.bytes(owner, holder)
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn hand_out(
        &'static self,
        state: &mut PinnedPoolState,
        address: PinnedAddress,
        (class, bytes): (usize, usize),
        tag: MemoryTag,
    ) -> PinnedMemory {
        state.used += class as u64;
        state.peak = state.peak.max(state.used);
        self.tagged.add(tag, class);
        PinnedMemory { pool: self, address, class, bytes, tag }
    }

    fn pin(&self, context: &CudaContext, class: usize) -> Result<PinnedAddress> {
        let mut address: *mut c_void = null_mut();
        // SAFETY: the context is current and the pointer is valid.
        let result = unsafe { self.api.host_alloc(&mut address, class, HOST_ALLOC_PORTABLE) };
        context.check(result)?;
        NonNull::new(address.cast())
            .map(PinnedAddress)
            .ok_or_else(|| Error::internal("cuMemHostAlloc returned no memory"))
    }

    fn unpin(&self, context: &CudaContext, address: PinnedAddress) {
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

/// A block of pinned memory. It is used again after it is dropped: copies from and to it must be
/// complete by then.
pub struct PinnedMemory {
    pool: &'static PinnedPool,
    address: PinnedAddress,
    class: usize,
    bytes: usize,
    tag: MemoryTag,
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
        self.pool.tagged.remove(self.tag, self.class);
        let mut state = self.pool.state.lock();
        state.used -= self.class as u64;
        state.free.entry(self.class).or_default().push(PinnedAddress(self.address.0));
    }
}
