//! Host memory for tensors: 64-byte aligned buffers that become `Bytes` without a copy (zero-copy).

use super::pages::MappedPages;
use super::pool::{self, BufferPool};
use super::thread_block::take_piece;
use bytes::{Bytes, BytesMut};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, LazyLock, OnceLock};
use trtserver_base::arena::{Arena, ArenaBlock};
use trtserver_base::budget::{
    BudgetExhaustion, MemoryReservation, model_memory, out_of_memory, request_memory,
};
use trtserver_base::error::Error;
use trtserver_base::ledger::{LedgerHolder, MemoryTag};
use trtserver_base::reclaim;

/// Alignment of every buffer: a cache line, and the widest vector loads of current CPUs.
pub const ALIGN: usize = 64;

/// An owned block of bytes, aligned to [`ALIGN`].
pub struct AlignedBuf {
    ptr: NonNull<u8>,
    len: usize,
    origin: BufferOrigin,
}

/// Why a buffer was not allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocError {
    /// The memory budget cannot provide the bytes.
    Budget(BudgetExhaustion),
    /// The system has no memory for this many bytes.
    System(usize),
}

impl AllocError {
    /// The error that the client sees; `what` needed the memory. Counts the refusal.
    pub fn refuse(self, what: &str) -> Error {
        match self {
            Self::Budget(exhausted) => exhausted.refuse(),
            Self::System(bytes) => out_of_memory(what, bytes),
        }
    }
}

/// Where the memory came from and is returned to.
enum BufferOrigin {
    /// Length 0: no memory.
    Empty,
    /// The allocator; the layout includes padding for the alignment.
    Heap(NonNull<u8>, Layout, MemoryTag),
    /// A small tensor of a request: a piece of a thread's block.
    Piece(BytesMut),
    /// The pool of large blocks.
    Pool(MappedPages, MemoryReservation),
    /// Memory that another part of the host provides.
    Provided(#[allow(dead_code, reason = "returns the block when dropped")] Box<dyn InputBlock>),
    /// Memory shared with another process.
    Arena(#[allow(dead_code, reason = "returns the block when dropped")] ArenaBlock),
}

/// Bodies and fields of messages from this length on are received into an [`InputPool`]: smaller
/// tensors are staged for the device anyway.
pub const POOLED_INPUT: usize = 256 << 10;

/// Memory in which large requests for some model are best received, such as pinned memory. Its size
/// is limited.
pub trait InputPool: Send + Sync {
    /// A block of at least `len` bytes, aligned to [`ALIGN`], with the content of its last user;
    /// `None` if there is none at once.
    fn block(&self, len: usize, tag: MemoryTag) -> Option<Box<dyn InputBlock>>;
}

/// A block of an [`InputPool`], which gets it back when this is dropped.
///
/// # Safety
/// The memory at [`InputBlock::ptr`] has as many initialised bytes as were asked for, and nothing
/// else uses it.
pub unsafe trait InputBlock: Send + Sync {
    fn ptr(&self) -> NonNull<u8>;
}

/// Process-wide: tensors are made and dropped everywhere, also in functions that backends call.
pub(super) static BUFFERS: BufferMemory = BufferMemory {
    arena: OnceLock::new(),
    pool: LazyLock::new(|| Arc::new(BufferPool::new(pool::pool_bound()))),
    mapped: AtomicUsize::new(0),
};

/// Where the memory of buffers comes from.
pub(super) struct BufferMemory {
    /// Set in the child process of an isolated model: every buffer lies in this arena, so that the
    /// host can read it.
    arena: OnceLock<Arc<Arena>>,
    /// Large blocks.
    pub pool: LazyLock<Arc<BufferPool>>,
    /// Bytes of all mappings, written or not.
    pub mapped: AtomicUsize,
}

/// Allocates all buffers of this process from `arena` from now on. A process has one arena: later
/// calls are ignored.
pub fn use_arena(arena: Arc<Arena>) {
    let _ = BUFFERS.arena.set(arena);
}

/// [`use_arena`] was called.
pub fn uses_arena() -> bool {
    BUFFERS.arena.get().is_some()
}

// SAFETY: an `AlignedBuf` owns its memory exclusively, like a `Vec<u8>`.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared access only reads.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// A zeroed buffer of `len` bytes that is not drawn from the memory budget, for memory that
    /// does not belong to a request; `None` if out of memory.
    pub fn try_new(len: usize, tag: impl Into<MemoryTag>) -> Option<Self> {
        let tag = tag.into();
        Self::allocate(BUFFERS.arena.get(), len, true, tag, |len| Self::reserve_for_model(len, tag))
    }

    /// Enters a block that no request pays for.
    fn reserve_for_model(len: usize, tag: MemoryTag) -> MemoryReservation {
        let mut reservation = model_memory().empty(tag);
        let entered = reservation.try_grow(len);
        debug_assert!(entered.is_ok(), "this budget has no limit");
        reservation
    }

    /// A zeroed buffer of `len` bytes. Zeroed because a backend that writes too little must not
    /// expose data of another request.
    ///
    /// # Errors
    /// The memory budget is exhausted, or the system's memory.
    pub fn zeroed(len: usize, tag: impl Into<MemoryTag>) -> Result<Self, AllocError> {
        Self::charged(BUFFERS.arena.get(), len, true, tag)
    }

    /// A buffer of `len` bytes that may hold data of other requests: only what was written to it
    /// may be read.
    ///
    /// # Errors
    /// The errors of [`AlignedBuf::zeroed`].
    pub fn unwritten(len: usize, tag: impl Into<MemoryTag>) -> Result<Self, AllocError> {
        // Small heap blocks would be uninitialised, which `as_ref` must not expose.
        Self::charged(BUFFERS.arena.get(), len, len < pool::MIN_SIZE, tag)
    }

    /// A buffer of `len` bytes for received data, in `arena` if given and not exhausted; unwritten
    /// as that of [`AlignedBuf::unwritten`]. The caller lets [`AlignedBuf::reservation`] grow while
    /// data arrives. `None` if out of memory.
    pub fn try_for_input(
        arena: Option<&Arc<Arena>>,
        len: usize,
        tag: impl Into<MemoryTag>,
    ) -> Option<Self> {
        let tag = tag.into();
        let unpaid = |_| request_memory().empty(tag);
        arena
            .and_then(|arena| Self::shared(arena, len))
            .or_else(|| Self::allocate(BUFFERS.arena.get(), len, len < pool::MIN_SIZE, tag, unpaid))
    }

    /// As [`AlignedBuf::try_for_input`], in a block of `pool`, whose size is limited, so that the
    /// memory budget does not pay for it; `None` if there is none at once.
    pub fn try_in_pool(pool: &dyn InputPool, len: usize, tag: MemoryTag) -> Option<Self> {
        let block = pool.block(len, tag)?;
        Some(Self { ptr: block.ptr(), len, origin: BufferOrigin::Provided(block) })
    }

    /// A copy of `parts`, one after another. Aborts if out of memory: only for data that no client
    /// chooses.
    pub fn copy_parts(parts: &[&[u8]], tag: impl Into<MemoryTag>) -> Self {
        Self::try_copy_parts(parts, tag)
            .unwrap_or_else(|| handle_alloc_error(Layout::new::<AlignedBase>()))
    }

    /// As [`AlignedBuf::copy_parts`]; `None` if out of memory.
    pub fn try_copy_parts(parts: &[&[u8]], tag: impl Into<MemoryTag>) -> Option<Self> {
        let (tag, len) = (tag.into(), sum_lengths(parts)?);
        let paid = |len| Self::reserve_for_model(len, tag);
        Some(Self::allocate(BUFFERS.arena.get(), len, false, tag, paid)?.filled(parts))
    }

    /// A copy of `parts`, one after another, in `arena` if given and not exhausted.
    ///
    /// # Errors
    /// The errors of [`AlignedBuf::zeroed`].
    pub fn try_copy(
        arena: Option<&Arc<Arena>>,
        parts: &[&[u8]],
        tag: impl Into<MemoryTag>,
    ) -> Result<Self, AllocError> {
        let len = sum_lengths(parts).ok_or(AllocError::System(usize::MAX))?;
        let block = match arena.and_then(|arena| Self::shared(arena, len)) {
            Some(block) => block,
            None => Self::charged(BUFFERS.arena.get(), len, false, tag)?,
        };
        Ok(block.filled(parts))
    }

    /// What pays for the buffer: `None` if it is small, or lies in an arena or an [`InputPool`],
    /// whose size is limited.
    pub fn reservation(&mut self) -> Option<&mut MemoryReservation> {
        match &mut self.origin {
            BufferOrigin::Pool(_, reservation) => Some(reservation),
            BufferOrigin::Empty
            | BufferOrigin::Heap(..)
            | BufferOrigin::Piece(_)
            | BufferOrigin::Provided(_)
            | BufferOrigin::Arena(_) => None,
        }
    }

    /// Changes the length of a block of the pool to `len` bytes, without a copy; what is added may
    /// hold data of other requests. False if the block is not of the pool (shorter than
    /// [`pool::MIN_SIZE`]), or the system has no memory.
    pub fn resize(&mut self, len: usize) -> bool {
        let BufferOrigin::Pool(pages, _) = &mut self.origin else { return false };
        if len < pool::MIN_SIZE || !pool::resize_pages(pages, len) {
            return false;
        }
        pages.claim(len, false);
        (self.ptr, self.len) = (pages.ptr(), len);
        true
    }

    /// A buffer in `arena`, with the content of its last user; `None` if the arena is exhausted.
    fn shared(arena: &Arc<Arena>, len: usize) -> Option<Self> {
        let tag = MemoryTag::default();
        Self::allocate(Some(arena), len, false, tag, |_| request_memory().empty(tag))
    }

    /// Frees the block without keeping it in the pool, for memory that no further request is
    /// expected to need soon.
    pub fn discard(mut self) {
        if let BufferOrigin::Pool(pages, paid) =
            std::mem::replace(&mut self.origin, BufferOrigin::Empty)
        {
            reclaim::reclaim_later((pages, paid));
        }
    }

    /// Draws large blocks from the memory budget before they are allocated. Small ones are pieces of
    /// the thread's block.
    fn charged(
        arena: Option<&Arc<Arena>>,
        len: usize,
        zeroed: bool,
        tag: impl Into<MemoryTag>,
    ) -> Result<Self, AllocError> {
        let tag = tag.into();
        if arena.is_none()
            && len > 0
            && is_short_lived(tag.holder)
            && let Some(mut piece) = take_piece(len)
        {
            let ptr = NonNull::from(piece.as_mut()).cast();
            return Ok(Self { ptr, len, origin: BufferOrigin::Piece(piece) });
        }
        let mut reservation = request_memory().empty(tag);
        if arena.is_none() && len >= pool::MIN_SIZE {
            reservation.try_grow(len).map_err(AllocError::Budget)?;
        }
        Self::allocate(arena, len, zeroed, tag, |_| reservation).ok_or(AllocError::System(len))
    }

    /// Fills the buffer with `parts`, whose lengths sum up to its length.
    fn filled(self, parts: &[&[u8]]) -> Self {
        let mut at = 0;
        for part in parts {
            // SAFETY: `at + part.len()` never exceeds the buffer's length, the sum of all parts; a
            // fresh buffer does not overlap them; every byte is written before it is read.
            unsafe {
                let to = self.ptr.as_ptr().add(at);
                std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
            }
            at += part.len();
        }
        self
    }

    /// Over-allocates and aligns within the block: cheaper than asking the allocator for an aligned
    /// one.
    ///
    /// Unless `zeroed`, heap memory is uninitialised, and memory of the pool or the arena holds its
    /// last user's data: the caller must write all of it, or expose only what it wrote.
    /// `reservation` is called for a block of the pool; one of the heap is entered under `tag`,
    /// except memory of requests, which a report adds up from the requests themselves.
    fn allocate(
        arena: Option<&Arc<Arena>>,
        len: usize,
        zeroed: bool,
        tag: MemoryTag,
        reservation: impl FnOnce(usize) -> MemoryReservation,
    ) -> Option<Self> {
        if len == 0 {
            let ptr = NonNull::<AlignedBase>::dangling().cast();
            return Some(Self { ptr, len, origin: BufferOrigin::Empty });
        }
        if let Some(arena) = arena {
            let block = arena.alloc(len, zeroed)?;
            return Some(Self { ptr: block.ptr(), len, origin: BufferOrigin::Arena(block) });
        }
        if len >= pool::MIN_SIZE {
            let mut pages = pool::take_pages(len)?;
            pages.claim(len, zeroed);
            let (ptr, origin) = (pages.ptr(), BufferOrigin::Pool(pages, reservation(len)));
            return Some(Self { ptr, len, origin });
        }
        let layout = Layout::array::<u8>(len.checked_add(ALIGN - 1)?).ok()?;
        // SAFETY: the layout's size is not zero. Callers that pass `zeroed: false` write every byte
        // first.
        let base = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
        let base = NonNull::new(base)?;
        let skip = base.as_ptr().align_offset(ALIGN);
        // SAFETY: at most `ALIGN - 1` bytes on, inside the block.
        let ptr = unsafe { base.add(skip) };
        if !tag.holder.is_request() {
            tag.add_small(len);
        }
        Some(Self { ptr, len, origin: BufferOrigin::Heap(base, layout, tag) })
    }

    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Hands the block over as reference-counted bytes, without a copy.
    pub fn into_bytes(mut self) -> Bytes {
        match std::mem::replace(&mut self.origin, BufferOrigin::Empty) {
            BufferOrigin::Empty => Bytes::new(),
            BufferOrigin::Piece(piece) => piece.freeze(),
            origin => {
                self.origin = origin;
                Bytes::from_owner(self)
            }
        }
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `ptr` is valid for `len` initialised bytes (dangling and aligned when `len` is
        // 0).
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl AsMut<[u8]> for AlignedBuf {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: `ptr` is valid for `len` initialised bytes, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.origin, BufferOrigin::Empty) {
            BufferOrigin::Heap(base, layout, tag) => {
                if !tag.holder.is_request() {
                    tag.remove_small(self.len);
                }
                // SAFETY: the block came from the allocator with this very layout.
                unsafe { dealloc(base.as_ptr(), layout) }
            }
            BufferOrigin::Pool(pages, reservation) => pool::return_pages(pages, reservation),
            BufferOrigin::Empty
            | BufferOrigin::Piece(_)
            | BufferOrigin::Provided(_)
            | BufferOrigin::Arena(_) => {}
        }
    }
}

/// Small memory of this kind is dropped soon after it was made, and is not entered in the ledger.
fn is_short_lived(holder: LedgerHolder) -> bool {
    use LedgerHolder::{Decode, GatheredInput, Input, Output, RequestBody};
    matches!(holder, Decode | GatheredInput | Input | Output | RequestBody)
}

/// Bytes of all parts; `None` beyond the address space, since parts may overlap.
fn sum_lengths(parts: &[&[u8]]) -> Option<usize> {
    parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.len()))
}

/// Gives dangling pointers of empty buffers the alignment.
#[repr(align(64))]
struct AlignedBase;

#[cfg(test)]
#[path = "buffer_tests.rs"]
mod tests;
